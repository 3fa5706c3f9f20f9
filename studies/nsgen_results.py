"""Tables and figures of the NSGen study."""
import pathlib
import statistics

import common

PARTS = {"setting": "Setting", "guides": "Guides (tables 3 and 4)", "equal_time": "At equal time", "equal_outputs": "At equal outputs (table 12)",
         "variants": "What is left out (table 11), and what remains of it", "encoders": "Text encoders (table 5)", "layers": "Layers (figure 6)",
         "labels": "Labels in the text (table 8)", "thresholds": "Thresholds (table 9) and faults (figure 7)", "counts": "Pictures a neuron (table 6)",
         "repaired": "Repair (table 13)", "map": "Where faults lie (figure 8)", "captioner": "Width of the captioner (table 7)"}
COLUMNS = ["guide", ">faults / outputs", ">RFT", ">FRE (s)", ">#Classes", ">OI", ">all faults", ">mutants", ">passes"]


# Above the table of variants.
THRESHOLDS = """Rows "at fixed threshold" keep the threshold of NSGen as a whole, so that nothing changes but what is left out; each of the others has a
threshold that was calibrated for it.
"""
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # of 95%, by the number of values


def spread(values, digits=0):
    """The mean, and half of its 95% interval by Student's t."""
    half = f" ± {STUDENT[len(values)] * statistics.stdev(values) / len(values) ** 0.5:,.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):,.{digits}f}{half}"


def fixed(variant):
    """The name of a variant that keeps the threshold of NSGen."""
    return f"{variant} at fixed threshold"


def row(name, runs):
    def column(key):
        return [run[key] or 0 for run in runs]
    return [name, f"{spread(column('kept_faults'))} / {spread(column('outputs'))}", spread(column("rft"), 3), spread(column("fre"), 4),
            spread(column("classes"), 1), spread(column("oi"), 3), spread(column("faults")), spread(column("valid")), spread(column("passes"))]


def places(entries):
    """{data and model: [(subject, result), ...]} in the order they came."""
    grouped = {}
    for subject, result in entries:
        grouped.setdefault(subject.place, []).append((subject, result))
    return grouped


def campaigns(entries, title=None):
    """A table of means for every subject."""
    text = ""
    for place, runs in places(entries).items():
        names = list(dict.fromkeys(name for _, result in runs for name in result))
        rows = [row(name, [result[name] for _, result in runs if name in result]) for name in names]
        text += f"\n{place}, {common.counted(len(runs), 'seed')}:\n\n{common.table(COLUMNS if not title else [title, *COLUMNS[1:]], rows)}\n"
    return text


def compared(study, name, entries, other, measures=("kept_faults", "rft", "classes", "oi", "faults")):
    """NSGen against another guide, seed by seed of every subject."""
    text = ""
    for place, runs in places(entries).items():
        pairs = [(result["nsgen"], result[other]) for _, result in runs if other in result and "nsgen" in result]
        if len(pairs) < 2:
            continue
        rows = [[measure, a[measure] or 0, b[measure] or 0] for measure in measures for a, b in pairs]
        tests = study.tests(f"{name}-{place}-{other.replace(' ', '-')}", rows, "u", "nsgen", other.replace(" ", "-"))
        lines = []
        for measure in measures:
            test = tests[measure]
            mine, theirs = (statistics.mean(pair[i][measure] or 0 for pair in pairs) for i in (0, 1))
            more = f"{(mine / theirs - 1) * 100:+.1f}%" if theirs else "-"
            lines.append([measure, common.number(mine), common.number(theirs), more, common.p_text(test["holm_p"]), f"{test['effect']:.2f}"])
        text += f"\n{place}, nsgen against {other} ({common.counted(len(pairs), 'seed')}):\n\n" + \
                common.table(["measure", ">nsgen", f">{other}", ">difference", ">p (Holm)", ">A12"], lines) + "\n"
    return text


