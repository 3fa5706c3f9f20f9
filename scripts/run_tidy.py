#!/usr/bin/env python3
"""Runs clang-tidy over our sources in parallel and remembers results, so that only what changed is looked at again.

usage: scripts/run_tidy.py BUILD_DIR [FOLDER_OR_FILE...]

BUILD_DIR holds compile_commands.json of the `tidy` preset. A result is kept in BUILD_DIR/tidy-cache and is good as long
as the compile command, .clang-tidy, the version of clang-tidy and every file the source includes stay the same: files of
this repository by content, those of the system by size and time. Prints findings; exits 1 if there are any.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = next((t for t in ("clang-tidy-14", "clang-tidy") if shutil.which(t)), "clang-tidy")
FINDING = re.compile(r"^(/[^:]+):(\d+):(\d+): (warning|error): (.*)$")


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
        return record["output"] if fresh else None

    def run(self, build):
        # Stamped before the run: a file that changes meanwhile must count as changed.
        files = {name: self.stamps.of(name) for name in included_files(self.arguments, self.folder)}
        result = subprocess.run([TIDY, "-p", str(build), "--quiet", self.path], cwd=self.folder, capture_output=True,
                                text=True)
        output = result.stdout
        if result.returncode != 0 and not FINDING.search(output.split("\n", 1)[0]) and "warning:" not in output:
            output += f"{self.path}:1:1: error: clang-tidy failed: {result.stderr.strip()[-2000:]}\n"
        if files:
            temporary = self.cache.with_suffix(".new")
            temporary.write_text(json.dumps({"key": self.key, "files": files, "output": output}))
            temporary.replace(self.cache)
        return output


def findings_of(output):
    """Splits into findings, each with the lines that explain it."""
    findings = []
    for line in output.splitlines():
        match = FINDING.match(line)
        if match:
            path, row, column, _, what = match.groups()
            path = os.path.normpath(path)
            shown = os.path.relpath(path, ROOT) if pathlib.Path(path).is_relative_to(ROOT) else path
            findings.append([f"{shown}:{row}:{column}: {what}"])
        elif findings and line.startswith(" "):
            findings[-1].append(line)
    return ["\n".join(f) for f in findings]


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if len(sys.argv) > 1 else 2
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = [(pathlib.Path.cwd() / name).resolve() for name in sys.argv[2:]] or [ROOT]
    cache_folder = build / "tidy-cache"
    cache_folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
    settings = version + (ROOT / ".clang-tidy").read_text()
    stamps = Stamps()
    jobs = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        job = Job(entry, cache_folder, settings, stamps)
        path = pathlib.Path(job.path)
        ours = ROOT in path.parents and build not in path.parents
        if ours and any(path == w or w in path.parents for w in wanted):
            jobs.setdefault(job.path, job)
    if not jobs:
        print("no sources to look at", file=sys.stderr)
        return 2
    start = time.monotonic()
    results = {path: job.remembered() for path, job in jobs.items()}
    todo = [path for path in jobs if results[path] is None]
    show = sys.stderr.isatty()
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        running = {pool.submit(jobs[path].run, build): path for path in todo}
        for done, future in enumerate(concurrent.futures.as_completed(running), 1):
            results[running[future]] = future.result()
            if show:
                print(f"\r\033[K{done}/{len(todo)} {os.path.relpath(running[future], ROOT)}", end="", file=sys.stderr)
    if show and todo:
        print("\r\033[K", end="", file=sys.stderr)
    # A header's finding comes once for every source that includes it.
    findings = sorted({finding for output in results.values() for finding in findings_of(output)})
    for finding in findings:
        print(finding)
    print(f"{len(jobs)} files, {len(todo)} looked at anew, {len(findings)} findings, "
          f"{time.monotonic() - start:.0f} s", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
