"""Tables and tests of hypotheses, from what deepsensor.py measured."""
import os
import statistics

import common
from common import p_text, table

POLLUTED_CLASS = 1
NAMES = {"deepsensor": "swarm by excitable neurons (DeepSensor)", "swarm-loss": "swarm by loss", "genetic-loss": "genetic search by loss",
         "genetic-excitable": "genetic search by excitable neurons", "noise": "uniform noise", "corners": "noise at the corners", "pgd": "PGD",
         "deepxplore": "DeepXplore", "dlfuzz": "DLFuzz", "deephunter": "DeepHunter", "again": "swarm by loss, once more"}
MEASURES = {"broken": "inputs broken, %", "errors": "errors an input", "categories": "categories an input"}
TITLES = {"setting": "Setting", "guide": "Is the guide worth it?", "categories": "Other categories than loss finds?", "neurons": "Other neurons? (figure 7)",
          "table3": "Well-trained models (table 3)", "table4": "Polluted models (table 4)", "table5": "Under- and over-fitted models (table 5)",
          "parameters": "λ, ε and random start (figures 10 and 11)", "retrained": "Retraining (figures 4 to 6)", "features": "What the last layer sees (figure 8)",
          "speech": "Speech (tables 6 and 7)"}
KIND_NAMES = {"well": "well-trained", "under": "under-fitted", "over": "over-fitted"}


def value_of(measure, errors):
    return {"broken": float(bool(errors)), "errors": float(len(errors)), "categories": float(len(set(errors)))}[measure]


def values(runs, method, measure):
    """Of every input of every model."""
    return [value_of(measure, errors) for run in runs for errors in run[method]["errors"].values()]


def paired(runs, a, b, measure):
    return [(value_of(measure, run[a]["errors"][i]), value_of(measure, run[b]["errors"][i])) for run in runs for i in run[a]["errors"]]


def with_interval(test, side, scale=1, digits=2):
    low, high = test[f"interval_{side}"]
    return f"{scale * test[f'mean_{side}']:,.{digits}f} ({scale * low:,.{digits}f}-{scale * high:,.{digits}f})"


def shown(test, side, measure):
    return with_interval(test, side, 100, 0) if measure == "broken" else with_interval(test, side, 1, 1 if measure == "errors" else 2)


def compared(study, name, runs, base, others):
    """Every method's means with intervals; p of pairs (Wilcoxon, Holm) and A12 of the base against each other."""
    lines, first = {}, {}
    for measure in MEASURES:
        rows = [(other, x, y) for other in others for x, y in paired(runs, base, other, measure)]
        pairs = study.tests(f"{name}-{measure}-pairs", rows, "wilcoxon", base, "other")
        sizes = study.tests(f"{name}-{measure}-u", rows, "u", base, "other")
        for other in others:
            first[measure] = shown(pairs[other], "a", measure)
            lines.setdefault(other, []).extend([shown(pairs[other], "b", measure), p_text(pairs[other]["holm_p"]), f"{sizes[other]['effect']:.2f}"])
    titles = ["method", ">passes an input", *[t for title in MEASURES.values() for t in (f">{title} (95%)", ">p", ">A12")]]
    passes = {method: statistics.mean(run[method]["passes"] for run in runs) for method in (base, *others)}
    rows = [[f"**{NAMES[base]}**", f"{passes[base]:,.0f}", *[cell for measure in MEASURES for cell in (first[measure], "", "")]]]
    return table(titles, rows + [[NAMES[other], f"{passes[other]:,.0f}", *lines[other]] for other in others])


def setting(study, scale, amounts, found, missing):
    cores = os.cpu_count() or 1
    lines = []
    for kind in amounts.kinds:
        accuracies = [run["accuracy"] for run in found[kind]]
        if accuracies:
            lines.append([kind_name(kind), len(accuracies), f"{100 * min(accuracies):.1f}-{100 * max(accuracies):.1f}"])
    text = (f"`./dev study deepsensor --scale {scale}`: {study.steps} steps, {study.seconds / 60:.0f} minutes if one ran after the other as slowly as they did, on "
            f"{common.counted(cores, 'core')} of an {common.processor()}. {amounts.model} of {amounts.data}, {amounts.train:,} images, {amounts.epochs} epochs; the first "
            f"{amounts.tests} test images, those of them that a model gets right; ε {amounts.eps}; swarm of {amounts.population}, {amounts.generations} generations, "
            f"values of neurons by the path at {amounts.points} points; an input and a model are a pair.\n\n")
    text += table(["models", ">of them", ">accuracy, %"], lines)
    return text + (f"\n\nLeft out, for the study was stopped: {'; '.join(sorted(missing))}." if missing else "")


def kind_name(kind):
    return KIND_NAMES.get(kind) or f"{float(kind) * 100:.0f}% polluted"