def setting(study, scale, found, missing):
    rows = []
    for subject, result in found["prepare"]:
        a = subject.amounts
        usual = result["thresholds"][""]
        rows.append([subject.place, f"{result['accuracy'] * 100:.2f}%" if result["accuracy"] else "(no labels)", f"{result['named']} of {result['neurons']}", "all photos" if subject.photos else a.look, a.seeds, a.energy,
                     a.iterations, a.flow, f"{usual['tau']:.4f}"])
    text = f"Scale `{scale}`.\n\n" + common.table(
        ["subject", ">accuracy", ">neurons named", ">looked at with", ">seeds", ">mutants a pick", ">picks", "conductance", ">threshold"], rows)
    if missing:
        text += "\n\nNot measured: " + "; ".join(f"{table} of {', '.join(names)}" for table, names in missing.items()) + "."
    return text


def layers_figure(entries, output):
    panels = []
    for place, runs in places(entries).items():
        subject, result = runs[0]
        points = [(int(k), v["kept_faults"]) for k, v in result.items() if k != "all"]
        if points:
            panels.append((place, [("faults", [(k, v, v, v) for k, v in sorted(points)])]))
    if not panels:
        return []
    (output / "nsgen-layers.svg").write_text(common.panels_svg("Faults by layers in a path", panels, "layers"))
    return ["nsgen-layers.svg"]


def seconds_figure(entries, output):
    """Figure 5: seconds a fault of every guide, on a logarithmic scale."""
    panels = []
    for place, runs in places(entries).items():
        bars = {}
        for _, result in runs:
            for guide, values in result.items():
                bars.setdefault(guide, []).append(values["fre"] or 0)
        panels.append((place, [(guide, statistics.mean(values)) for guide, values in bars.items() if statistics.mean(values) > 0]))
    if not panels:
        return []
    (output / "nsgen-seconds.svg").write_text(common.bars_svg("Seconds a fault that is kept", panels))
    return ["nsgen-seconds.svg"]


def map_table(entries):
    """Of a group's nearest neighbours, the share in every group."""
    text = ""
    for subject, result in entries:
        names = ["tests", *subject.amounts.mapped]
        rows = [[name, group["inputs"], *(f"{share * 100:.0f}%" for share in group["neighbours_in"])] for name, group in zip(names, result["groups"])]
        text += f"\n{subject.place}:\n\n" + common.table(["faults of", ">points", *(f">near {name}" for name in names)], rows) + "\n"
    return text


def map_pictures(entries, output):
    names = []
    for subject, result in entries:
        names.append(f"nsgen-map-{subject.place}.svg")
        text = result["picture"].read_text()
        for path in (subject.given, subject.photos):  # without the folders of this machine
            text = text.replace(path, pathlib.Path(path).name) if path else text
        (output / names[-1]).write_text(text)
    return names


def captioner(entries):
    rows = [[*case.split(", "), f"{said['bleu']:.3f}", f"{said['bleu_likeliest']:.3f}", f"{said['bleu_shuffled']:.3f}", f"{said['same'] * 100:.1f}%",
             *(f"{a['right'] * 100:.1f}%" for a in said["attributes"])] for _, result in entries for case, said in result.items()]
    names = [a["name"] for _, result in entries for said in result.values() for a in said["attributes"]][:len(rows[0]) - 6] if rows else []
    return common.table([">numbers a word", ">width of the decoder", ">BLEU", ">likeliest sentence", ">sentences of others", ">the very sentence",
                         *(f">{name}" for name in names)], rows)


def thresholds(entries):
    rows = [[subject.place, share, f"{said['tau']:.4f}", said["inputs"], f"{said['mutants']:,}", f"{said['below'] * 100:.1f}%",
             f"{said['same_words'] * 100:.1f}%", f"{said['correlation']['r']:.3f}", common.p_text(said["correlation"]["p"])]
            for subject, result in entries for share, said in result.items()]
    return common.table(["subject", ">share of a class", ">threshold", ">inputs", ">mutants", ">below", ">same words", ">r with failure", ">p"], rows)


