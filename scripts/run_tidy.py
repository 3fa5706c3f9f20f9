#!/usr/bin/env python3
"""Runs clang-tidy's checks over our sources and remembers results, so that only what changed is looked at again.

usage: scripts/run_tidy.py BUILD_DIR [FOLDER_OR_FILE...]

BUILD_DIR holds compile_commands.json of the `tidy` preset. The checks of .clang-tidy are run by clangd, which looks at our
lines alone: clang-tidy itself matches every check against all of LibTorch's headers and takes eight times as long. A result
is kept in BUILD_DIR/tidy-cache and is good as long as the compile command, .clang-tidy, the version of clangd and every
file the source includes stay the same: files of this repository by content, those of the system by size and time. Prints
findings; exits 1 if there are any.
"""
import hashlib
import json
import os
import pathlib
import queue
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


class Job:
    def __init__(self, entry, cache_folder, settings, stamps):
        self.path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        self.folder = entry["directory"]
        self.arguments = shlex.split(entry["command"]) if "command" in entry else entry["arguments"]
        self.key = digest(settings + json.dumps(self.arguments))
        self.cache = cache_folder / (digest(self.path)[:24] + ".json")
        self.stamps = stamps

    def remembered(self):
        try:
            record = json.loads(self.cache.read_text())
        except (OSError, ValueError):
            return None
        fresh = record.get("key") == self.key and record.get("files") and all(
            self.stamps.of(name) == stamp for name, stamp in record["files"].items())
        return record["findings"] if fresh else None

    def stamp(self):
        """Before the run: a file that changes meanwhile must count as changed."""
        self.files = {name: self.stamps.of(name) for name in included_files(self.arguments, self.folder)}

    def remember(self, findings):
        if self.files:
            temporary = self.cache.with_suffix(".new")
            temporary.write_text(json.dumps({"key": self.key, "files": self.files, "findings": findings}))
            temporary.replace(self.cache)


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

    def open(self, path):
        self.send("textDocument/didOpen", {"textDocument": {
            "uri": path.as_uri(), "languageId": "cpp", "version": 1, "text": path.read_text()}})

    def close(self, path):
        self.send("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})

    def next(self):
        """The next file's findings: (path, lines of text)."""
        while True:
            parameters = self.arrived.get()
            if parameters is None:
                raise SystemExit("clangd ended unexpectedly")
            if "version" in parameters:  # closing a file publishes an empty list without one
                path = pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(parameters["uri"]).path))
                return path, [self.text(path, d) for d in parameters["diagnostics"]]

    @staticmethod
    def text(path, diagnostic):
        start = diagnostic["range"]["start"]
        return (f"{os.path.relpath(path, ROOT)}:{start['line'] + 1}:{start['character'] + 1}: {diagnostic['message']} "
                f"[{diagnostic.get('code', '')}]")


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if len(sys.argv) > 1 else 2
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = [(pathlib.Path.cwd() / name).resolve() for name in sys.argv[2:]] or [ROOT]
    cache_folder = build / "tidy-cache"
    cache_folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([CLANGD, "--version"], capture_output=True, text=True, check=True).stdout
    settings = version + (ROOT / ".clang-tidy").read_text()
    stamps = Stamps()
    jobs = {}
    commands = {}
    headers = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        job = Job(entry, cache_folder, settings, stamps)
        path = pathlib.Path(job.path)
        if ROOT in path.parents and build not in path.parents:
            commands.setdefault(path, job)
    # A header is looked at on its own, with the command of a source that stands nearest to it.
    for name in subprocess.run(["git", "ls-files", "*.h"], cwd=ROOT, capture_output=True, text=True).stdout.split():
        path = ROOT / name
        near = max(commands, key=lambda source: len(set(source.relative_to(ROOT).parts) & set(path.parts)))
        entry = {"file": str(path), "directory": commands[near].folder,
                 "arguments": [str(path) if argument.endswith(near.name) else argument
                               for argument in commands[near].arguments]}
        headers[path] = Job(entry, cache_folder, settings, stamps)
    for path, job in {**commands, **headers}.items():
        if any(path == w or w in path.parents for w in wanted):
            jobs[path] = job
    if not jobs:
        print("no sources to look at", file=sys.stderr)
        return 2
    start = time.monotonic()
    results = {path: job.remembered() for path, job in jobs.items()}
    todo = [path for path in jobs if results[path] is None]
    show = sys.stderr.isatty()
    workers = len(os.sched_getaffinity(0))
    if todo:
        server = Clangd(build, workers)
        waiting = list(reversed(todo))
        running = set()
        while waiting or running:
            while waiting and len(running) < workers:
                path = waiting.pop()
                jobs[path].stamp()
                running.add(path)
                server.open(path)
            path, results[path] = server.next()
            jobs[path].remember(results[path])
            server.close(path)
            running.remove(path)
            if show:
                done = len(todo) - len(waiting) - len(running)
                print(f"\r\033[K{done}/{len(todo)} {os.path.relpath(path, ROOT)}", end="", file=sys.stderr)
        server.process.kill()
    if show and todo:
        print("\r\033[K", end="", file=sys.stderr)
    findings = sorted({finding for found in results.values() for finding in found})
    for finding in findings:
        print(finding)
    print(f"{len(jobs)} files, {len(todo)} looked at anew, {len(findings)} findings, "
          f"{time.monotonic() - start:.0f} s", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
