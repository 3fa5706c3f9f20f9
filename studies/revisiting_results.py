"""Tables, figures and tests of hypotheses, from what revisiting.py measured."""
import csv
import os

import common
from common import counted, number, p_text, table

COVERAGE = ("deephunter", "dh-d", "dh-n")
GRADIENT = ("fgsm", "pgd")
# The metrics of the paper's table 2, and which way they go where a model is better.
METRICS = {"mr": "lower", "acac": "lower", "actc": "higher", "ald0": "higher", "ald2": "higher", "aldinf": "higher", "ass": "lower",
           "psd": "higher", "nte": "lower", "rgb": "lower", "ric": "lower"}
MORE_METRICS = {"clever": "higher", "clean": "higher", "held-out": "higher"}
CRITERIA = ("nc", "kmnc", "nbc", "snac", "tknc", "tknp")
LEVEL = 0.05
# What is asked (is a larger than b?), what the paper found, and its p.
HYPOTHESES = {
    "H1": ("MR of models retrained with coverage-improving tests is larger than with coverage-remaining ones", "no difference",
           "0.245 (0.079 to 0.487 for all metrics)"),
    "H2": ("MR of gradient-based tests is larger than that of coverage-driven ones", "larger", "< 0.001"),
    "H3": ("MR of DH-D's tests is larger than that of DH-N's", "no difference", "0.45"),
    "H4": ("clean accuracy of retrained models is larger than that of the originals", "smaller", "0.002"),
    "H5": ("accuracy on coverage-driven tests after gradient-based retraining is smaller than before", "smaller", "0.024"),
    "H6": ("after gradient-based retraining, accuracy on DH-D's tests is larger than on DH-N's", "no difference", "not given"),
}


def mean(values):
    return sum(values) / len(values)


class Samples:
    """Values of two groups by question: all of them (for the U test) and a mean of each subject (for pairs)."""

    def __init__(self):
        self.all, self.paired = {}, {}

    def add(self, name, a, b):
        if not a or not b:
            return
        self.all.setdefault(name, []).append((a, b))
        self.paired.setdefault(name, []).append((mean(a), mean(b)))

    def rows(self):
        return [(name, x, y) for name, parts in self.all.items() for x, y in
                common.rows_side_by_side([v for a, _ in parts for v in a], [v for _, b in parts for v in b])]

    def pair_rows(self):
        return [(name, a, b) for name, pairs in self.paired.items() for a, b in pairs]


def repaired_with(result):
    """The coverage-driven methods that RQ4 looked at."""
    return [m for m in COVERAGE if m in result]


def hypotheses(found):
    samples = Samples()
    for _, r in found["rq2"]:
        samples.add("H1", [r["improving"]["mr"]], [r["remaining"]["mr"]])
    for _, r in found["rq3"]:
        samples.add("H2", [r[m]["mr"] for m in GRADIENT], [r[m]["mr"] for m in COVERAGE])
        samples.add("H3", [r["dh-d"]["mr"]], [r["dh-n"]["mr"]])
    for _, r in found["rq4"]:
        coverage = repaired_with(r)
        samples.add("H4", [r[m]["clean"] for m in (*coverage, *GRADIENT)], [r["original"]["clean"]])
        samples.add("H5", [r[m][on] for m in GRADIENT for on in coverage], [r["original"][on] for on in coverage])
        samples.add("H6", [r[m]["dh-d"] for m in GRADIENT], [r[m]["dh-n"] for m in GRADIENT])
    return samples


