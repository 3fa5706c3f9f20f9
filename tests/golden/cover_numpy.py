#!/usr/bin/env python3
"""Computes coverage once more with NumPy, from traces that `galvani trace` wrote, and compares with `galvani cover`.

usage: cover_numpy.py GALVANI MODEL TRAIN_DATA TEST_DATA [FLAGS OF THE MODEL]

With `-` as MODEL a small one is trained on TRAIN_DATA first.

KMNC, NBC, SNAC, NC, TKNC and TKNP must agree to the last count, per tap too; NLC, both orders, within 1e-5 of its value; LSA,
DSA and MDSA within 1e-6. Exits 1 with what differs. Needs python3-numpy.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy

CRITERIA = "nc,nac,kmnc:k=100,kmnc:k=1000,nbc,snac,tknc,tknp,nlc,nlc:order=free"


def run(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def taps_of(path):
    archive = numpy.load(path)
    return ({name[4:]: archive[name] for name in archive.files if name.startswith("tap/")}, archive)


def neuron_coverage(values, threshold):
    low = values.min(1, keepdims=True).astype(float)
    span = values.max(1, keepdims=True) - low
    with numpy.errstate(invalid="ignore", divide="ignore"):
        scaled = (values.astype(float) - low) / span
    return ((span > 0) & (scaled > threshold)).any(0).sum(), values.shape[1]


def multisection(values, training, k):
    covered = 0
    low, high = training.min(0).astype(float), training.max(0).astype(float)
    for j in numpy.flatnonzero(high > low):
        inside = values[(values[:, j] >= low[j]) & (values[:, j] <= high[j]), j].astype(float)
        covered += len(numpy.unique(numpy.maximum(1, numpy.ceil((inside - low[j]) / (high[j] - low[j]) * k))))
    return covered, int((high > low).sum()) * k


def boundary(values, training, both):
    upper = (values > training.max(0)).any(0).sum()
    lower = (values < training.min(0)).any(0).sum()
    n = values.shape[1]
    return (upper + lower, 2 * n) if both else (upper, n)


def leaders(values, k):
    return numpy.sort(numpy.argsort(-values, axis=1, kind="stable")[:, :k], axis=1)


def neural_coverage(values, free):
    """The authors' rule, input by input; or all inputs pooled."""
    values = values.astype(float)
    if free:
        return numpy.abs(numpy.atleast_2d(numpy.cov(values.T, bias=True))).mean()
    mean, covariance, count, norm = values[0].copy(), numpy.zeros((values.shape[1],) * 2), 1, 0.0
    for x in values[1:]:
        weight = 1 / (count + 1)
        delta = x - mean
        candidate = (1 - weight) * covariance + weight * (1 - weight) * numpy.outer(delta, delta)
        size = numpy.abs(candidate).mean()
        if size > norm:
            mean, covariance, count, norm = mean + weight * delta, candidate, count + 1, size
    return norm


def expected_of(spec, taps, training):
    """Per tap (covered, total), and for what is counted over all taps one number."""
    name, options = spec["id"], spec["spec"]
    if name in ("nc", "nac"):
        threshold = 0.75 if name == "nc" else 0.5
        return {tap: neuron_coverage(v, threshold) for tap, v in taps.items()}, None
    if name == "kmnc":
        k = int(options.split("k=")[1])
        return {tap: multisection(v, training[tap], k) for tap, v in taps.items()}, None
    if name in ("nbc", "snac"):
        return {tap: boundary(v, training[tap], name == "nbc") for tap, v in taps.items()}, None
    if name == "tknc":
        return {tap: (len(numpy.unique(leaders(v, 10))), v.shape[1]) for tap, v in taps.items()}, None
    if name == "tknp":
        patterns = numpy.concatenate([leaders(v, 50) for v in taps.values()], axis=1)
        return {}, len(numpy.unique(patterns, axis=0))
    if name == "nlc":
        return {tap: (neural_coverage(v, "free" in options), None) for tap, v in taps.items()}, None
    raise SystemExit(f"no NumPy version of {name}")