def guide(study, found):
    runs = found["guide"]
    if not runs:
        return "Not measured."
    others = [method for method in runs[0] if method not in ("deepsensor", "again")]
    return compared(study, "guide", runs, "deepsensor", others)


def categories(study, found):
    runs = found["guide"]
    if not runs:
        return "Not measured."
    rows = []
    for run in runs:
        for i, by_loss in run["swarm-loss"]["errors"].items():
            guided, again, known = set(run["deepsensor"]["errors"][i]), set(run["again"]["errors"][i]), set(by_loss)
            rows.append(("new", len(guided - known), len(again - known)))
            rows.append(("not found", len(known - guided), len(known - again)))
    tests = study.tests("categories", rows, "wilcoxon", "guided", "again")
    return table(["classes that an input is taken for", ">swarm by excitable neurons (95%)", ">swarm by loss with another seed (95%)", ">p"],
                 [["and not in the swarm by loss", with_interval(tests["new"], "a"), with_interval(tests["new"], "b"), p_text(tests["new"]["p"])],
                  ["in the swarm by loss, but not here", with_interval(tests["not found"], "a"), with_interval(tests["not found"], "b"),
                   p_text(tests["not found"]["p"])]])


def neurons(study, found):
    runs = found["neurons"]
    if not runs:
        return "Not measured."
    names = {"swarm-loss-equal": "swarm by loss", "swarm-loss-equal-again": "swarm by loss, once more", "jsma": "JSMA", "deepfool": "DeepFool",
             "deepsensor": "DeepSensor", "pgd": "PGD"}
    lines = []
    for key in dict.fromkeys((a, b) for run in runs for a, b, *_ in run["overlap"]):
        same = [entry for run in runs for entry in run["overlap"] if entry[:2] == key]
        each = [entry[2] for entry in same if entry[2] is not None]
        lines.append([names[key[0]], names[key[1]], f"{statistics.mean(each):.2f}" if each else "-", f"{statistics.mean(e[5] for e in same):.1f}",
                      f"{statistics.mean(e[4] for e in same):.2f}", sum(e[3] for e in same)])
    return table(["faults of", "and of", ">of the 10 most excited neurons of an input in common", ">of the 10 by mean", ">by chance", ">pairs of inputs"], lines)


def table3(study, found):
    return of_kind(study, found, "well") if found.get("well") else "Not measured."


def of_kind(study, found, kind):
    runs = found[kind]
    return compared(study, f"kind-{kind}", runs, "deepsensor", [m for m in runs[0] if m not in ("deepsensor", "accuracy")])


def table4(study, found):
    """Errors, and which share of them is the polluted class, beside the same of clean models."""
    kinds = [kind for kind in found if kind[:1] == "0" and found[kind]]
    if not kinds or not found.get("well"):
        return "Not measured."
    methods = [m for m in found[kinds[0]][0] if m != "accuracy"]

    def shares(kind, method):
        return [errors.count(POLLUTED_CLASS) / len(errors) for run in found[kind] for i, errors in run[method]["errors"].items()
                if errors and run[method]["labels"][i] != POLLUTED_CLASS]
    lines = []
    for kind in kinds:
        for method in methods:
            rows = [(measure, x, y) for measure in MEASURES for x, y in
                    common.rows_side_by_side(values(found[kind], method, measure), values(found["well"], method, measure))]
            told = study.tests(f"polluted-{kind}-{method}", rows, "u", "polluted", "well")
            a, b = shares(kind, method), shares("well", method)
            share = ["-", "-", "-"]
            if a and b:
                test = study.tests(f"polluted-share-{kind}-{method}", [("share", x, y) for x, y in common.rows_side_by_side(a, b)], "u", "polluted", "well")["share"]
                share = [with_interval(test, "a", 100, 0), with_interval(test, "b", 100, 0), p_text(test["p"])]
            lines.append([kind_name(kind), NAMES[method], shown(told["broken"], "a", "broken"), shown(told["broken"], "b", "broken"),
                          shown(told["errors"], "a", "errors"), shown(told["errors"], "b", "errors"), p_text(told["errors"]["holm_p"]), *share])
    return table(["model", "method", ">inputs broken, % (95%)", ">of the clean model", ">errors an input (95%)", ">of the clean model", ">p of errors",
                  ">errors taken for the polluted class, % (95%)", ">of the clean model", ">p of shares"], lines)


def table5(study, found):
    kinds = [kind for kind in ("under", "over") if found.get(kind)]
    return "\n\n".join(f"**{kind_name(kind)}**:\n\n{of_kind(study, found, kind)}" for kind in kinds) or "Not measured."