def controls(found):
    """What the hypotheses must be read against: (title, samples)."""
    samples = Samples()
    for _, r in found["rq2"]:
        samples.add("MR: coverage-improving / any misclassified tests", [r["improving"]["mr"]], [r["all"]["mr"]])
        if "plain" in r:
            samples.add("MR: coverage-improving / plain retraining", [r["improving"]["mr"]], [r["plain"]["mr"]])
    for _, r in found["rq3"]:
        samples.add("MR: DeepHunter / the same mutations without a guide", [r["deephunter"]["mr"]], [r["random"]["mr"]])
        samples.add("inputs broken: DeepHunter / without a guide", [r["deephunter"]["broken"]], [r["random"]["broken"]])
        samples.add("inputs broken: gradient-based / coverage-driven", [r[m]["broken"] for m in GRADIENT], [r[m]["broken"] for m in COVERAGE])
        samples.add("MR: FGSM / noise within the same ε", [r["fgsm"]["mr"]], [r["noise"]["mr"]])
    for _, r in found["rq4"]:
        plain, coverage = r["plain"], repaired_with(r)
        samples.add("clean accuracy: plain retraining / original", [plain["clean"]], [r["original"]["clean"]])
        samples.add("clean accuracy: coverage-driven retraining / plain", [r[m]["clean"] for m in coverage], [plain["clean"]])
        samples.add("clean accuracy: gradient-based retraining / plain", [r[m]["clean"] for m in GRADIENT], [plain["clean"]])
        samples.add("coverage-driven tests: gradient-based retraining / plain", [r[m][on] for m in GRADIENT for on in coverage],
                    [plain[on] for on in coverage])
        samples.add("coverage-driven tests: coverage-driven retraining / plain", [r[m][on] for m in coverage for on in coverage],
                    [plain[on] for on in coverage])
        samples.add("PGD: coverage-driven retraining / plain", [r[m]["pgd"] for m in coverage], [plain["pgd"]])
        samples.add("PGD: gradient-based retraining / plain", [r[m]["pgd"] for m in GRADIENT], [plain["pgd"]])
        gain = {on: [r[m][on] - r["original"][on] for m in GRADIENT] for on in ("dh-d", "dh-n")}
        samples.add("gain by gradient-based retraining: on DH-D's tests / on DH-N's", gain["dh-d"], gain["dh-n"])
        samples.add("the original on DH-D's tests / on DH-N's", [r["original"]["dh-d"]], [r["original"]["dh-n"]])
    return samples


def outcome(test):
    if 2 / 2 ** test["n_a"] > LEVEL / len(HYPOTHESES):
        return "too few to tell"
    if test["holm_p"] >= LEVEL:
        return "no difference"
    return "larger" if test["effect"] > 0.5 else "smaller"


def spread(value, interval):
    return f"{number(value)} ({number(interval[0])} to {number(interval[1])})"


def summary(study, found, part):
    samples = hypotheses(found)
    u = study.tests("hypotheses-u", samples.rows(), "u", "a", "b")
    paired = study.tests("hypotheses-wilcoxon", samples.pair_rows(), "wilcoxon", "a", "b")
    rows = []
    for name, (text, paper, paper_p) in HYPOTHESES.items():
        if name not in u:
            if part:
                continue
            rows.append([name, text, f"{paper}, p {paper_p}", "not measured", "", "", "", ""])
            continue
        a, b = paired[name], u[name]
        ours = outcome(a)
        agrees = "-" if ours == "too few to tell" else "yes" if ours == paper else "**no**"
        rows.append([name, text, f"{paper}, p {paper_p}",
                     f"{ours}: {spread(a['mean_a'], a['interval_a'])} against {spread(a['mean_b'], a['interval_b'])}",
                     f"{p_text(a['holm_p'])} (n {a['n_a']})", f"{a['effect']:.2f}",
                     f"{p_text(b['holm_p'])} (n {b['n_a']}, {b['n_b']})", f"{b['effect']:.2f}", agrees])
    return table(["", "is it so that", "paper", "ours, mean of a against mean of b (95%)", ">p, pairs", ">effect", ">p, U", ">A12", "agrees"], rows)


def control_table(study, found):
    samples = controls(found)
    tests = study.tests("controls", samples.pair_rows(), "wilcoxon", "a", "b")
    return table(["a / b", ">n", ">a", ">b", ">p", ">effect"],
                 [[name, t["n_a"], spread(t["mean_a"], t["interval_a"]), spread(t["mean_b"], t["interval_b"]), p_text(t["holm_p"]),
                   f"{t['effect']:.2f}"] for name, t in tests.items()])


# RQ1
def monotone(values):
    steps = [b - a for a, b in zip(values, values[1:])]
    return all(s >= 0 for s in steps) or all(s <= 0 for s in steps)


