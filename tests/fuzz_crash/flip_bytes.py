#!/usr/bin/env python3
"""Changes single bytes of a finished campaign's files: `galvani check` must notice every one and change nothing itself.

usage: tests/fuzz_crash/flip_bytes.py BINARY [FLIPS] [SEED]

Each flip changes one byte of a copy of the campaign: of the database, campaign.toml, a fault's PNG, a snapshot, the
profile or the seal, each of these as often as the others. campaign.lock (the last process's number) and campaign.db-shm
(SQLite's scratch memory) say nothing about the campaign and are left out.
"""
import collections
import hashlib
import random
import shutil
import sys
import tempfile

from campaigns import DATA, Workshop

LEFT_OUT = ("campaign.lock", "campaign.db-shm", "campaign.db-wal")


def content(folder):
    return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def kind_of(name):
    return {"faults": "PNG", "state": "seal" if name.name == "seal" else "snapshot"}.get(str(name.parent), name.name)


def checked(w, folder):
    process = w.start("check", folder, "--json", stdout=-1, stderr=-1)
    out, err = process.communicate()
    return process.returncode, out + err


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__.strip())
    flips = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    with tempfile.TemporaryDirectory(prefix="galvani-flip.") as folder:
        w = Workshop(sys.argv[1], folder)
        w.run("fuzz", "model.onnx", *DATA, "--seeds", 60, "--energy", 16, "--batch", 4, "--iterations", 60, "--seed", 7, "-o", "run",
              "-q")
        run, copy = w.folder / "run", w.folder / "copy"
        code, said = checked(w, "run")
        if code != 0:
            raise SystemExit(f"the campaign is damaged from the start: {said}")
        kinds = collections.defaultdict(list)
        for name in content(run):
            if str(name) not in LEFT_OUT:
                kinds[kind_of(name)].append(name)
        if set(kinds) != {"campaign.db", "campaign.toml", "PNG", "snapshot", "profile", "seal"}:
            raise SystemExit(f"the campaign has other files: {sorted(kinds)}")
        shutil.copytree(run, copy)
        seen = collections.Counter()
        for flip in range(1, flips + 1):
            kind = rng.choice(sorted(kinds))
            path = copy / rng.choice(kinds[kind])
            good = path.read_bytes()
            at = rng.randrange(len(good))
            change = rng.randrange(1, 256)
            path.write_bytes(good[:at] + bytes([good[at] ^ change]) + good[at + 1:])
            before = content(copy)
            code, said = checked(w, "copy")
            what = f"byte {at} of {path.relative_to(copy)}, changed by {change:#04x}"
            if code not in (1, 3):
                raise SystemExit(f"flip {flip}: exit {code} with {what}: {said[-2000:]}")
            if content(copy) != before:
                raise SystemExit(f"flip {flip}: check changed the folder, with {what}")
            path.write_bytes(good)
            seen[kind] += 1
        if checked(w, "copy")[0] != 0:
            raise SystemExit("the campaign is damaged although every byte was put back")
    each = ", ".join(f"{seen[kind]} in {kind}" for kind in sorted(seen))
    print(f"{flips} flips, all noticed, nothing changed by looking: {each}; left out: {', '.join(LEFT_OUT)}")


if __name__ == "__main__":
    main()
