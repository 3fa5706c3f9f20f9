"""Tables, figures and tests, from what nss.py measured."""
import csv
import os

import common
import nss_paper
from common import counted, p_text, table

NOTHING = "Not measured."
SHARES = nss_paper.SHARES
READINGS = {"nss": "as printed", "nss:pair=original": "with originals"}
# What can be used, by what the user gives.
ALONE = ("random", "softmax", "gini", "entropy", "pcs", "internal-gini", "nss", "nac", "ats", "sets", "nns", "mc-dropout")
TRAINED = (*ALONE, "kmnc", "npc", "dsa", "lsa", "mdsa", "datis", "prima")
ORIGINALS = ("nss:pair=original", "flip")
GIVEN = {"nothing but the pool": (*ALONE, "fused:with=output"), "training data": (*TRAINED, "fused:with=train"),
         "originals": (*ALONE, *ORIGINALS, "fused:with=originals"), "training data and originals": (*TRAINED, *ORIGINALS, "fused")}
# What `galvani select` takes where nothing is said (cli/select.cpp).
DEFAULT = {"nothing but the pool": "nns", "training data": "fused:with=train", "originals": "fused:with=originals", "training data and originals": "fused"}
LABELS = {"fused:with=output": "fused", "fused:with=train": "fused", "fused:with=originals": "fused"}
UNCERTAINTY = ("softmax", "gini", "mc-dropout", "prima", "ats")
TITLES = {("mnist", "lenet1"): "MNIST, LeNet-1", ("mnist", "lenet5"): "MNIST, LeNet-5", ("fashion-mnist", "lenet1"): "Fashion, LeNet-1",
          ("fashion-mnist", "resnet20"): "Fashion, ResNet-20", ("cifar10", "vgg16"): "CIFAR-10, VGG-16", ("cifar10", "resnet20"): "CIFAR-10, ResNet-20"}


def mean(values):
    return sum(values) / len(values)


def title(kind):
    return TITLES.get(kind, ", ".join(kind))


def percent(value, digits=0):
    return f"{100 * value:.{digits}f}"


def beside(paper, ours):
    return f"{paper:g} / {ours}" if paper is not None else f"- / {ours}"


def short(name):
    return name.split(":")[0] if name.startswith(("mc-dropout", "prima")) else name


class Rates:
    """FDR and the rest by model, and by selector: {(data, model, kind): {selector: [figures of each seed]}}."""

    def __init__(self, found):
        self.cases, self.faults = {}, {}
        for row in found.get("beside", []):
            self.take((row["data"], row["model"], row["trained"]), int(row["seed"]), row["selector"], SHARES.index(int(row["share"])), row)
        for question in ("rates", "dropout", "prima", "fused"):
            for subject, result in found.get(question, []):
                key = (subject.data, subject.model, subject.kind)
                self.faults.setdefault(key, {})[subject.seed] = result["faults"]
                for name, figures in result["by"].items():
                    self.cases.setdefault(key, {}).setdefault(short(name), {})[subject.seed] = figures

    def take(self, key, seed, name, share, row):
        """A row of an earlier part's file of values."""
        figures = self.cases.setdefault(key, {}).setdefault(short(name), {}).setdefault(
            seed, {"fdr": [None] * len(SHARES), "interval": [None] * len(SHARES), "rauc": [None] * len(SHARES)})
        figures["fdr"][share], figures["rauc"][share] = float(row["fdr"]), float(row["rauc"])
        figures["interval"][share] = [float(row["low"]), float(row["high"])]
        figures["apfd"], figures["types"] = float(row["apfd"]), float(row["apfd_types"])

    def kinds(self, kind):
        return [(data, model) for data, model, k in self.cases if k == kind]

    def seeds(self, key, selector):
        return self.cases.get(key, {}).get(selector, {})

    def mean(self, key, selector, value):
        found = self.seeds(key, selector)
        return mean([value(f) for f in found.values()]) if found else None


def cell(study_interval, value):
    low, high = study_interval
    return f"{percent(value)} ({percent(low)}-{percent(high)})"


