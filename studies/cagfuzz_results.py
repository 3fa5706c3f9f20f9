"""Tables and figures of the CAGFuzz study."""
import ast
import math
import statistics
import struct
import zipfile
import zlib

import common

PARTS = {"setting": "Setting", "errors": "Errors of one candidate an input (table 5)", "retrained": "Few images and as many more (tables 3 and 4)",
         "transfer": "Faults on other models", "looked_at": "Forty errors looked at", "campaigns": "The whole loop",
         "continued": "Training on with examples (figures 7 to 9)"}
STEPS = (-1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of the curves; the first is any
SHOWN_SSIM, SHOWN_FEATURES = (0.5, 0.8, 0.9, 0.95), (0.5, 0.9, 0.99)  # columns of the table
LOOKED_AT = 40


def percent(value):
    return "-" if value is None else f"{value * 100:.1f}%"


def setting(scale, found, missing):
    rows, models = [], []
    for subject, result in found["generators"]:
        for kind, figures in result.items():
            quantiles = [q["ssim"] for q in figures["ssim_quantiles"]]
            rows.append([subject.data, kind, f"{figures['ssim']:.3f}", f"{quantiles[0]:.3f} .. {quantiles[-1]:.3f}", f"{figures['change']:.2f}",
                         percent(figures["unchanged"]), f"{figures['transformed_ssim']:.3f}", f"{figures['spread']:.2f}", f"{figures['variety']:.2f}",
                         "; ".join(c.split(":")[0] for c in figures["complaints"]) or "-"])
    for subject, result in found["prepare"]:
        if not result:
            continue
        names = ", ".join(f"{name.split(':')[0]} {percent(accuracy)}" for name, accuracy in result.items() if name != "reference")
        models.append([subject.data, names, f"{subject.amounts.reference.split(':')[0]} {percent(result.get('reference'))}", subject.amounts.train,
                       subject.amounts.seeds])
    text = f"Scale `{scale}`; {common.processor()}.\n\n"
    text += common.table(["data", "models", "reference", ">training images", ">right inputs at most"], models) + "\n\n"
    text += common.table(["generator of", "domains", ">SSIM", ">5% .. 95%", ">change", ">unchanged", ">SSIM there", ">spread", ">variety", "complaint"], rows)
    if missing:
        text += "\n\nNot measured: " + "; ".join(missing) + "."
    return text


def wilson(part, whole):
    """95% interval of a share."""
    z = 1.959964
    centre, half = part / whole + z * z / (2 * whole), z * math.sqrt(part / whole * (1 - part / whole) / whole + z * z / (4 * whole * whole))
    return (centre - half) / (1 + z * z / whole), (centre + half) / (1 + z * z / whole)


def at_least(result, column, least):
    """Errors whose similarity (column 0: SSIM, 1: deep features) is at least this."""
    return sum(1 for values in result["each"] if values[column] >= least)


def rate_row(subject, model, name, r):
    low, high = wilson(r["faults"], r["tried_seeds"])
    return [subject.data, model.split(":")[0], name, r["tried_seeds"], f"{r['passes']:,}", r["faults"], f"{low * 100:.1f} .. {high * 100:.1f}%",
            *(at_least(r, 0, least) for least in SHOWN_SSIM), *(at_least(r, 1, least) for least in SHOWN_FEATURES)]


def curve(result, column):
    points = []
    for least in STEPS:
        count = at_least(result, column, least)
        low, high = wilson(count, result["tried_seeds"])
        points.append((max(least, 0), count / result["tried_seeds"] * 100, low * 100, high * 100))
    return points


def errors(found, output):
    rows, panels = [], []
    for subject, result in found["errors"]:
        tried = {key: r for key, r in result.items() if r["tried_seeds"]}
        for model in subject.models:
            rows += [rate_row(subject, model, name, r) for (of, name), r in tried.items() if of == model]
        own = {name: r for (model, name), r in tried.items() if model == subject.models[0]}
        for column, what in enumerate(("SSIM", "deep features")):
            if own:
                strengths = {f"FGSM {eps}": name for eps, name in zip(subject.strengths, ("FGSM, the smaller ε", "FGSM, the larger ε"))}
                panels.append((f"{subject.data}, {subject.models[0]}, {what}",
                               [(strengths.get(name, name), curve(r, column)) for name, r in own.items()]))
    if panels:
        figure = common.panels_svg("Errors per 100 inputs that are at least so similar to their originals", panels, "least similarity (0: any)", columns=2,
                                   width=520, height=270)
        (output / "cagfuzz-errors.svg").write_text(figure)
    return common.table(["data", "model", "candidates of", ">inputs", ">passes", ">errors", ">95%", *(f">SSIM ≥ {least:g}" for least in SHOWN_SSIM),
                         *(f">features ≥ {least:g}" for least in SHOWN_FEATURES)], rows)


def campaigns(found):
    rows = [[subject.data, name, r["mutants"], r["valid"], r["outputs"], r["faults"], r["distinct_faults"], f"{r['broken_seeds']} of {r['tried_seeds']}",
             f"{r['passes']:,}"] for subject, result in found["campaigns"] for name, r in result.items()]
    return common.table(["data", "way", ">candidates", ">valid", ">kept", ">faults", ">distinct", ">seeds broken", ">passes"], rows)


def transfer(found):
    text = ""
    for subject, result in found["transferred"]:
        if not result:
            continue
        matrix = result["matrix"]
        rows = []
        for row in matrix["rows"]:
            cells = [f"{c['broken']} of {c['right']}" + (f" ({percent(c['broken'] / c['right'])})" if c["right"] else "") + (" *" if c["own"] else "")
                     for c in row["models"]]
            rows.append([row["tests"].split("/")[-1].removeprefix("e-"), *cells])
        text += f"\n{subject.data}:\n\n" + common.table(["faults of", *(f">{m}" for m in matrix["models"])], rows) + "\n"
    return text + "\n*: the model they were found with."


def half_interval(values):
    """Half of the 95% interval of a mean by Student's t."""
    quantile = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776}[len(values)]
    return quantile * statistics.stdev(values) / len(values) ** 0.5


