#!/usr/bin/env python3
"""Ranks a pool once more with NumPy, from traces that `galvani trace` wrote, and compares with `galvani select`.

usage: select_numpy.py GALVANI MODEL DATA        DATA is a known set with train and test images, such as digits

MODEL is a LeNet-5 of the zoo; with `-` one is trained first. Scores of gini, softmax, entropy, pcs, nss (with originals, in its readings), dsa, lsa,
mdsa, datis, nns and fused must agree within 1e-4, picks of datis and sets must be the same. Exits 1 with what differs. Needs
python3-numpy.
"""
import json
import pathlib
import sys
import tempfile

import numpy

from cover_numpy import run, surprise_of, taps_of

FUSED = {"output": (), "train": ("train",), "originals": ("originals",), "all": ("train", "originals")}


def features_of(path):
    """What goes into the first and the last of a LeNet-5's dense layers, with output and verdicts."""
    taps, archive = taps_of(path)
    maps = numpy.maximum(taps["conv2"], 0)
    side = int(round((maps.shape[1] // 16) ** 0.5))
    pooled = maps.reshape(len(maps), 16, side // 2, 2, side // 2, 2).max((3, 5)).reshape(len(maps), -1)
    logits = archive["logits"].astype(float)
    p = numpy.exp(logits - logits.max(1, keepdims=True))
    return {"encoder": pooled.astype(float), "penultimate": numpy.maximum(taps["fc2"], 0).astype(float), "p": p / p.sum(1, keepdims=True),
            "predicted": archive["predicted"], "labels": archive["labels"]}


def unit(rows):
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


def squared_distances(a, b):
    return ((a[:, None, :] - b[None, :, :]) ** 2).sum(2)


def in_parts(a, b, k):
    """Indices and squared distances of the k nearest rows of b, part by part."""
    near, far = [], []
    for i in range(0, len(a), 50):
        distances = squared_distances(a[i:i + 50], b)
        order = numpy.argsort(distances, axis=1, kind="stable")[:, :k]
        near.append(order)
        far.append(numpy.take_along_axis(distances, order, 1))
    return numpy.concatenate(near), numpy.concatenate(far)


def shares(labels, weights, classes):
    found = numpy.stack([(weights * (labels == c)).sum(1) for c in range(classes)], 1)
    return found / found.sum(1, keepdims=True)


def best_other(values, verdicts):
    rows = numpy.arange(len(verdicts))
    others = values.copy()
    others[rows, verdicts] = -numpy.inf
    return others.max(1), values[rows, verdicts]


def datis(pool, train, k=100, temperature=0.1):
    near, far = in_parts(unit(pool["penultimate"]), unit(train["penultimate"]), k)
    p = shares(train["labels"][near], numpy.exp(-far / temperature), pool["p"].shape[1])
    rival, own = best_other(p, pool["predicted"])
    return rival / (own + 1e-15)


def datis_picks(order, pool, budget):
    """Of twice as many those far from each other (three times as many, if the budget is a hundredth of the pool)."""
    few = budget * 100 <= len(order)
    best = order[:min(len(order), budget * (3 if few else 2))]
    weight, rows = (0.3 if few else 0.2), unit(pool["penultimate"][best])
    mean = numpy.sqrt(in_parts(rows, rows, min(budget, 100))[1]).mean(1)
    n = len(best)
    by_distance = numpy.empty(n)
    by_distance[numpy.argsort(-mean, kind="stable")] = numpy.arange(n)
    worth = (1 - weight) * (n - numpy.arange(n)) + weight * (n - by_distance)
    return best[numpy.argsort(-worth, kind="stable")[:budget]]


def sets_picks(order, gini, pool, budget, ridge=1e-6):
    best = order[:min(len(order), 3 * budget)]
    rows, taken = unit(pool["penultimate"][best]), []

    def volume(chosen):
        f = rows[chosen]
        return numpy.linalg.slogdet(f @ f.T + ridge * numpy.eye(len(chosen)))[1] if chosen else 0.0
    for chunk in range(budget):
        members = list(range(chunk, len(best), budget))
        gain = numpy.array([volume(taken + [i]) for i in members]) - volume(taken)
        span = gain.max() - gain.min()
        worth = gini[best[members]] * ((gain - gain.min()) / span if span > 1e-5 else 1)
        taken.append(members[int(worth.argmax())])
    return best[taken]


def nns(pool, k=10, own=0.5):
    rows = unit(pool["penultimate"])
    smoothed = own * pool["p"] + (1 - own) * pool["p"][others(rows, k)[0]].mean(1)
    return 1 - (smoothed ** 2).sum(1)


def others(rows, k):
    """The k nearest rows but the row itself."""
    near, far = in_parts(rows, rows, k + 1)
    kept = [[j for j, index in enumerate(line) if index != i][:k] for i, line in enumerate(near)]
    return numpy.take_along_axis(near, numpy.array(kept), 1), numpy.take_along_axis(far, numpy.array(kept), 1)


def doubt(values, verdicts, floor):
    rival, own = best_other(values, verdicts)
    return numpy.log(rival + floor) - numpy.log(own + floor)


def fused(pool, train, originals):
    verdicts = pool["predicted"]

    def training(inputs):
        product, distance = 1.0, 0.0
        for layer, weight in (("penultimate", 2 / 3), ("encoder", 1 / 3)):
            near, far = in_parts(unit(inputs[layer]), unit(train[layer]), 20)
            product = product * (shares(train["labels"][near], numpy.exp(-2 * far / (far[:, -1:] + 1e-12)), pool["p"].shape[1]) + 1e-3) ** weight
            distance = distance + numpy.log(numpy.sqrt(far[:, :10]).mean(1) + 1e-6) / 2
        return product / product.sum(1, keepdims=True), distance
    near, far = others(unit(pool["penultimate"]), 10)
    if train is None:
        now = doubt(0.3 * pool["p"] + 0.7 * pool["p"][near].mean(1), verdicts, 1e-6) + numpy.log(numpy.sqrt(far).mean(1) + 1e-6)
        return now if originals is None else doubt(originals["p"], verdicts, 1e-3) + 0.2 * now
    q, distance = training(pool)
    now = doubt(0.5 * q + 0.5 * q[near].mean(1), verdicts, 1e-3) + 0.2 * doubt(pool["p"], verdicts, 1e-6) + 3 * distance
    if originals is None:
        return now
    return doubt(training(originals)[0], verdicts, 1e-3) + 0.3 * doubt(originals["p"], verdicts, 1e-6) + 0.2 * now


def nss(pool, originals, percent=10, normalise="none"):
    change, own = numpy.abs(originals["encoder"] - pool["encoder"]), numpy.abs(originals["encoder"])
    if normalise == "neuron":
        change = change / numpy.maximum(own, 1e-6)
    if normalise == "layer":
        change = change / own.sum(1, keepdims=True)
    sensitive = numpy.argsort(-change.sum(0), kind="stable")[:int(change.shape[1] * percent / 100)]
    return change[:, sensitive].sum(1)


def expected_scores(pool, train, originals):
    p = pool["p"]
    rival, own = best_other(p, p.argmax(1))
    entropy = -(p * numpy.log(numpy.where(p > 0, p, 1))).sum(1)
    found = {"gini": 1 - (p ** 2).sum(1), "softmax": 1 - own, "entropy": entropy, "pcs": 1 - (own - rival),
             "nss:pair=original,sample=100": nss(pool, originals),
             "nss:pair=original,sample=100,normalise=neuron": nss(pool, originals, normalise="neuron"),
             "nss:pair=original,sample=100,normalise=layer,k=100": nss(pool, originals, 100, "layer"), "datis:rerank=false": datis(pool, train), "nns": nns(pool)}
    for name, given in FUSED.items():
        found[f"fused:with={name}"] = fused(pool, train if "train" in given else None, originals if "originals" in given else None)
    return found


def main():
    galvani, model, data = sys.argv[1:]
    wrong, compared = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if model == "-":
            model = folder / "m.onnx"
            run(galvani, "train", "lenet5", "--data", f"{data}:train[0:2000]", "--epochs", 2, "-o", model, "-q")
        specs = {"train": f"{data}:train[0:1500]", "originals": f"{data}:test[0:400]", "pool": folder / "pool.npz"}
        run(galvani, "mutate", "--data", specs["originals"], "--set", "nss", "--one-each", "-o", specs["pool"], "--seed", 1, "-q")
        for part, spec in specs.items():
            run(galvani, "trace", model, "--data", spec, "--taps", "conv2,fc2", "--neurons", "unit", "-o", folder / f"{part}.npy.npz", "-q")
        pool, train, originals = (features_of(folder / f"{part}.npy.npz") for part in ("pool", "train", "originals"))

        def select(by, top):
            said = json.loads(run(galvani, "select", model, "--data", specs["pool"], "--train", specs["train"], "--originals",
                                  specs["originals"], "--by", by, "--top", top, "--json"))
            return {one["name"]: one["picks"] for one in said["selectors"]}
        expected = expected_scores(pool, train, originals)
        # Surprise reads traces of neurons, a channel its mean; the last tap before the output.
        for part in ("train", "pool"):
            run(galvani, "trace", model, "--data", specs[part], "-o", folder / f"{part}-neurons.npz", "-q")
        (taps, archive), (known, known_archive) = taps_of(folder / "pool-neurons.npz"), taps_of(folder / "train-neurons.npz")
        surprise = surprise_of(taps, archive, known, known_archive, "fc3")
        expected.update({f"{kind}:tap=fc3": numpy.array(scores) for kind, scores in surprise.items()})
        ranked = select(",".join(expected), "100%")
        for by, scores in expected.items():
            found = numpy.full(len(scores), numpy.nan)
            for pick in ranked[by]:
                found[pick["index"]] = numpy.inf if pick["score"] is None else pick["score"]
            error = numpy.abs(found - scores) / (1 + numpy.abs(scores))
            compared += len(scores)
            if not error.max() < 1e-4:
                wrong.append(f"{by}: {int((~(error < 1e-4)).sum())} of {len(scores)} scores differ, by {error.max():.3g} at most")
            if [pick["score"] for pick in ranked[by]] != sorted((pick["score"] for pick in ranked[by]), reverse=True):
                wrong.append(f"{by}: the picks are not in the order of their scores")
        orders = {by: numpy.array([pick["index"] for pick in ranked[by]]) for by in ("datis:rerank=false", "gini")}
        for budget in (4, 20, 80):
            picked = select("datis,sets", budget)
            wanted = {"datis": datis_picks(orders["datis:rerank=false"], pool, budget), "sets": sets_picks(orders["gini"], expected["gini"], pool, budget)}
            for by, picks in wanted.items():
                found = [pick["index"] for pick in picked[by]]
                compared += budget
                if found != picks.tolist():
                    wrong.append(f"{by}, {budget} of {len(pool['p'])}: picks {found[:10]}..., NumPy {picks.tolist()[:10]}...")
    for line in wrong:
        print(line)
    print(f"{compared} numbers compared, {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