def pooled_interval(figures, share):
    """Of the mean over seeds: what chance leaves open in each, as if they were independent."""
    half = [(f["interval"][share][1] - f["interval"][share][0]) / 2 for f in figures]
    width = sum(h * h for h in half) ** 0.5 / len(half)
    centre = mean([f["fdr"][share] for f in figures])
    return max(0, centre - width), min(1, centre + width)


def setting(study, command, found, missing):
    rows, rates = {}, Rates(found)
    for subject, r in found.get("prepare", []):
        rows.setdefault((subject.data, subject.model, subject.kind), []).append((subject, r["accuracy"]))
    lines = []
    for key, subjects in rows.items():
        first = subjects[0][0]
        paper = paper_accuracy(key)
        faults = rates.faults.get(key, {}).values()
        lines.append([title(key[:2]), key[2] + "-trained", len({s.file for s, _ in subjects}), beside(paper, percent(mean([a for _, a in subjects]), 1)), len(subjects),
                      first.amounts.pool, f"{percent(mean(list(faults)))}" if faults else "-", first.amounts.reference])
    text = [f"`{command}`: {study.steps} steps, {study.seconds / 60:.0f} minutes if one ran after the other as slowly as they did, on "
            f"{os.cpu_count()} cores of an {common.processor()} that others used, too.", "",
            table(["subject", "", ">models", ">accuracy %, paper / ours", ">pools", ">inputs of each", ">of them wrong, %", ">training inputs compared with"], lines)]
    if missing:
        text += ["", "Left out, for the study was stopped: " + "; ".join(f"{q} of {', '.join(sorted(set(n)))}" for q, n in sorted(missing.items())) + "."]
    return "\n".join(text)


def paper_accuracy(key):
    known = {("mnist", "lenet1"): 89.50, ("mnist", "lenet5"): 91.79, ("fashion-mnist", "lenet1"): 78.99, ("fashion-mnist", "resnet20"): 86.12,
             ("cifar10", "resnet20"): 86.07, ("cifar10", "vgg16"): 82.52}
    return known.get(key[:2]) if key[2] == "under" else None


# Where everybody stands: ranks among all that can be used with what is given.
def ranks(rates, selectors, share):
    """{selector: {case: rank}} over the cases in which all were measured; equal ones share a rank."""
    found = {s: {} for s in selectors}
    for key in rates.cases:
        values = {s: rates.mean(key, s, lambda f: f["fdr"][share]) for s in selectors}
        if None in values.values():
            continue
        for s, v in values.items():
            found[s][key] = 1 + sum(o > v for o in values.values()) + 0.5 * (sum(o == v for o in values.values()) - 1)
    return found


def standing(study, found, called="ranks"):
    rates, parts = Rates(found), []
    for given, selectors in GIVEN.items():
        if "beside" in found:
            # All models, and so only what was measured on all of them.
            selectors = tuple(s for s in selectors if all(s in by for by in rates.cases.values()))
        if DEFAULT[given] not in selectors:
            continue
        at = {share: ranks(rates, selectors, share) for share in (0, 3)}
        cases = list(at[0][selectors[-1]])
        if not cases:
            continue
        own = DEFAULT[given]
        # A row for every case and share: the selector's rank, and that of the default.
        rows = [(s, at[share][s][c], at[share][own][c]) for s in selectors if s != own for share in (0, 3) for c in cases]
        tests = study.tests(f"{called}-{given.replace(' ', '-')}", rows, "wilcoxon", "rank", "default")
        any_test = next(iter(tests.values()))
        spread = {own: (any_test["mean_b"], any_test["interval_b"]), **{s: (t["mean_a"], t["interval_a"]) for s, t in tests.items()}}

        def rate(selector, share, kind):
            values = [rates.mean(c, selector, lambda f: f["fdr"][share]) for c in cases if c[2] == kind]
            return percent(mean(values)) if values else "-"
        lines = []
        for s in sorted(selectors, key=lambda s: spread[s][0]):
            test = tests.get(s)
            lines.append([f"**{LABELS.get(s, s)}**" if s == own else LABELS.get(s, s), f"{spread[s][0]:.1f} ({spread[s][1][0]:.1f}-{spread[s][1][1]:.1f})",
                          *[f"{mean([at[share][s][c] for c in cases if c[2] == kind]):.1f}" if any(c[2] == kind for c in cases) else "-"
                            for kind in ("under", "well") for share in (0, 3)],
                          *[rate(s, share, kind) for kind in ("under", "well") for share in (0, 3)], "" if test is None else p_text(test["holm_p"])])
        parts += [f"**Given {given}** ({counted(len(cases), 'model')}, {len(selectors)} selectors; the default is bold):", "",
                  table(["selector", ">mean rank (95%)", ">rank 5%, under", ">20%, under", ">5%, well", ">20%, well", ">FDR 5%, under", ">20%, under", ">5%, well",
                         ">20%, well", ">p of ranks, default"], lines), ""]
    return "\n".join(parts).rstrip() or NOTHING


