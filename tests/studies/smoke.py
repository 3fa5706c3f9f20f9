#!/usr/bin/env python3
"""Runs studies (all, unless some are named) at their smallest scale and looks at what they wrote; then once more, when no step may be run again.

usage: tests/studies/smoke.py GALVANI [STUDY...]
"""
import argparse
import csv
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WANTED = {
    "deepsensor": ["deepsensor.md", "deepsensor.csv", "deepsensor-features.svg"],
    "nsgen": ["nsgen.md", "nsgen.csv", "nsgen-layers.svg"],
    "guides": ["guides.md", "guides.csv", "guides.svg"],
    "nss": ["nss.md", "nss.csv", "nss-rates.svg"],
    "cagfuzz": ["cagfuzz.md", "cagfuzz.csv", "cagfuzz-errors.svg", "cagfuzz-training.svg"],
    "revisiting": ["revisiting.md", "revisiting.csv", "revisiting-coverage.svg", "revisiting-quality.svg"],
}


def expect(what, message):
    if not what:
        sys.exit(f"FAIL: {message}")


# A study whose calls are forked from binaries that stand by.
STANDING = """
import os, pathlib, runpy, sys
root, script = map(pathlib.Path, sys.argv[1:3])
sys.path[:0] = [str(root / "studies"), str(root / "tests/stand_by")]
import common, stand_by
standing = []
def call(self, command):
    if not standing:
        standing.append(stand_by.Standing(self.galvani))
    return standing[0].run(command, self.work, os.environ)
common.Study._call = call
sys.argv[:] = sys.argv[2:]
try:
    runpy.run_path(str(script), run_name="__main__")
finally:
    for each in standing:
        each.close()
"""


def start(name, galvani, folder, more):
    script = ROOT / "studies" / f"{name}.py"
    command = [sys.executable, "-c", STANDING, ROOT, script, "--scale", "smoke", "--galvani", galvani, "--work", folder / name, "-o",
               folder / f"{name}-results", *more]
    return subprocess.run(command, capture_output=True, text=True)


def run(name, galvani, folder, *more):
    done = start(name, galvani, folder, more)
    expect(done.returncode == 0, f"{name}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr}")
    return done.stdout


def check_file(path):
    text = path.read_text()
    if path.suffix == ".svg":
        root = xml.etree.ElementTree.fromstring(text)
        expect(root.tag.endswith("svg") and "nan" not in text, f"{path.name}: is no figure")
    elif path.suffix == ".csv":
        rows = list(csv.reader(text.splitlines()))
        expect(len(rows) > 3 and all(len(row) == len(rows[0]) for row in rows), f"{path.name}: is no table")
    else:
        expect(all(len(re.findall(r"\|", line)) > 2 for line in text.splitlines() if line.startswith("|")), f"{path.name}: has broken tables")


def check_revisiting(folder):
    text = (folder / "revisiting.md").read_text()
    for name in ("H1", "H2", "H3", "H4", "H5", "H6"):
        expect(f"| {name} |" in text, f"no row of {name}")
    expect("not measured" not in text.lower(), "something was not measured")
    rows = list(csv.DictReader((folder / "revisiting.csv").open()))
    for question in ("prepare", "rq1", "rq2", "rq3", "rq4"):
        values = [float(row["value"]) for row in rows if row["question"] == question]
        expect(values and all(value == value for value in values), f"no values of {question}")
    rates = {row["case"]: float(row["value"]) for row in rows if row["question"] == "rq3" and row["measure"] == "mr"}
    expect(rates["pgd"] > rates["noise"], f"PGD does not beat noise: {rates}")


def check_nss(folder):
    text = (folder / "nss.md").read_text()
    for name in ("setting", "standing", "verdict", "hard", "table1", "table6", "table7", "table8", "table9", "table10", "table11", "table12", "table13", "table14"):
        part = text.split(f"<!-- {name} -->")[1].split(f"<!-- end of {name} -->")[0]
        expect("|" in part and "not measured" not in part.lower(), f"nothing of {name}")
    rates = {}
    for row in csv.DictReader((folder / "nss.csv").open()):
        expect(0 <= float(row["low"]) <= float(row["fdr"]) <= float(row["high"]) <= 1, f"a rate outside its interval: {row}")
        rates.setdefault(row["selector"], []).append(float(row["fdr"]))
    expect(sum(rates["fused"]) > sum(rates["random"]) and sum(rates["gini"]) > sum(rates["random"]), "selection is no better than chance")


def check_deepsensor(folder):
    text = (folder / "deepsensor.md").read_text()
    for name in ("setting", "guide", "categories", "neurons", "table3", "table4", "parameters", "retrained", "features"):
        part = text.split(f"<!-- {name} -->")[1].split(f"<!-- end of {name} -->")[0]
        expect("|" in part and "not measured" not in part.lower(), f"nothing of {name}")
    rows = [row for row in csv.DictReader((folder / "deepsensor.csv").open()) if row["part"] == "guide"]
    broken = {method: sum(int(row["errors"]) > 0 for row in rows if row["method"] == method) for method in ("pgd", "noise")}
    expect(broken["pgd"] > broken["noise"], f"PGD does not beat noise: {broken}")
    passes = {row["method"]: float(row["passes"]) for row in rows}
    expect(abs(passes["swarm-loss"] / passes["deepsensor"] - 1) < 0.25, f"passes are not equal: {passes}")