def spread(values):
    if len(values) < 2:
        return percent(values[0]) if values else "-"
    return f"{statistics.mean(values) * 100:.1f} ± {half_interval(values) * 100:.1f}"


def gain(rows, extra, control):
    """What a kind of images gives beyond another in the same repeats: repeats differ more than kinds do."""
    pairs = [row["accuracies"][extra] - row["accuracies"][control] for row in rows if extra in row["accuracies"] and control in row["accuracies"]]
    if not pairs:
        return "-"
    return f"{statistics.mean(pairs) * 100:+.1f}" + (f" ± {half_interval(pairs) * 100:.1f}" if len(pairs) > 1 else "")


def retrained(study, found):
    text = ""
    for subject, rows in found["retrained"]:
        if not rows:
            continue
        extras = list(dict.fromkeys(extra for row in rows for extra in row["accuracies"]))
        models = list(dict.fromkeys(row["model"] for row in rows))
        of = {model: [row for row in rows if row["model"] == model] for model in models}
        repeats = min(len(own) for own in of.values())
        text += f"\n{subject.data}, {subject.amounts.few} images of each class, {common.counted(repeats, 'repeat')}, accuracy in percent:\n\n"
        text += common.table(["model", *(f">{extra}" for extra in extras)],
                             [[model, *(spread([row["accuracies"][extra] for row in own if extra in row["accuracies"]]) for extra in extras)]
                              for model, own in of.items()]) + "\n"
        added = [extra for extra in extras if extra not in ("original", "the same")]
        text += "\nPoints beyond the same images twice (as many steps), pair by pair:\n\n"
        text += common.table(["model", *(f">{extra}" for extra in added)],
                             [[model, *(gain(own, extra, "the same") for extra in added)] for model, own in of.items()]) + "\n"
        pairs = [(extra, control, row["accuracies"][extra], row["accuracies"][control]) for row in rows for extra in row["accuracies"]
                 if extra.startswith("CAGFuzz") for control in ("plain", "the same", f"FGSM-{row['model']}") if control in row["accuracies"]]
        if len(rows) > 3:
            named = [[f"{extra} against {'FGSM with that model' if control.startswith('FGSM') else control}", a, b] for extra, control, a, b in pairs]
            tests = study.tests(f"retrained-{subject.data}", [[name.replace(", ", ": "), a, b] for name, a, b in named], "wilcoxon", "examples", "control")
            text += "\nWilcoxon's test of pairs (a model and a repeat), Holm over the rows; effect above 0.5 speaks for the examples:\n\n"
            text += common.table(["", ">p", ">effect"], [[name, common.p_text(test["holm_p"]), f"{test['effect']:.2f}"] for name, test in tests.items()]) + "\n"
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


def array_of(path, name):
    """(shape, bytes) of an array of one-byte or eight-byte numbers in an NPZ file."""
    with zipfile.ZipFile(path) as archive:
        data = archive.read(f"{name}.npy")
    begin = 10 + int.from_bytes(data[8:10], "little")
    return ast.literal_eval(data[10:begin].decode("latin1"))["shape"], data[begin:]


