#!/usr/bin/env python3
"""One job on several processes (mpirun): the same campaigns, figures and files as on one, killed and gone on with or not.

usage: tests/cluster/ranks.py GALVANI [KILLS [METHODS, separated by blanks]] [--all-sizes]

Exits with 77 (skipped) where there is no mpirun, or the program was built without MPI.
"""
import argparse
import json
import pathlib
import random
import tempfile
import zipfile

from jobs import Job, left_by, need_mpi
from campaigns import DATA
from run import style_network

METHODS = {
    "kmnc": ["--guide", "kmnc", "--iterations", 96],
    "nlc": ["--guide", "nlc", "--iterations", 96],
    "deepsensor": ["--method", "deepsensor", "--generator", "swarm:eps=0.3,fitness=loss", "--seeds", 4, "--iterations", 4],
    "nsgen": ["--method", "nsgen", "--seeds", 40, "--iterations", 12],
}
VERBS = {
    "predict": ["predict", "model.onnx", "--data", "digits:test[0:700]", "-o", "{out}.csv"],
    "cover": ["cover", "model.onnx", *DATA, "--criteria", "kmnc,nlc,tknp,npc", "--json"],
    "select": ["select", "model.onnx", "--data", "digits:test[0:600]", "--train", "digits:train[0:1000]", "--by", "gini,nss,datis", "--top", "50", "-o", "{out}.csv"],
    "attack": ["attack", "model.onnx", "--data", "digits:test[0:100]", "--method", "pgd:steps=5", "--eps", "0.1", "-o", "{out}"],
}

def same_campaigns(job, methods, sizes):
    for name in methods:
        expected = None
        for size in (0, *sizes):
            run = f"{name}-{size}"
            job.done(size, "fuzz", "model.onnx", *DATA, *METHODS[name], "--seed", 3, "--threads", 1, "-o", run, "-q")
            found = left_by(job.folder / run)
            expected = expected or found
            if found != expected:
                raise SystemExit(f"{run}: the store or the files differ from those of one process")
        print(f"{name}: {len(expected[0])} statements and {len(expected[1])} files, the same with none and {sizes} ranks", flush=True)


def same_results(job, sizes):
    for name, words in VERBS.items():
        expected = None
        for size in (0, *sizes):
            out = f"{name}-{size}"
            said = job.done(size, *[str(w).replace("{out}", out) for w in words], "--threads", 1, "-q")
            path = job.folder / out
            found = left_by(path) if path.is_dir() else path.with_suffix(".csv").read_bytes() if path.with_suffix(".csv").exists() else without_times(said)
            expected = expected or found
            if found != expected:
                raise SystemExit(f"{name}: {size} ranks give something else than one process")
        print(f"{name}: the same with none and {sizes} ranks", flush=True)


def without_times(said):
    def cleaned(value):
        if isinstance(value, dict):
            return {k: cleaned(v) for k, v in value.items() if "second" not in k and "time" not in k}
        return [cleaned(v) for v in value] if isinstance(value, list) else value
    return cleaned(json.loads(said))


def killed(job, kills, iterations, sizes, rng):
    """Ranks are killed at random, any of them; another number of ranks goes on."""
    settings = ["fuzz", "model.onnx", *DATA, "--guide", "kmnc", "--seed", 5, "--threads", 1, "-q", "--iterations", iterations]
    job.done(0, *settings, "-o", "whole")
    job.killed(sizes, kills, "campaign.toml", rng, left_by(job.folder / "whole"), lambda name: left_by(job.folder / name), *settings)


def found_out(job, words, first=(), second=()):
    """Two ranks with words for mpirun of each, which must end with one sentence."""
    launcher = ["mpirun", "-n", "1", *first, job.binary, *map(str, words), ":", "-n", "1", *second]
    process = job.ranks(0, *words, launcher=launcher)
    _, err = process.communicate(timeout=120)
    if process.returncode != 4 or "not the same in all processes" not in err or err.count("error:") != 1:
        raise SystemExit(f"unlike ranks, {words}: exit {process.returncode}, said {err[-600:]}")
    left = [p.name for p in job.folder.glob("unlike*")]
    if left:
        raise SystemExit(f"unlike ranks have written {left}")
    return err


