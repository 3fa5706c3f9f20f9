#!/usr/bin/env python3
"""Runs clang-tidy's checks over our sources and remembers results, so that only what changed is looked at again.

usage: scripts/run_tidy.py BUILD_DIR [FOLDER_OR_FILE...]

BUILD_DIR holds compile_commands.json of the `tidy` preset. The checks of .clang-tidy are run by clangd, which looks at our
lines alone: clang-tidy itself matches every check against all of LibTorch's headers and takes eight times as long. Most of
the rest is reading headers, so sources are put together as the unity build does, and the headers of a room one behind the
other; findings are told of the files they came from. A result is kept in BUILD_DIR/tidy-units and is good as long as the
text, the compile command, .clang-tidy, the version of clangd and every file that is included stay the same: files of this
repository by content, those of the system by size and time. Prints findings; exits 1 if there are any.
"""
import hashlib
import json
import os
import pathlib
import queue
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLANGD = next((t for t in ("clangd-14", "clangd") if shutil.which(t)), "clangd")


def digest(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


class Stamps:
    """What a file looked like, asked once a file."""

    def __init__(self):
        self.known = {}

    def of(self, name):
        if name not in self.known:
            path = pathlib.Path(name)
            try:
                if ROOT in path.parents:
                    self.known[name] = digest(path.read_bytes())
                else:
                    status = path.stat()
                    self.known[name] = f"{status.st_size} {status.st_mtime_ns}"
            except OSError:
                self.known[name] = "gone"
        return self.known[name]


def included_files(arguments, folder):
    """Every file the compiler reads for this command."""
    command = []
    skip = False
    for argument in arguments:
        if skip or argument == "-c":
            skip = False
        elif argument in ("-o", "-MF", "-MT", "-MQ"):
            skip = True
        else:
            command.append(argument)
    result = subprocess.run(command + ["-M"], cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        return []
    text = result.stdout.replace("\\\n", " ").split(":", 1)[1]
    return [os.path.normpath(os.path.join(folder, name)) for name in shlex.split(text)]


INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


class Unit:
    """Files that are looked at as one text, what they have in common included once."""

    def __init__(self, folder, name, files, entry, settings, stamps):
        self.path = folder / name
        self.files = files
        self.origin = []  # of every line: file, number
        lines, seen = [], set()
        for file in files:
            own = set()
            for number, line in enumerate(file.read_text().splitlines(), 1):
                included = INCLUDE.match(line)
                target = included and included.group(1)
                if line == "#pragma once" or target in seen or self.is_part(file, target):
                    line = ""
                if target:
                    own.add(target)
                lines.append(line)
                self.origin.append((file, number))
            seen |= own
        self.text = "\n".join(lines) + "\n"
        self.folder = entry["directory"]
        self.arguments = [str(self.path) if argument == entry["file"] else argument for argument in shlex.split(entry["command"])]
        for place in sorted({file.parent for file in files}):
            self.arguments[1:1] = ["-iquote", str(place)]
        self.key = digest(settings + json.dumps(self.arguments) + self.text)
        self.cache = self.path.with_suffix(".json")
        self.stamps = stamps
        self.read = {}

    def is_part(self, file, target):
        """Whether an included header is one of the files here: then it stands further up."""
        return bool(target) and any(str(part).endswith("/" + target) for part in self.files if part != file and part.suffix == ".h")

    def remembered(self):
        try:
            record = json.loads(self.cache.read_text())
        except (OSError, ValueError):
            return None
        fresh = record.get("key") == self.key and record.get("files") and all(
            self.stamps.of(name) == stamp for name, stamp in record["files"].items())
        return record["findings"] if fresh else None

    def write(self):
        """Before the run; a file that changes meanwhile must count as changed."""
        self.path.write_text(self.text)
        self.read = {name: self.stamps.of(name) for name in included_files(self.arguments, self.folder) if name != str(self.path)}

    def remember(self, findings):
        if self.read:
            temporary = self.cache.with_suffix(".new")
            temporary.write_text(json.dumps({"key": self.key, "files": self.read, "findings": findings}))
            temporary.replace(self.cache)

    def finding(self, diagnostic):
        start = diagnostic["range"]["start"]
        file, line = self.origin[min(start["line"], len(self.origin) - 1)]
        return (f"{os.path.relpath(file, ROOT)}:{line}:{start['character'] + 1}: {diagnostic['message'].splitlines()[0]} "
                f"[{diagnostic.get('code', '')}]")


def sources_of(entry, build):
    """The sources of ours that a compile command compiles: several where it is one of the unity build."""
    path = pathlib.Path(entry["file"])
    if "Unity" in path.parts:
        return [pathlib.Path(name) for name in re.findall(r'^#include "(.*)"', path.read_text(), re.MULTILINE) if
                build not in pathlib.Path(name).parents]
    return [path] if ROOT in path.parents and build not in path.parents else []


def in_order(headers):
    """Each behind those it includes."""
    result = []

    def add(header):
        if header in result:
            return
        for line in header.read_text().splitlines():
            target = (found := INCLUDE.match(line)) and found.group(1)
            for other in headers:
                if target and other != header and str(other).endswith("/" + target):
                    add(other)
        result.append(header)
    for header in headers:
        add(header)
    return result


def header_units(sources):
    """(name, headers, compile command) of every room and top folder; the command is that of a source nearby."""
    rooms = {}
    for name in subprocess.check_output(["git", "ls-files", "*.h"], cwd=ROOT, text=True).split():
        parts = pathlib.Path(name).parts
        room = parts[2] if parts[0] == "include" else parts[1] if parts[0] == "src" else parts[0]
        if "stub" not in parts:
            rooms.setdefault(room, []).append(ROOT / name)
    for room, headers in rooms.items():
        near = max(sources, key=lambda source: (room in source.relative_to(ROOT).parts, source.stem.endswith("_test")))
        yield f"headers-{room}.h", in_order(sorted(headers)), sources[near]


def all_units(build, settings, stamps):
    folder = build / "tidy-units"
    folder.mkdir(parents=True, exist_ok=True)
    units, sources = [], {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        files = sources_of(entry, build)
        fresh = [file for file in files if file not in sources]
        sources.update((file, entry) for file in fresh)
        if fresh:
            name = re.sub(r"\W+", "-", os.path.relpath(entry["file"], build).replace("CMakeFiles/", "").replace("../", "")) + ".cpp"
            units.append(Unit(folder, name, fresh, entry, settings, stamps))
    units += [Unit(folder, name, headers, entry, settings, stamps) for name, headers, entry in header_units(sources)]
    (folder / "compile_commands.json").write_text(json.dumps(
        [{"directory": unit.folder, "file": str(unit.path), "arguments": unit.arguments} for unit in units]))
    return folder, units


class Clangd:
    """A language server that is given files and gives back what it finds in them."""

    def __init__(self, build, workers):
        self.process = subprocess.Popen(
            [CLANGD, f"--compile-commands-dir={build}", "--clang-tidy", "--background-index=false", f"-j={workers}",
             "--log=error", "--pch-storage=disk"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, cwd=ROOT)
        self.arrived = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.send("initialize", {"processId": os.getpid(), "rootUri": ROOT.as_uri(), "capabilities": {}}, number=1)
        self.send("initialized", {})

    def send(self, method, parameters, number=None):
        message = {"jsonrpc": "2.0", "method": method, "params": parameters}
        if number is not None:
            message["id"] = number
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def read(self):
        stream = self.process.stdout
        while header := stream.readline():
            length = 0
            while header.strip():
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
                header = stream.readline()
            message = json.loads(stream.read(length))
            if message.get("method") == "textDocument/publishDiagnostics":
                self.arrived.put(message["params"])
        self.arrived.put(None)

    def open(self, unit):
        self.send("textDocument/didOpen", {"textDocument": {
            "uri": unit.path.as_uri(), "languageId": "cpp", "version": 1, "text": unit.text}})

    def close(self, unit):
        self.send("textDocument/didClose", {"textDocument": {"uri": unit.path.as_uri()}})

    def next(self):
        """The next path that was looked at, and what was found."""
        while True:
            parameters = self.arrived.get()
            if parameters is None:
                raise SystemExit("clangd ended unexpectedly")
            if "version" in parameters:  # closing a file publishes an empty list without one
                return pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(parameters["uri"]).path)), parameters["diagnostics"]


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if len(sys.argv) > 1 else 2
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = [(pathlib.Path.cwd() / name).resolve() for name in sys.argv[2:]] or [ROOT]
    version = subprocess.run([CLANGD, "--version"], capture_output=True, text=True, check=True).stdout
    folder, units = all_units(build, version + (ROOT / ".clang-tidy").read_text(), Stamps())
    units = {unit.path: unit for unit in units if any(file == w or w in file.parents for file in unit.files for w in wanted)}
    if not units:
        print("no sources to look at", file=sys.stderr)
        return 2
    start = time.monotonic()
    results = {path: unit.remembered() for path, unit in units.items()}
    todo = [path for path in units if results[path] is None]
    show = sys.stderr.isatty()
    workers = len(os.sched_getaffinity(0))
    if todo:
        server = Clangd(folder, workers)
        waiting = list(reversed(todo))
        running = set()
        while waiting or running:
            while waiting and len(running) < workers:
                path = waiting.pop()
                units[path].write()
                running.add(path)
                server.open(units[path])
            path, found = server.next()
            results[path] = [units[path].finding(diagnostic) for diagnostic in found]
            units[path].remember(results[path])
            server.close(units[path])
            running.remove(path)
            if show:
                done = len(todo) - len(waiting) - len(running)
                print(f"\r\033[K{done}/{len(todo)} {path.name}", end="", file=sys.stderr)
        server.process.kill()
    if show and todo:
        print("\r\033[K", end="", file=sys.stderr)
    findings = sorted({finding for found in results.values() for finding in found})
    for finding in findings:
        print(finding)
    print(f"{sum(len(unit.files) for unit in units.values())} files in {len(units)} texts, {len(todo)} looked at anew, {len(findings)} findings, "
          f"{time.monotonic() - start:.0f} s", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
