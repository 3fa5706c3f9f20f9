#!/usr/bin/env python3
"""Islands: the same shards by one process, by several ranks, and killed again and again; merged, checked and replayed.

usage: tests/cluster/islands.py GALVANI [KILLS]

Where there is no mpirun, or the program was built without MPI, ranks are left out.
"""
import argparse
import json
import pathlib
import random
import tempfile

from jobs import Job, left_by, need_mpi
from campaigns import DATA, query

ISLANDS = 3
STEP = 2**40  # of origins
SETTINGS = ["fuzz", "model.onnx", *DATA, "--guide", "kmnc", "--seeds", 100, "--energy", 12, "--seed", 7, "--threads", 1, "-q"]
EXCHANGING = [*SETTINGS, "--islands", ISLANDS, "--exchange", 100, "--iterations", 240]


def shards(job, run):
    return [left_by(job.folder / run / f"island-{i}") for i in range(1, ISLANDS + 1)]


def expect(found, wanted, what):
    if found != wanted:
        raise SystemExit(f"{what}: {found} instead of {wanted}" if len(str(found)) < 300 else f"{what}: differs")


def same_by_ranks(job, sizes):
    job.done(0, *EXCHANGING, "-o", "alone")
    alone = shards(job, "alone")
    if alone[0] == alone[1]:
        raise SystemExit("two islands have found the same")
    for size in sizes:
        job.done(size, *EXCHANGING, "-o", f"by-{size}")
        expect(shards(job, f"by-{size}") == alone, True, f"shards of {size} ranks are those of one process")
    print(f"{ISLANDS} islands: the same shards by one process and by {sizes} ranks", flush=True)
    return alone


def told(job):
    """Entries went from island to island, each with what it was made of, at the stated rounds and no other time."""
    for i in range(1, ISLANDS + 1):
        folder = job.folder / "alone" / f"island-{i}"
        rows = query(folder, "SELECT origin, iteration, sha256 FROM inputs WHERE origin != 0")
        if not rows:
            raise SystemExit(f"island {i} has taken nothing from the others")
        for origin, iteration, sha256 in rows:
            there, number = divmod(origin, STEP)
            expect(there != i and 1 <= there <= ISLANDS, True, "an origin")
            found = query(job.folder / "alone" / f"island-{there}", f"SELECT sha256, origin, iteration FROM inputs WHERE id = {number}")
            expect([found[0][0], found[0][1]], [sha256, 0], f"entry {number} of island {there}")
            # Rounds of 100 picks are 7 batches of 16; news is heard in the first batch of the next one.
            expect((iteration % 112, found[0][2] < iteration), (16, True), "the iteration in which it came")
        own = query(folder, f"SELECT count(*) FROM picks JOIN seeds USING (id) WHERE (id - 1) % {ISLANDS} != {i - 1}")
        expect(own, [(0,)], f"island {i} has picked seeds of others")
    print("entries come from where they say, at the stated rounds", flush=True)


def killed(job, alone, sizes, kills):
    job.killed(sizes, kills, "island-1/campaign.toml", random.Random(2), alone, lambda name: shards(job, name), *EXCHANGING)


def as_jobs(job):
    """Islands as jobs of their own are those of one process that do not exchange."""
    job.done(0, *SETTINGS, "--islands", ISLANDS, "--exchange", 0, "--iterations", 96, "-o", "silent")
    for i in reversed(range(1, ISLANDS + 1)):
        job.done(0, *SETTINGS, "--island", f"{i}/{ISLANDS}", "--iterations", 96, "-o", "array")
    expect(shards(job, "array") == shards(job, "silent"), True, "islands as jobs of their own")
    print("islands as jobs of their own: the same shards as of one process without exchange", flush=True)


