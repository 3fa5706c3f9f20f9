#!/usr/bin/env python3
"""The same campaigns with an earlier build and with this one: what both store must be the same, fault files to the byte.

usage: tests/fuzz_crash/earlier_build.py EARLIER BINARY [--guides "nc kmnc"] [--iterations N] [--model M.onnx -- FLAGS OF IT AND ITS DATA]

Without --model a LeNet-5 of the built-in digits. The new build runs layers as the earlier one did (--unfused) and picks seeds by its
rule (--scheduler decay). On a processor that OpenBLAS does not know, set OPENBLAS_CORETYPE, so that both run the same kernels. Compared are all rows of all tables that both have, in the columns that both have, but for the clock, the
schema's number, and the chain of hashes, which covers columns of the new schema.
"""
import argparse
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

from campaigns import DATA, Workshop

DATA_SETS = pathlib.Path(os.environ.get("GALVANI_CACHE", pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "galvani")) / "data"
LEFT_OUT = {("clock", None), ("batches", "chain")}


def tables(folder):
    connection = sqlite3.connect(f"file:{folder / 'campaign.db'}?mode=ro", uri=True)
    names = [row[0] for row in connection.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite%'")]
    return connection, {name: [row[1] for row in connection.execute(f"pragma table_info({name})")] for name in names}


def rows(connection, table, columns):
    return connection.execute(f"select {', '.join(columns)} from {table} order by {', '.join(columns)}").fetchall()


def compare(earlier, new):
    """Returns what differs, and how many rows and files were compared."""
    (a, columns_a), (b, columns_b) = tables(earlier), tables(new)
    differing, count = [], 0
    for table in columns_a:
        if (table, None) in LEFT_OUT or table == "meta":
            continue
        if table not in columns_b:
            differing.append(f"no table {table}")
            continue
        columns = [c for c in columns_a[table] if c in columns_b[table] and (table, c) not in LEFT_OUT]
        gone = [c for c in columns_a[table] if c not in columns_b[table]]
        differing += [f"{table}.{c} is gone" for c in gone]
        ra, rb = rows(a, table, columns), rows(b, table, columns)
        count += len(ra)
        if ra != rb:
            differing.append(f"{table}: {sum(x != y for x, y in zip(ra, rb)) + abs(len(ra) - len(rb))} of {len(ra)} rows")
    files = [{str(p.relative_to(folder)): p.read_bytes() for p in (folder / "faults").rglob("*.png")} for folder in (earlier, new)]
    if files[0] != files[1]:
        differing.append(f"fault files: {len(files[0])} and {len(files[1])}, {len(set(files[0].items()) ^ set(files[1].items()))} of them other ones")
    return differing, count, len(files[0])


def run(workshop, *arguments):
    """Started, not standing by: there are two binaries."""
    process = workshop.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _, err = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"exit {process.returncode} of {workshop.binary} {' '.join(map(str, arguments))}: {err[-1000:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier")
    parser.add_argument("binary")
    parser.add_argument("--guides", default="nc kmnc nlc random deephunter")
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--model", type=pathlib.Path)
    words, flags = sys.argv[1:], []
    if "--" in words:
        words, flags = words[:words.index("--")], words[words.index("--") + 1:]
    options = parser.parse_args(words)
    wrong = False
    with tempfile.TemporaryDirectory(prefix="galvani-earlier.") as folder:
        new = Workshop(options.binary, folder)
        old = Workshop.__new__(Workshop)
        old.__dict__.update(new.__dict__, binary=str(pathlib.Path(options.earlier).resolve()),
                            environment={**new.environment, "GALVANI_CACHE": str(new.folder / "earlier-cache")})
        for cache in ("cache", "earlier-cache"):  # data sets, but not what was measured
            (new.folder / cache).mkdir(exist_ok=True)
            (new.folder / cache / "data").symlink_to(DATA_SETS)
        model = options.model.resolve() if options.model else "model.onnx"
        for guide in options.guides.split():
            settings = ["fuzz", model, *(flags or DATA), "--guide", guide, "--iterations", options.iterations, "--seed", 3, "--micro-batch", 32, "-q"]
            run(old, *settings, "-o", f"old-{guide}")
            run(new, *settings, "--unfused", "--scheduler", "decay", "-o", f"new-{guide}")
            differing, compared, files = compare(new.folder / f"old-{guide}", new.folder / f"new-{guide}")
            print(f"{guide}: {compared} rows and {files} fault files, {'; '.join(differing) or 'the same'}", flush=True)
            wrong = wrong or bool(differing)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
