#!/usr/bin/env python3
"""Makes a notebook of a program whose parts begin with `# %%`: make_notebook.py PROGRAM NOTEBOOK

`# %% [markdown]` begins text. With --same it only says whether the notebook's cells are the program's.
"""
import json
import pathlib
import sys


def cells_of(program):
    cells, kind, lines = [], None, []

    def end():
        text = "\n".join(lines).strip("\n")
        if kind == "markdown":
            text = "\n".join(line[2:] if line.startswith("# ") else line.lstrip("#") for line in text.splitlines())
        if kind is not None and text:
            cells.append((kind, text))

    for line in program.splitlines():
        if line.startswith("# %%"):
            end()
            kind, lines = ("markdown" if "[markdown]" in line else "code"), []
        else:
            lines.append(line)
    end()
    return cells


def main():
    same = "--same" in sys.argv
    program, notebook = [pathlib.Path(word) for word in sys.argv[1:] if word != "--same"]
    wanted = cells_of(program.read_text())
    if same:
        found = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(notebook.read_text())["cells"]]
        if found != wanted:
            sys.exit(f"{notebook} is not what {program} says: scripts/make_notebook.py makes it anew")
        return
    cells = []
    for number, (kind, text) in enumerate(wanted):
        cell = {"cell_type": kind, "id": f"part-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        cells.append(cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.write_text(json.dumps({"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4,
                                    "nbformat_minor": 5}, indent=1) + "\n")


if __name__ == "__main__":
    main()
