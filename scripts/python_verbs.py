#!/usr/bin/env python3
"""Writes the functions of the Python package from what the verbs declare: python_verbs.py GALVANI OUTPUT

`galvani help --json` says of every verb what it is for, its options with their types, defaults and limits, and its
examples; a function of the same name takes the options as keyword arguments. Nothing is said twice.
"""
import json
import keyword
import re
import shlex
import subprocess
import sys
import textwrap

WIDTH = 100
# Of the terminal, of the process, or of the exit code.
LEFT_OUT = {"--json", "--json-lines", "--quiet", "--verbose", "--plain", "--list", "--fail-if", "--junit", "--operators"}
# What a model or inputs are named with; objects may stand there, too.
MODELS = {"model", "--model"}
OTHER_MODELS = {"--with"}
INPUTS = {"--data", "--train", "--test", "--originals", "--style", "--clean", "--tests", "--compare", "input"}
# Groups of options of every verb that runs a model.
SHARED = ("Preprocessing", "Images and labels")
HINTS = {"text": "Text", "texts": "Sequence[Text] | Text", "integer": "int", "number": "float", "flag": "bool"}


def argument(option):
    name = option["name"].lstrip("-").replace("-", "_")
    # What stands without a name may have that of an option: explain's pictures, and --input.
    if option["name"] == "input":
        name = "inputs"
    return name + "_" if keyword.iskeyword(name) else name


def hint(option):
    if option["name"] in MODELS:
        return "Model"
    if option["name"] in OTHER_MODELS:
        return "Sequence[Model] | Model"
    if option["name"] in INPUTS:
        return "Inputs" if option["kind"] == "text" else "Sequence[Inputs] | Inputs"
    if option["kind"] == "text" and option["choices"]:
        return "Literal[" + ", ".join(json.dumps(choice) for choice in option["choices"]) + "]"
    return HINTS[option["kind"]]


def about(option):
    text = option["help"]
    # Where the help speaks to a terminal.
    text = re.sub(r" \(see --list\)", "", text)
    text = re.sub(r"--([a-z][a-z-]*)", lambda m: m[1].replace("-", "_"), text)
    if option["name"] in MODELS:
        text += ", or a galvani.Network"
    if option["range"]:
        text += f"; {option['range']}"
    if option["default"] not in (None, "", []) and "(default" not in text:
        text += f" (default: {option['default']})"
    return text


def name_of(words):
    return "_".join(words).replace("-", "_")


def wrapped(text, first, rest):
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                         break_on_hyphens=False)


def value_of(word, option):
    return word if option["kind"] in ("integer", "number") else json.dumps(word)


def several(words):
    return json.dumps(words if len(words) != 1 else words[0])


def in_python(line, words, options):
    """A line of the command line's examples as a call; a line without a call stays; None: Python has no such call."""
    command, _, remark = line.strip().partition("   ")
    if not command.startswith("galvani "):
        said = re.sub(r" ?Exit code[^.]*\.", "", line.strip()).replace("the same command", "the same call")
        return re.sub(r"--([a-z][a-z-]*)", lambda m: m[1].replace("-", "_"), said) or None
    try:
        typed = shlex.split(command)
    except ValueError:
        return None
    if tuple(typed[1:len(words) + 1]) != words or set(command) & set("|$>&<;"):
        return None
    by_name = {option["name"]: option for option in options} | {"-o": next((o for o in options if o["name"] == "--output"), None)}
    positional = [option for option in options if not option["name"].startswith("-")]
    given, named = [], []
    rest = typed[len(words) + 1:]
    while rest:
        word = rest.pop(0)
        option = by_name.get(word)
        if word.startswith("-"):
            if option is None or (option["kind"] != "flag" and not rest):
                return None
            if option["kind"] == "flag":
                value = "True"
            elif option["kind"] == "texts":
                end = next((i for i, other in enumerate(rest) if other.startswith("-")), len(rest))
                value, rest = several(rest[:end]), rest[end:]
            else:
                value = value_of(rest.pop(0), option)
            named.append(f"{argument(option)}={value}")
        else:
            given.append(word)
    values = []
    for option in positional:
        if given and option["kind"] == "texts":
            values.append(several(given))
            given = []
        elif given:
            values.append(value_of(given.pop(0), option))
    # A shell would have read the asterisk. What is said twice is a list, which these examples are not to teach.
    if given or any("*" in value for value in values) or len({one.split("=")[0] for one in named}) < len(named):
        return None
    call = f"galvani.{name_of(words)}({', '.join([*values, *named])})"
    return call + (f"    # {remark.strip()}" if remark.strip() else "")