def series_of(result, kind, metric):
    values = [point["quality"].get(metric) if metric != "clean" else point["clean"] for point in result["series"][kind]]
    return None if None in values else values


def rq1(study, found):
    if not found["rq1"]:
        return "Not measured."
    metrics = [*METRICS, "clean"]
    rows = {"guided": [], "random": []}
    last = []
    counts = {m: [0, 0] for m in metrics}
    for _, r in found["rq1"]:
        for metric in metrics:
            values = {kind: series_of(r, kind, metric) for kind in rows}
            if not all(values.values()):
                continue
            counts[metric][0] += monotone(values["guided"])
            counts[metric][1] += 1
            last.append((metric, values["guided"][-1], values["random"][-1]))
            for kind in rows:
                # Relative to the subject's own mean, so that subjects can be put together.
                centre = mean(values[kind]) or 1
                rows[kind] += [(metric, p["coverage"]["nbc"], v / centre) for p, v in zip(r["series"][kind], values[kind])]
    rho = {kind: study.tests(f"rq1-{kind}", rows[kind], "spearman", "coverage", "quality") for kind in rows}
    ends = study.tests("rq1-last", last, "wilcoxon", "guided", "random")
    better = {**METRICS, **MORE_METRICS}
    lines = [[m, better[m], f"{counts[m][0]} of {counts[m][1]}", f"{rho['guided'][m]['effect']:+.2f} ({p_text(rho['guided'][m]['holm_p'])})",
              f"{rho['random'][m]['effect']:+.2f} ({p_text(rho['random'][m]['holm_p'])})",
              f"{number(ends[m]['mean_a'])} / {number(ends[m]['mean_b'])} ({p_text(ends[m]['holm_p'])})"] for m in metrics if m in ends]
    covered = [[c, *[" → ".join(number(mean([r["series"][kind][i]["coverage"][c] for _, r in found["rq1"]])) for i in (0, -1))
                     for kind in rows]] for c in CRITERIA]
    amounts = [r["series"]["guided"][-1]["tests"] for _, r in found["rq1"]]
    return "\n".join([
        f"{counted(len(found['rq1']), 'subject')}; {min(amounts)} to {max(amounts)} tests in the largest set. Coverage of the data and with all tests, mean of the subjects:", "",
        table(["criterion", ">guided by nbc", ">random (control)"], covered), "",
        "Quality of the retrained models. Series: how many never change direction. ρ: Spearman's, between nbc and the metric relative to the subject's mean (p, Holm). "
        "Last: guided / random at the same number of tests (p of pairs, Holm).", "",
        table(["metric", "better models", ">monotone series", ">ρ guided", ">ρ random", ">last, guided / random"], lines)])


def figures(study, found, output):
    """Figures 1 and 2 of the paper, of the first kind of subject, with the control beside it."""
    if not found["rq1"]:
        return []
    first = found["rq1"][0][0]
    alike = [r for s, r in found["rq1"] if (s.data, s.model) == (first.data, first.model)]
    steps = range(len(alike[0]["series"]["guided"]))

    def panels(name, keys, value):
        rows = [(f"{key}@{i}", value(r, "guided", key, i), value(r, "random", key, i)) for key in keys for i in steps for r in alike]
        tests = study.tests(name, rows, "u", "guided", "random")
        return [(key.upper(), [(title, [(i, tests[f"{key}@{i}"][f"mean_{side}"], *tests[f"{key}@{i}"][f"interval_{side}"]) for i in steps])
                               for side, title in (("a", "tests that raise coverage"), ("b", "as many without a guide (control)"))])
                for key in keys]
    subject = f"{first.model} on {first.data}, {counted(len(alike), 'model')}"
    coverage = panels("figure-1", CRITERIA, lambda r, kind, key, i: r["series"][kind][i]["coverage"][key])
    keys = [m for m in METRICS if all(series_of(r, kind, m) for r in alike for kind in ("guided", "random"))]
    quality = panels("figure-2", keys,
                     lambda r, kind, key, i: r["series"][kind][i]["quality"][key] / (r["series"]["guided"][-1]["quality"][key] or 1))
    files = [("revisiting-coverage.svg", f"Coverage of the original model by D0 to D{steps[-1]} ({subject})", coverage),
             ("revisiting-quality.svg", f"Quality of models retrained with D0 to D{steps[-1]}, divided by the last value ({subject})", quality)]
    for file, title, content in files:
        (output / file).write_text(common.panels_svg(title, content, "i of the data set Di that the model was retrained with; bands: 95% of bootstrap means"))
    return [file for file, _, _ in files]