# Does NSS beat the uncertainty baselines?
def verdict(study, found):
    rates, rows = Rates(found), []
    for key in rates.cases:
        for reading in READINGS:
            for rival in (*UNCERTAINTY, "random", "flip", "datis"):
                for share in (0, 3):
                    pairs = [(rates.seeds(key, reading)[s]["fdr"][share], f["fdr"][share]) for s, f in rates.seeds(key, rival).items()
                             if s in rates.seeds(key, reading)]
                    if pairs:
                        rows.append((f"{reading}@{rival}@{key[2]}@{SHARES[share]}", mean([a for a, _ in pairs]), mean([b for _, b in pairs])))
    if not rows:
        return NOTHING
    tests = study.tests("verdict", rows, "wilcoxon", "nss", "rival")
    lines = []
    for rival in (*UNCERTAINTY, "random", "flip", "datis"):
        line = [rival]
        for reading in READINGS:
            for kind in ("under", "well"):
                for share in (5, 20):
                    t = tests.get(f"{reading}@{rival}@{kind}@{share}")
                    if t is None:
                        line.append("-")
                        continue
                    wins = sum(a > b for name, a, b in rows if name == t["measure"])
                    line.append(f"{percent(t['mean_a'])} / {percent(t['mean_b'])} ({wins} of {t['n_a']}, {p_text(t['p'])})")
        lines.append(line)
    return "\n".join(["FDR in %, NSS / rival, mean of the models (models on which NSS has more, p of pairs, not corrected).", "",
                      table(["rival", *[f">{READINGS[r]}, {k}-trained, {s}%" for r in READINGS for k in ("under", "well") for s in (5, 20)]], lines)])


def table1(study, found):
    rates, lines = Rates(found), []
    for (data, model, kind), by in rates.cases.items():
        if kind != "under" or "internal-gini" not in by:
            continue
        paper = nss_paper.INTERNAL_GINI.get((data, model), ([None] * 4, [None] * 4))
        for i, name in enumerate(("internal-gini", "random")):
            lines.append([title((data, model)), name, *[beside(paper[i][s], percent(rates.mean((data, model, kind), name, lambda f: f["fdr"][s]), 1)) for s in range(4)]])
    return table(["under-trained", "selector", *[f">{s}%" for s in SHARES]], lines) if lines else NOTHING


def table6(study, found):
    lines, rows = [], []
    for subject, result in found.get("correlation", []):
        for reading, accuracy in result.items():
            rows += [(f"{subject.name}@{reading}", place, a) for place, a in enumerate(accuracy)]
    if not rows:
        return NOTHING
    tests = {kind: study.tests(f"correlation-{kind}", rows, kind, "part", "accuracy") for kind in ("pearson", "spearman")}
    groups = {}
    for subject, _ in found["correlation"]:
        groups.setdefault((subject.data, subject.model), []).append(subject.name)
    for key, names in groups.items():
        at = nss_paper.SUBJECTS.index(key) if key in nss_paper.SUBJECTS else None
        line = [title(key)]
        for kind in ("pearson", "spearman"):
            paper = None if at is None else nss_paper.CORRELATION[kind][at]
            line += [f"{paper:g}" if paper is not None else "-"] + [f"{mean([tests[kind][f'{n}@{r}']['effect'] for n in names]):.2f}" for r in READINGS]
        lines.append(line)
    return table(["under-trained", *[f">{kind}, {who}" for kind in ("Pearson", "Spearman") for who in ("paper", "as printed", "with originals")]], lines)


