#!/usr/bin/env python3
"""What a campaign on several processes costs: tables for docs/scale.md, in Markdown. Run it on an idle machine.

usage: tests/cluster/costs.py GALVANI [--seconds 20] [--models lenet5,resnet20[=FILE],resnet50] [--parts decider,one,two,scale]

  decider  what is not cut, per candidate, by model and guide; what is sent
  one      one rank under mpirun against no mpirun: seconds of work, pairs by turns, the median of their ratios
  two      two ranks of one thread against one process of two threads, likewise
  scale    the simulation (simulate.py) with these figures, checked against 1, 2 and 4 real ranks, to 1,024

LeNet-5 is trained on digits and looks at digits. Others look at slopes with some noise, and have drawn weights unless a file is named; their own verdicts are the
labels. What a candidate costs hangs on pixels and weights only by how many are kept or faults.
"""
import argparse
import json
import pathlib
import random
import re
import statistics
import struct
import tempfile
import zipfile

from jobs import Job, need_mpi
from simulate import Campaign, Network, Run, efficient_ranks, predicted

GUIDES = ("random", "kmnc", "nlc")
MODELS = {"lenet5": (1, 28), "resnet20": (3, 32), "resnet50": (3, 224)}
IMAGES = 64
CLASSES = 10
PAIRS = 5