def merged(job):
    job.run("merge", "alone", "-o", "merged", "-q")
    report = json.loads(job.run("check", "merged", "--json"))
    expect((report["sound"], report["damage"], report["notes"]), (True, [], []), "check of what was merged")
    expect(json.loads(job.run("check", "alone", "--json"))["sound"], True, "check of the islands")
    folders = [job.folder / "alone" / f"island-{i}" for i in range(1, ISLANDS + 1)]
    total = {what: sum(query(f, f"SELECT count(*) FROM {what}")[0][0] for f in folders) for what in ("faults", "inputs WHERE origin = 0")}
    expect(query(job.folder / "merged", "SELECT count(*), count(DISTINCT origin) FROM faults"), [(total["faults"],) * 2], "faults")
    expect(query(job.folder / "merged", "SELECT count(*), count(DISTINCT origin) FROM inputs"), [(total["inputs WHERE origin = 0"],) * 2], "outputs")
    there = {i * STEP + number: sha256 for i, f in enumerate(folders, 1) for number, sha256 in query(f, "SELECT id, sha256 FROM faults")}
    expect(dict(query(job.folder / "merged", "SELECT origin, sha256 FROM faults")) == there, True, "every fault is that of its island")
    for table, column in (("picks", "count"), ("mutators", "mutants"), ("classes", "valid")):
        sums = [query(f, f"SELECT sum({column}) FROM {table}")[0][0] for f in (*folders, job.folder / "merged")]
        expect(sums[-1], sum(sums[:-1]), table)
    replay = json.loads(job.run("replay", "merged", "--json"))
    expect(replay["fail"], total["faults"], "faults that fail again")
    readers = (["stats", "--json"], ["faults", "--json"], ["export", "--to", "csv", "-o", "{out}"], ["replay", "--json"], ["report", "-o", "{out}"])
    for words in readers:
        said = []
        for run in ("merged", "alone"):
            out = f"{words[0]}-{run}"
            text = job.run(words[0], run, *[w.replace("{out}", out) for w in words[1:]])
            said.append((job.folder / out).read_text() if (job.folder / out).exists() else text)
        # Names of folders aside, which are the reader's own.
        if words[0] in ("stats", "export"):
            left, right = [{k: v for k, v in json.loads(t).items() if k != "folder"} if t.startswith("{") else t for t in said]
            expect(left == right, True, f"{words[0]} of islands is that of what was merged")
    quality = [json.loads(job.run("quality", "model.onnx", "--tests", run, "--metrics", "mr", "--json")) for run in ("merged", "alone")]
    expect(len(quality), 2, "quality")
    job.run("compare", "alone", "merged", "--json")
    some = json.loads(job.run("merge", "alone/island-1", "alone/island-3", "-o", "some", "--json"))
    expect(json.loads(job.run("check", "some", "--json"))["sound"], True, "check of two of three islands")
    expect(some["faults"] < total["faults"], True, "two of three islands")
    for words, code, sentence in ((["merge", "alone", "-o", "merged"], 2, "exists"), (["merge", "alone", "alone/island-1", "-o", "x"], 2, "same island"),
                                  (["merge", "alone/island-1", "silent/island-2", "-o", "x"], 2, "not islands of one run"),
                                  (["fuzz", "-o", "merged"], 2, "merged"), ([*SETTINGS, "--islands", 2, "-o", "alone"], 2, "island is")):
        process = job.ranks(0, *words)
        _, err = process.communicate(timeout=120)
        if process.returncode != code or sentence not in err:
            raise SystemExit(f"{words}: exit {process.returncode}, said {err[-600:]}")
    print(f"merged: {total['faults']} faults and {total['inputs WHERE origin = 0']} outputs, each once; sound, and every fault fails again", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("galvani", type=pathlib.Path)
    options.add_argument("kills", type=int, nargs="?", default=2)
    given = options.parse_args()
    try:
        need_mpi(given.galvani)
        sizes = (ISLANDS, 2 * ISLANDS - 1)
    except SystemExit:
        sizes = ()
    with tempfile.TemporaryDirectory(prefix="galvani-islands.") as folder:
        job = Job(given.galvani, pathlib.Path(folder).resolve())
        alone = same_by_ranks(job, sizes)
        told(job)
        as_jobs(job)
        merged(job)
        killed(job, alone, (0, *sizes), given.kills)


if __name__ == "__main__":
    main()