def table7(study, found):
    rates, parts = Rates(found), []
    more = ("nss:pair=original", "datis", "nns", "fused:with=output", "fused:with=train", "fused")
    for share, number in enumerate(SHARES):
        for kind in ("under", "well"):
            lines = []
            for key in rates.kinds(kind):
                line = [title(key)]
                for column, selector in enumerate((*nss_paper.SELECTORS, *more)):
                    seeds = list(rates.seeds((*key, kind), selector).values())
                    ours = cell(pooled_interval(seeds, share), mean([f["fdr"][share] for f in seeds])) if seeds else "-"
                    paper = nss_paper.RATES.get(key) if kind == "under" else None
                    line.append(beside(paper[share][column], ours) if paper and column < len(nss_paper.SELECTORS) else ours)
                lines.append(line)
            if lines and (kind == "under" or number in (5, 20)):
                names = ["nss as printed", *nss_paper.SELECTORS[1:], "nss with originals", "datis", "nns", "fused, pool", "fused, training data", "fused, both"]
                parts += [f"**{number}% of the pool, {kind}-trained**" + (", paper / ours (95%):" if kind == "under" else " (95%):"), "",
                          table([kind + "-trained", *[f">{n}" for n in names]], lines), ""]
    return "\n".join(parts).rstrip() or NOTHING


def by_selector(rates, paper, value, digits=0):
    """Selectors of the paper as rows, subjects as columns, the paper's figure beside ours; then others."""
    kinds = rates.kinds("under")
    if not kinds:
        return NOTHING
    names = [*nss_paper.SELECTORS, "nss:pair=original", "datis", "sets", "nns", "fused:with=output", "fused:with=train", "fused"]
    lines = []
    for selector in names:
        line = [selector]
        for key in kinds:
            ours = rates.mean((*key, "under"), selector, value)
            line.append("-" if ours is None else beside(paper(selector, key), percent(ours, digits)))
        lines.append(line)
    return table(["under-trained, paper / ours", *[f">{title(k)}" for k in kinds]], lines)


def table8(study, found):
    def paper(selector, key):
        return nss_paper.RAUC[selector][nss_paper.SUBJECTS.index(key)] if selector in nss_paper.RAUC and key in nss_paper.SUBJECTS else None
    return by_selector(Rates(found), paper, lambda f: f["rauc"][3])


def table9(study, found):
    def paper(selector, key):
        return nss_paper.APFD[key][nss_paper.SELECTORS.index(selector)] if selector in nss_paper.SELECTORS and key in nss_paper.APFD else None
    rates = Rates(found)
    if not rates.kinds("under"):
        return NOTHING
    return "\n".join(["Of fault types, as the paper's must be:", "", by_selector(rates, paper, lambda f: f["types"], 1), "",
                      "Of single faults:", "", by_selector(rates, lambda *_: None, lambda f: f["apfd"], 1)])


def table10(study, found):
    results = found.get("retrain", [])
    if not results:
        return NOTHING
    groups = {}
    for subject, r in results:
        groups.setdefault((subject.data, subject.model, subject.kind), []).append(r)
    lines = []
    names = list(dict.fromkeys(k for k in results[0][1] if isinstance(k, tuple)))
    for key, rs in groups.items():
        before = {what: mean([r["before"][what] for r in rs]) for what in ("clean", "pool")}
        for name in ("plain", *names):
            after = {what: mean([r[name][what] for r in rs]) for what in ("clean", "pool")}
            paper = None
            if isinstance(name, tuple) and name[0] in nss_paper.SELECTORS and key[:2] in nss_paper.GAINS and key[2] == "under":
                paper = nss_paper.GAINS[key[:2]][SHARES.index(name[1])][nss_paper.SELECTORS.index(name[0])]
            lines.append([title(key[:2]), "nothing (control)" if name == "plain" else name[0], "" if name == "plain" else f"{name[1]}%",
                          beside(paper, f"{100 * (after['clean'] - before['clean']):+.1f}"), f"{100 * (after['pool'] - before['pool']):+.1f}"])
    return table(["model", "trained further with picks of", ">share", ">gain on clean test images, points, paper / ours", ">on a fresh pool"], lines)