# RQ2
def rq2(study, found):
    if not found["rq2"]:
        return "Not measured."
    metrics = [m for m in (*METRICS, *MORE_METRICS) if all(m in r[k] for _, r in found["rq2"] for k in ("improving", "remaining", "all"))]
    rows = [(m, r["improving"][m], r["remaining"][m]) for m in metrics for _, r in found["rq2"]]
    u = study.tests("rq2-u", rows, "u", "improving", "remaining")
    paired = study.tests("rq2-wilcoxon", rows, "wilcoxon", "improving", "remaining")
    both = study.tests("rq2-all", [(m, r["improving"][m], r["all"][m]) for m in metrics for _, r in found["rq2"]], "wilcoxon", "improving", "all")
    better = {**METRICS, **MORE_METRICS}

    def plain(metric):
        values = [r["plain"][metric] for _, r in found["rq2"] if metric in r.get("plain", {})]
        return number(mean(values)) if values else "-"
    lines = [[m, better[m], spread(u[m]["mean_a"], u[m]["interval_a"]), spread(u[m]["mean_b"], u[m]["interval_b"]), number(both[m]["mean_b"]),
              plain(m), p_text(u[m]["p"]), f"{u[m]['effect']:.2f}", p_text(paired[m]["p"]), p_text(paired[m]["holm_p"]),
              p_text(both[m]["holm_p"])] for m in metrics]
    kept = {kind: mean([sum(r[kind]["kept"]) for _, r in found["rq2"]]) for kind in ("improving", "remaining", "all")}
    return "\n".join([
        f"{counted(len(found['rq2']), 'subject')}. Tests kept over all rounds, mean: {kept['improving']:.0f} improving, {kept['remaining']:.0f} remaining, {kept['all']:.0f} of all.", "",
        table(["metric", "better models", ">improving", ">remaining", ">any", ">plain", ">p (U, as the paper)", ">A12", ">p (pairs)", ">p (pairs, Holm)",
               ">p against any (Holm)"], lines)])


# RQ3
def rq3(study, found):
    if not found["rq3"]:
        return "Not measured."
    methods = [*COVERAGE, "random", "noise", *GRADIENT]
    groups = {}
    for subject, r in found["rq3"]:
        groups.setdefault((subject.data, subject.model), []).append(r)
    lines = [[data, model, len(rs), *[f"{mean([r[m]['mr'] for r in rs]):.3f} / {mean([r[m]['broken'] for r in rs]):.2f}" for m in methods]]
             for (data, model), rs in groups.items()]
    lines.append(["passes an input", "", "", *[f"{mean([r[m]['passes'] for _, r in found['rq3']]):.1f}" for m in methods]])
    return "\n".join(["MR / share of the inputs that some test broke, mean of the seeds. `random`: DeepHunter's mutations without a guide; `noise`: uniform within the "
                      "same ε as the attacks; both at the cost of the coverage-driven methods. A pass of an attack has a gradient, too.", "",
                      table(["data", "model", ">models", *[f">{m}" for m in methods]], lines)])


# RQ4
def rq4(study, found):
    if not found["rq4"]:
        return "Not measured."
    coverage = repaired_with(found["rq4"][0][1])
    models, sets = ["original", "plain", *coverage, *GRADIENT], ["clean", *coverage, "pgd"]
    # Each model against the control, a test for every model and set.
    rows = [(f"{m}@{s}", r[m][s], r["plain"][s]) for m in models if m != "plain" for s in sets for _, r in found["rq4"]]
    tests = study.tests("rq4", rows, "wilcoxon", "model", "plain")

    def cell(model, on):
        value = mean([r[model][on] for _, r in found["rq4"]])
        test = tests.get(f"{model}@{on}")
        mark = "" if test is None or test["holm_p"] >= LEVEL else " ▲" if test["effect"] > 0.5 else " ▼"
        return f"{value:.3f}{mark}"
    return "\n".join([f"Accuracy, mean of {counted(len(found['rq4']), 'subject')}. Columns: clean test images, and tests that each method makes anew against the model of the row "
                      "(PGD with the smaller ε). ▲ ▼: above or below plain retraining, p < 0.05 of pairs, Holm over all cells.", "",
                      table(["retrained with", *[f">{s}" for s in sets]], [[m, *[cell(m, s) for s in sets]] for m in models])])


