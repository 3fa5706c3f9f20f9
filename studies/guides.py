#!/usr/bin/env python3
"""Guides compared: a campaign for every guide and seed, and a table of the means like NSGen's table 3.

usage: ./dev study guides --scale smoke|small|paper [--guides nc,kmnc,random] [--repeats 3] [--time 120s] [-- MODEL --data D --train T ...]

What stands behind `--` is given to `galvani fuzz`; without it, a LeNet is trained first. Every fault is replayed from its file.
"""
import dataclasses
import statistics
import sys

import common


@dataclasses.dataclass(frozen=True)
class Scale:
    model: str
    data: str
    train: str       # a slice of the data to train on
    epochs: int
    guides: str
    repeats: int
    time: str
    seeds: int
    iterations: int


SCALES = {
    "smoke": Scale("lenet1", "digits", "[0:2000]", 2, "nc,random", 2, "10s", 30, 30),
    "small": Scale("lenet5", "mnist", "", 5, "nc,kmnc,nbc,snac,tknc,nlc,random", 3, "30s", 1000, 2500),
    "paper": Scale("lenet5", "mnist", "", 5, "nc,kmnc,nbc,snac,tknc,tknp,cc,nlc,random", 3, "120s", 1000, 10000),
}
TITLES = ["guide", ">faults / outputs", ">RFT", ">coverage", ">FRE (s)", ">#Classes", ">OI", ">all faults", ">distinct", ">mutants/s"]


def name_of(guide, seed):
    return f"{guide.replace(':', '_').replace('=', '-')}-{seed}"


def spread(values, digits):
    deviation = statistics.stdev(values) if len(values) > 1 else 0
    return f"{statistics.mean(values):,.{digits}f} ± {deviation:,.{digits}f}"


def row(guide, runs):
    def column(key):
        return [run[key] for run in runs]
    share = bool(runs[0]["coverable"])
    coverage = [r["covered"] / r["coverable"] if share else r["covered"] for r in runs]
    return [guide, f"{spread(column('kept_faults'), 0)} / {spread(column('outputs'), 0)}", spread(column("rft"), 3),
            spread(coverage, 3 if share else 1), spread([r["fre"] or 0 for r in runs], 4), spread(column("classes"), 0),
            spread(column("oi"), 3), spread(column("faults"), 0), spread(column("distinct_faults"), 0),
            spread([r["valid"] / r["seconds"] for r in runs], 0)]


def main():
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = common.arguments(__doc__.split("\n")[0], tuple(SCALES))
    parser.set_defaults(jobs=1)  # nothing else shall take a campaign's time
    parser.add_argument("--guides")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--time")
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--discard", action="store_true", help="remove fault images once they are replayed")
    given = parser.parse_args(sys.argv[1:at])
    chosen = {key: getattr(given, key) for key in ("guides", "repeats", "time", "iterations") if getattr(given, key)}
    scale = dataclasses.replace(SCALES[given.scale], **chosen)
    study, output = common.open_study("guides", given)
    what = sys.argv[at + 1:]
    if not what:
        study.step("model", "train", scale.model, "--data", f"{scale.data}:train{scale.train}", "--epochs", scale.epochs, output=".onnx")
        what = ["model.onnx", "--data", f"{scale.data}:test", "--train", f"{scale.data}:train{scale.train}", "--seeds", scale.seeds]
    names = {guide: [name_of(guide, seed) for seed in range(1, scale.repeats + 1)] for guide in scale.guides.split(",")}
    # Campaigns first: replaying shall take none of their time either.
    found = {name: study.step(name, "fuzz", *what, "--guide", guide, "--iterations", scale.iterations, "--time", scale.time, "--seed", seed,
                              output="")
             for guide, runs in names.items() for seed, name in enumerate(runs, 1)}
    replayed = [study.step(f"{name}-replay", "replay", name) for name in found]
    study.step("comparison", "compare", *found, "--plot", "comparison.svg", writes=("comparison.svg",))
    if given.discard:
        for name in found:
            for image in (study.work / name / "faults").iterdir():
                image.unlink()
    failed, faults = sum(r["fail"] for r in replayed), sum(r["faults"] for r in replayed)
    rows = [row(guide, [found[name] for name in runs]) for guide, runs in names.items()]
    (output / "guides.svg").write_text((study.work / "comparison.svg").read_text())
    common.write_csv(output / "guides.csv", ["run", "guide", "faults", "distinct", "kept_faults", "outputs", "rft", "fre", "classes", "oi"],
                     [[name, r["guide"], r["faults"], r["distinct_faults"], r["kept_faults"], r["outputs"], r["rft"], r["fre"], r["classes"],
                       r["oi"]] for name, r in found.items()])
    text = common.table(TITLES, rows) + f"\n\n{failed:,} of {faults:,} faults failed again when read from their files.\n"
    (output / "guides.md").write_text(f"# Guides compared\n\n`galvani fuzz {' '.join(map(str, what))} --iterations {scale.iterations} --time "
                                      f"{scale.time}`, {common.counted(scale.repeats, 'seed')}; mean ± standard deviation.\n\n{text}\n![growth of faults](guides.svg)\n")
    print(text)
    return 0 if failed == faults else 1


if __name__ == "__main__":
    common.run(main)