def examples(words, verb, options):
    lines = [in_python(line, words, options) for line in verb["examples"].splitlines() if line.strip()]
    # One line each.
    calls = [line for line in lines if line is not None and len(line) <= WIDTH + 10]
    return ["", "    For example:"] + [f"      {line}" for line in calls] if any(c.startswith("galvani.") for c in calls) else []


def docstring(words, verb, options):
    lines = [f'    """{verb["help"][0].upper() + verb["help"][1:]}.', ""]
    lines.append(f"    As `galvani {' '.join(words)}` does; the result is what its --json says.")
    if any(option["name"] in INPUTS for option in options):
        lines.append("    Inputs are a spec, a path, galvani.Data, an array, or a pair of arrays: inputs and labels.")
    groups = []
    for option in options:
        if option["group"] not in groups:
            groups.append(option["group"])
    # What every verb has comes last.
    groups.sort(key=lambda group: (group == "Common", group.startswith(SHARED)))
    for group in groups:
        lines += ["", f"    {group or 'Options'}:"]
        for option in options:
            if option["group"] == group:
                lines.append(wrapped(f"{argument(option)}: {about(option)}", "      ", "          "))
    if any(option["name"] == "--json-lines" for option in verb["options"]):
        lines.append(wrapped("on_event: called with a dictionary whenever there is news", "      ", "          "))
    lines += examples(words, verb, options)
    return "\n".join(lines).replace("\\", "\\\\") + '\n    """'


def function(words, verb):
    options = [option for option in verb["options"] if option["name"] not in LEFT_OUT]
    positional = [option for option in options if not option["name"].startswith("-")]
    # What is the verb's own comes first, what all of them have last.
    named = sorted((option for option in options if option["name"].startswith("-")),
                   key=lambda option: (option["group"] == "Common", option["group"].startswith(SHARED)))
    news = any(option["name"] == "--json-lines" for option in verb["options"])
    lines = [f"def {name_of(words)}("]
    for option in positional:
        # What is not required may be left out, as on the command line.
        lines.append(f"    {argument(option)}: " + (hint(option) if option["required"] else f"{hint(option)} | None = None") + ",")
    lines.append("    *,")
    for option in named:
        kind = "bool = False" if option["kind"] == "flag" else f"{hint(option)} | None = None"
        if option["required"]:
            kind = hint(option)
        lines.append(f"    {argument(option)}: {kind},")
    if news:
        lines.append("    on_event: Callable[[dict[str, Any]], object] | None = None,")
    result = "list[dict[str, Any]]" if words[-1] == "list" else "dict[str, Any]"
    lines.append(f") -> {result}:")
    lines.append(docstring(words, verb, positional + named))
    several = [argument(option) for option in options if option["kind"] == "texts"]
    lines.append(f"    result: {result} = call({tuple(words)!r}, {[argument(o) for o in positional]!r}, {several!r}, locals())")
    lines.append("    return result")
    return "\n".join(lines)


def functions(verb, words=()):
    for inner in verb["verbs"]:
        path = (*words, inner["name"])
        if inner["verbs"]:
            yield from functions(inner, path)
        else:
            yield path, function(path, inner)


def main():
    galvani, output = sys.argv[1:]
    said = json.loads(subprocess.run([galvani, "help", "--json"], check=True, stdout=subprocess.PIPE).stdout)
    made = dict(functions(said))
    text = ['"""The verbs as functions. Written by scripts/python_verbs.py from what the verbs declare; do not edit."""',
            "from __future__ import annotations", "",
            "from typing import Any, Callable, Literal, Sequence", "",
            "from galvani.calls import Inputs, Model, Text, call", "",
            "__all__ = [" + ", ".join(json.dumps(name_of(words)) for words in made) + "]", ""]
    for source in made.values():
        text += ["", source, ""]
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(text))


if __name__ == "__main__":
    main()
