#!/usr/bin/env python3
"""Compares guides: a campaign for every guide and seed, and a table of the means like NSGen's table 3.

usage: scripts/guide_study.py GALVANI FOLDER --guides nc,kmnc,random --repeats 3 --time 120s -- MODEL --data D --train T [...]

What stands behind `--` is given to `galvani fuzz`. Campaigns lie in FOLDER; those that are there already are gone on with, and every
fault of each is replayed from its file. Prints Markdown.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys


def path_of(folder, guide, seed):
    return folder / f"{guide.replace(':', '_').replace('=', '-')}-{seed}"


def campaign(galvani, run, guide, seed, arguments, rest):
    if run.with_suffix(".json").exists():
        return
    subprocess.run([galvani, "fuzz", *rest, "--guide", guide, "--iterations", str(arguments.iterations), "--time",
                    arguments.time, "--seed", str(seed), "-o", run, "-q"], check=True, stdout=subprocess.DEVNULL)


def report(galvani, run, discard):
    """The campaign's numbers, with those of a replay."""
    file = run.with_suffix(".json")
    if not file.exists():
        def said(verb, *more):
            return json.loads(subprocess.run([galvani, verb, run, "--json", *more], capture_output=True, text=True).stdout)
        stats = said("stats")
        stats["replay"] = said("replay", "-q")
        file.write_text(json.dumps(stats))
        if discard:
            for image in (run / "faults").iterdir():
                image.unlink()
    return json.loads(file.read_text())


def mean(values, digits):
    centre = statistics.mean(values)
    spread = statistics.stdev(values) if len(values) > 1 else 0
    return f"{centre:,.{digits}f} ± {spread:,.{digits}f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("galvani")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--guides", required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=10000)
    parser.add_argument("--time", default="120s")
    parser.add_argument("--discard", action="store_true", help="remove fault images once they are replayed")
    if "--" not in sys.argv:
        parser.error("what to fuzz stands behind --")
    at = sys.argv.index("--")
    arguments, rest = parser.parse_args(sys.argv[1:at]), sys.argv[at + 1:]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    seeds = range(1, arguments.repeats + 1)
    # Campaigns first: nothing else shall take their time.
    for guide in arguments.guides.split(","):
        for seed in seeds:
            campaign(arguments.galvani, path_of(arguments.folder, guide, seed), guide, seed, arguments, rest)
    print("| guide | faults / outputs | RFT | coverage | FRE (s) | #Classes | OI | all faults | distinct | mutants/s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    replayed = failed = 0
    for guide in arguments.guides.split(","):
        runs = [report(arguments.galvani, path_of(arguments.folder, guide, seed), arguments.discard) for seed in seeds]
        def column(key):
            return [run[key] for run in runs]
        replayed += sum(run["replay"]["faults"] for run in runs)
        failed += sum(run["replay"]["fail"] for run in runs)
        share = bool(runs[0]["coverable"])
        coverage = [r["covered"] / r["coverable"] if share else r["covered"] for r in runs]
        print(f"| {guide} | {mean(column('kept_faults'), 0)} / {mean(column('outputs'), 0)} | {mean(column('rft'), 3)} "
              f"| {mean(coverage, 3 if share else 1)} | {mean(column('fre'), 4)} | {mean(column('classes'), 0)} "
              f"| {mean(column('oi'), 3)} | {mean(column('faults'), 0)} | {mean(column('distinct_faults'), 0)} "
              f"| {mean([r['valid'] / r['seconds'] for r in runs], 0)} |", flush=True)
    print(f"\n{failed:,} of {replayed:,} faults failed again when read from their files.")
    return 0 if failed == replayed else 1


if __name__ == "__main__":
    sys.exit(main())