def pictures(path, channels, side, rng):
    """Slopes with some noise, as an NPZ of bytes [N, C, H, W] and labels that mean nothing."""
    values = bytearray()
    for _ in range(IMAGES):
        for _ in range(channels):
            across, down, start = rng.randint(-3, 3), rng.randint(-3, 3), rng.randint(60, 190)
            for y in range(side):
                values += bytes(max(0, min(255, start + (across * x + down * y) * 28 // side + (x * y * 7 + y) % 23)) for x in range(side))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", npy("|u1", (IMAGES, channels, side, side), bytes(values)))
        archive.writestr("labels.npy", npy("<i8", (IMAGES,), struct.pack(f"<{IMAGES}q", *[i % CLASSES for i in range(IMAGES)])))


def npy(kind, shape, values):
    header = repr({"descr": kind, "fortran_order": False, "shape": shape})
    header = header.ljust(-(-(len(header) + 11) // 64) * 64 - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values


class Costs:
    def __init__(self, job, seconds):
        self.job = job
        self.seconds = seconds
        self.number = 0
        self.data = {}  # by model
        self.picks = {}  # of a campaign that takes about so long

    def add_model(self, name, file):
        if name == "lenet5" and not file:
            self.data[name] = f"digits:test[0:{IMAGES}]"
            (self.job.folder / "lenet5.onnx").write_bytes((self.job.folder / "model.onnx").read_bytes())
            return
        self.data[name] = f"{name}.npz"
        pictures(self.job.folder / f"{name}.npz", *MODELS[name], random.Random(1))
        if file:
            (self.job.folder / f"{name}.onnx").write_bytes(pathlib.Path(file).read_bytes())
        else:
            # No training at all.
            self.job.run("train", name, "--data", f"{name}.npz", "--test", f"{name}.npz", "--epochs", 0, "-o", f"{name}.onnx", "-q")

    def fuzz(self, name, guide, picks, ranks=0, threads=1):
        self.number += 1
        run = f"run-{self.number}"
        extra = ["--train", self.data[name], "--profile-size", IMAGES] if guide == "kmnc" else []
        process = self.job.ranks(ranks, "fuzz", f"{name}.onnx", "--data", self.data[name], "--labels", "model", "--wrong-seeds", "keep", "--guide", guide, *extra,
                                 "--threads", threads, "--iterations", picks, "-o", run, "--json", "-v")
        out, err = process.communicate(timeout=3600)
        if process.returncode != 0:
            raise SystemExit(f"{name}, {guide}: exit {process.returncode}: {err[-800:]}")
        found = json.loads(out)
        told = re.search(r"cut work:(.*) shared: (\d+) bytes in ([\d.]+) s; stored beside it in ([\d.]+) s", err)
        kinds = re.findall(r"(\d+) tasks, (\d+) times, in ([\d.]+) s;", told[1])
        cut = [(int(tasks), int(calls), float(seconds)) for tasks, calls, seconds in kinds]
        return Run(found["mutants"], found["seconds"], cut, int(told[2]), float(told[4]))

    def long_enough(self, name, guide):
        if (name, guide) not in self.picks:
            trial = self.fuzz(name, guide, 16)
            trial = self.fuzz(name, guide, 64) if trial.seconds < 2 else trial
            a_pick = trial.seconds / trial.mutants * 64
            self.picks[name, guide] = max(16, round(self.seconds / a_pick / 16) * 16)
        return self.picks[name, guide]

    def campaign(self, name, guide):
        """Measured alone, then by two ranks for what is sent. Absorbing seeds and choosing them is part of cut work, but not of the seconds of work: a
        campaign of no length is subtracted."""
        picks = self.long_enough(name, guide)
        start, whole, sent = self.fuzz(name, guide, 16), self.fuzz(name, guide, picks + 16), self.fuzz(name, guide, picks + 16, ranks=2)
        sent_start = self.fuzz(name, guide, 16, ranks=2)
        return Campaign.between(start, whole, (sent.bytes - sent_start.bytes) / (sent.mutants - sent_start.mutants))


def decider(costs, models, guides):
    print("\n| model | guide | candidate, one thread (µs) | cut over ranks (µs) | not cut: the decider (µs) | stored beside (µs) | sent (bytes) | ranks at half efficiency |\n|---|---|--:|--:|--:|--:|--:|--:|")
    found = {}
    for name in models:
        for guide in guides:
            c = found[name, guide] = costs.campaign(name, guide)
            print(f"| {name} | {guide} | {c.total * 1e6:.1f} | {c.cut * 1e6:.1f} | {c.decider * 1e6:.1f} | {c.beside * 1e6:.1f} | {c.sent:.0f} | {efficient_ranks(c, Network())} |", flush=True)
    return found


def ratio(costs, name, guide, ours, others):
    """Candidates a second of `ours` over those of `others`, each (ranks, threads): the median of pairs by turns."""
    picks = costs.long_enough(name, guide)
    ratios = []
    for pair in range(PAIRS):
        order = [ours, others] if pair % 2 == 0 else [others, ours]
        rates = {}
        for ranks, threads in order:
            run = costs.fuzz(name, guide, picks, ranks, threads)
            rates[ranks, threads] = run.mutants / run.seconds
        ratios.append(rates[ours] / rates[others])
    return statistics.median(ratios), min(ratios), max(ratios)


def scale(costs, models, guide, measured):
    print("\n| model | ranks | measured, candidates/s | simulated | simulated/measured |\n|---|--:|--:|--:|--:|")
    for name in models:
        picks = costs.long_enough(name, guide)
        for ranks in (1, 2, 4):
            run = costs.fuzz(name, guide, picks, ranks)
            rate, wanted = run.mutants / run.seconds, predicted(measured[name, guide], ranks, Network.inside_a_machine(), cores=2)
            print(f"| {name} | {ranks} | {rate:.0f} | {wanted:.0f} | {wanted / rate:.2f} |", flush=True)
    sizes = [2**i for i in range(11)]
    print("\n| model | " + " | ".join(f"{size:,}" for size in sizes) + " |\n|---|" + "--:|" * len(sizes))
    for name in models:
        c = measured[name, guide]
        alone = predicted(c, 1, Network())
        print(f"| {name} | " + " | ".join(f"{predicted(c, size, Network()) / alone:.1f}" for size in sizes) + " |", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("galvani", type=pathlib.Path)
    options.add_argument("--seconds", type=float, default=20, help="of each campaign, about")
    options.add_argument("--models", default="lenet5,resnet20,resnet50")
    options.add_argument("--guides", default=",".join(GUIDES))
    options.add_argument("--parts", default="decider,one,two,scale")
    given = options.parse_args()
    need_mpi(given.galvani)
    files = dict((m.split("=") + [""])[:2] for m in given.models.split(","))
    parts = given.parts.split(",")
    guides = given.guides.split(",")
    with tempfile.TemporaryDirectory(prefix="galvani-costs.") as folder:
        costs = Costs(Job(given.galvani, pathlib.Path(folder).resolve()), given.seconds)
        for name, file in files.items():
            costs.add_model(name, file)
        wanted = guides if "decider" in parts else ["kmnc"]
        measured = decider(costs, files, wanted) if "decider" in parts or "scale" in parts else {}
        if "one" in parts:
            print("\n1 rank under mpirun, candidates/s over those without (kmnc):", flush=True)
            for name in files:
                print("{}: {:.3f} ({:.3f} to {:.3f})".format(name, *ratio(costs, name, "kmnc", (1, 1), (0, 1))), flush=True)
        if "two" in parts:
            print("\n2 ranks of one thread, candidates/s over those of one process of two threads (kmnc):", flush=True)
            for name in files:
                print("{}: {:.3f} ({:.3f} to {:.3f})".format(name, *ratio(costs, name, "kmnc", (2, 1), (0, 2))), flush=True)
        if "scale" in parts:
            scale(costs, files, "kmnc", measured)


if __name__ == "__main__":
    main()
