#!/usr/bin/env python3
"""The report's page in a real browser: it runs without errors, shows what the store holds, and filters it.

usage: tests/report/check.py BINARY [--shots FOLDER]    with --shots pictures of the page are left there

Makes a small campaign in a temporary folder, with class names that try to be markup. Exits 77 where there is no
Chromium (Debian package `chromium`), which ctest counts as skipped.
"""
import argparse
import html.parser
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

HOSTILE = '</script><img src=x onerror="document.documentElement.dataset.hacked=1">'
LIMIT = 120
SKIPPED = 77


class Dom(html.parser.HTMLParser):
    """Every element's attributes, and the text of those that are looked for."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes), []))

    def handle_data(self, data):
        if self.elements:
            self.elements[-1][2].append(data)

    def with_class(self, name):
        return [(attributes, "".join(text)) for _, attributes, text in self.elements
                if name in attributes.get("class", "").split()]

    def root(self):
        return next(attributes for tag, attributes, _ in self.elements if tag == "html")


class Browser:
    def __init__(self, program, folder):
        self.command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                        f"--user-data-dir={folder}/browser", "--enable-logging=stderr", "--virtual-time-budget=10000"]

    def run(self, *arguments):
        result = subprocess.run([*self.command, *arguments], capture_output=True, text=True, timeout=LIMIT)
        said = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
        expect(not said, f"the console says {said[:3]}")
        return result.stdout

    def dom(self, page, fragment="", query=""):
        return Dom(self.run("--window-size=1200,3000", "--dump-dom", address(page, fragment, query)))

    def shoot(self, page, path, width, height, fragment="", query=""):
        self.run(f"--window-size={width},{height}", f"--screenshot={path}", address(page, fragment, query))
        expect(path.stat().st_size > 20000, f"{path} is nearly empty")


def address(page, fragment, query):
    return page.as_uri() + (f"?{query}" if query else "") + (f"#{fragment}" if fragment else "")


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def make_campaign(binary, folder):
    def galvani(*arguments):
        result = subprocess.run([str(binary), *map(str, arguments)], cwd=folder, text=True, capture_output=True,
                                env=dict(os.environ, GALVANI_CACHE=str(folder / "cache")), timeout=LIMIT)
        expect(result.returncode == 0, f"{' '.join(map(str, arguments))}: {result.stderr}")
        return result.stdout

    galvani("data", "export", "digits:train[0:3000]", "-o", "named")
    (folder / "named" / "classes.txt").write_text("".join(f"{i} {HOSTILE}\n" for i in range(10)))
    galvani("train", "lenet5", "--data", "named", "--epochs", 2, "-o", "lenet5.onnx")
    galvani("fuzz", "lenet5.onnx", "--data", "digits:test[0:300]", "--guide", "tknc", "--iterations", 96, "--seeds", 200, "-o", "run")
    galvani("report", "run")
    return folder / "run" / "report.html", json.loads(galvani("stats", "run", "--json"))


def drawn_in(dom):
    return [a for tag, a, _ in dom.elements if tag == "canvas" and a.get("data-drawn")]


def check(browser, page, stats):
    for _ in range(4):
        dom = browser.dom(page)
        # Pictures are decoded in real time, for which the page's virtual clock does not wait.
        if len(drawn_in(dom)) >= 8:
            break
    root = dom.root()
    expect("hacked" not in root, "a class name was run as markup")
    expect("errors" not in root and "data-errors" not in root, f"a script failed: {root}")
    expect(root.get("data-ready") == "1", f"the page did not get ready: {root}")
    expect(int(root["data-chosen"]) == stats["broken_seeds"], "not one fault of every broken seed is in the gallery")
    cards = dom.with_class("card")
    expect(0 < len(cards) <= 180, f"{len(cards)} cards at first")
    expect(len(drawn_in(dom)) >= 8, f"{len(drawn_in(dom))} pictures are drawn")
    expect(len(dom.with_class("cell")) == 100, "the heat map has other cells")
    expect(any(HOSTILE in text for _, text in dom.with_class("label")), "class names are not shown as they are")

    most = max(stats["confusion"], key=lambda pair: pair["faults"])
    dom = browser.dom(page, f"true={most['true']}&pred={most['predicted']}&show=all&sort=confident")
    expect(int(dom.root()["data-chosen"]) == most["faults"], "the filter by classes shows another number")
    pressed = [a for a, _ in dom.with_class("cell") if a.get("aria-pressed") == "true"]
    expect(len(pressed) == 1, "the cell of the heat map is not marked")
    sure = [float(text.rstrip("%")) for _, text in dom.with_class("sure")]
    expect(len(sure) > 1 and sure == sorted(sure, reverse=True), f"not sorted by confidence: {sure[:10]}")

    mutator = max(stats["mutators"], key=lambda m: m["faults"])
    dom = browser.dom(page, f"show=all&mutator={urllib.parse.quote(mutator['name'])}")
    expect(int(dom.root()["data-chosen"]) == mutator["faults"], "the filter by mutator shows another number")
    dom = browser.dom(page, "show=kept&sort=long")
    expect(int(dom.root()["data-chosen"]) == stats["kept_faults"], "the filter of kept ones shows another number")
    steps = [text.count("→") for _, text in dom.with_class("lineage")]
    expect(steps == sorted(steps, reverse=True), f"not sorted by lineage: {steps[:10]}")
    dom = browser.dom(page, "show=all&fault=3")
    expect(any(tag == "dialog" and "open" in a for tag, a, _ in dom.elements), "a fault's own address does not open it")
    expect(any("Fault 3:" in "".join(text) for _, _, text in dom.elements), "another fault is open")
    dom = browser.dom(page, "true=999&sort=%3Cscript%3E")
    expect(int(dom.root()["data-chosen"]) == stats["broken_seeds"], "an unknown filter is not left alone")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--shots", type=pathlib.Path)
    arguments = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        print("there is no chromium: skipped")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="galvani-report.") as name:
        folder = pathlib.Path(name)
        browser = Browser(program, folder)
        page, stats = make_campaign(arguments.binary.resolve(), folder)
        try:
            check(browser, page, stats)
            if arguments.shots:
                arguments.shots.mkdir(parents=True, exist_ok=True)
                browser.shoot(page, arguments.shots / "light.png", 1200, 2200)
                browser.shoot(page, arguments.shots / "dark.png", 1200, 2200, query="theme=dark")
                browser.shoot(page, arguments.shots / "phone.png", 500, 3000)
        except AssertionError as problem:
            print(f"FAILED  {problem}")
            return 1
        size = page.stat().st_size
    print(f"ok: {stats['faults']} faults, {stats['distinct_faults']} distinct, a page of {size / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
