#!/usr/bin/env python3
"""One campaign with 1, 2 and 4 threads, on an idle and on a busy machine: the stores must be the same.

usage: tests/fuzz_crash/same_store.py BINARY [GUIDES, separated by blanks]
"""
import multiprocessing
import os
import sys
import tempfile

from campaigns import DATA, Workshop, dump


def burn():
    while True:
        pass


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__.strip())
    guides = sys.argv[2:] or ["kmnc", "nlc", "random"]
    with tempfile.TemporaryDirectory(prefix="galvani-same.") as folder:
        w = Workshop(sys.argv[1], folder)
        for guide in guides:
            expected = None
            for threads, busy in ((1, False), (2, False), (4, False), (2, True)):
                name = f"run-{guide}-{threads}{'-busy' if busy else ''}".replace(":", "_")
                burners = [multiprocessing.Process(target=burn, daemon=True) for _ in range(os.cpu_count() if busy else 0)]
                for burner in burners:
                    burner.start()
                w.run("fuzz", "model.onnx", *DATA, "--guide", guide, "--iterations", 160, "--seed", 3, "--threads", threads,
                      "-o", name, "-q")
                for burner in burners:
                    burner.terminate()
                found = dump(w.folder / name)
                expected = expected or found
                if found != expected:
                    raise SystemExit(f"{name}: its store differs from that with one thread")
            print(f"{guide}: {len(expected)} statements, the same with 1, 2 and 4 threads, idle and busy", flush=True)


if __name__ == "__main__":
    main()
