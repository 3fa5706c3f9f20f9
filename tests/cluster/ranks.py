#!/usr/bin/env python3
"""One job on several processes (mpirun): the same campaigns, figures and files as on one, killed and gone on with or not.

usage: tests/cluster/ranks.py GALVANI [KILLS [METHODS, separated by blanks]]

Exits with 77 (skipped) where there is no mpirun, or the program was built without MPI.
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fuzz_crash"))
from campaigns import DATA, Workshop, dump  # noqa: E402

SIZES = (1, 2, 3, 4)
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
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
       "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_plm_rsh_agent": "sh"}  # all on this machine, whatever it has


class Job(Workshop):
    def __init__(self, binary, folder):
        super().__init__(binary, folder)
        self.environment.update(MPI)

    def ranks(self, size, *arguments, **more):
        launcher = ["mpirun", "-n", str(size)] if size else []
        return subprocess.Popen([*launcher, self.binary, *map(str, arguments)], cwd=self.folder, env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def done(self, size, *arguments):
        process = self.ranks(size, *arguments)
        out, err = process.communicate(timeout=600)
        if process.returncode != 0:
            raise SystemExit(f"exit {process.returncode} of {size} ranks, {' '.join(map(str, arguments))}: {err[-1500:]}")
        return out


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in (folder / "faults").rglob("*.*")}


def same_campaigns(job, methods):
    for name in methods:
        expected = None
        for size in (0, *SIZES):
            run = f"{name}-{size}"
            job.done(size, "fuzz", "model.onnx", *DATA, *METHODS[name], "--seed", 3, "--threads", 1, "-o", run, "-q")
            found = dump(job.folder / run), files_of(job.folder / run)
            expected = expected or found
            if found != expected:
                raise SystemExit(f"{run}: the store or the files differ from those of one process")
        print(f"{name}: {len(expected[0])} statements and {len(expected[1])} files, the same with none and {SIZES} ranks", flush=True)


def same_results(job):
    for name, words in VERBS.items():
        expected = None
        for size in (0, 2, 3):
            out = f"{name}-{size}"
            said = job.done(size, *[str(w).replace("{out}", out) for w in words], "--threads", 1, "-q")
            path = job.folder / out
            found = (dump(path), files_of(path)) if path.is_dir() else path.with_suffix(".csv").read_bytes() if path.with_suffix(".csv").exists() else without_times(said)
            expected = expected or found
            if found != expected:
                raise SystemExit(f"{name}: {size} ranks give something else than one process")
        print(f"{name}: the same with none, 2 and 3 ranks", flush=True)


def without_times(said):
    import json

    def cleaned(value):
        if isinstance(value, dict):
            return {k: cleaned(v) for k, v in value.items() if "second" not in k and "time" not in k}
        return [cleaned(v) for v in value] if isinstance(value, list) else value
    return cleaned(json.loads(said))


def killed(job, kills, rng):
    """Ranks are killed at random, any of them; another number of ranks goes on."""
    settings = ["fuzz", "model.onnx", *DATA, "--guide", "kmnc", "--seed", 5, "--threads", 1, "-q"]
    iterations = 1500
    job.done(0, *settings, "--iterations", iterations, "-o", "whole")
    deaths = 0
    while True:
        size = rng.choice(SIZES)
        process = job.ranks(size, *settings, "--iterations", iterations, "-o", "cut")
        if deaths < kills:
            # At work, as a rule: there is a store.
            begun = time.monotonic()
            while not (job.folder / "cut" / "campaign.toml").exists() and process.poll() is None and time.monotonic() < begun + 60:
                time.sleep(0.05)
            time.sleep(rng.uniform(0.2, 3))
            found = [int(p) for p in subprocess.run(["pgrep", "-f", f"{job.binary} fuzz"], capture_output=True, text=True).stdout.split()]
            found = [p for p in found if p != process.pid and pathlib.Path(f"/proc/{p}/cwd").exists() and os.readlink(f"/proc/{p}/cwd") == str(job.folder)]
            if found:
                os.kill(rng.choice(found), signal.SIGKILL)
                deaths += 1
        _, err = process.communicate(timeout=600)
        if process.returncode == 0:
            break
        if deaths > kills:
            raise SystemExit(f"does not go on: {err[-1000:]}")
    same = dump(job.folder / "whole") == dump(job.folder / "cut") and files_of(job.folder / "whole") == files_of(job.folder / "cut")
    if not same:
        raise SystemExit("a campaign whose ranks were killed differs from an undisturbed one")
    print(f"{deaths} ranks killed, gone on with by other numbers of ranks: the store equals that of an undisturbed campaign", flush=True)


def refusals(job):
    for words, code, sentence in ((["stats", "kmnc-0"], 2, "one process"), (["fuzz", "missing.onnx", *DATA, "-o", "x"], 3, "missing.onnx")):
        process = job.ranks(2, *words)
        _, err = process.communicate(timeout=120)
        if process.returncode != code or sentence not in err or err.count("error:") != 1:
            raise SystemExit(f"{words}: exit {process.returncode}, said {err[-600:]}")
    print("refusals: one sentence, said once", flush=True)


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__.strip())
    binary = pathlib.Path(sys.argv[1]).resolve()
    linked = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
    if shutil.which("mpirun") is None or "libmpi" not in linked:
        print("no mpirun, or a build without MPI")
        raise SystemExit(77)
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    methods = sys.argv[3:] or ["kmnc"]
    with tempfile.TemporaryDirectory(prefix="galvani-ranks.") as folder:
        job = Job(binary, pathlib.Path(folder).resolve())
        same_campaigns(job, methods)
        same_results(job)
        refusals(job)
        killed(job, kills, random.Random(1))


if __name__ == "__main__":
    main()