def check_nsgen(folder):
    thresholds = {}
    for row in csv.DictReader((folder / "nsgen.csv").open()):
        if row["table"] == "variants" and row["measure"] == "tau":
            thresholds[row["case"]] = float(row["value"])
    fixed = {case for case in thresholds if case.endswith(" at fixed threshold")}
    own = set(thresholds) - fixed - {"nsgen"}
    expect(own and fixed == {f"{case} at fixed threshold" for case in own}, f"the variants at both thresholds: {sorted(thresholds)}")
    expect({thresholds[case] for case in fixed} == {thresholds["nsgen"]}, f"a fixed threshold is not NSGen's: {thresholds}")
    expect(any(thresholds[case] != thresholds["nsgen"] for case in own), f"no variant has a threshold of its own: {thresholds}")


def check_cagfuzz(folder):
    text = (folder / "cagfuzz.md").read_text()
    for name in ("setting", "errors", "campaigns", "transfer", "retrained", "continued"):
        part = text.split(f"<!-- {name} -->")[1].split(f"<!-- end of {name} -->")[0]
        expect("|" in part and "not measured" not in part.lower(), f"nothing of {name}")
    rows = [row for row in csv.DictReader((folder / "cagfuzz.csv").open()) if row["model"] == "lenet5"]
    found = {row["candidates"]: int(row["errors"]) for row in rows}
    expect(found["FGSM 0.3"] > found["noise"], f"FGSM does not beat noise: {found}")
    for measure in ("ssim", "features"):
        counts = [int(row["errors_at_least"]) for row in rows if row["candidates"] == "FGSM 0.3" and row["measure"] == measure]
        expect(counts == sorted(counts, reverse=True), f"more errors at more {measure}: {counts}")
        expect(counts[0] == found["FGSM 0.3"] and counts[-1] < counts[0], f"errors over {measure}: {counts}")


# What a part of a study is asked for: subjects, questions, and what its page must have and must not have.
PARTS = {"nss": ("digits-lenet1-under-*", "rates,fused", ("standing", "alone", "table7"), "table10"),
         "revisiting": ("digits-lenet1-1", "rq2", ("summary", "rq2"), "rq3")}


def check_part(name, galvani, folder):
    """Results of their own, made of the steps that are there; those of the whole stay."""
    subjects, questions, has, lacks = PARTS[name]
    results = folder / f"{name}-results"
    before = {file: (results / file).read_bytes() for file in WANTED[name]}
    words = ("--subjects", subjects, "--questions", questions)
    said = run(name, galvani, folder, *words, "--results", "part", "--beside", results / f"{name}.csv")
    expect(not re.search(r"^ *[\d.]+ s  (?!statistics/)", said, re.MULTILINE), f"{name}: a part ran steps again:\n{said}")
    text = (results / "part.md").read_text()
    expect(all(f"<!-- {part} -->" in text for part in has) and f"<!-- {lacks} -->" not in text, f"{name}: the part has other tables than it should")
    expect(len((results / "part.csv").read_text().splitlines()) < len(before[f"{name}.csv"].decode().splitlines()), f"{name}: the part has everything")
    for wrong, sentence in ((words, "needs --results"), (("--subjects", "nobody", "--results", "part"), "no subject is called nobody")):
        done = start(name, galvani, folder, wrong)
        expect(done.returncode == 1 and sentence in done.stderr, f"{name} {wrong}: {done.returncode}, {done.stderr}")
    expect(all((results / file).read_bytes() == content for file, content in before.items()), f"{name}: a part wrote over the whole")


CHECKS = {"cagfuzz": check_cagfuzz, "deepsensor": check_deepsensor, "nsgen": check_nsgen, "nss": check_nss, "revisiting": check_revisiting}


def check(name, galvani, folder):
    run(name, galvani, folder)
    results = folder / f"{name}-results"
    for file in WANTED[name]:
        check_file(results / file)
    before = (results / f"{name}.md").read_bytes()
    again = run(name, galvani, folder)
    expect(not re.search(r"^ *[\d.]+ s  ", again, re.MULTILINE), f"{name}: steps were run again:\n{again}")
    expect((results / f"{name}.md").read_bytes() == before, f"{name}: the second time it says something else")
    CHECKS.get(name, lambda _: None)(results)
    if name in PARTS:
        check_part(name, galvani, folder)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("galvani", type=pathlib.Path)
    parser.add_argument("studies", nargs="*")
    given = parser.parse_args()
    for name in given.studies or WANTED:
        expect(name in WANTED, f"there is no study '{name}'; there are {', '.join(WANTED)}")
        with tempfile.TemporaryDirectory() as where:
            check(name, given.galvani.resolve(), pathlib.Path(where))
    print("ok")


if __name__ == "__main__":
    main()
