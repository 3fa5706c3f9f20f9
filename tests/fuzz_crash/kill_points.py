#!/usr/bin/env python3
"""Kills a short campaign at every call that changes something in its folder, and goes on with it each time.

usage: tests/fuzz_crash/kill_points.py BINARY [EVERY]

Before every call (open to create or cut, write, rename, unlink, mkdir, rmdir, ftruncate, fsync, link) the process dies;
of writes a second time after half of the bytes. Then the same campaign is gone on with, and its store and files must be
those of one that nobody disturbed. The same is done while a campaign that was killed in its middle is gone on with.
EVERY 10 takes one point in ten. Calls are counted by a library that is loaded into the program (kill_at.c); where there is
strace, it is asked whether the library misses any.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from campaigns import Workshop, dump

NAME = "killed-campaign"
SETTINGS = ["--data", "digits:test[0:60]", "--train", "digits:train[0:60]", "--seeds", 4, "--energy", 4, "--batch", 2,
            "--mutators", "nsgen,noise:sigma=60", "--seed", 3, "--threads", 2]
GO_ON = ["--iterations", 6, "-o", NAME, "-q"]
CALLS = ("open,openat,creat,write,pwrite64,writev,pwritev,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,ftruncate,"
         "truncate,fallocate,fsync,fdatasync,link,linkat,symlink,symlinkat")


class Point:
    """A moment to die at: which call, and of a write whether half of it is done."""

    def __init__(self, number, call, half):
        self.number, self.call, self.half = number, call, half

    def __str__(self):
        return f"{'in the middle of' if self.half else 'before'} call {self.number} ({self.call})"


class Points(Workshop):
    def __init__(self, binary, folder):
        super().__init__(binary, folder, "lenet1", epochs=1)
        self.library = self.folder / "kill_at.so"
        source = pathlib.Path(__file__).with_name("kill_at.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self.library, source, "-ldl"], check=True)
        self.command = ["fuzz", str(self.folder / "model.onnx"), *SETTINGS, "--guide", "kmnc", *GO_ON]

    def call(self, place, command, before=(), **settings):
        """Runs in the folder `place`, with the library's settings."""
        environment = dict(self.environment)
        if settings:
            environment.update(settings, LD_PRELOAD=str(self.library), KILL_FOLDER=NAME)
        return subprocess.run([*before, self.binary, *map(str, command)], cwd=place, env=environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL)

    def place(self, name, start=None):
        place = self.folder / name
        place.mkdir()
        if start is not None:
            shutil.copytree(start / NAME, place / NAME)
        return place

    def points(self, name, start=None):
        """Every point of the command, begun with a copy of `start`."""
        place = self.place(name, start)
        log = place / "calls"
        result = self.call(place, self.command, KILL_LOG=str(log))
        if result.returncode != 0:
            raise SystemExit(f"{name}: exit {result.returncode}: {result.stderr[-500:]}")
        points = []
        for number, call in enumerate(log.read_text().splitlines(), 1):
            points += [Point(number, call, False)] + ([Point(number, call, True)] if call == "write" else [])
        return points

    def try_point(self, point, expected, start):
        """What is wrong after a kill at this point and going on; "" if nothing is; None if it was not reached."""
        place = self.place(f"{'again' if start else 'new'}-{point.number}{'-half' if point.half else ''}", start)
        half = {"KILL_HALF": "1"} if point.half else {}
        killed = self.call(place, self.command, KILL_AT=str(point.number), **half)
        reached = killed.returncode == -9
        if not reached and killed.returncode != 0:
            return f"ended with {killed.returncode}: {killed.stderr[-300:]}"
        # A campaign that exists goes on by its folder's name, too.
        by_name = point.number % 2 == 1 and (place / NAME / "campaign.toml").exists()
        result = self.call(place, ["fuzz", *GO_ON] if by_name else self.command)
        if result.returncode != 0:
            return f"refused with {result.returncode}: {result.stderr[-300:]}"
        if result_of(place) != expected:
            return "the campaign is another"
        shutil.rmtree(place)
        return "" if reached else None

    def try_all(self, title, points, expected, start=None):
        wrong, missed = [], 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for point, found in zip(points, pool.map(lambda p: self.try_point(p, expected, start), points)):
                missed += found is None
                if found:
                    wrong.append(point)
                    print(f"{title}, {point}: {found}", flush=True)
        print(f"{title}: {len(points) - missed} kills ({missed} points were not reached), {len(wrong)} wrong", flush=True)
        return len(wrong)

    def audit(self):
        """Calls that strace sees and the library does not."""
        place = self.place("audit")
        log, trace = place / "calls", place / "trace"
        result = self.call(place, self.command, ["strace", "-f", "-y", "-qq", "-o", trace, "-e", f"trace={CALLS}"], KILL_LOG=str(log))
        if result.returncode != 0:
            raise SystemExit(f"strace: exit {result.returncode}: {result.stderr[-500:]}")
        seen = 0
        for line in trace.read_text(errors="replace").splitlines():
            # Not what is written, and not the helper process that would remove an empty folder.
            where = line.split(", ")[0] if re.search(r"\bp?write", line) else line
            if NAME not in where or "/calls" in line or "resumed>" in line or "rmdir(" in line:
                continue
            if re.search(r"\bopen(at)?\(", line) and not re.search("O_CREAT|O_TRUNC", line):
                continue
            seen += 1
        counted = len(log.read_text().splitlines())
        print(f"{counted} calls counted, strace sees {seen}", flush=True)
        return max(0, seen - counted)


def result_of(place):
    folder = place / NAME
    # When snapshots are taken is a matter of time; nothing else may be there that an undisturbed campaign does not leave.
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.name.startswith("snapshot-"))
    files = [(path.name, path.read_bytes()) for path in sorted((folder / "faults").iterdir())]
    return dump(folder), files, names, (folder / "profile").read_bytes()


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__.strip())
    every = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory(prefix="galvani-points.") as folder:
        w = Points(sys.argv[1], folder)
        points = w.points("whole")
        expected = result_of(w.folder / "whole")
        if not expected[1]:
            raise SystemExit("the campaign finds no faults, so this tests little")
        print(f"{len(points)} points, {len(expected[1])} files of faults", flush=True)
        wrong = w.audit() if every == 1 and shutil.which("strace") else 0
        wrong += w.try_all("beginning", points[::every], expected)
        # Killed while the files of a batch were on their way.
        moves = [point for point in points if point.call == "rename"]
        middle = w.place("middle")
        w.call(middle, w.command, KILL_AT=str(moves[len(moves) * 2 // 3].number))
        wrong += w.try_all("going on", w.points("whole-again", middle)[::every], expected, middle)
    if wrong:
        raise SystemExit(f"{wrong} points are wrong")


if __name__ == "__main__":
    main()