def other_files(job):
    """Where the same path leads to another file on another machine."""
    there = job.folder / "there"
    there.mkdir()
    (there / "model.onnx").symlink_to("../model.onnx")
    (job.folder / "style.onnx").write_bytes(style_network(0.9, 0.05))
    (there / "style.onnx").write_bytes(style_network(0.5, 0.1))
    err = found_out(job, ["fuzz", "model.onnx", *DATA, "--guide", "random", "--mutators", "style-net:model=style.onnx,output=0..1", "--iterations", 8,
                          "-o", job.folder / "unlike", "-q"], second=("-wdir", str(there)))
    if "what the generator makes" not in err:
        raise SystemExit(f"another file of the generator: {err}")
    (there / "model.onnx").unlink()
    job.run("train", "lenet5", "--data", "digits:train[0:200]", "--test", "digits:test[0:100]", "--epochs", 1, "-o", "there/model.onnx", "-q")
    found_out(job, ["predict", "model.onnx", "--data", "digits:test[0:100]", "-o", job.folder / "unlike.csv", "-q"], second=("-wdir", str(there)))
    print("another file at the same path: found out", flush=True)


def unlike(job):
    """Ranks that compute otherwise are found out before anything is written."""
    slow = {"ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default", "OPENBLAS_CORETYPE": "Prescott"}
    scores = []
    for more in ({}, slow):
        job.environment.update(more)
        job.run("trace", "model.onnx", "--data", "digits:test[0:64]", "-o", "scores.npz")
        scores.append(zipfile.ZipFile(job.folder / "scores.npz").read("logits.npy"))
    for name in slow:
        del job.environment[name]
    if scores[0] == scores[1]:
        print("unlike ranks: skipped, for this processor has nothing better than the slowest kernels", flush=True)
        return
    switches = [word for name, value in slow.items() for word in ("-x", f"{name}={value}")]
    fuzz = ["fuzz", "model.onnx", *DATA, *METHODS["kmnc"], "-o", "unlike", "-q"]
    others = [([str(w).replace("{out}", "unlike") for w in words], [], switches) for words in VERBS.values()]
    for words, first, second in ((fuzz, [], switches), (fuzz, switches, []), *others):
        found_out(job, words, first, second)
    print(f"unlike ranks: found out by {1 + len(VERBS)} verbs", flush=True)


def refusals(job):
    for words, code, sentence in ((["stats", "kmnc-0"], 2, "one process"), (["fuzz", "missing.onnx", *DATA, "-o", "x"], 3, "missing.onnx")):
        process = job.ranks(2, *words)
        _, err = process.communicate(timeout=120)
        if process.returncode != code or sentence not in err or err.count("error:") != 1:
            raise SystemExit(f"{words}: exit {process.returncode}, said {err[-600:]}")
    print("refusals: one sentence, said once", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("galvani", type=pathlib.Path)
    options.add_argument("kills", type=int, nargs="?", default=2)
    options.add_argument("methods", nargs="*", default=["kmnc"], metavar="METHOD", help="of " + ", ".join(METHODS))
    options.add_argument("--all-sizes", action="store_true", help="1, 2, 3 and 4 ranks instead of 3")
    given = options.parse_args()
    need_mpi(given.galvani)
    sizes = (1, 2, 3, 4) if given.all_sizes else (3,)
    with tempfile.TemporaryDirectory(prefix="galvani-ranks.") as folder:
        job = Job(given.galvani, pathlib.Path(folder).resolve())
        same_campaigns(job, given.methods, sizes)
        same_results(job, (2, 3) if given.all_sizes else (2,))
        refusals(job)
        other_files(job)
        unlike(job)
        killed(job, given.kills, 1500 if given.all_sizes else 700, (1, 2, 3, 4), random.Random(1))


if __name__ == "__main__":
    main()
