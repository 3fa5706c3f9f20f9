#!/usr/bin/env python3
"""Kills a fuzz campaign with SIGKILL at random moments and goes on with it each time.

usage: tests/fuzz_crash/kill_resume.py BINARY [KILLS] [SEED] [more arguments of galvani fuzz]

At the end every fault that was ever reported must be in the store and fail again when it is read from its file, and
the store must be the one of a campaign that nobody disturbed.
"""
import json
import random
import subprocess
import sys
import tempfile
import time

from campaigns import DATA, Workshop, dump, query


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__.strip())
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    more = sys.argv[4:] or ["--guide", "kmnc"]
    with tempfile.TemporaryDirectory(prefix="galvani-kill.") as folder:
        w = Workshop(sys.argv[1], folder)
        settings = ["fuzz", "model.onnx", *DATA, "--seeds", 200, "--energy", 16, "--batch", 4, "--seed", 7, *more]
        # Some die while they start, most of them at work, however long a busy machine takes to get there.
        start = time.monotonic()
        w.run(*settings, "--iterations", 4, "-o", "timed", "-q")
        longest = time.monotonic() - start
        reported = {}  # id: what was said about it
        most = 0
        for kill in range(1, kills + 1):
            lines = w.folder / "lines.json"
            with lines.open("w") as out:
                process = w.start(*settings, "--iterations", 10**9, "-o", "run", "--json-lines", stdout=out,
                                  stderr=subprocess.PIPE)
                at_work = rng.random() < 0.7
                while at_work and process.poll() is None and lines.stat().st_size == 0:
                    time.sleep(0.02)
                time.sleep(rng.uniform(0, 0.7 if at_work else longest))
                if process.poll() is not None:
                    raise SystemExit(f"ended by itself with {process.returncode}: {process.stderr.read()[-1000:]}")
                process.kill()
                process.communicate()
            for line in lines.read_text().splitlines():
                try:
                    event = json.loads(line)
                except json.JSONDecodeError:
                    continue  # cut off by the kill
                most = max(most, event["faults"])
                for fault in event.get("recent", []):
                    if reported.setdefault(fault["id"], fault) != fault:
                        raise SystemExit(f"fault {fault['id']} was reported as {reported[fault['id']]} and as {fault}")
            try:
                batches = query(w.folder / "run", "SELECT max(batch) FROM batches")[0][0]
            except Exception:  # killed before there was a store
                batches = 0
            if kills <= 50 or kill % 50 == 0:
                print(f"kill {kill}: {batches} batches stored, {most} faults reported", flush=True)
        iterations = (batches + 3) * 4
        w.run(*settings, "--iterations", iterations, "-o", "run", "-q")
        columns = ("id", "label", "predicted", "confidence", "rule", "file")
        stored = {row[0]: dict(zip(columns, row)) for row in
                  query(w.folder / "run", f"SELECT {', '.join(columns)} FROM faults")}
        lost = [fault for id, fault in reported.items() if stored.get(id) != fault]
        lost += [id for id in range(1, most + 1) if id not in stored]
        if lost:
            raise SystemExit(f"{len(lost)} faults that were reported are not in the store, such as {lost[0]}")
        replay = json.loads(w.run("replay", "run", "--json"))
        if replay["fail"] != len(stored):
            raise SystemExit(f"only {replay['fail']} of {len(stored)} faults fail again")
        files = {f"faults/{path.name}" for path in (w.folder / "run" / "faults").iterdir()}
        if files != {fault["file"] for fault in stored.values()}:
            raise SystemExit("the files of faults are not those of the store")
        w.run(*settings, "--iterations", iterations, "-o", "undisturbed", "-q")
        if dump(w.folder / "run") != dump(w.folder / "undisturbed"):
            raise SystemExit("the store differs from that of an undisturbed campaign")
        print(f"{kills} kills, {iterations} iterations: {most} faults were reported before a kill, {len(stored)} are stored "
              f"and fail again, and the store equals that of an undisturbed campaign")


if __name__ == "__main__":
    main()