def surprise_tap(training, labels):
    """The last tap before the output; or the output, if traces there are so alike that covariances need a ridge."""
    names = list(training)
    t = training[names[-2]].astype(float)
    good = all(numpy.linalg.cond(numpy.cov(t[labels == c].T)) < 1e9 for c in numpy.unique(labels))
    return names[-2] if good else names[-1]


def surprise_of(taps, archive, training, training_archive, tap):
    """LSA, DSA and MDSA of each input by their definitions."""
    x, t = taps[tap].astype(float), training[tap].astype(float)
    own, labels = archive["predicted"], training_archive["predicted"]
    within = sum(((t[labels == c] - t[labels == c].mean(0)) ** 2).sum(0) for c in numpy.unique(labels))
    kept = within / (len(t) - len(numpy.unique(labels))) >= 1e-5
    lsa, dsa, mdsa = [], [], []
    for row, label in zip(x, own):
        same, other = t[labels == label], t[labels != label]
        distance = ((same - row) ** 2).sum(1)
        nearest = same[distance.argmin()]
        dsa.append(numpy.sqrt(distance.min()) / numpy.sqrt(((other - nearest) ** 2).sum(1).min()))
        centred = row - same.mean(0)
        mdsa.append(numpy.sqrt(centred @ numpy.linalg.solve(numpy.cov(same.T), centred)))
        part = same[:, kept]
        n, d = part.shape
        covariance = numpy.cov(part.T) * n ** (-2 / (d + 4))
        difference = part - row[kept]
        exponent = -0.5 * (difference * numpy.linalg.solve(covariance, difference.T).T).sum(1)
        constant = numpy.log(n) + 0.5 * (d * numpy.log(2 * numpy.pi) + numpy.linalg.slogdet(covariance)[1])
        lsa.append(constant - exponent.max() - numpy.log(numpy.exp(exponent - exponent.max()).sum()))
    return {"lsa": lsa, "dsa": dsa, "mdsa": mdsa}


def main():
    galvani, model, train, test, *more = sys.argv[1:]
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if model == "-":
            model = folder / "m.onnx"
            run(galvani, "train", "lenet5", "--data", train, "--epochs", 2, "-o", model, "-q")
        for data, file in ((train, "train.npz"), (test, "test.npz")):
            run(galvani, "trace", model, "--data", data, "-o", folder / file, "-q", *more)
        training, training_archive = taps_of(folder / "train.npz")
        tap = surprise_tap(training, training_archive["predicted"])
        run(galvani, "profile", model, "--data", train, "--criteria", f"kmnc,dsc:tap={tap}", "-o", folder / "p", "-q",
            *more)
        report = json.loads(run(galvani, "cover", model, "--data", test, "--profile", folder / "p", "--criteria",
                                CRITERIA, "--json", *more))
        taps, archive = taps_of(folder / "test.npz")
        compared = 0
        for found in report["criteria"]:
            expected, whole = expected_of(found, taps, training)
            if whole is not None and found["covered"] != whole:
                wrong.append(f"{found['spec']}: {found['covered']}, NumPy {whole}")
            compared += whole is not None
            for part in found["taps"]:
                covered, total = expected[part["tap"]]
                compared += 1
                exact = part["covered"] == covered and part["total"] == total
                close = total is None and abs(part["covered"] - covered) <= 1e-5 * abs(covered)
                if not (exact or close):
                    wrong.append(f"{found['spec']} {part['tap']}: {part['covered']} of {part['total']}, "
                                 f"NumPy {covered} of {total}")
        run(galvani, "trace", model, "--data", test, "--scores",
            f"lsa:tap={tap},dsa:tap={tap},mdsa:tap={tap}", "--profile", folder / "p", "-o",
            folder / "s.npz", "-q", *more)
        scores = numpy.load(folder / "s.npz")
        few = 300
        first = {tap: v[:few] for tap, v in taps.items()}
        for kind, expected in surprise_of(first, {"predicted": archive["predicted"][:few]}, training, training_archive,
                                          tap).items():
            error = numpy.nanmax(numpy.abs(scores[f"score/{kind}:tap={tap}"][:few] - expected) / (1 + numpy.abs(expected)))
            compared += 1
            if not error < 1e-6:
                wrong.append(f"{kind}: differs by {error}")
    for line in wrong:
        print(line)
    print(f"{compared} numbers compared, {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
