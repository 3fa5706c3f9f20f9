#!/usr/bin/env python3
"""Checks what a compiler does not: which room may include which, and a few rules every file keeps.

Rooms depend one way. A room sees the public headers (include/galvani/<room>/) of the rooms listed for it below, and
private headers (src/<room>/) only of itself. A name stands for one type in a namespace, wherever it is defined: of two the
linker would take either's functions for both. Run from anywhere; prints `file:line: what` and exits 1 on findings.
"""
import pathlib
import re
import sys

FOUNDATION = ["base", "data", "model"]
SEEN = FOUNDATION + ["trace"]

# Room: the rooms whose public headers it may include, besides its own. Later rooms are listed before they exist.
MAY_INCLUDE = {
    "base": [],
    "data": ["base"],
    "model": ["base", "data"],
    "trace": FOUNDATION,
    "coverage": SEEN,
    "attribute": SEEN,
    "semantics": SEEN + ["attribute"],
    "mutate": FOUNDATION,
    "attack": FOUNDATION,
    "generate": SEEN + ["coverage", "attribute", "mutate", "attack"],
    "fuzz": SEEN + ["coverage", "attribute", "semantics", "mutate", "attack", "generate"],
    "select": SEEN + ["coverage", "mutate"],
    "quality": SEEN + ["coverage", "attack", "fuzz"],
    "repair": SEEN + ["coverage", "mutate", "attack", "generate", "fuzz", "quality"],
}
MAY_INCLUDE["report"] = list(MAY_INCLUDE)
MAY_INCLUDE["cluster"] = SEEN + ["coverage", "generate", "fuzz"]
ROOMS = list(MAY_INCLUDE)
MAY_INCLUDE["study"] = ROOMS
# These sit on top and see every room's public headers.
TOP_FOLDERS = ["cli", "python", "tests", "bench", "examples"]

# Tests of parsers and benchmarks look at the inside of a room on purpose.
SEE_PRIVATE_HEADERS = ["tests", "bench"]
# The package has the verbs within itself.
SEES_VERBS = "python"

MOST_LINES = 600
# path: why it is longer.
LONG_FILES = {}