def table11(study, found):
    lines = []
    for subject, r in found.get("costs", []):
        key = (subject.data, subject.model)
        paper = {k: v[nss_paper.SUBJECTS.index(key)] for k, v in nss_paper.SECONDS.items()} if key in nss_paper.SUBJECTS else {}
        lines.append([title(key), subject.amounts.pool, beside(paper.get("Sensitive Neuron Identifier"), f"{r['nss']['sample']:.2f}"),
                      beside(paper.get("Test Case Selection"), f"{r['nss']['all'] - r['nss']['sample']:.2f}"),
                      beside(paper.get("Full Result"), f"{r['every neuron']['all']:.2f}"), f"{r['gini']['all']:.2f}"])
    return table(["seconds, paper (GPU) / ours (one busy thread)", ">inputs", ">sensitive neurons", ">selection", ">all neurons", ">gini"], lines) if lines else NOTHING


def options_table(study, found, question, columns, paper, first):
    """Tables 12 and 13: FDR at 20%, a line for each subject and reading."""
    lines = []
    for subject, r in found.get(question, []):
        for reading in READINGS:
            names = columns(subject, r, ",pair=original" if reading != "nss" else "")
            values = [r["by"][n]["fdr"][3] for n in names]
            known = paper.get((subject.data, subject.model))
            lines.append([title((subject.data, subject.model)), READINGS[reading],
                          *[beside(known[i] if known else None, percent(v, 1)) for i, v in enumerate(values)]])
    return table(["under-trained, FDR at 20%, paper / ours", "reading", *[f">{t}" for t in first]], lines) if lines else NOTHING


def table12(study, found):
    sizes = (1, 5, 10, 20, 100)
    return options_table(study, found, "sizes", lambda s, r, pair: [f"nss:k={k}{pair}" for k in sizes], nss_paper.SIZES, [f"{k}%" for k in sizes])


def table13(study, found):
    names = ("Layer1", "Layer2", "Layer -2", "Layer -1", "Gini-Layer")
    return options_table(study, found, "layers", lambda s, r, pair: [f"nss:layer={r['names'][n]}{pair}" for n in names], nss_paper.LAYERS, names)


def tables_of_kinds(study, found):
    parts = []
    for subject, r in found.get("kinds", []):
        offset = {"resnet20": 0, "vgg16": 4}.get(subject.model)

        def pair(paper, by, share):
            known = paper[share + offset] if offset is not None else None
            return beside(known, percent(by["fdr"][share]))
        lines = [[kind, *[pair(nss_paper.FOUND_WITH[kind], r["find"]["by"][f"nss:find=nss:only={kind}{p}"], s) for p in ("", ",pair=original") for s in (0, 3)],
                  *[pair(nss_paper.SCORED_WITH[kind], r["score"]["by"][f"nss:set=nss:only={kind},find=nss"], s) for s in (0, 3)],
                  *[pair(nss_paper.SCORED_WITH[kind], r["pools"][kind]["by"]["nss:pair=original"], s) for s in (0, 3)],
                  percent(r["pools"][kind]["by"]["random"]["fdr"][3]), percent(r["pools"][kind]["by"]["gini"]["fdr"][0])] for kind in r["pools"]]
        parts += [f"**{title((subject.data, subject.model))}**, FDR in %, paper / ours:", "",
                  table(["mutation", ">found with it, as printed, 5%", ">20%", ">found with it, with originals, 5%", ">20%", ">scored with it, as printed, 5%", ">20%",
                         ">a pool of it, with originals, 5%", ">20%", ">faults of that pool", ">gini there, 5%"], lines), ""]
    return "\n".join(parts).rstrip() or NOTHING