def parameters(study, found):
    runs, base = found["parameters"], found["guide"]
    if not runs or not base:
        return "Not measured."
    lines = []
    for key in runs[0]:
        rows = [(measure, value_of(measure, run[key]["errors"][i]), value_of(measure, usual["deepsensor"]["errors"][i]))
                for measure in MEASURES for run, usual in zip(runs, base) for i in usual["deepsensor"]["errors"]]
        told = study.tests(f"parameters-{key[0]}-{key[1]}".replace("λ", "lambda").replace("ε", "until"), rows, "wilcoxon", "changed", "usual")
        lines.append([*key, f"{statistics.mean(run[key]['passes'] for run in runs):,.0f}", *[shown(told[m], "a", m) for m in MEASURES], p_text(told["errors"]["holm_p"])])
        usual = ["usual", "λ 0.01, ε 1, inside", f"{statistics.mean(run['deepsensor']['passes'] for run in base):,.0f}", *[shown(told[m], "b", m) for m in MEASURES], ""]
    lines.insert(0, usual)
    return table(["parameter", "value", ">passes an input", *[f">{title} (95%)" for title in MEASURES.values()], ">p of errors, against the usual"], lines)


def retrained(study, found):
    runs = found.get("retrained")
    if not runs:
        return "Not measured."
    lines = []
    for name in runs[0]:
        have = [run for run in runs if name in run]

        def cell(function, digits):
            all_values = [function(run) for run in have]
            spread = f" ({min(all_values):+.{digits}f} to {max(all_values):+.{digits}f})" if len(all_values) > 1 else ""
            return f"{statistics.mean(all_values):+.{digits}f}{spread}"
        lines.append([NAMES.get(name, name), len(have), f"{100 * statistics.mean(run[name]['clean'] for run in have):.1f}",
                      f"{100 * statistics.mean(run[name]['asr'] for run in have):.0f}", f"{statistics.mean(run[name]['clever'] for run in have):.3f}",
                      "" if name == "original" else cell(lambda run: 100 * (run["original"]["asr"] - run[name]["asr"]), 0),
                      "" if name == "original" else cell(lambda run: run[name]["clever"] - run["original"]["clever"], 3)])
    return table(["retrained with tests of", ">models", ">clean accuracy, %", ">broken by PGD, %", ">CLEVER", ">ΔASR, points (range)", ">ΔCLEVER (range)"], lines)


def features(study, found):
    if not found["features"]:
        return "Not measured."
    groups = found["features"][0]
    names = [group["name"].split("/")[-1] for group in groups]
    total = sum(group["inputs"] for group in groups)
    lines = [[name, group["inputs"], *[f"{100 * share:.0f}" for share in group["neighbours_in"]], f"{100 * group['same_label']:.0f}",
              f"{100 * group['same_verdict']:.0f}"] for name, group in zip(names, groups)]
    lines.append(["by chance", "", *[f"{100 * group['inputs'] / total:.0f}" for group in groups], "", ""])
    return table(["group", ">inputs", *[f">neighbours in {name}, %" for name in names], ">benign neighbours with its label, %", ">with its verdict, %"], lines)


def speech(study, found):
    parts = []
    for (model, kind), runs in found["speech"].items():
        methods = [m for m in runs[0] if m not in ("deepsensor", "accuracy")]
        inputs = len(runs[0]["deepsensor"]["errors"])
        parts.append(f"**{model}, {kind_name(kind)}** ({100 * runs[0]['accuracy']:.1f}% of the held-out clips; {inputs} clips are changed):\n\n"
                     + compared(study, f"speech-{model}-{kind}", runs, "deepsensor", methods))
    return "\n\n".join(parts) or "Not measured."


def rows_of(found):
    rows = []
    runs = [("guide", seed, method, run) for seed, run in enumerate(found["guide"], 1) for method in run]
    runs += [(kind, seed, method, run) for kind in found if kind in ("well", "under", "over") or kind[:1] == "0"
             for seed, run in enumerate(found[kind], 1) for method in run if method != "accuracy"]
    runs += [(f"{model} {kind}", seed, method, run) for (model, kind), all_runs in found["speech"].items() for seed, run in enumerate(all_runs, 1)
             for method in run if method != "accuracy"]
    for part, seed, method, run in runs:
        rows += [[part, seed, method, i, len(errors), len(set(errors)), f"{run[method]['passes']:.0f}"] for i, errors in run[method]["errors"].items()]
    return rows


def write(study, output, scale, amounts, found, missing):
    parts = {"guide": guide(study, found), "categories": categories(study, found), "neurons": neurons(study, found), "table3": table3(study, found),
             "table4": table4(study, found), "table5": table5(study, found), "parameters": parameters(study, found), "retrained": retrained(study, found),
             "features": features(study, found), "speech": speech(study, found)}
    parts["setting"] = setting(study, scale, amounts, found, missing)
    picture = study.work / "features.svg"
    if picture.exists():
        (output / "deepsensor-features.svg").write_text(picture.read_text())
    common.write_csv(output / "deepsensor.csv", ["part", "seed", "method", "input", "errors", "categories", "passes"], rows_of(found))
    common.fill(output / "deepsensor.md", "Excitable neurons as a guide", TITLES, parts, {"features": ["deepsensor-features.svg"]} if picture.exists() else {})
