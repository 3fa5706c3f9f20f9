"""What studies share: running the program step by step, tables, figures. Standard library only.

A step is one call of the program. Its answer (--json) is kept in the study's work folder with the command and the hashes of
the files the command names; a step that is there with the same command and files is not run again. So a study that was
stopped goes on, and one whose settings were changed repeats what they touch.
"""
import argparse
import ast
import concurrent.futures
import csv
import fnmatch
import hashlib
import itertools
import json
import math
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


class StudyError(Exception):
    pass


class Missing(Exception):
    """A step that was not run, where none shall be."""


def digest(path):
    """Of a file, or of what makes a campaign what it is. Nothing for words that are no files."""
    try:
        if (path / "campaign.toml").is_file():
            path = path / "campaign.toml"
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else None
    except OSError:  # too long for a file's name
        return None


class Study:
    def __init__(self, galvani, work, jobs, only_results=False):
        self.galvani = pathlib.Path(galvani).resolve()
        self.work = pathlib.Path(work)
        self.jobs = jobs
        self.only_results = only_results
        self.threads = max(1, (os.cpu_count() or 1) // jobs)
        self.seconds = 0  # of all steps, those of earlier sessions too
        self.steps = self.repeated = 0
        self._lock = threading.Lock()
        self._steps = {}  # name: a lock
        self._once_locks, self._made = {}, {}
        self._running = set()
        self._stopping = False
        self.work.mkdir(parents=True, exist_ok=True)

    def step(self, name, verb, *arguments, output=None, writes=()):
        """Runs `galvani VERB ARGUMENTS` in the work folder; returns what it says. `output` is what -o gets: the step's name
        with this ending, '' for a folder. `writes`: arguments that name other files it makes."""
        with self._lock:
            lock = self._steps.setdefault(name, threading.Lock())
        # Two questions may share a step: the second waits for the first one's answer.
        with lock:
            return self._step(name, verb, arguments, output, writes)

    def once(self, key, make):
        """What several questions need is made by the first that asks; the others wait for it."""
        with self._lock:
            lock = self._once_locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    def _files(self, words):
        """{word: digest} of words that name files; a slice may follow the name."""
        found = {word: digest(self.work / word.split("[")[0]) for word in words}
        return {word: value for word, value in found.items() if value}

    def _step(self, name, verb, arguments, output, writes):
        words = [str(a) for a in arguments]
        read = [word for word in words if word not in writes]
        files = self._files(read)
        made = list(writes)
        if output is not None:
            words += ["-o", name + output]
            made.append(name + output)
        command = [verb, *words]
        asked = {"command": command, "files": files}
        kept, begun = self.work / f"{name}.json", self.work / f"{name}.begun"
        kept.parent.mkdir(parents=True, exist_ok=True)
        if kept.exists():
            found = json.loads(kept.read_text())
            if {key: found[key] for key in asked} == asked and all((self.work / file).exists() for file in made):
                self._count(found["seconds"], new=False)
                return found["result"]
            if not self.only_results:
                kept.unlink()
        if self.only_results and verb != "compare":
            raise Missing(name)
        # What a stopped step left is gone on with, unless it was another step.
        if output is not None and not (begun.exists() and json.loads(begun.read_text()) == asked):
            self._clear(self.work / (name + output))
        begun.write_text(json.dumps(asked))
        start = time.monotonic()
        # A step that was stopped may have written its model already.
        again = ["--force"] if verb == "train" else []
        result = self._run([*command, *again, "--json", "-q", "--threads", str(self.threads)])
        seconds = time.monotonic() - start
        if self._files(read) != files:
            raise StudyError(f"{name}: a file that it reads was written meanwhile; the study has to wait for the step that makes it")
        half = self.work / f"{name}.half"
        half.write_text(json.dumps({**asked, "seconds": seconds, "result": result}))
        half.rename(kept)
        begun.unlink()
        self._count(seconds, new=True)
        print(f"{seconds:7.1f} s  {name}", flush=True)
        return result

    def each(self, function, items):
        """function(item) for all of them, `jobs` at a time; the results in order."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            waiting = [pool.submit(function, item) for item in items]
            try:
                done, _ = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_EXCEPTION)
                for future in done:
                    future.result()
                return [future.result() for future in waiting]
            except BaseException:
                self._stop(waiting)
                raise

    def tests(self, name, rows, kind, a, b):
        """Statistics of plain numbers by `galvani compare --values`: rows of (measure, value of a, value of b). Returns
        {measure: test}, corrected by Holm for their number."""
        path = self.work / "statistics" / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        write_csv(path, ["measure", a, b], rows)
        found = self.step(f"statistics/{name}", "compare", "--values", f"statistics/{name}.csv", "--test", kind, "--seed", 1)
        return {test["measure"]: test for test in found["tests"]}

    def _run(self, command):
        if self._stopping:
            raise StudyError("stopped")
        code, out, err = self._call(command)
        if code != 0:
            raise StudyError(f"galvani {' '.join(command)}: exit code {code}\n{err.strip()}")
        return json.loads(out)

    def _call(self, command):
        process = subprocess.Popen([str(self.galvani), *command], cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        with self._lock:
            self._running.add(process)
        try:
            out, err = process.communicate()
        except KeyboardInterrupt:  # by SIGTERM, the program has not heard of it
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
        with self._lock:
            self._running.discard(process)
        return process.returncode, out, err

    def _stop(self, waiting):
        self._stopping = True
        for future in waiting:
            future.cancel()
        with self._lock:
            for process in self._running:
                process.send_signal(signal.SIGINT)

    def _count(self, seconds, new):
        with self._lock:
            self.steps += 1
            self.repeated += 0 if new else 1
            self.seconds += seconds

    @staticmethod
    def _clear(path):
        """What another step left under this name, checkpoints of a training included."""
        for old in [path, *path.parent.glob(path.name + ".checkpoint*")]:
            if old.is_dir():
                shutil.rmtree(old)
            elif old.exists():
                old.unlink()


def rows_side_by_side(a, b):
    """Rows of two lists, the shorter one filled up with nothing."""
    return list(itertools.zip_longest(a, b, fillvalue=""))


def metrics_of(quality):
    """{id: value} of what `galvani quality` said."""
    return {m["id"]: m["value"] for m in quality["metrics"] if m["value"] is not None}


def write_csv(path, titles, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(titles)
        writer.writerows(rows)


def write_rows(source, target, rows):
    """Some rows of every array of an NPZ file. A file that would be the same is left alone."""
    made = {}
    with zipfile.ZipFile(source) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            begin = 10 + int.from_bytes(data[8:10], "little")
            header = ast.literal_eval(data[10:begin].decode("latin1"))
            width = (len(data) - begin) // header["shape"][0]
            text = repr({**header, "shape": (len(rows), *header["shape"][1:])})
            text += " " * (-(len(text) + 11) % 64) + "\n"
            made[name] = data[:8] + len(text).to_bytes(2, "little") + text.encode("latin1") + b"".join(
                data[begin + row * width:begin + (row + 1) * width] for row in rows)
    if target.exists():
        with zipfile.ZipFile(target) as archive:
            if {name: archive.read(name) for name in archive.namelist()} == made:
                return
    half = target.with_suffix(".half")
    with zipfile.ZipFile(half, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in made.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    half.rename(target)


def table(titles, rows):
    """Markdown; titles that start with > stand over numbers."""
    lines = ["| " + " | ".join(t.lstrip(">") for t in titles) + " |",
             "|" + "|".join("--:" if t.startswith(">") else "---" for t in titles) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def p_text(p):
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def counted(n, what):
    return f"{n} {what}" + ("" if n == 1 else "s")


# Figures: panels of lines, all in one SVG. Colours that differ in lightness, too.
COLOURS = ["#1b6ca8", "#d9822b", "#4b8b3b", "#8a4fa0", "#b3323a", "#3a3a3a", "#7fb2d9", "#c9a227"]


def escape(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def panels_svg(title, panels, x_label, columns=3, width=300, height=190):
    """panels: [(name, [(line's name, [(x, mean, low, high), ...]), ...]), ...]. Lines of one name look the same in all panels; all but the first are
    dashed."""
    rows = -(-len(panels) // columns)
    legend = list(dict.fromkeys(name for _, lines in panels for name, _ in lines))
    total_width, top, x = columns * width + 20, 58, 14
    places = []  # of the names in the legend, which may need several rows
    for name in legend:
        if x + 30 + 6.5 * len(name) > total_width and x > 14:
            x, top = 14, top + 18
        places.append((x, top - 17))
        x += 50 + 7 * len(name)
    total_height = rows * height + top + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total_width} {total_height}" width="{total_width}" '
           f'height="{total_height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{total_width}" height="{total_height}" fill="white"/>',
           f'<text x="14" y="22" font-size="15" font-weight="bold">{escape(title)}</text>']
    for i, (name, (x, y)) in enumerate(zip(legend, places)):
        out.append(f'<line x1="{x}" y1="{y}" x2="{x + 24}" y2="{y}" stroke="{COLOURS[i]}" stroke-width="2"{dash(i)}/>'
                   f'<text x="{x + 30}" y="{y + 4}">{escape(name)}</text>')
    for index, (name, lines) in enumerate(panels):
        left, y = (index % columns) * width + 14, (index // columns) * height + top
        out += panel(name, lines, legend, left, y, width - 14, height - 26)
    out.append(f'<text x="{total_width / 2}" y="{total_height - 8}" text-anchor="middle">{escape(x_label)}</text></svg>')
    return "\n".join(out) + "\n"


def bars_svg(title, panels, width=340, line=17):
    """panels: [(name, [(bar's name, value above 0), ...]), ...], side by side on one logarithmic scale; the shortest bar is on top."""
    values = [value for _, bars in panels for _, value in bars]
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values) * 1.0001))
    top, longest = 50, max(len(bars) for _, bars in panels)
    total_width, total_height = len(panels) * width + 20, top + longest * line + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total_width} {total_height}" width="{total_width}" height="{total_height}" '
           'font-family="sans-serif" font-size="11">', f'<rect width="{total_width}" height="{total_height}" fill="white"/>',
           f'<text x="14" y="22" font-size="15" font-weight="bold">{escape(title)}</text>']
    for index, (name, bars) in enumerate(panels):
        left, long = index * width + 74, width - 140
        out.append(f'<text x="{left}" y="44" font-weight="bold">{escape(name)}</text>')

        def at(value):
            return left + math.log10(value / low) / math.log10(high / low) * long
        power = low
        while power < high * 1.01:
            out.append(f'<line x1="{at(power):.1f}" y1="{top}" x2="{at(power):.1f}" y2="{top + longest * line}" stroke="#e4e4e4"/>'
                       f'<text x="{at(power):.1f}" y="{top + longest * line + 14}" text-anchor="middle" fill="#444">{power:g}</text>')
            power *= 10
        for i, (bar, value) in enumerate(sorted(bars, key=lambda b: b[1])):
            y = top + i * line
            out.append(f'<text x="{left - 5}" y="{y + 13}" text-anchor="end">{escape(bar)}</text>'
                       f'<rect x="{left}" y="{y + 3}" width="{max(at(value) - left, 1):.1f}" height="{line - 5}" fill="{COLOURS[0]}"/>'
                       f'<text x="{at(value) + 4:.1f}" y="{y + 13}" fill="#444">{value:.3g}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def dash(i):
    return ' stroke-dasharray="5 3"' if i else ""


def ticks(low, high):
    """Two to five round numbers between them."""
    step = 10 ** math.floor(math.log10(high - low))
    while (high - low) / step < 2:
        step /= 2
    if (high - low) / step > 5:
        step *= 2
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def panel(name, lines, legend, left, top, width, height):
    points = [p for _, line in lines for p in line]
    low, high = min(p[2] for p in points), max(p[3] for p in points)
    if high - low < 1e-9:
        low, high = low - 0.01 * abs(low or 1), high + 0.01 * abs(high or 1)
    spread = high - low
    low, high = low - 0.06 * spread, high + 0.06 * spread
    first, last = min(p[0] for p in points), max(p[0] for p in points)
    inner_left, inner_top, inner_width, inner_height = left + 46, top + 18, width - 56, height - 32

    def at(x, y):
        return (inner_left + (x - first) / max(last - first, 1e-9) * inner_width, inner_top + (high - y) / (high - low) * inner_height)
    out = [f'<text x="{inner_left}" y="{top + 11}" font-weight="bold">{escape(name)}</text>',
           f'<rect x="{inner_left}" y="{inner_top}" width="{inner_width}" height="{inner_height}" fill="none" stroke="#999"/>']
    for value in ticks(low, high):
        y = at(first, value)[1]
        out.append(f'<line x1="{inner_left}" y1="{y:.1f}" x2="{inner_left + inner_width}" y2="{y:.1f}" stroke="#e4e4e4"/>'
                   f'<text x="{inner_left - 5}" y="{y + 4:.1f}" text-anchor="end" fill="#444">{value:.7g}</text>')
    for x in sorted({p[0] for p in points}):
        out.append(f'<text x="{at(x, low)[0]:.1f}" y="{inner_top + inner_height + 13}" text-anchor="middle" fill="#444">{x:g}</text>')
    for line_name, line in lines:
        i = legend.index(line_name)
        band = [at(x, h) for x, _, _, h in line] + [at(x, l) for x, _, l, _ in reversed(line)]
        out.append(f'<polygon points="{coordinates(band)}" fill="{COLOURS[i]}" fill-opacity="0.14"/>')
        centre = [at(x, m) for x, m, _, _ in line]
        out.append(f'<polyline points="{coordinates(centre)}" fill="none" stroke="{COLOURS[i]}" stroke-width="2"{dash(i)}/>')
        out += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="2.5" fill="{COLOURS[i]}"/>' for px, py in centre]
    return out


def coordinates(points):
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            return re.search(r"model name\s*: (.*)", file.read()).group(1)
    except (OSError, AttributeError):
        return platform.machine()


def fill(path, heading, titles, parts, images):
    """Puts tables between their marks, and leaves what was written around them; a new file has the tables alone. titles: {part: title};
    images: {part: files that follow it}."""
    if path.exists():
        text = path.read_text()
    else:
        text = f"# {heading}\n"
        for name, title in titles.items():
            text += f"\n## {title}\n\n<!-- {name} -->\n<!-- end of {name} -->\n"
            text += "".join(f"\n![{image}]({image})\n" for image in images.get(name, ()))
    for name, content in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise StudyError(f"{path}: has no place for {name}; put '{begin}' and '{end}' where it belongs, or remove the file")
        head, rest = text.split(begin, 1)
        text = f"{head}{begin}\n{content.strip()}\n{end}{rest.split(end, 1)[1]}"
    path.write_text(text)


def arguments(description, scales):
    """The command line of a study. Results of `small` belong to the documentation; others lie in the build folder."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--galvani", default=ROOT / "build/galvani", help="the program (default: build/galvani)")
    parser.add_argument("--scale", choices=scales, default="smoke")
    parser.add_argument("--work", type=pathlib.Path, help="folder for steps (default: build/study/NAME-SCALE)")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="folder for results (default: docs/results for small, else the work folder)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="steps at a time (default: one per core)")
    parser.add_argument("--only-results", action="store_true", help="write the results of the steps that are there, whatever is missing")
    return parser


def part_arguments(parser, subjects, questions):
    """For a part of a study, whose results have a name of their own."""
    parser.add_argument("--subjects", type=lambda text: text.split(","), help=f"some of them only, by name or pattern, {subjects}")
    parser.add_argument("--questions", type=lambda text: text.split(","), help=f"some of them only, in this order, {questions}")
    parser.add_argument("--results", metavar="NAME", help="of the files of results; a part of a study wants one of its own")


def name_part(given, name, questions):
    """The name of the results; those of the whole are not written over by a part."""
    for question in given.questions or ():
        if question not in questions:
            raise StudyError(f"there is no question {question}; there are {', '.join(questions)}")
    if (given.subjects or given.questions) and not given.results:
        raise StudyError("a part of a study needs --results NAME for its files")
    given.part = bool(given.results)
    given.results = given.results or name


def chosen(subjects, given):
    if not given.subjects:
        return subjects
    for pattern in given.subjects:
        if not any(fnmatch.fnmatchcase(s.name, pattern) for s in subjects):
            raise StudyError(f"no subject is called {pattern}; there are {', '.join(s.name for s in subjects)}")
    return [s for s in subjects if any(fnmatch.fnmatchcase(s.name, pattern) for pattern in given.subjects)]


def command_of(study, given):
    """What makes these results, for the reader."""
    words = [f"./dev study {study} --scale {given.scale}"]
    if given.subjects:
        words.append(f"--subjects '{','.join(given.subjects)}'")
    if given.questions:
        words.append(f"--questions {','.join(given.questions)}")
    if given.part:
        words.append(f"--results {given.results}")
    words += [f"--beside docs/results/{path.name}" for path in getattr(given, "beside", ())]
    return " ".join(words)


RESNET_CARD = "range = [0, 1]\nmean = [0.485, 0.456, 0.406]\nstd = [0.229, 0.224, 0.225]\n"


def given_resnet20(source, target):
    """A copy of the user's ResNet-20 of CIFAR-10 with a card that says what it takes; whether there is one."""
    if not pathlib.Path(source).is_file():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.with_suffix(".toml").write_text(RESNET_CARD)
    return True


def open_study(name, given):
    work = (given.work or ROOT / "build/study" / f"{name}-{given.scale}").resolve()
    output = (given.output or (ROOT / "docs/results" if given.scale == "small" else work / "results")).resolve()
    output.mkdir(parents=True, exist_ok=True)
    return Study(given.galvani, work, given.jobs, given.only_results), output


def run(main):
    """main() with mistakes and Ctrl-C told in a line; being asked to end is as good as Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on", file=sys.stderr)
        sys.exit(130)
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