def long_rows(found):
    def flat(subject, question, case, values):
        for key, value in values.items():
            if isinstance(value, (int, float)):
                yield [question, subject.data, subject.model, subject.seed, case, key, f"{value:.6g}"]
    for subject, r in found["prepare"]:
        yield from flat(subject, "prepare", "original", r)
    for question in ("rq2", "rq3", "rq4"):
        for subject, r in found[question]:
            for case, values in r.items():
                yield from flat(subject, question, case, values)
    for subject, r in found["rq1"]:
        for kind, points in r["series"].items():
            for i, point in enumerate(points):
                values = {**point["quality"], **{f"coverage-{k}": v for k, v in point["coverage"].items()}, "tests": point["tests"], "clean": point["clean"]}
                yield from flat(subject, "rq1", f"{kind}-D{i}", values)


def setting(study, command, found, missing):
    groups = {}
    for subject, r in found["prepare"]:
        groups.setdefault((subject.data, subject.model), []).append((subject, r["accuracy"]))

    def done(kind, question):
        return sum((s.data, s.model) == kind for s, _ in found[question])
    rows = [[*kind, ", ".join(str(s.seed) for s, _ in rs), f"{100 * mean([a for _, a in rs]):.2f}%", rs[0][0].amounts.train, rs[0][0].amounts.tests,
             *[done(kind, f"rq{q}") for q in "1234"]] for kind, rs in groups.items()]
    lines = [f"`{command}`: {study.steps} steps, {study.seconds / 60:.0f} minutes if one ran after the other as slowly as they did, on "
             f"{os.cpu_count()} cores of an {common.processor()}. Subjects of each question:", "",
             table(["data", "model", "seeds", ">accuracy", ">training images", ">tests made of", ">RQ1", ">RQ2", ">RQ3", ">RQ4"], rows)]
    if missing:
        lines += ["", "Left out, for the study was stopped: " + "; ".join(f"{question.upper()} of {', '.join(names)}" for question, names in sorted(missing.items())) + "."]
    return "\n".join(lines)


PARTS = {"setting": "Setting", "summary": "Hypotheses", "controls": "Controls", "rq1": "RQ1: does quality improve with coverage?",
         "rq2": "RQ2: are coverage-improving tests better to retrain with?", "rq3": "RQ3: which methods uncover more failures?",
         "rq4": "RQ4: what does retraining repair?"}


def earlier(path):
    """RQ2 of an earlier part, one {case: {measure: value}} for every subject."""
    found = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["question"] == "rq2":
                found.setdefault((row["data"], row["model"], row["seed"]), {}).setdefault(row["case"], {})[row["measure"]] = float(row["value"])
    return list(found.items())


def write(study, output, given, found, missing):
    common.write_csv(output / f"{given.results}.csv", ["question", "data", "model", "seed", "case", "measure", "value"], long_rows(found))
    images = figures(study, found, output)
    everything = {**found, "rq2": found["rq2"] + [one for path in given.beside for one in earlier(path)]}
    parts = {"summary": summary(study, everything, given.part), "controls": control_table(study, everything), "rq1": rq1(study, found), "rq2": rq2(study, found),
             "rq3": rq3(study, found), "rq4": rq4(study, found)}
    if given.part:
        parts = {name: text for name, text in parts.items() if text != "Not measured."}
    parts = {"setting": setting(study, common.command_of("revisiting", given), found, missing), **parts}
    titles = {name: text for name, text in PARTS.items() if name in parts}
    common.fill(output / f"{given.results}.md", "Revisiting neuron coverage", titles, parts, {"rq1": images})