# Wrong but confident, right but uncertain.
def hard(study, found):
    results = found.get("hard", [])
    if not results:
        return NOTHING
    names = list(results[0][1]["whole"]["by"])
    rows = [(f"{s}@{pool}@{SHARES[share]}", r[pool]["by"][s]["fdr"][share], r[pool]["by"]["random"]["fdr"][share])
            for s in names for pool in ("whole", "confident", "uncertain") for share in (0, 3) for _, r in results]
    tests = study.tests("hard", rows, "wilcoxon", "selector", "random")
    lines = []
    for s in sorted(names, key=lambda s: -mean([tests[f"{s}@{p}@5"]["mean_a"] for p in ("confident", "uncertain")])):
        line = [s]
        for pool in ("whole", "confident", "uncertain"):
            for share in (5, 20):
                t = tests[f"{s}@{pool}@{share}"]
                mark = " **collapses**" if s != "random" and share == 5 and t["mean_a"] <= 1.2 * t["mean_b"] else ""
                line.append(f"{percent(t['mean_a'])} ({percent(t['interval_a'][0])}-{percent(t['interval_a'][1])}){mark}")
        lines.append(line)
    well = sum(s.well for s, _ in results)
    return "\n".join([f"FDR in %, mean of {counted(len(results), 'model')} (95%), {well} of them well-trained. All three pools of a model have the same share of faults. "
                      "**collapses**: at 5%, no more than 1.2 times what chance finds.", "",
                      table(["selector", *[f">{p}, {s}%" for p in ("whole pool", "wrong but confident", "right but uncertain") for s in (5, 20)]], lines)])


def figure(found, output, results):
    rates = Rates(found)
    panels = []
    shown = {"fused:with=train": "fused, with training data", "datis": "datis", "gini": "gini", "nss": "nss as printed"}
    for kind in ("under", "well"):
        for key in rates.kinds(kind):
            lines = []
            for selector, name in shown.items():
                seeds = list(rates.seeds((*key, kind), selector).values())
                if seeds:
                    lines.append((name, [(number, 100 * mean([f["fdr"][s] for f in seeds]), *[100 * v for v in pooled_interval(seeds, s)])
                                         for s, number in enumerate(SHARES)]))
            if len(lines) == len(shown):
                panels.append((f"{title(key)}, {kind}-trained", lines))
    if not panels:
        return []
    file = f"{results}-rates.svg"
    (output / file).write_text(common.panels_svg("Of the picked, how many are wrong (%)", panels, "picked, % of the pool; bands: 95%"))
    return [file]


def long_rows(found):
    for question in ("rates", "dropout", "prima", "fused"):
        for subject, result in found.get(question, []):
            for name, f in result["by"].items():
                for share, number in enumerate(SHARES):
                    yield [subject.data, subject.model, subject.kind, subject.seed, name, number, f"{f['fdr'][share]:.6g}", *[f"{v:.6g}" for v in f["interval"][share]],
                           f"{f['rauc'][share]:.6g}", f"{f['apfd']:.6g}", f"{f['types']:.6g}"]


PARTS = {"setting": "Setting", "standing": "Where the selectors stand", "alone": "On the models of this part alone", "verdict": "Does NSS beat the uncertainty baselines?",
         "hard": "Wrong but confident, right but uncertain", "table1": "Table 1: Gini of inner neurons",
         "table6": "Table 6: score and accuracy", "table7": "Table 7: fault detection rate", "table8": "Table 8: RAUC of fault types at 20%",
         "table9": "Table 9: APFD", "table10": "Table 10: accuracy gained by training with the picks", "table11": "Table 11: time",
         "table12": "Table 12: how many neurons", "table13": "Table 13: which layer", "table14": "Tables 14 and 15: one mutation alone"}
MAKERS = {"standing": standing, "verdict": verdict, "hard": hard, "table1": table1, "table6": table6, "table7": table7, "table8": table8, "table9": table9,
          "table10": table10, "table11": table11, "table12": table12, "table13": table13, "table14": tables_of_kinds}


def write(study, output, given, found, missing):
    if list(long_rows(found)):
        common.write_csv(output / f"{given.results}.csv", ["data", "model", "trained", "seed", "selector", "share", "fdr", "low", "high", "rauc", "apfd", "apfd_types"], long_rows(found))
    images = figure(found, output, given.results)
    everything = {**found, "beside": [row for path in given.beside for row in read_csv(path)]} if given.beside else found
    parts = {name: make(study, everything if name in ("standing", "verdict") else found) for name, make in MAKERS.items()}
    if given.beside:
        parts["alone"] = standing(study, {**found, "beside": []}, "ranks-alone")
    if given.part:
        parts = {name: text for name, text in parts.items() if text != NOTHING}
    parts = {"setting": setting(study, common.command_of("nss", given), found, missing), **parts}
    titles = {name: text for name, text in PARTS.items() if name in parts}
    common.fill(output / f"{given.results}.md", "Which inputs are worth a label", titles, parts, {"standing": images})


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
