"""Tables and figures of the CAGFuzz study."""
import statistics

import common

PARTS = {"setting": "Setting", "errors": "Errors of one candidate an input (table 5)", "campaigns": "The whole loop", "transfer": "Faults on other models",
         "retrained": "Few images and as many more (tables 3 and 4)", "continued": "Training on with examples (figures 7 to 9)"}


def percent(value):
    return "-" if value is None else f"{value * 100:.1f}%"


def setting(scale, found, missing):
    rows, models = [], []
    for subject, result in found["prepare"]:
        for kind, figures in result["generators"].items():
            quantiles = [q["ssim"] for q in figures["ssim_quantiles"]]
            rows.append([subject.data, kind, f"{figures['ssim']:.3f}", f"{quantiles[0]:.3f} .. {quantiles[-1]:.3f}", f"{figures['change']:.2f}",
                         percent(figures["unchanged"]), f"{figures['transformed_ssim']:.3f}", f"{figures['spread']:.2f}", f"{figures['variety']:.2f}",
                         "; ".join(c.split(":")[0] for c in figures["complaints"]) or "-"])
        names = ", ".join(f"{m.split(':')[0]} {percent(a)}" for m, a in result["accuracies"].items())
        models.append([subject.data, names, f"{subject.amounts.reference.split(':')[0]} {percent(result['reference'])}", subject.amounts.train,
                       subject.amounts.seeds])
    text = f"Scale `{scale}`; {common.processor()}.\n\n"
    text += common.table(["data", "models", "reference", ">training images", ">right inputs at most"], models) + "\n\n"
    text += common.table(["generator of", "domains", ">SSIM", ">5% .. 95%", ">change", ">unchanged", ">SSIM there", ">spread", ">variety", "complaint"], rows)
    if missing:
        text += "\n\nNot measured: " + "; ".join(missing) + "."
    return text


def rate_row(data, name, r):
    ssim = r.get("ssim")
    return [data, name, r["tried_seeds"], r["valid"], r["faults"], percent(r["faults"] / r["valid"] if r["valid"] else None),
            "-" if ssim is None else f"{ssim:.3f}"]


def errors(found, output):
    rows, panels = [], []
    for subject, result in found["errors"]:
        rows += [rate_row(subject.data, name, r) for name, r in result.items()]
        lines = []
        for kind in subject.domains:
            points = []
            for similarity in subject.amounts.similarities:
                r = result[f"CAGFuzz, {kind}, {similarity}"]
                share = r["faults"] / r["tried_seeds"] * 100 if r["tried_seeds"] else 0
                points.append((max(similarity, 0), share, share, share))
            lines.append((kind, points))
        panels.append((f"{subject.data}: errors per 100 inputs", lines))
    if panels:
        lines_of_first = len(panels[0][1])
        figure = common.panels_svg("CAGFuzz: errors over the similarity asked for", [p for p in panels if len(p[1]) <= lines_of_first],
                                   "least cosine of deep features (0: any)", columns=len(panels))
        (output / "cagfuzz-errors.svg").write_text(figure)
    return common.table(["data", "candidates of", ">inputs", ">valid", ">errors", ">errors / valid", ">SSIM of errors"], rows)


def campaigns(found):
    rows = [[subject.data, name, r["mutants"], r["valid"], r["outputs"], r["faults"], r["distinct_faults"], f"{r['broken_seeds']} of {r['tried_seeds']}",
             f"{r['passes']:,}"] for subject, result in found["campaigns"] for name, r in result.items()]
    return common.table(["data", "way", ">candidates", ">valid", ">kept", ">faults", ">distinct", ">seeds broken", ">passes"], rows)


def transfer(found):
    text = ""
    for subject, result in found["transferred"]:
        rows = []
        for row in result["rows"]:
            rows.append([row["tests"].split("/")[-1], *(f"{c['broken']} of {c['right']}{' *' if c['own'] else ''}" for c in row["models"])])
        text += f"\n{subject.data}:\n\n" + common.table(["faults of", *(f">{m}" for m in result["models"])], rows) + "\n"
    return text + "\n*: the model they were found with."


def spread(values):
    if len(values) < 2:
        return percent(values[0]) if values else "-"
    half = 1.96 * statistics.stdev(values) / len(values) ** 0.5
    return f"{statistics.mean(values) * 100:.1f} ± {half * 100:.1f}"


def retrained(study, found):
    text = ""
    for subject, rows in found["retrained"]:
        extras = list(dict.fromkeys(extra for row in rows for extra in row["accuracies"]))
        models = list(dict.fromkeys(row["model"] for row in rows))
        lines = []
        for model in models:
            own = [row["accuracies"] for row in rows if row["model"] == model]
            lines.append([model, *(spread([a[extra] for a in own if extra in a]) for extra in extras)])
        text += f"\n{subject.data}, {subject.amounts.few} images of each class, {common.counted(subject.amounts.repeats, 'repeat')}, accuracy in percent:\n\n"
        text += common.table(["model", *(f">{extra}" for extra in extras)], lines) + "\n"
        pairs = [(row["accuracies"]["plain"], row["accuracies"][extra], extra) for row in rows for extra in row["accuracies"]
                 if extra.startswith("CAGFuzz")]
        if len(pairs) > 3:
            tests = study.tests(f"retrained-{subject.data}", [[extra.replace(", ", "-"), b, a] for a, b, extra in pairs], "wilcoxon", "examples", "plain")
            text += "\n" + "; ".join(f"{name} against as many plain images: p {common.p_text(test['holm_p'])}, effect {test['effect']:.2f}"
                                     for name, test in tests.items()) + ".\n"
    return text


def continued(found, output):
    rows, panels = [], []
    for subject, result in found["continued"]:
        for model in dict.fromkeys(r["model"] for r in result):
            own = [r for r in result if r["model"] == model]
            for r in own:
                rows.append([subject.data, model, r["extra"], percent(r["epochs"][-1] if r["epochs"] else None), percent(r["examples"])])
            lines = [(r["extra"], [(e, a * 100, a * 100, a * 100) for e, a in enumerate(r["epochs"], 1)]) for r in own if r["epochs"]]
            panels.append((f"{subject.data} {model}: test accuracy, %", lines))
    if panels:
        (output / "cagfuzz-training.svg").write_text(common.panels_svg("Training on with as many examples of each kind", panels, "epoch"))
    return common.table(["data", "model", "extra images", ">test images", ">examples of test images"], rows)


def write(study, output, scale, found, missing):
    parts = {"setting": setting(scale, found, missing), "errors": errors(found, output), "campaigns": campaigns(found), "transfer": transfer(found),
             "retrained": retrained(study, found), "continued": continued(found, output)}
    common.fill(output / "cagfuzz.md", "CAGFuzz repeated", PARTS, parts, {"errors": ["cagfuzz-errors.svg"], "continued": ["cagfuzz-training.svg"]})
    common.write_csv(output / "cagfuzz.csv", ["data", "candidates", "inputs", "valid", "errors", "ssim"],
                     [[subject.data, name, r["tried_seeds"], r["valid"], r["faults"], r.get("ssim") or ""] for subject, result in found["errors"]
                      for name, r in result.items()])