HEAVY_HEADERS = {"torch/torch.h", "torch/script.h", "torch/extension.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CONFLICT = re.compile(r"^(<{7}|={7}|>{7})( |$)")
LEFTOVER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
PUBLIC = "galvani"
# Comments, texts and directives of the preprocessor, in which braces mean nothing.
NO_CODE = re.compile(r'''R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*''', re.DOTALL | re.MULTILINE)
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\s*([\w:]*)$")
TYPE = re.compile(r"(?:template\s*<.*>\s*)?(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[\w+\]\]\s*|alignas\([^)]*\)\s*)*"
                  r"(\w+)(?:\s+final)?\s*(?::[^:].*)?$", re.DOTALL)
# Besides the C++ sources.
TEXTS = ["dev", "CMakeLists.txt", "*/CMakeLists.txt", "scripts/*.py", "tests/**/*.py", "*.md", "docs/**/*.md"]


def defined_types(text):
    """(name with its namespaces, line) of every type that is defined in a namespace; none of anonymous ones, or inside others."""
    text = NO_CODE.sub(lambda found: "\n" * found.group(0).count("\n"), text)
    scopes, before, line = [], "", 1  # names of namespaces; None for other braces
    for piece in re.findall(r"[{};]|[^{};]+", text):
        if piece == "{":
            namespace, named = NAMESPACE.match(before), TYPE.match(before)
            if named and scopes and all(scopes):
                yield "::".join([*scopes, named.group(1)]), line
            scopes.append(namespace.group(1) if namespace else None)
        elif piece == "}" and scopes:
            scopes.pop()
        before = "" if piece in "{};" else piece.strip()
        line += piece.count("\n")


class Checker:
    def __init__(self, root):
        self.root = root
        self.findings = []
        self.types = {}  # name: where it was defined first

    def report(self, path, line, what):
        self.findings.append(f"{path.relative_to(self.root)}:{line}: {what}")

    def check_table(self):
        seen = set()
        for room, others in MAY_INCLUDE.items():
            for other in others:
                if other not in seen:
                    self.findings.append(f"scripts/check_includes.py: '{room}' may include '{other}', which comes after it")
            seen.add(room)

    def room_of(self, path):
        """The room a file belongs to, or the top folder it is in; None for a file that lies loose."""
        parts = path.relative_to(self.root).parts
        if parts[0] == "src":
            return parts[1] if len(parts) > 2 else None
        if parts[0] == "include":
            return parts[2] if len(parts) > 3 and parts[1] == PUBLIC else None
        return parts[0]

    def check_include(self, path, line, room, target):
        parts = target.split("/")
        if parts[0] == PUBLIC and len(parts) >= 3:
            if not (self.root / "include" / target).is_file():
                self.report(path, line, f"there is no header include/{target}")
            other = parts[1]
            if other != room and room in MAY_INCLUDE and other not in MAY_INCLUDE[room]:
                allowed = ", ".join(MAY_INCLUDE[room]) or "no other room"
                self.report(path, line, f'{room} must not include "{target}": it may use {allowed}')
            return
        relative = path.relative_to(self.root)
        if relative.parts[0] == "include":
            self.report(path, line, f'a public header must not include the private "{target}"')
            return
        beside = (path.parent / target).resolve()
        # Rooms have src/ on their include path, the top folders themselves.
        candidates = [beside, (self.root / "src" / target).resolve(), (self.root / room / target).resolve(),
                      (self.root / "tests" / target).resolve()]
        if room == SEES_VERBS:
            candidates.append((self.root / "cli" / target).resolve())
        found = next((c for c in candidates if c.is_file()), None)
        if found is None:
            self.report(path, line, f'"{target}" is neither a header of this repository nor written with <>')
            return
        owner = self.room_of(found)
        is_test = path.stem.endswith("_test")
        if owner == room or room in SEE_PRIVATE_HEADERS or (is_test and owner == "tests") or (
                room == SEES_VERBS and owner == "cli"):
            return
        self.report(path, line, f'{room} must not include "{target}", a private header of {owner}')

    def check_text(self, path):
        """What holds for every text, whatever its language."""
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if LEFTOVER.search(text):
                self.report(path, number, "unfinished work is noted here: finish it or write an issue")
            if CONFLICT.match(text):
                self.report(path, number, "a merge conflict is not resolved")

    def check_types(self, path, text):
        for name, line in defined_types(text):
            first = self.types.setdefault(name, f"{path.relative_to(self.root)}:{line}")
            if first != f"{path.relative_to(self.root)}:{line}":
                self.report(path, line, f"{name} is the name of a type in {first}, too: rename one")

    def check_file(self, path):
        room = self.room_of(path)
        if room is None:
            self.report(path, 1, "lies outside every room: move it into include/galvani/<room>/ or src/<room>/")
            return
        if room not in MAY_INCLUDE and room not in TOP_FOLDERS:
            self.report(path, 1, f"'{room}' is not a known room: add it to MAY_INCLUDE in scripts/check_includes.py")
            return
        lines = path.read_text(encoding="utf-8").splitlines()
        is_header = path.suffix == ".h"
        if is_header and "#pragma once" not in lines:
            self.report(path, 1, "the header has no #pragma once")
        name = str(path.relative_to(self.root))
        if len(lines) > MOST_LINES and name not in LONG_FILES:
            self.report(path, len(lines), f"{len(lines)} lines, more than {MOST_LINES}: split it, or list it with a reason")
        self.check_text(path)
        if room != "examples":  # programs of their own
            self.check_types(path, "\n".join(lines))
        for number, text in enumerate(lines, 1):
            match = INCLUDE.match(text)
            if not match:
                continue
            bracket, target = match.groups()
            if is_header and target in HEAVY_HEADERS:
                self.report(path, number, f"<{target}> in a header slows every file that includes it: "
                                          "forward-declare, or include <ATen/core/Tensor.h>")
            if bracket == '"':
                self.check_include(path, number, room, target)
            elif target.startswith(PUBLIC + "/"):
                self.report(path, number, f"our own <{target}> is written with quotes")

    def run(self):
        self.check_table()
        for name in LONG_FILES:
            if not (self.root / name).is_file():
                self.findings.append(f"scripts/check_includes.py: LONG_FILES lists {name}, which does not exist")
        for path in sorted(p for pattern in TEXTS for p in self.root.glob(pattern)):
            self.check_text(path)
        for folder in ["include", "src"] + TOP_FOLDERS:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in (".h", ".cpp"):
                    self.check_file(path)
        return self.findings


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    findings = Checker(root).run()
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