def named_right(subject, words):
    """How many output neurons are said to see pictures of their class."""
    names = class_names(subject)
    return sum(said.replace(" pictures", "").split(" or ")[0].strip("()") == name for said, name in zip(words, names))


def class_names(subject):
    if subject.data == "cifar10":
        return ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    return [str(digit) for digit in range(10)]


def counts(entries):
    rows = []
    for subject, result in entries:
        for case, words in result.items():
            describer, count = case.split(", ")
            rows.append([subject.place, describer, count, f"{named_right(subject, words)} of {len(words)}"])
    return common.table(["subject", "describer", ">pictures a neuron", ">output neurons with the name of their class"], rows)


def repaired(entries):
    rows = [[subject.name, name, *(f"{values[key] * 100:.2f}%" for key in ("clean", "pgd", "bim"))]
            for subject, result in entries for name, values in result.items()]
    return common.table(["subject", "trained with", ">clean", ">under PGD", ">under BIM"], rows)


def long_rows(found):
    rows = []
    for table in ("guides", "equal_time", "equal_outputs", "variants", "encoders", "layers", "labels"):
        for subject, result in found[table]:
            for case, values in result.items():
                rows += [[table, subject.place, subject.seed, case, measure, value] for measure, value in values.items() if value is not None]
    for subject, result in found["thresholds"]:
        for share, said in result.items():
            rows += [["thresholds", subject.place, subject.seed, share, "tau", said["tau"]],
                     ["thresholds", subject.place, subject.seed, share, "r", said["correlation"]["r"]]]
    for subject, result in found["counts"]:
        rows += [["counts", subject.place, subject.seed, case, "named", named_right(subject, words)] for case, words in result.items()]
    for subject, result in found["repaired"]:
        for case, values in result.items():
            rows += [["repaired", subject.place, subject.seed, case, measure, value] for measure, value in values.items()]
    for subject, result in found["map"]:
        for name, group in zip(("tests", *subject.amounts.mapped), result["groups"]):
            rows += [["map", subject.place, subject.seed, name, measure, group[measure]] for measure in ("same_label", "same_verdict")]
    for subject, result in found["captioner"]:
        rows += [["captioner", subject.place, subject.seed, case, measure, said[measure]] for case, said in result.items() for measure in ("bleu", "bleu_shuffled", "same")]
    return rows


def write(study, output, scale, found, missing):
    common.write_csv(output / "nsgen.csv", ["table", "subject", "seed", "case", "measure", "value"], long_rows(found))
    images = {"layers": layers_figure(found["layers"], output), "guides": seconds_figure(found["guides"], output), "map": map_pictures(found["map"], output)}
    contents = {
        "setting": setting(study, scale, found, missing),
        "guides": campaigns(found["guides"]) + compared(study, "guides", found["guides"], "nlc") + compared(study, "guides", found["guides"], "random"),
        "equal_time": campaigns(found["equal_time"]) + compared(study, "time", found["equal_time"], "nlc") +
        compared(study, "time", found["equal_time"], "random") + compared(study, "time", found["equal_time"], "label alone"),
        "equal_outputs": campaigns(found["equal_outputs"]) + compared(study, "outputs", found["equal_outputs"], "nlc") +
        compared(study, "outputs", found["equal_outputs"], "random") + compared(study, "outputs", found["equal_outputs"], "label alone"),
        "variants": THRESHOLDS + campaigns(found["variants"], "variant") + "".join(
            compared(study, "variants", found["variants"], case)
            for variant in ("label alone", "neurons alone", "without words", "without choice") for case in (variant, fixed(variant))),
        "encoders": campaigns(found["encoders"], "encoder"), "layers": campaigns(found["layers"], "layers"),
        "labels": campaigns(found["labels"], "labels"), "thresholds": thresholds(found["thresholds"]), "counts": counts(found["counts"]),
        "repaired": repaired(found["repaired"]), "map": map_table(found["map"]), "captioner": captioner(found["captioner"])}
    common.fill(output / "nsgen.md", "NSGen", PARTS, contents, images)