def png(width, height, rows):
    """Of RGB rows."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    raw = b"".join(b"\0" + row for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(raw, 9)) +
            chunk(b"IEND", b""))


def contact_sheet(pairs, shape, columns=8, factor=2, gap=4):
    """PNG of pairs (original, example) of images [H, W] or [H, W, 3], side by side, row by row."""
    height, width, channels = (*shape, 1)[:3]
    tile_width, tile_height = 2 * width * factor + 3 * gap, height * factor + gap
    rows = -(-len(pairs) // columns)
    page = [bytearray(b"\xf7" * (3 * columns * tile_width)) for _ in range(rows * tile_height + gap)]
    for index, pair in enumerate(pairs):
        for side, image in enumerate(pair):
            left = (index % columns) * tile_width + gap + side * width * factor
            top = (index // columns) * tile_height + gap
            for y in range(height):
                line = bytearray()
                for x in range(width):
                    at = (y * width + x) * channels
                    line += (image[at:at + channels] * 3)[:3] * factor
                for repeat in range(factor):
                    page[top + y * factor + repeat][3 * left:3 * left + len(line)] = line
    return png(columns * tile_width, len(page), [bytes(row) for row in page])


def rows_of(path, name):
    """The images of an NPZ file, or eight-byte numbers, one by one."""
    shape, data = array_of(path, name)
    size = len(data) // shape[0]
    return shape[1:], [data[i * size:(i + 1) * size] for i in range(shape[0])]


def one_of_each_original(errors):
    """From the least similar to the most, evenly."""
    first = {}
    for error in errors:
        first.setdefault(error["original"], error)
    ordered = sorted(first.values(), key=lambda error: error["ssim"])
    count = min(LOOKED_AT, len(ordered))
    return [ordered[i * len(ordered) // count] for i in range(count)]


def errors_of_models(study, result):
    """Errors with their pictures, and what shape these are of."""
    errors, shape = [], None
    for model, found in result.items():
        if not found["faults"]:
            continue
        shape, images = rows_of(study.work / found["images"], "images")
        _, ids = rows_of(study.work / found["images"], "id")
        _, originals = rows_of(study.work / found["originals"], "images")
        image_of = {int.from_bytes(number, "little"): image for number, image in zip(ids, images)}
        for fault in found["faults"]:
            original, figures = int(fault["from"].split()[-1]), fault["remarks"]["figures"]
            errors.append({"model": model.split(":")[0], "original": original, "pair": (originals[original], image_of[fault["id"]]), "true": fault["true"],
                           "predicted": fault["predicted"], "ssim": figures["ssim"], "features": figures["similarity"]})
    return errors, shape


def looked_at(study, found, output):
    text = ""
    for subject, result in found["looked_at"]:
        errors, shape = errors_of_models(study, result)
        if not errors:
            continue
        chosen = one_of_each_original(errors)
        name = f"cagfuzz-{subject.data}-errors.png"
        (output / name).write_bytes(contact_sheet([error["pair"] for error in chosen], shape))
        text += f"\n{subject.data}, {subject.domains[0]}: {len(chosen)} of {common.counted(len(errors), 'error')}, row by row (original, example), from the least similar to the most:\n\n"
        text += f"![{name}]({name})\n\n"
        rows = [[number, error["model"], error["true"], error["predicted"], f"{error['ssim']:.2f}", f"{error['features']:.2f}"]
                for number, error in enumerate(chosen, 1)]
        titles = [">#", "model", ">shows", ">taken for", ">SSIM", ">features"]
        half = -(-len(rows) // 2)
        text += common.table(titles * 2, [[*a, *(b or [""] * len(titles))] for a, b in common.rows_side_by_side(rows[:half], rows[half:])]) + "\n"
    return text


def write(study, output, scale, found, missing):
    parts = {"setting": setting(scale, found, missing), "errors": errors(found, output), "retrained": retrained(study, found), "transfer": transfer(found),
             "campaigns": campaigns(found), "looked_at": looked_at(study, found, output), "continued": continued(found, output)}
    for part, text in parts.items():
        if not any(line.startswith("| ") for line in text.splitlines()[2:]):
            parts[part] = "Not measured."
    figures = {"errors": "cagfuzz-errors.svg", "continued": "cagfuzz-training.svg"}
    common.fill(output / "cagfuzz.md", "CAGFuzz repeated", PARTS, parts, {part: [name] for part, name in figures.items() if (output / name).exists()})
    common.write_csv(output / "cagfuzz.csv", ["data", "model", "candidates", "inputs", "valid", "passes", "errors", "measure", "least", "errors_at_least"],
                     [[subject.data, model.split(":")[0], name, r["tried_seeds"], r["valid"], r["passes"], r["faults"], measure, least,
                       at_least(r, column, least)] for subject, result in found["errors"] for (model, name), r in result.items()
                      for column, measure in enumerate(("ssim", "features")) for least in STEPS])
