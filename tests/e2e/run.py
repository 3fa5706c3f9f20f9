#!/usr/bin/env python3
"""End-to-end tests: the real binary on real files, as a user would call it.

usage: tests/e2e/run.py BINARY [WORDS]    with WORDS only the checks whose names contain them
       tests/e2e/run.py BINARY --prepare FOLDER            makes the models that the checks look at
       tests/e2e/run.py BINARY --models FOLDER --topic T   the checks of one topic, with models made before

Everything happens in a temporary folder, the cache too. Prints a line per check, exits 1 if one failed. CTest runs the
topics side by side.
"""
import argparse
import base64
import collections
import concurrent.futures
import csv
import fcntl
import io
import json
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import sqlite3
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import termios
import threading
import time
import wave
import xml.etree.ElementTree
import zipfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stand_by"))
from stand_by import Result, Standing  # noqa: E402

LIMIT = 120  # seconds for one command; far above what any takes
TRAIN = ["--data", "digits:train[0:2000]", "--test", "digits:test[0:500]"]
TEST = ["--data", "digits:test[0:300]"]


class Failure(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


def expect_equal(found, wanted, what):
    expect(found == wanted, f"{what} is {str(found)[:300]!r} instead of {str(wanted)[:300]!r}")


class Workshop:
    """The temporary folder, and the binary run inside it."""

    def __init__(self, binary, folder):
        self.binary = str(pathlib.Path(binary).resolve())
        self.folder = pathlib.Path(folder)
        self.environment = dict(os.environ, GALVANI_CACHE=str(self.folder / "cache"))
        self.standing = Standing(self.binary, LIMIT)

    def start(self, *arguments):
        return subprocess.Popen([self.binary, *map(str, arguments)], cwd=self.folder, env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    def run(self, *arguments, output=None, obeys=False, **environment):
        """`output`: the file that standard output goes to. `obeys`: root, too, obeys permissions. Other environment variables."""
        environment = {**self.environment, **environment}
        try:
            return self.standing.run(arguments, self.folder, {**environment, "GALVANI_OBEYS": "1"} if obeys else environment, output)
        except TimeoutError:
            raise Failure(f"took more than {LIMIT} s: {' '.join(map(str, arguments))}") from None

    def run_on(self, terminal, arguments, environment):
        """On a terminal, of which this closes our descriptor as soon as the binary has it."""
        return self.standing.run_on(terminal, arguments, self.folder, environment)

    def done(self, *arguments):
        result = self.run(*arguments)
        expect(result.code == 0, f"exit {result.code} of '{' '.join(map(str, arguments))}': {result.err[-500:]}")
        return result

    def refused(self, code, *arguments, names=""):
        """Exit `code`, nothing on standard output, and one sentence on standard error that contains `names`."""
        result = self.run(*arguments)
        expect(result.code == code, f"exit {result.code} instead of {code}: {result.err[-500:]}")
        lines = [line for line in result.err.splitlines() if not line.startswith(("warning:", "training "))]
        expect(len(lines) == 1 and lines[0].startswith("error: "), f"not one sentence: {result.err[-800:]!r}")
        expect(names in lines[0], f"does not mention {names!r}: {lines[0]}")
        for leak in ("Exception raised from", "terminate called", "c10::", "std::", "unknown file"):
            expect(leak not in result.err, f"shows internals: {result.err[-500:]}")
        return lines[0]

    def __truediv__(self, name):
        return self.folder / name


# --- files by hand


def npy(shape, kind, data):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header = text + " " * (63 - (10 + len(text)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def write_npz(path, shape, labels):
    size = 1
    for n in shape:
        size *= n
    pixels = bytes(i * 7919 % 256 for i in range(size))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", npy(shape, "|u1", pixels))
        archive.writestr("labels.npy", npy([len(labels)], "<i8", struct.pack(f"<{len(labels)}q", *labels)))


def noise(count):
    """Bytes without a pattern, the same every time."""
    state, result = 12345, bytearray()
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        result.append(state >> 16 & 255)
    return bytes(result)


def message(*fields):
    """A protocol buffer: (number, value) with whole numbers, text, bytes, or messages made here."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
    result = b""
    for number, value in fields:
        if isinstance(value, int):
            result += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            result += varint(number << 3 | 2) + varint(len(value)) + value
    return result


def style_network(gain, bias):
    """An ONNX network that makes gain * image + bias of a gray image: a 1x1 convolution."""
    def port(name):
        sides = [message((2, "n"))] + [message((1, n)) for n in (1, 28, 28)]
        shape = message(*((1, side) for side in sides))
        return message((1, name), (2, message((1, message((1, 1), (2, shape))))))

    def weight(name, dims, value):
        return message(*((1, n) for n in dims), (2, 1), (8, name), (9, struct.pack("<f", value)))
    node = message((1, "image"), (1, "gain"), (1, "bias"), (2, "styled"), (4, "Conv"))
    graph = message((1, node), (2, "style"), (5, weight("gain", (1, 1, 1, 1), gain)), (5, weight("bias", (1,), bias)),
                    (11, port("image")), (12, port("styled")))
    return message((1, 8), (7, graph), (8, message((2, 13))))


def sound_network(length):
    """An ONNX network whose two scores are the means of what is above and below zero in a sound."""
    def port(name, sides):
        shape = message(*((1, message((2, "n")) if side is None else message((1, side))) for side in sides))
        return message((1, name), (2, message((1, message((1, 1), (2, shape))))))
    weight = message((1, 2), (1, 1), (1, 1), (2, 1), (8, "w"), (9, struct.pack("<2f", 1, -1)))
    nodes = [message((1, "sound"), (1, "w"), (2, "both"), (4, "Conv")), message((1, "both"), (2, "parts"), (4, "Relu")),
             message((1, "parts"), (2, "means"), (4, "GlobalAveragePool")), message((1, "means"), (2, "scores"), (4, "Flatten"))]
    graph = message(*((1, node) for node in nodes), (2, "sounds"), (5, weight), (11, port("sound", (None, 1, length))),
                    (12, port("scores", (None, 2))))
    return message((1, 8), (7, graph), (8, message((2, 13))))


def write_wav(path, samples, rate=8000):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(struct.pack(f"<{len(samples)}h", *samples))


def write_png(path, width, height, pixel, colours=2, bits=8):
    """A PNG of one value: gray (0), RGB (2), gray and alpha (4) or RGBA (6)."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    row = b"\0" + (bytes(pixel) if bits == 8 else b"".join(struct.pack(">H", value) for value in pixel)) * width
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b""))


# Blue, 24x16, with an EXIF tag that turns it; green, 40x24.
BLUE_JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/4QAiRXhpZgAATU0AKgAAAAgAAQESAAMAAAABAAYAAAAAAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEj"
    "JR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2Nj"
    "Y2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAARCAAQABgDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAb/xAAUEAEAAAAAAAAAAAAA"
    "AAAAAAAA/8QAFgEBAQEAAAAAAAAAAAAAAAAAAAQG/8QAFBEBAAAAAAAAAAAAAAAAAAAAAP/aAAwDAQACEQMRAD8AiwG0TgAP/9k=")
GREEN_WEBP = base64.b64decode("UklGRhwAAABXRUJQVlA4TA8AAAAvJ8AFAAdQ6Yj+ByKi/wEA")


def colour_network(side, *ends, scores=3):
    """An ONNX network whose three scores (or fewer) are ten times the means of red, green and blue; `ends`: operators behind them."""
    def port(name, sides):
        shape = message(*((1, message((2, "n")) if n is None else message((1, n))) for n in sides))
        return message((1, name), (2, message((1, message((1, 1), (2, shape))))))
    values = struct.pack("<9f", 10, 0, 0, 0, 10, 0, 0, 0, 10)[:12 * scores]
    weight = message((1, scores), (1, 3), (1, 1), (1, 1), (2, 1), (8, "w"), (9, values))
    names = [f"end{i}" for i in range(len(ends))] + ["scores"]
    nodes = [message((1, "image"), (1, "w"), (2, "same"), (4, "Conv")),
             message((1, "same"), (2, "means"), (4, "GlobalAveragePool")), message((1, "means"), (2, names[0]), (4, "Flatten"))]
    nodes += [message((1, names[i]), (2, names[i + 1]), (4, end)) for i, end in enumerate(ends)]
    graph = message(*((1, node) for node in nodes), (2, "colours"), (5, weight), (11, port("image", (None, 3, side, side))),
                    (12, port("scores", (None, scores))))
    return message((1, 8), (7, graph), (8, message((2, 13))))


def flat_network(values):
    """An ONNX network that takes [N, values] and tells ten classes apart by the sums of a tenth of them each; `values` may be sides."""
    sides = [values] if isinstance(values, int) else list(values)
    count = math.prod(sides)
    def port(name, sides):
        shape = message(*((1, message((2, "n")) if n is None else message((1, n))) for n in sides))
        return message((1, name), (2, message((1, message((1, 1), (2, shape))))))
    weights = struct.pack(f"<{count * 10}f", *(1.0 if k * 10 // count == c else 0.0 for k in range(count) for c in range(10)))
    nodes = [message((1, "x"), (2, "row"), (4, "Flatten")), message((1, "row"), (1, "w"), (2, "scores"), (3, "dense"), (4, "MatMul"))]
    graph = message(*((1, node) for node in nodes), (2, "flat"), (5, message((1, count), (1, 10), (2, 1), (8, "w"), (9, weights))),
                    (11, port("x", (None, *sides))), (12, port("scores", (None, 10))))
    return message((1, 8), (7, graph), (8, message((2, 13))))


def predictions(text):
    """The rows of a CSV of predictions, without names of classes and files, which a file format may not carry."""
    return [{k: v for k, v in row.items() if k not in ("name", "index", "file")} for row in csv.DictReader(io.StringIO(text))]


# --- the checks, in the order of the table. Those of the topic "models" come first, one by one; the others do not
# depend on each other.

Check = collections.namedtuple("Check", "topic name function")
CHECKS = []
TOPICS = ["models"]
MODELS = TOPICS[0]


def topic(name):
    """The checks from here on belong to it. CMake reads these lines."""
    TOPICS.append(name)


def check(name, in_topic=None):
    def add(function):
        CHECKS.append(Check(in_topic or TOPICS[-1], name, function))
        return function
    return add


def add_checks(prefix, table, function):
    for name, *arguments in table:
        CHECKS.append(Check(TOPICS[-1], f"{prefix}: {name}", lambda w, a=tuple(arguments): function(w, *a)))


# The models everything else looks at.


@check("train writes a model", in_topic=MODELS)
def _(w):
    result = w.done("train", "lenet5", *TRAIN, "--epochs", 1, "-o", "one.onnx", "--metrics", "one.csv")
    expect((w / "one.onnx").stat().st_size > 200000, "the model is too small")
    expect(not (w / "one.onnx.checkpoint").exists(), "a checkpoint is left")
    expect(re.search(r"one\.onnx: \d+\.\d+% on digits:test\[0:500\]", result.out), result.out)
    rows = list(csv.DictReader((w / "one.csv").open()))
    expect_equal([r["epoch"] for r in rows], ["1"], "the metrics' epochs")
    expect(0 < float(rows[0]["loss"]) < 3, "the loss makes no sense")


EIGHT = ["train", "lenet5", *TRAIN, "--epochs", 8, "--seed", 5]


@check("train learns", in_topic=MODELS)
def _(w):
    lines = [json.loads(line) for line in w.done(*EIGHT, "-o", "eight.onnx", "--json-lines").out.splitlines()]
    expect_equal([line.get("epoch") for line in lines], [1, 2, 3, 4, 5, 6, 7, 8, None], "the epochs")
    expect(lines[-1]["accuracy"] > 0.8, f"accuracy {lines[-1]['accuracy']} after eight epochs")
    expect(lines[-2]["loss"] < lines[0]["loss"] / 2, "the loss did not fall")
    # Measured once here, so that the checks side by side find the same micro-batch in the cache.
    w.done("predict", "eight.onnx", *TEST, "-o", "eight.csv")


# Help, version, mistakes.

topic("usage")


def helps(w, *verb):
    result = w.done(*verb, "--help")
    expect("Usage:" in result.out, "no usage line")
    if verb:
        expect("Examples:" in result.out, "no examples")
        expect("galvani " + verb[0] in result.out.split("Examples:")[1], "the examples are of another verb")


add_checks("help", [("galvani",), ("data", "data"), ("data list", "data", "list"), ("data get", "data", "get"),
                    ("data info", "data", "info"), ("data export", "data", "export"), ("model", "model"), ("model list", "model", "list"),
                    ("model get", "model", "get"), ("model similarity", "model", "similarity"), ("train", "train"),
                    ("inspect", "inspect"), ("predict", "predict"), ("cover", "cover"), ("profile", "profile"),
                    ("trace", "trace"), ("report", "report"), ("compare", "compare"),
                    ("faults", "faults"), ("quality", "quality"), ("attack", "attack"),
                    ("repair", "repair"), ("select", "select"), ("describe", "describe"), ("explain", "explain"),
                    ("calibrate", "calibrate"), ("excite", "excite"), ("features", "features"), ("train-captioner", "train-captioner"),
                    ("train-generator", "train-generator"), ("transfer", "transfer"), ("merge", "merge"), ("diff", "diff")], helps)


@check("every verb has a help check")
def _(w):
    text = w.done("--help").out
    verbs = set(re.findall(r"^  (\S+)", text, re.MULTILINE)) - {"galvani"}
    expect(len(verbs) > 10, f"only {verbs}")
    known = {check.name.split()[1] for check in CHECKS if check.name.startswith("help: ")}
    expect(verbs <= known, f"no check for the help of {verbs - known}")


@check("version")
def _(w):
    expect(re.fullmatch(r"galvani \d+\.\d+\.\d+\n", w.done("--version").out), "not 'galvani 1.2.3'")
    expect_equal(w.done("-V").out, w.done("--version").out, "what -V prints")


@check("galvani alone is an overview, and help VERB is VERB --help")
def _(w):
    alone = w.done().out
    expect_equal([alone == w.done(*words).out for words in (["--help"], ["-h"], ["help"])], [True] * 3, "the overview again")
    expect(len(alone.splitlines()) <= 50 and alone.count("  galvani ") == 3, "not a short overview with three commands")
    for verb in (["inspect"], ["data"], ["data", "export"]):
        expect(w.done("help", *verb).out == w.done(*verb, "--help").out == w.done(*verb, "-h").out, f"the helps of {verb} differ")
        expect("Usage: galvani " + " ".join(verb) in w.done("help", *verb).out, "the usage line")
    # What is asked for comes, whatever else is wrong.
    expect("Usage: galvani predict" in w.done("predict", "--data", "x", "--help").out, "the help of a command that lacks something")


@check("help for machines: every verb, its options and their limits")
def _(w):
    said = json.loads(w.done("help", "--json").out)
    verbs = {verb["name"]: verb for verb in said["verbs"]}
    expect(len(verbs) >= 25 and {verb["name"] for verb in verbs["data"]["verbs"]} == {"list", "get", "info", "export"}, f"the verbs: {list(verbs)}")
    options = {option["name"]: option for option in verbs["quality"]["options"]}
    expect_equal({key: options["--inputs"][key] for key in ("kind", "default", "range", "required")},
                 {"kind": "integer", "default": 10, "range": "from 1 to 1000000", "required": False}, "an option")
    expect_equal(options["--norm"]["choices"], ["l1", "l2", "linf"], "its choices")
    expect(options["model"]["kind"] == "text" and options["--clever"]["kind"] == "flag" and options["--fail-if"]["kind"] == "texts", "kinds")


def misused(w, mentions, *arguments):
    w.refused(2, *arguments, names=mentions)


add_checks("usage error", [
    ("no verb of a group", "list, get, info or export", "data"),
    ("help of no verb", "there is no verb 'frobnicate'", "help", "frobnicate"),
    ("mistyped flag", "there is no --itertions in fuzz; did you mean --iterations?", "fuzz", "--itertions", 5),
    ("flag with a letter too much", "there is no -z in inspect", "inspect", "one.onnx", "-qz"),
    ("flag before the verb", "there is no --json before the verb", "--json", "inspect", "one.onnx"),
    ("flag with a value", "--json of inspect takes no value", "inspect", "one.onnx", "--json=yes"),
    ("option without its value", "--data of predict needs a value: inputs to predict", "predict", "one.onnx", "--data"),
    ("option in the place of a value", "--data of predict needs a value", "predict", "one.onnx", "--data", "--json"),
    ("one value of two", "--compare of cover needs 2 values", "cover", "one.onnx", "--compare", "digits"),
    ("option twice", "--data is given twice", "predict", "one.onnx", "--data", "a", "--data", "b"),
    ("argument too much", "'two.onnx' is more than inspect takes", "inspect", "one.onnx", "two.onnx"),
    ("number below 1", "--iterations is 0, but must be at least 1", "fuzz", "--iterations", 0),
    ("no whole number", "--sample is '1.5', but must be a whole number", "inspect", "one.onnx", "--sample", 1.5),
    ("no number", "--underfit is 'much', but must be a number", "train", "--underfit", "much"),
    ("negative seed", "--seed is '-1', but must be a whole number that is not negative", "cover", "one.onnx", "--seed", -1),
    ("none of the choices", "--to is 'hdf', but must be folder, npz or csv", "export", "run", "--to", "hdf", "-o", "x"),
    ("unknown verb", "there is no verb 'frobnicate'", "frobnicate"),
    ("mistyped verb", "did you mean 'inspect'?", "inspct", "one.onnx"),
    ("mistyped verb of a group", "did you mean 'export'?", "data", "exprt"),
    ("unknown flag", "--frobnicate", "inspect", "one.onnx", "--frobnicate"),
    ("no model", "model", "inspect"),
    ("predict without data", "--data", "predict", "one.onnx"),
    ("train without anything", "train needs", "train"),
    ("threads 0", "--threads is 0, but must be from 1 to 1024", "inspect", "one.onnx", "--threads", 0),
    ("threads as a word", "--threads is 'many'", "inspect", "one.onnx", "--threads", "many"),
    ("epochs below 0", "--epochs", "train", "lenet5", *TRAIN, "--epochs", -1, "-o", "x.onnx"),
    ("mistyped data", "did you mean 'digits'?", "predict", "one.onnx", "--data", "digts"),
    ("unknown split", "train, test and pool", "predict", "one.onnx", "--data", "digits:validation"),
    ("selector not closed", "not closed", "predict", "one.onnx", "--data", "digits[0:10"),
    ("selector that leaves nothing", "leaves no images", "predict", "one.onnx", "--data", "digits:test[10:10]"),
    ("mistyped architecture", "did you mean 'resnet20'?", "train", "resnt20", *TRAIN, "-o", "x.onnx"),
    ("unknown option of an architecture", "has no option", "train", "lenet5:size=3", *TRAIN, "-o", "x.onnx"),
    ("option out of range", "must be from", "train", "lenet5", *TRAIN, "--optimizer", "sgd:lr=-1", "-o", "x.onnx"),
    ("bad range", "--range", "inspect", "one.onnx", "--range", "1..0"),
    ("bad mean", "--mean", "inspect", "one.onnx", "--mean", "a,b"),
    ("bad channel order", "--channels", "inspect", "one.onnx", "--channels", "rbg"),
    ("unknown tap", "no tap", "inspect", "one.onnx", "--taps", "conv9"),
    ("an empty option", "--criteria is empty", "cover", "one.onnx", *TEST, "--criteria", ""),
    ("an empty output", "--output is empty", "predict", "one.onnx", *TEST, "-o", ""),
    ("a list that ends in a comma", "missing in 'nc,'", "cover", "one.onnx", *TEST, "--criteria", "nc,"),
    ("an empty option of a guide", "option 'criterion' is empty", "fuzz", "one.onnx", *TEST, "--guide", "deephunter:criterion=", "-o", "x"),
    ("unknown export format", "--to", "data", "export", "digits:test[:5]", "-o", "x", "--to", "hdf5"),
], misused)


# Bad files.

topic("files")


def bad_model(w, name, make):
    path = w / name
    make(w, path)
    w.refused(3, "inspect", name, names=name)


def copy_part(share):
    def make(w, path):
        content = (w / "one.onnx").read_bytes()
        path.write_bytes(content[:int(len(content) * share)])
    return make


def with_bytes(content):
    return lambda w, path: path.write_bytes(content)


def field(number, content):
    """A field of a protocol buffer: bytes, or a number."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def onnx_model(nodes, batch=None):
    """An ONNX model of 1x2x2 images; nodes are (operator, input, output)."""
    sizes = [field(2, b"n") if batch is None else field(1, batch)] + [field(1, n) for n in (1, 2, 2)]
    shape = field(2, b"".join(field(1, size) for size in sizes))
    ports = field(11, field(1, b"x") + field(2, field(1, field(1, 1) + shape))) + field(12, field(1, b"y"))
    body = b"".join(field(1, field(1, i.encode()) + field(2, o.encode()) + field(4, op.encode())) for op, i, o in nodes)
    return field(1, 8) + field(8, field(2, 13)) + field(7, body + ports)


def chain(length):
    links = [("Abs", "x" if i == 0 else f"a{i - 1}", f"a{i}") for i in range(length)]
    return onnx_model(links + [("Relu", f"a{length - 1}", "r"), ("Flatten", "r", "y")])


@check("a chain of 12000 nodes is inspected")
def _(w):
    (w / "chain.onnx").write_bytes(chain(12000))
    shown = json.loads(w.done("inspect", "chain.onnx", "--taps", "relu", "--json").out)
    expect_equal(shown["classes"], 4, "number of classes")


def dividing_model(operator, divisor, folded):
    """An ONNX model of 1x2x2 images that adds the least integer divided by another one: a constant, or found for each image."""
    def cast(source, target, kind):
        return field(1, source) + field(2, target) + field(4, b"Cast") + field(5, field(1, b"to") + field(3, kind) + field(20, 2))

    def node(operator, *names):
        *inputs, output = names
        return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, operator)
    before = [] if folded else [cast(b"x", b"i", 7), node(b"Mul", b"i", b"zero", b"none"), node(b"Add", b"none", b"least", b"a")]
    nodes = [*before, node(operator, b"least" if folded else b"a", b"divisor", b"q"), cast(b"q", b"f", 1), node(b"Add", b"x", b"f", b"s"),
             node(b"Flatten", b"s", b"y")]
    weights = {b"least": -2**63, b"zero": 0, b"divisor": divisor}
    body = b"".join(field(1, n) for n in nodes) + b"".join(field(5, field(1, 1) + field(2, 7) + field(8, name) + field(9, struct.pack("<q", value)))
                                                           for name, value in weights.items())
    shape = field(2, b"".join(field(1, size) for size in [field(2, b"n")] + [field(1, n) for n in (1, 2, 2)]))
    ports = field(11, field(1, b"x") + field(2, field(1, field(1, 1) + shape))) + field(12, field(1, b"y"))
    return field(1, 8) + field(8, field(2, 13)) + field(7, body + ports)


@check("integers of a model are divided by minus one, and by zero in one sentence")
def _(w):
    for operator in (b"Div", b"Mod"):
        for folded in (True, False):
            name = f"{operator.decode()}-{'folded' if folded else 'computed'}.onnx"
            (w / name).write_bytes(dividing_model(operator, -1, folded))
            expect_equal(json.loads(w.done("inspect", name, "--json").out)["classes"], 4, f"the classes of {name}")
            (w / name).write_bytes(dividing_model(operator, 0, folded))
            w.refused(3, "inspect", name, names="an integer is divided by zero")


@check("a model that is no classifier is inspected, and refused elsewhere")
def _(w):
    (w / "image.onnx").write_bytes(onnx_model([("Relu", "x", "y")]))
    shown = json.loads(w.done("inspect", "image.onnx", "--json").out)
    expect_equal([shown["classes"], shown["outputs"]], [0, [{"name": "y", "shape": [1, 2, 2]}]], "what it gives")
    expect(re.search("^output +y 1x2x2$", w.done("inspect", "image.onnx").out, re.M), "the text does not name it")
    w.refused(3, "predict", "image.onnx", *TEST, names="a map of 1 score for each of 2x2 places, as of segmentation")


@check("every verb takes images for a network of [N, 784] or [N, 28, 28], and says how they are read")
def _(w):
    for name, sides in (("flat", 784), ("rows", (28, 28))):
        (w / f"{name}.onnx").write_bytes(flat_network(sides))
        data = ["--data", "digits:test[:40]"]
        how = f"{name}.onnx: its input of {'784 values' if name == 'flat' else '28x28'} is read as images of 1x28x28, row by row"
        for verb in (["inspect", *data], ["predict", *data, "-o", "flat.csv"], ["cover", *data, "--criteria", "nc"], ["select", *data, "--top", "5%"],
                     ["fuzz", *data, "--labels", "model", "--guide", "random", "--iterations", "1", "-o", f"{name}-run"],
                     ["attack", *data, "--labels", "model", "--method", "fgsm"], ["trace", *data, "-o", f"{name}.npy"]):
            expect(how in w.done(verb[0], f"{name}.onnx", *verb[1:]).err, f"{verb[0]} does not say how it reads {name}")
        expect(how in w.done("replay", f"{name}-run").err, "replay does not")
        given = w.done("inspect", f"{name}.onnx", "--input", "1,28,28").out
        expect(re.search("^input +1x28x28, to the graph", given, re.M), f"--input 1,28,28 is not shown: {given[:300]}")


@check("a network whose channels come last is refused with the option that helps, and takes it")
def _(w):
    (w / "last.onnx").write_bytes(flat_network((28, 28, 3)))
    write_colours(w / "last.npz", 12)
    for options in ([], ["--resize", "fit"]):
        w.refused(3, "predict", "last.onnx", "--data", "last.npz", *options, names="add --layout nhwc")
    w.done("predict", "last.onnx", "--data", "last.npz", "--layout", "nhwc")


@check("probabilities are shown as they are, whatever makes them; where scores cannot be had, every verb says so")
def _(w):
    write_colours(w / "heads.npz", 12, classes=3)
    data = ["--data", "heads.npz"]

    def confidences(*ends):
        (w / "heads.onnx").write_bytes(colour_network(28, *ends))
        said = w.run("predict", "heads.onnx", *data, "--json")
        return [max(row["probabilities"]) for row in json.loads(said.out)["predictions"]], said.err
    logits, silent = confidences()
    expect("probabilities" not in silent, silent)
    for ends in (("Softmax",), ("Softmax", "Flatten"), ("Softmax", "Clip"), ("Softmax", "Flatten", "Identity")):
        same, silent = confidences(*ends)
        expect(all(abs(a - b) < 1e-5 for a, b in zip(logits, same)), f"{ends}: {same} and not {logits}")
        expect("probabilities" not in silent, silent)
    odds, silent = confidences("Sigmoid")
    for a, b in zip(logits, odds):
        expect(b >= a - 1e-6, f"a sigmoid's own value, {b}, is not below the softmax's, {a}")
    expect(max(odds) > 0.999, str(odds))
    # Scores cannot be found behind two roots: they are made.
    (w / "heads.onnx").write_bytes(colour_network(28, "Softmax", "Abs"))
    for verb in (["inspect"], ["predict", *data], ["cover", *data, "--criteria", "nc"], ["attack", *data, "--method", "fgsm", "--eps", 0.1]):
        said = w.run(verb[0], "heads.onnx", *verb[1:])
        expect(said.code == 0 and "probabilities" in said.err, f"{verb[0]} does not say it: {said.err}")
    made, _ = confidences("Softmax", "Abs")
    expect(all(abs(a - b) < 1e-5 for a, b in zip(logits, made)), f"{made} and not {logits}")
    kept = json.loads(w.run("predict", "heads.onnx", *data, "--head", "logits", "--json").out)
    expect(max(max(row["probabilities"]) for row in kept["predictions"]) < 0.6, "with --head logits probabilities are scores")


add_checks("bad model", [
    ("more nodes than the limit", "long.onnx", with_bytes(chain(100001))),
    ("batch of a million", "batch.onnx", with_bytes(onnx_model([("Flatten", "x", "y")], batch=10**6))),
    ("missing", "missing.onnx", lambda w, path: None),
    ("empty", "empty.onnx", with_bytes(b"")),
    ("folder", "folder.onnx", lambda w, path: path.mkdir()),
    ("text", "text.onnx", with_bytes(b"The quick brown fox jumps over the lazy dog.\n" * 20)),
    ("random bytes", "random.onnx", with_bytes(noise(5000))),
    ("zeros", "zeros.onnx", with_bytes(bytes(5000))),
    ("first half", "half.onnx", copy_part(0.5)),
    ("last byte missing", "short.onnx", copy_part(0.99999)),
    ("first bytes", "first.onnx", copy_part(0.001)),
    ("zip that is no model", "data.npz", lambda w, path: write_npz(path, [2, 1, 28, 28], [0, 1])),
    ("damaged zip", "damaged.pt", with_bytes(b"PK\x03\x04" + noise(3000))),
    ("named pipe", "pipe.onnx", lambda w, path: os.mkfifo(path)),
], bad_model)


def bad_data(w, name, make, mentions):
    path = w / name
    make(path)
    w.refused(3, "predict", "one.onnx", "--data", f"./{name}", names=mentions)


def npz_of(shape, labels):
    return lambda path: write_npz(path, shape, labels)


def flipped_npz(path):
    write_npz(path, [4, 1, 28, 28], [0, 1, 2, 3])
    content = bytearray(path.read_bytes())
    content[1500] ^= 0x55
    path.write_bytes(content)


def cut_npz(path):
    write_npz(path, [4, 1, 28, 28], [0, 1, 2, 3])
    path.write_bytes(path.read_bytes()[:2000])


def lying_npy(path):
    path.write_bytes(npy([1 << 40, 1, 28, 28], "|u1", bytes(1000)))


def folder_of(name, content):
    def make(path):
        path.mkdir()
        if name:
            (path / name).write_bytes(content)
    return make


add_checks("bad data", [
    ("missing", "missing.npz", lambda path: None, "missing.npz"),
    ("images of another shape", "colour.npz", npz_of([4, 3, 32, 32], [0, 1, 2, 3]), "3x32x32"),
    ("label out of range", "label12.npz", npz_of([4, 1, 28, 28], [0, 1, 2, 12]), "12"),
    ("fewer labels than images", "fewer.npz", npz_of([4, 1, 28, 28], [0, 1]), "fewer.npz"),
    ("no images", "none.npz", npz_of([0, 1, 28, 28], []), "none.npz"),
    ("flipped bits", "flipped.npz", flipped_npz, "flipped.npz"),
    ("cut off", "cut.npz", cut_npz, "cut.npz"),
    ("header that lies", "lying.npy", lying_npy, "lying.npy"),
    ("text called npz", "text.npz", lambda path: path.write_text("no archive at all"), "text.npz"),
    ("empty folder", "nothing", folder_of("", b""), "nothing"),
    ("folder with a broken image", "broken", folder_of("a.png", b"\x89PNG\r\n\x1a\n" + noise(200)), "a.png"),
    ("random bytes", "noise.bin", lambda path: path.write_bytes(noise(500)), "noise.bin"),
], bad_data)


def bad_card(w, name, text, mentions):
    shutil.copy(w / "one.onnx", w / f"{name}.onnx")
    (w / f"{name}.toml").write_bytes(text)
    message = w.refused(3, "inspect", f"{name}.onnx", names=mentions)
    expect(name in message, f"does not name the file: {message}")


add_checks("bad model card", [
    ("not TOML", "card1", b"mean = [0.5\nstd", "line"),
    ("unknown key", "card2", b"meen = [0.5]\n", "meen"),
    ("text for a number", "card3", b'mean = ["a"]\n', "card3"),
    ("deviation 0", "card4", b"std = [0.0]\n", "standard deviation"),
    ("three means for one channel", "card5", b"mean = [0.1, 0.2, 0.3]\n", "3 means"),
    ("range upside down", "card6", b"range = [1, 0]\n", "range"),
    ("too few class names", "card7", b'classes = ["a", "b"]\n', "2 classes"),
    ("huge input", "card8", b"input = [1, 99999999, 99999999]\n", "input"),
    ("nested thousands deep", "card9", b"mean = " + b"[" * 100000 + b"]" * 100000, "card9"),
    ("random bytes", "card10", noise(2000), "card10"),
    ("not finite", "card11", b"mean = [nan]\nstd = [inf]\n", "card11"),
], bad_card)


# What the verbs say.

topic("verbs")


@check("inspect --json")
def _(w):
    info = json.loads(w.done("inspect", "eight.onnx", *TEST, "--json", "--layers").out)
    wanted = {"model": "eight.onnx", "format": "onnx", "input": [1, 28, 28], "classes": 10, "parameters": 61706,
              "neurons": 236, "opset": 13, "softmax": False, "preprocess_stated": True, "images": 300,
              "data": "digits:test[0:300]"}
    expect_equal({key: info.get(key) for key in wanted}, wanted, "what it says")
    expect_equal([(t["name"], t["neurons"]) for t in info["taps"]],
                 [("conv1", 6), ("conv2", 16), ("fc1", 120), ("fc2", 84), ("fc3", 10)], "the taps")
    expect_equal(sum(sum(row) for row in info["confusion"]), 300, "the sum of the confusion table")
    expect_equal(sum(info["confusion"][i][i] for i in range(10)), info["correct"], "its diagonal")
    expect_equal(sum(layer["parameters"] for layer in info["layers"]), 61706, "the layers' parameters")
    expect(re.fullmatch("[0-9a-f]{64}", info["sha256"]), "no sha256")


@check("one JSON rule: --json is one document, --json-lines a stream, --list has both forms")
def _(w):
    told = json.loads(w.done("train", "lenet1", "--data", "digits:train[0:64]", "--test", "digits:test[0:64]", "--epochs", 2, "-o",
                             "told.onnx", "--json").out)
    expect_equal([e["epoch"] for e in told["epochs"]], [1, 2], "the epochs of one document")
    for verb, part, name in (("train", "architectures", "lenet5"), ("cover", "criteria", "kmnc"), ("mutate", "mutators", "rotation"),
                             ("fuzz", "guides", "kmnc"), ("quality", "metrics", "acac"), ("attack", "attacks", "pgd"),
                             ("select", "selectors", "nss")):
        listed = json.loads(w.done(verb, "--list", "--json").out)
        expect(name in [entry["name"] for entry in listed[part]], f"{name} is not among the {part} of {verb}")
        expect(name in w.done(verb, "--list").out, f"{name} is not in the list of {verb}")


@check("inspect chooses taps")
def _(w):
    names = [t["name"] for t in json.loads(w.done("inspect", "one.onnx", "--taps", "conv*,fc1/relu", "--json").out)["taps"]]
    expect_equal([n for n in names if not n.startswith("conv")], ["fc1/relu"], "what does not start with conv")
    expect({"conv1", "conv2"} <= set(names), f"conv1 and conv2 are not among {names}")


@check("inspect as text")
def _(w):
    text = w.done("inspect", "eight.onnx", *TEST).out
    for part in ("236 in 5 taps", "61,706", "ONNX, opset 13", "on digits:test[0:300]", "recall"):
        expect(part in text, f"no {part!r}")


@check("predict: CSV and JSON agree")
def _(w):
    rows = list(csv.DictReader((w / "eight.csv").open()))
    result = json.loads(w.done("predict", "eight.onnx", *TEST, "--json").out)
    expect_equal(len(rows), 300, "the number of rows")
    expect_equal(result["images"], 300, "the number of images")
    correct = 0
    for row, item in zip(rows, result["predictions"]):
        expect_equal((int(row["index"]), int(row["label"]), int(row["predicted"]), row["name"]),
                     (item["index"], item["label"], item["predicted"], item["name"]), "a row")
        p = item["probabilities"]
        expect(max(range(10), key=p.__getitem__) == item["predicted"], "the prediction is not the most probable class")
        expect(abs(sum(p) - 1) < 1e-5, "the probabilities do not sum to 1")
        expect(all(abs(float(row[f"p{c}"]) - p[c]) <= 1e-5 * p[c] for c in range(10)), "a probability differs")
        correct += item["label"] == item["predicted"]
    expect(abs(result["accuracy"] - correct / 300) < 1e-12, "the accuracy is not the share of right labels")


def same_predictions(w, *flags):
    name = "p" + "".join(flags).replace("-", "") + ".csv"
    w.done("predict", "eight.onnx", *TEST, "-o", name, *flags)
    expect_equal((w / name).read_text(), (w / "eight.csv").read_text(), "the CSV")


add_checks("predict is the same with", [(f"--threads {n}", "--threads", str(n)) for n in (1, 2, 4)], same_predictions)


def same_model(w, threads):
    w.done("train", "lenet5", *TRAIN, "--epochs", 1, "--threads", threads, "-o", f"one{threads}.onnx")
    expect((w / f"one{threads}.onnx").read_bytes() == (w / "one.onnx").read_bytes(), "the model files differ")


add_checks("train is the same with", [(f"--threads {n}", n) for n in (1, 2, 4)], same_model)


@check("another seed gives another model")
def _(w):
    w.done("train", "lenet5", *TRAIN, "--epochs", 1, "--seed", 1, "-o", "seed1.onnx")
    expect((w / "seed1.onnx").read_bytes() != (w / "one.onnx").read_bytes(), "the seed changes nothing")


def train_until_interrupted(w, output, number, reports, *flags):
    process = w.start(*EIGHT, "-o", output, "--json-lines", *flags)
    for _ in range(reports):
        process.stdout.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=LIMIT)
    expect(process.returncode == 128 + number, f"exit {process.returncode} instead of {128 + number}: {err[-300:]}")
    expect((w / f"{output}.checkpoint").exists(), "there is no checkpoint")
    expect(not (w / output).exists(), "a model was written")


@check("interrupted training goes on to the same bytes")
def _(w):
    train_until_interrupted(w, "resumed.onnx", signal.SIGINT, 2)
    train_until_interrupted(w, "resumed.onnx", signal.SIGTERM, 4, "--threads", 1)
    w.done(*EIGHT, "-o", "resumed.onnx")
    expect((w / "resumed.onnx").read_bytes() == (w / "eight.onnx").read_bytes(), "the model files differ")
    expect(not (w / "resumed.onnx.checkpoint").exists(), "the checkpoint is left")


@check("a checkpoint of other settings is refused")
def _(w):
    train_until_interrupted(w, "other.onnx", signal.SIGINT, 1)
    before = (w / "other.onnx.checkpoint").read_bytes()
    for flags, word in ((["--batch", 32], "batch"), (["--optimizer", "adam"], "optimizer")):
        w.refused(2, *EIGHT, *flags, "-o", "other.onnx", names=word)
    expect((w / "other.onnx.checkpoint").read_bytes() == before, "the checkpoint was changed")
    damaged = bytearray(before)
    damaged[len(damaged) // 2] ^= 1
    (w / "other.onnx.checkpoint").write_bytes(damaged)
    w.refused(3, *EIGHT, "-o", "other.onnx", names="other.onnx.checkpoint")


@check("training replaces a finished model only with --force")
def _(w):
    command = ["train", "lenet1", "--data", "digits:train[0:64]", "--test", "digits:test[0:64]", "--epochs", 1]
    (w / "kept.onnx").write_bytes(b"years of training")
    (w / "kept-link.onnx").symlink_to("kept.onnx")
    for name in ("kept.onnx", "kept-link.onnx"):
        w.refused(2, *command, "-o", name, names=f"{name}: exists already; choose another file with -o, or replace it with --force")
    expect_equal((w / "kept.onnx").read_bytes(), b"years of training", "the model that was there")
    w.done(*command, "--force", "-o", "kept.onnx")
    w.refused(2, "train", "kept.onnx", *command[2:], "-o", "kept.onnx", names="exists already")
    w.done(*command, "-o", "/dev/null")


@check("training goes on from a model file")
def _(w):
    before = json.loads(w.done("inspect", "one.onnx", *TEST, "--json").out)["accuracy"]
    w.done("train", "one.onnx", *TRAIN, "--epochs", 2, "-o", "tuned.onnx")
    after = json.loads(w.done("inspect", "tuned.onnx", *TEST, "--json").out)
    expect(after["accuracy"] > before, f"{after['accuracy']} after {before}")
    expect_equal(after["preprocess"]["architecture"], "lenet5:padding=classic", "the architecture")


def round_trip(w, form):
    spec = "digits:test[100:160]"
    target = f"out.{form}" if form == "npz" else f"out-{form}"
    w.done("data", "export", spec, "-o", target, "--to", form)
    source = target + (":test" if form == "idx" else "")
    expect_equal(predictions(w.done("predict", "eight.onnx", "--data", f"./{source}").out),
                 predictions(w.done("predict", "eight.onnx", "--data", spec).out), "the predictions")
    again = json.loads(w.done("data", "info", f"./{source}", "--json", "-o", f"{form}.png").out)
    first = json.loads(w.done("data", "info", spec, "--json", "-o", f"{form}-first.png").out)
    keys = ("images", "shape", "mean", "std", "min", "max", "duplicates", "unlabelled")
    expect_equal({k: again[k] for k in keys}, {k: first[k] for k in keys}, "what is known of the images")
    expect_equal([c["images"] for c in again["classes"]], [c["images"] for c in first["classes"]], "the classes' sizes")
    expect((w / f"{form}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n", "the contact sheet is not a PNG")


add_checks("exported data come back", [(form, form) for form in ("npz", "folder", "idx")], round_trip)


@check("a folder of sounds runs through a network of sounds")
def _(w):
    (w / "sounds.onnx").write_bytes(sound_network(800))
    for i in range(5):
        write_wav(w / f"words/high/{i}.wav", [1000 * (i + 1)] * 800)
        write_wav(w / f"words/low/{i}.wav", [-1000 * (i + 1), 0] * 400)
    info = json.loads(w.done("data", "info", "words/", "--json").out)
    expect_equal([info[key] for key in ("clips", "shape", "rate", "min", "max", "duplicates")],
                 [10, [1, 800], 8000, -5000, 5000, 0], "what is known of the sounds")
    expect("1x800 at 8000 Hz" in w.done("data", "info", "words/").out, "the shape is not shown")
    expect((w / "words-sheet.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n", "the sounds were not drawn")
    result = w.done("predict", "sounds.onnx", "--data", "words/")
    expect("accuracy 100.00%" in result.err, result.err)
    rows = list(csv.DictReader(io.StringIO(result.out)))
    expect_equal([row["name"] for row in rows], ["high"] * 5 + ["low"] * 5, "the verdicts")
    for i in range(5):
        expected = 1 / (1 + math.exp(-1000 * (i + 1) / 32768))  # samples are divided by 32768
        expect(abs(float(rows[i]["p0"]) - expected) < 1e-5, f"{rows[i]['p0']} instead of {expected}")
    w.done("data", "export", "words/", "-o", "words-again", "--to", "folder")
    expect_equal(predictions(w.done("predict", "sounds.onnx", "--data", "words-again/").out), predictions(result.out),
                 "the verdicts after an export")
    covered = json.loads(w.done("cover", "sounds.onnx", "--data", "words/", "--train", "words/", "--criteria", "nc,kmnc",
                                "--json").out)
    expect_equal(covered["inputs"], 10, "the inputs covered")
    w.refused(2, "train", "lenet5", "--data", "words/", "-o", "x.onnx", names="lenet5 is a network of images")
    w.refused(2, "train", "audionet", "--data", "digits[:50]", "-o", "x.onnx", names="audionet is a network of sounds")
    for form in ("idx", "npz"):
        w.refused(2, "data", "export", "words/", "--to", form, "-o", "x", names="--to folder")
    w.refused(2, "mutate", "--data", "words/", "--mutators", "nsgen", "-o", "x.png", names="--mutators audio")
    w.refused(2, "mutate", "--data", "digits[:5]", "--mutators", "gain", "-o", "x.png", names="changes clips, but these are images")
    w.refused(3, "predict", "sounds.onnx", "--data", "digits[:5]", names="images of shape 1x28x28")
    write_wav(w / "words/low/9.wav", [-7] * 801)
    result = w.done("predict", "sounds.onnx", "--data", "words/")
    expect("1 cut to its first 0.1 s" in result.err and "does not say its rate" in result.err, result.err)
    w.refused(3, "data", "export", "words/", "-o", "x", names="9.wav is 1x801 at 8000 Hz")
    rows = list(csv.DictReader(io.StringIO(w.done("predict", "sounds.onnx", "--data", "words/[length=800]").out)))
    expect_equal(rows[-1]["name"], "low", "the verdict on what was cut")


def write_photos(folder):
    """Images as people have them: every size and kind, names with umlauts, a folder a class."""
    write_png(folder / "Blue!/hoch.png", 30, 90, [10, 10, 200])
    (folder / "Blue!/gedreht.jpg").write_bytes(BLUE_JPEG)
    write_png(folder / "green/durchsichtig.png", 64, 48, [0, 200, 0, 128], colours=6)
    (folder / "green/grün.webp").write_bytes(GREEN_WEBP)
    write_png(folder / "red/tief.png", 20, 20, [60000, 0, 0], bits=16)
    write_png(folder / "red/Öl.png", 8, 8, [230, 20, 20])


@check("photos of every size and kind")
def _(w):
    (w / "photos.onnx").write_bytes(colour_network(8))
    (w / "photos.toml").write_text('classes = ["red", "green", "blue"]\n')
    write_photos(w / "photos")
    result = w.done("predict", "photos.onnx", "--data", "photos/")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    expect_equal([(row["file"], row["name"]) for row in rows],
                 [("Blue!/gedreht.jpg", "blue"), ("Blue!/hoch.png", "blue"), ("green/durchsichtig.png", "green"),
                  ("green/grün.webp", "green"), ("red/tief.png", "red"), ("red/Öl.png", "red")], "the verdicts")
    for words in ("accuracy 100.00%", "photos/: classes matched by name: Blue! → 2 blue, green → 1 green, red → 0 red",
                  "and 4 other sizes are resized to 8x8 (short side, then centre crop); --resize says otherwise"):
        expect(result.err.count(words) == 1, f"does not say once {words!r}: {result.err}")
    document = json.loads(w.done("predict", "photos.onnx", "--data", "photos/", "--json").out)
    expect_equal(document["predictions"][3]["file"], "green/grün.webp", "the file in JSON")
    for flags in (["--resize", "exact"], ["--resize", "pad"], ["--resize", "fit"], ["--resize", "12", "--crop", "8"]):
        expect("accuracy 100.00%" in w.done("predict", "photos.onnx", "--data", "photos/", *flags).err, f"{flags} fails")
    padded = json.loads(w.done("trace", "photos.onnx", "--data", "photos/Blue!/hoch.png", "--resize", "pad", "-o", "t.npz",
                               "--json").out)
    expect_equal(padded["inputs"], 1, "the inputs traced")
    w.refused(2, "predict", "photos.onnx", "--data", "photos/", "--resize", "huge", names="--resize is 'huge'")
    w.refused(2, "predict", "photos.onnx", "--data", "photos/", "--resize", "9", "--crop", "9", names="takes 8x8")
    for verb in (["inspect"], ["cover", "--criteria", "nc"], ["profile", "-o", "photos.profile"]):
        w.done(verb[0], "photos.onnx", "--data", "photos/", *verb[1:])
    info = w.done("data", "info", "photos/").out
    expect("sizes" in info and "colour" in info, info)


@check("preprocessing of photos belongs to the model")
def _(w):
    (w / "card.onnx").write_bytes(colour_network(8))
    (w / "card.toml").write_text('classes = ["red", "green", "blue"]\nresize = "12"\ncrop = 8\n')
    write_photos(w / "photos-card")
    result = w.done("predict", "card.onnx", "--data", "photos-card/")
    expect("resized to 8x8 (short side to 12, centre 8x8)" in result.err, result.err)
    expect("short side to 12" in w.done("inspect", "card.onnx").out, "inspect does not show it")
    (w / "card.toml").write_text('resize = "wide"\n')
    w.refused(3, "inspect", "card.onnx", names="'resize' is 'wide'")


@check("gray and colour become each other")
def _(w):
    (w / "gray.onnx").write_bytes(colour_network(8))
    write_png(w / "grays/a.png", 8, 8, [90], colours=0)
    result = w.done("predict", "gray.onnx", "--data", "grays/")
    expect("1 gray image is made RGB" in result.err, result.err)
    write_png(w / "colours/a.png", 28, 28, [90, 0, 0])
    result = w.done("predict", "one.onnx", "--data", "colours/")
    expect("1 colour image is made gray" in result.err and "resized" not in result.err, result.err)


@check("broken photos are counted, named and left out")
def _(w):
    (w / "skip.onnx").write_bytes(colour_network(8))
    write_photos(w / "some-broken")
    (w / "some-broken/red/kaputt.jpg").write_bytes(BLUE_JPEG[:-2])
    (w / "some-broken/green/leer.png").write_bytes(b"")
    data = ["--data", "some-broken/", "--classes", "red,green,blue"]
    w.refused(3, "predict", "skip.onnx", *data, names="2 of 8 files are broken: green/leer.png, red/kaputt.jpg")
    result = w.done("predict", "skip.onnx", *data, "--skip-broken")
    expect("warning: some-broken/: 2 of 8 files are broken and left out: green/leer.png" in result.err, result.err)
    expect_equal(len(result.out.splitlines()), 7, "lines of output")
    w.done("data", "info", "some-broken/", "--skip-broken")
    (w / "some-broken/green/leer.png").unlink()
    w.refused(3, "predict", "skip.onnx", *data, names="kaputt.jpg: the JPEG data ends early; --skip-broken leaves it out")


@check("classes are matched by name or said to be numbered")
def _(w):
    (w / "names.onnx").write_bytes(colour_network(8))
    write_photos(w / "named")
    result = w.done("predict", "names.onnx", "--data", "named/")
    expect("warning: named/: names.onnx does not name its 3 classes, so the 3 classes of the data are numbered in order" in
           result.err, result.err)
    (w / "names.txt").write_text("Red\nGREEN\nblue\n")
    for classes in ("red,green,blue", "names.txt"):
        expect("accuracy 100.00%" in w.done("predict", "names.onnx", "--data", "named/", "--classes", classes).err, classes)
    w.refused(3, "predict", "names.onnx", "--data", "named/", "--classes", "red,greeen,blue",
              names="has no class 'green' (nearest is 'greeen')")
    w.refused(3, "predict", "names.onnx", "--data", "named/", "--classes", "red,green", names="names 2 classes but has 3")
    write_png(w / "numbers/2/a.png", 8, 8, [0, 0, 200])
    expect("accuracy 100.00%" in w.done("predict", "names.onnx", "--data", "numbers/").err, "numbers are not taken")
    write_png(w / "words-of-csv/a.png", 8, 8, [0, 0, 200])
    (w / "words-of-csv/labels.csv").write_text("a.png,BLUE\n")
    expect("accuracy 100.00%" in w.done("predict", "names.onnx", "--data", "words-of-csv/", "--classes", "names.txt").err,
           "words of a table are not matched")


@check("photos are fuzzed, in albums too")
def _(w):
    (w / "albums.onnx").write_bytes(colour_network(8))
    (w / "albums.toml").write_text('classes = ["red", "green", "blue"]\n')
    write_photos(w / "classes-of-photos")
    budget = ["--guide", "random", "--iterations", 20, "--plain"]
    w.done("fuzz", "albums.onnx", "--data", "classes-of-photos/", *budget, "-o", "run-photos")
    w.done("replay", "run-photos")
    write_photos(w / "albums/photos")
    (w / "albums/photos/red").rename(w / "albums/Sommer")
    (w / "albums/photos/green").rename(w / "albums/Winter")
    w.refused(3, "fuzz", "albums.onnx", "--data", "albums/", *budget, "-o", "run-albums", names="no class 'Sommer', 'Winter'")
    w.done("fuzz", "albums.onnx", "--data", "albums/", *budget, "-o", "run-albums", "--labels", "model")


@check("memory does not grow with the number of inputs")
def _(w):
    def peak(*arguments):
        process = w.start(*arguments, "-q")
        _, status, usage = os.wait4(process.pid, 0)
        expect_equal(status, 0, process.stderr.read())
        return usage.ru_maxrss
    for verb in (["predict", "-o", "streamed.csv"], ["cover", "--criteria", "nc"], ["select", "--by", "nss,gini", "--top", 100]):
        few, many = (peak(*verb, "eight.onnx", "--data", f"digits:pool[:{n}]") for n in (18000, 38000))
        expect(many - few < 8000, f"{verb[0]}: {few} KiB for 18,000 images, {many} KiB for 20,000 more of 784 bytes")


@check("data list --json")
def _(w):
    entries = {e["name"]: e for e in json.loads(w.done("data", "list", "--json").out)}
    expect(entries["digits"]["ready"], "digits are not ready")
    expect_equal(entries["mnist"]["train"], 60000, "MNIST's size")


@check("data that were not fetched are named with the remedy")
def _(w):
    w.refused(3, "predict", "one.onnx", "--data", "cifar10:test", names="galvani data get cifar10")


@check("a TOML file beside the model changes its preprocessing")
def _(w):
    shutil.copy(w / "eight.onnx", w / "beside.onnx")
    (w / "beside.toml").write_text('mean = [0.25]\nstd = [0.5]\nclasses = ["n0","n1","n2","n3","n4","n5","n6","n7","n8","n9"]\n')
    info = json.loads(w.done("inspect", "beside.onnx", "--json").out)
    expect_equal((info["preprocess"]["mean"], info["preprocess"]["std"]), ([0.25], [0.5]), "mean and std")
    text = w.done("predict", "beside.onnx", *TEST).out
    expect(predictions(text) != predictions((w / "eight.csv").read_text()), "the predictions are the same")
    expect(",n7," in text, "the class names are not the file's")
    flags = json.loads(w.done("inspect", "beside.onnx", "--mean", "0.75", "--json").out)
    expect_equal(flags["preprocess"]["mean"], [0.75], "the mean a flag gives")


@check("an architecture is not a file: no TOML is read beside its name")
def _(w):
    (w / "lenet1.toml").write_text("this is not TOML")
    w.done("train", "lenet1", "--data", "digits:train[0:64]", "--test", "digits:test[0:64]", "--epochs", "0", "-o", "zero.onnx")


@check("wrong preprocessing is noticed")
def _(w):
    result = w.done("predict", "eight.onnx", *TEST, "--range", "0..0.01", "-o", "wrong.csv")
    expect("warning:" in result.err and "preprocessing" in result.err, f"no warning: {result.err!r}")
    expect("warning:" not in w.done("predict", "eight.onnx", *TEST, "-o", "right.csv").err, "a warning without a reason")


def write_colours(path, count, classes=10):
    """Images 3x28x28 of ten colours, with noise: red and blue matter as much as green."""
    levels = [(40, 90, 200), (200, 90, 40), (40, 200, 90), (200, 40, 90), (90, 40, 200), (90, 200, 40), (20, 20, 20), (220, 220, 220),
              (128, 60, 60), (60, 60, 128)]
    grain, pixels = noise(28 * 28 * 3 + count), bytearray()
    for i in range(count):
        for c, level in enumerate(levels[i % 10]):
            start = i + c * 28 * 28
            pixels += grain[start:start + 28 * 28].translate(bytes(max(0, level - 20 + v % 40) for v in range(256)))
    labels = [i % classes for i in range(count)]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", npy([count, 3, 28, 28], "|u1", bytes(pixels)))
        archive.writestr("labels.npy", npy([count], "<i8", struct.pack(f"<{count}q", *labels)))


def relabel(source, target, label_of):
    """The images of an .npz with other labels; those of None are left out."""
    with zipfile.ZipFile(source) as file:
        images, labels = file.read("images.npy"), file.read("labels.npy")
    start = 10 + struct.unpack_from("<H", images, 8)[0]
    labels = struct.unpack(f"<{(len(labels) - 10 - struct.unpack_from('<H', labels, 8)[0]) // 8}q", labels[10 + struct.unpack_from("<H", labels, 8)[0]:])
    size = (len(images) - start) // len(labels)
    kept = [(i, label_of(label)) for i, label in enumerate(labels) if label_of(label) is not None]
    shape = [int(n) for n in re.search(rb"\(([0-9, ]+)\)", images[:start])[1].decode().split(",") if n.strip()]
    with zipfile.ZipFile(target, "w") as file:
        pixels = b"".join(images[start + i * size:start + (i + 1) * size] for i, _ in kept)
        file.writestr("images.npy", npy([len(kept), *shape[1:]], "|u1", pixels))
        file.writestr("labels.npy", npy([len(kept)], "<i8", struct.pack(f"<{len(kept)}q", *(label for _, label in kept))))


def forget_card(path):
    """The model without what it says of itself: a key of that length which nobody reads."""
    content = path.read_bytes()
    expect(b"\x0a\x07galvani\x12" in content, "there is no card to forget")
    path.write_bytes(content.replace(b"\x0a\x07galvani\x12", b"\x0a\x07forgets\x12"))


def guessed(w, name, card, wanted):
    """A network trained on inputs as `card` has them, and made to forget it; --guess finds it again."""
    data = f"{name}.npz"
    write_colours(w / data, 400)
    start, model = f"{name}-start.onnx", f"{name}.onnx"
    w.done("train", "lenet5", "--data", data, "--epochs", 0, "-o", start)
    (w / start).with_suffix(".toml").write_text(card)
    w.done("train", start, "--data", data, "--epochs", 12, "--optimizer", "adam:lr=0.001", "--augment", "none", "-o", model)
    forget_card(w / model)
    command = ["inspect", model, "--data", data, "--guess"]
    found = json.loads(w.done(*command, "--json").out)
    best = found["presets"][0]
    expect(best["accuracy"] > 0.9, f"the best one is right for {best['accuracy']}")
    shown = {key: best["preprocess"].get(key) for key in wanted}
    expect_equal(shown, wanted, f"the preprocessing found among {[(p['name'], p['accuracy']) for p in found['presets']][:3]}")
    expect_equal(found["written"], None, "what was written without being asked")
    toml = (w / model).with_suffix(".toml")
    expect(not toml.exists(), "a file was written without being asked")
    text = w.done(*command, "--write").out
    expect(f"written to {name}.toml" in text and best["name"] in text, text)
    expect(json.loads(w.done("inspect", model, "--data", data, "--json").out)["accuracy"] > 0.9, "other verbs do not use it")
    before = toml.read_text()
    w.refused(2, *command, "--write", names="is not overwritten")
    expect_equal(toml.read_text(), before, "the file that was there")


add_checks("inspect --guess finds", [
    ("caffe's means in bgr", "caffe", 'range = [0, 255]\nmean = [103.939, 116.779, 123.68]\nchannels = "bgr"\n',
     {"range": [0, 255], "mean": [103.939, 116.779, 123.68], "channels": "bgr", "std": None}),
    ("0..255", "whole-bytes", "range = [0, 255]\n", {"range": [0, 255], "mean": None, "channels": "rgb", "std": None}),
], guessed)


@check("inspect --guess says what it cannot do, and others recommend it")
def _(w):
    shutil.copy(w / "eight.onnx", w / "forgot.onnx")
    forget_card(w / "forgot.onnx")
    w.refused(2, "inspect", "forgot.onnx", "--guess", names="--data")
    w.refused(2, "inspect", "forgot.onnx", "--write", names="--guess")
    result = w.done("predict", "forgot.onnx", *TEST, "--range", "0..0.01", "-o", "doubtful.csv")
    expect("`galvani inspect forgot.onnx --data 'digits:test[0:300]' --guess`" in result.err, result.err)
    w.done("data", "export", "digits:test[0:200]", "--to", "npz", "-o", "plain.npz")
    relabel(w / "plain.npz", w / "shifted.npz", lambda label: (label + 3) % 10)
    failed = w.run("inspect", "forgot.onnx", "--data", "shifted.npz", "--guess", "--write")
    expect_equal(failed.code, 3, "the exit code with labels of other classes")
    expect("more often than chance" in failed.err and not (w / "forgot.toml").exists(), failed.err)
    expect("--classes 3,4,5,6,7,8,9,0,1,2 names them in the network's order" in failed.out, failed.out)


@check("labels that mean other classes than the model's: a shift, another order")
def _(w):
    w.done("data", "export", "digits:test[0:300]", "--to", "npz", "-o", "right.npz")
    accuracy = json.loads(w.done("predict", "eight.onnx", "--data", "right.npz", "--json").out)["accuracy"]
    expect(accuracy > 0.7, f"the accuracy is {accuracy}")

    def mended(data, flag, *commands):
        """Every command names the flag, and with it the labels are right."""
        for command in [["predict", "eight.onnx", "--data", data], ["inspect", "eight.onnx", "--data", data], *commands]:
            said = w.done(*command)
            expect(f"{flag[0]} {flag[1]}" in said.err, said.err)
            expect("preprocessing" not in said.err, said.err)
        result = w.done("predict", "eight.onnx", "--data", data, *flag, "--json")
        expect(json.loads(result.out)["accuracy"] > 0.7, result.out[:300])
        expect("accuracy is" not in result.err, result.err)

    relabel(w / "right.npz", w / "less.npz", lambda label: label - 1 if label > 0 else None)
    fuzz = ["fuzz", "eight.onnx", "--data", "less.npz", "--iterations", 16, "--wrong-seeds", "keep", "-o"]
    mended("less.npz", ["--label-shift", "1"], [*fuzz, "shift-unseen"])
    # Without a single input that is right there is nothing to start from.
    w.refused(3, "fuzz", "eight.onnx", "--data", "less.npz[50:150]", "--iterations", 16, "-o", "no-seed", "-q", names="--label-shift 1 ")
    # One more than the model knows is refused with the remedy; with fewer labels it is found by trying.
    relabel(w / "right.npz", w / "one-based.npz", lambda label: label + 1)
    w.refused(3, "predict", "eight.onnx", "--data", "one-based.npz", names="--label-shift -1")
    expect(json.loads(w.done("predict", "eight.onnx", "--data", "one-based.npz", "--label-shift", "-1", "--json").out)["accuracy"] == accuracy,
           "labels from 1 are not those from 0")
    relabel(w / "right.npz", w / "from-one.npz", lambda label: label + 1 if label < 9 else None)
    mended("from-one.npz", ["--label-shift", "-1"])
    relabel(w / "right.npz", w / "turned.npz", lambda label: (label * 3 + 1) % 10)
    mended("turned.npz", ["--classes", ",".join(str((3 * c + 1) % 10) for c in range(10))])
    said = w.run("attack", "eight.onnx", "--data", "less.npz", "--method", "fgsm", "--eps", "0.1", "-o", "shift-attack")
    expect("--label-shift 1 " in said.err and "preprocessing" not in said.err, said.err)
    # A campaign goes on as it was begun, and a card says it, too.
    w.done(*fuzz, "shifted-labels", "--label-shift", "1")
    record = (w / "shifted-labels" / "campaign.toml").read_text()
    expect(re.search("label-shift = ['\"]1", record), record)
    w.done("fuzz", "-o", "shifted-labels", "--iterations", 32)
    shutil.copy(w / "eight.onnx", w / "background.onnx")
    forget_card(w / "background.onnx")
    found = w.done("inspect", "background.onnx", "--data", "less.npz", "--guess", "--write").out
    expect("the network's class is the label + 1" in found, found)
    expect("label_shift = 1" in (w / "background.toml").read_text(), (w / "background.toml").read_text())
    expect(json.loads(w.done("predict", "background.onnx", "--data", "less.npz", "--json").out)["accuracy"] > 0.7, "the card is not obeyed")
    w.refused(2, "predict", "eight.onnx", "--data", "less.npz", "--label-shift", "one", names="--label-shift is 'one'")
    w.refused(3, "predict", "eight.onnx", "--data", "less.npz", "--label-shift", "-1", names="has the label 0")


@check("unlabelled images have predictions and no accuracy")
def _(w):
    w.done("data", "export", "digits:test[0:6]", "-o", "labelled", "--to", "folder")
    (w / "plain").mkdir()
    for number, path in enumerate(sorted((w / "labelled").rglob("*.png"))):
        shutil.copy(path, w / "plain" / f"{number}.png")
    result = json.loads(w.done("predict", "eight.onnx", "--data", "./plain", "--json").out)
    expect_equal((result["images"], result["accuracy"]), (6, None), "images and accuracy")
    expect_equal({p["label"] for p in result["predictions"]}, {None}, "the labels")
    w.refused(3, "inspect", "eight.onnx", "--data", "./plain", names="without a label")


@check("a model that cannot be written is an error of the machine")
def _(w):
    w.refused(4, "predict", "one.onnx", *TEST, "-o", "no/such/folder/p.csv", names="no/such/folder/p.csv")


@check("results that cannot be written are an error")
def _(w):
    with open("/dev/full", "w") as full:
        code = subprocess.run([w.binary, "predict", "one.onnx", *TEST], cwd=w.folder, env=w.environment, stdout=full,
                              stderr=subprocess.DEVNULL, timeout=LIMIT).returncode
    expect_equal(code, 4, "the exit code with a full disk")


@check("a hostile class name reaches neither terminal nor JSON unchanged")
def _(w):
    shutil.copy(w / "eight.onnx", w / "hostile.onnx")
    names = ", ".join(f'"\\u001b[31m{i}"' for i in range(10))
    (w / "hostile.toml").write_text(f"classes = [{names}]\n")
    text = w.done("inspect", "hostile.onnx", *TEST).out
    expect("\x1b" not in text, "an escape sequence is printed")
    json.loads(w.done("inspect", "hostile.onnx", "--json").out)


add_checks("help", [("mutate", "mutate")], helps)


@check("mutate draws a sheet, the same every time, and lists what there is")
def _(w):
    arguments = ["mutate", "--data", "digits:test[:20]", "--mutators", "nsgen,fog,colour-transfer:w=2", "--json"]
    drawn = json.loads(w.done(*arguments, "-o", "sheet1.png").out)
    w.done(*arguments, "-o", "sheet2.png", "--threads", 1)
    sheet = (w / "sheet1.png").read_bytes()
    expect(sheet.startswith(b"\x89PNG"), "the sheet is no PNG file")
    expect_equal((w / "sheet2.png").read_bytes() == sheet, True, "the second sheet equal to the first")
    expect_equal([row["mutator"] for row in drawn["rows"]],
                 ["translation", "scale", "rotation", "contrast", "brightness", "blur", "fog", "colour-transfer"], "the rows")
    expect_equal(drawn["rows"][2]["rules"][0], {"rule": "rotation:angle=-30", "valid": True}, "the first rotation")
    listed = json.loads(w.done("mutate", "--list", "--json").out)
    expect_equal([c["name"] for c in listed["catalogues"]], ["nsgen", "deephunter", "nss", "style", "audio"], "the catalogues")
    expect("rotation" in w.done("mutate", "--list").out, "rotation is not listed")


@check("mutate explains what is wrong")
def _(w):
    data = ["--data", "digits:test[:3]"]
    w.refused(2, "mutate", names="--data")
    w.refused(2, "mutate", *data, "--mutators", "rotatoin", names="did you mean 'rotation'")
    w.refused(2, "mutate", *data, "--mutators", "blur:kind=median,size=4", names="odd size")
    w.refused(2, "mutate", *data, "--mutators", "style-net", names="model=")
    (w / "junk-style.onnx").write_bytes(noise(300))
    w.refused(3, "mutate", *data, "--mutators", "style-net:model=junk-style.onnx", names="junk-style.onnx")
    w.refused(4, "mutate", *data, "-o", "no/such/folder/x.png", names="no/such/folder")


# Coverage. The profile is one of the models because many checks read it.

topic("cover")


PROFILE = ["--profile", "eight.profile"]


@check("profile learns from training data", in_topic=MODELS)
def _(w):
    result = w.done("profile", "eight.onnx", "--data", "digits:train[0:600]", "-o", "eight.profile")
    for part in ("600 inputs", "ranges of 236 neurons", "reference traces of fc2 (84 wide)"):
        expect(part in result.out, f"no {part!r} in {result.out!r}")


def covered(w, criteria, *more):
    return json.loads(w.done("cover", "eight.onnx", *PROFILE, "--criteria", criteria, "--json", *more).out)


@check("cover --json")
def _(w):
    everything = "nc,nac,kmnc:k=1000,nbc,snac,tknc,tknp,cc,lsc,dsc,mdsc,cac,nlc,npc"
    found = covered(w, everything, *TEST)
    expect_equal([c["id"] for c in found["criteria"]], [s.split(":")[0] for s in everything.split(",")], "the criteria")
    by_id = {c["id"]: c for c in found["criteria"]}
    expect_equal(by_id["kmnc"]["spec"], "kmnc:k=1000", "the spec")
    expect_equal([t["tap"] for t in by_id["kmnc"]["taps"]], ["conv1", "conv2", "fc1", "fc2", "fc3"], "the taps")
    for name in ("nc", "kmnc", "nbc", "snac", "tknc", "cac", "npc"):
        expect(0 <= by_id[name]["score"] <= 1, f"{name} scores {by_id[name]['score']}")
    for criterion in found["criteria"]:
        curve = criterion["curve"]
        expect(curve[0] == [0, 0.0] and curve[-1][0] == 300, f"the curve of {criterion['id']} has other ends")
        expect(abs(curve[-1][1] - criterion["score"]) < 1e-9, f"the curve of {criterion['id']} ends elsewhere")
        if criterion["id"] != "nlc":
            expect(all(a[1] <= b[1] for a, b in zip(curve, curve[1:])), f"the curve of {criterion['id']} falls")


@check("cover: training data are within their own range")
def _(w):
    found = covered(w, "nbc,snac,kmnc", "--data", "digits:train[0:600]")
    expect_equal([c["covered"] for c in found["criteria"][:2]], [0, 0], "what lies beyond the range")


@check("cover gives the same with any number of threads")
def _(w):
    def scores(threads):
        found = covered(w, "nc,kmnc,tknp,cc,dsc,lsc,nlc,npc", *TEST, "--threads", threads)
        return [(c["covered"], c["taps"], c["curve"]) for c in found["criteria"]]
    expect_equal(scores(1), scores(3), "coverage")


@check("cover as text, CSV and SVG")
def _(w):
    out = w.done("cover", "eight.onnx", *TEST, *PROFILE, "--criteria", "kmnc,tknc,nlc", "--by-tap", "--by-class", "--csv",
                 "c.csv", "--plot", "c.svg").out
    for part in ("kmnc:k=100", "tknc:k=10", "300 inputs", "conv2", "neurons", "class"):
        expect(part in out, f"no {part!r} in {out}")
    rows = list(csv.DictReader((w / "c.csv").open()))
    expect_equal(len(rows), 3 * 6, "the rows of the CSV")
    total = next(r for r in rows if r["criterion"] == "kmnc" and not r["tap"])
    parts = [r for r in rows if r["criterion"] == "kmnc" and r["tap"]]
    expect_equal(sum(float(r["covered"]) for r in parts), float(total["covered"]), "the sum over taps")
    expect((w / "c.svg").read_text().count("<path") >= 6, "the picture lacks lines")


@check("cover --minimise keeps the coverage")
def _(w):
    all_of_it = covered(w, "kmnc:k=10,tknc,cc:distance=500", *TEST, "--minimise", "kept.npz")
    kept = covered(w, "kmnc:k=10,tknc,cc:distance=500", "--data", "kept.npz")
    expect_equal(kept["inputs"], all_of_it["minimised"]["kept"], "the number of images kept")
    expect(kept["inputs"] < 300, "nothing was left out")
    for a, b in zip(all_of_it["criteria"][:2], kept["criteria"]):
        expect_equal(b["covered"], a["covered"], f"the coverage of {a['id']}")
    w.done("cover", "eight.onnx", *TEST, "--criteria", "tknc", "--minimise", "kept.csv")
    rows = list(csv.DictReader((w / "kept.csv").open()))
    expect(0 < len(rows) < 300 and all(0 <= int(r["index"]) < 300 for r in rows), "indices make no sense")
    w.refused(2, "cover", "eight.onnx", *TEST, *PROFILE, "--criteria", "cac", "--minimise", "x.csv", names="cac")


@check("cover --compare")
def _(w):
    found = json.loads(w.done("cover", "eight.onnx", "--compare", "digits:test[0:100]", "digits:test[50:150]", *PROFILE,
                              "--criteria", "kmnc,nlc", "--json").out)
    kmnc = found["criteria"][0]
    expect(kmnc["only_a"] > 0 and kmnc["only_b"] > 0 and kmnc["together"] > max(kmnc["a"], kmnc["b"]), str(kmnc))
    same = json.loads(w.done("cover", "eight.onnx", "--compare", "digits:test[0:64]", "digits:test[0:64]", "--criteria",
                             "nc", "--json").out)["criteria"][0]
    expect_equal((same["only_a"], same["only_b"], same["adds"]), (0, 0, 0.0), "the difference of a thing to itself")


@check("cover: saved halves merge to the whole")
def _(w):
    # Halves at the bounds of micro-batches, so that both ways see the same bits.
    for name, part in (("a", "0:256"), ("b", "256:300")):
        covered(w, "kmnc,tknp,dsc", "--data", f"digits:test[{part}]", "--micro-batch", 32, "--save-state", name + ".state")
    whole = covered(w, "kmnc,tknp,dsc", *TEST, "--micro-batch", 32)
    merged = covered(w, "kmnc,tknp,dsc", "--data", "digits:test[0:32]", "--micro-batch", 32, "--state", "a.state", "--state",
                     "b.state")
    expect_equal([c["covered"] for c in merged["criteria"]], [c["covered"] for c in whole["criteria"]], "the coverage")
    w.refused(3, "cover", "eight.onnx", *TEST, *PROFILE, "--criteria", "kmnc:k=7", "--state", "a.state", names="a.state")


@check("a profile belongs to its model, taps and criteria")
def _(w):
    cover = ["cover", "eight.onnx", *TEST, "--criteria"]
    w.refused(3, "cover", "one.onnx", *TEST, "--criteria", "kmnc", *PROFILE, names="another model")
    w.refused(3, *cover, "kmnc", *PROFILE, "--taps", "fc*", names="other taps")
    w.refused(2, *cover, "dsc:tap=fc1", *PROFILE, names="make it again")
    w.done("data", "export", "digits:test[0:20]", "-o", "no-train")
    w.refused(2, "cover", "eight.onnx", "--data", "no-train/", "--criteria", "kmnc", names="--profile")
    w.refused(2, *cover, "kmn", names="did you mean 'kmnc'")
    w.refused(2, *cover, "nc:threshold=high", names="threshold")
    good = (w / "eight.profile").read_bytes()
    for name, damage in (("cut", good[:-100]), ("flipped", good[:5000] + bytes([good[5000] ^ 1]) + good[5001:]),
                         ("empty", b""), ("noise", noise(4000))):
        (w / f"{name}.profile").write_bytes(damage)
        w.refused(3, *cover, "kmnc", "--profile", f"{name}.profile", names=f"{name}.profile")


@check("trace writes what NumPy reads")
def _(w):
    w.done("trace", "eight.onnx", *TEST, "-o", "t.npz", "--scores", "dsa", *PROFILE)
    names = zipfile.ZipFile(w / "t.npz").namelist()
    for name in ("tap/conv1.npy", "tap/fc3.npy", "logits.npy", "predicted.npy", "labels.npy", "score/dsa.npy"):
        expect(name in names, f"no {name} among {names}")
    w.done("trace", "eight.onnx", "--data", "digits:test[0:3]", "--neurons", "unit", "--taps", "conv1", "-o", "u.npz")
    expect(b"(3, 4704)" in zipfile.ZipFile(w / "u.npz").read("tap/conv1.npy")[:200], "not 6x28x28 units")


# Campaigns.

@check("cover compares with a known set's training data by itself, and says so")
def _(w):
    told = w.done("cover", "one.onnx", *TEST, "--json")
    expect("compared with digits:train (--criteria, --train and --profile say otherwise)" in told.err, told.err)
    by_hand = w.done("cover", "one.onnx", *TEST, "--train", "digits:train", "--json")
    expect("compared with" not in by_hand.err, by_hand.err)
    scores = [[(c["spec"], c["score"]) for c in json.loads(result.out)["criteria"]] for result in (told, by_hand)]
    expect_equal(*scores, "the scores")
    expect("compared with" not in w.done("cover", "one.onnx", *TEST, "--criteria", "nc").err, "nc compares with nothing")
    expect("compared with digits:train" in w.done("cover", "one.onnx", "--compare", "digits:test[0:50]", "digits:test[50:90]").err, "nothing is said of A and B")


topic("fuzz")


@check("campaigns with the same mutants are said to be the same, whatever their guides")
def _(w):
    run = ["fuzz", "one.onnx", *TEST, "--scheduler", "sweep", "--seeds", 40, "-q"]
    for guide in ("random", "nlc"):
        w.done(*run, "--guide", guide, "--iterations", 32, "-o", f"same-{guide}")
        w.done(*run, "--guide", guide, "--iterations", 160, "-o", f"other-{guide}")
    note = "same-random and same-nlc tried the same mutants"
    expect(note in w.done("compare", "same-random", "same-nlc").out, "it is not said")
    expect("tried the same mutants" not in w.done("compare", "other-random", "other-nlc").out, "it is said of others")


@check("what a batch makes of --iterations is said, and a change that breaks is a gate")
def _(w):
    run = ["fuzz", "one.onnx", *TEST, "--guide", "random", "--plain"]
    told = w.done(*run, "--iterations", 20, "--json", "-o", "odd-20")
    expect_equal(json.loads(told.out)["iterations"], 32, "iterations")
    expect("--iterations 20: a batch has 16 picks" in told.err, told.err)
    even = w.done(*run, "--iterations", 20, "--batch", 20, "--json", "-o", "even-20")
    expect_equal(json.loads(even.out)["iterations"], 20, "iterations")
    expect("a batch has" not in even.err, even.err)
    shares = {step["change"]: step["share"] for step in json.loads(w.done("stats", "odd-20", "--json").out)["broken_by_change"]}
    expect(0 < shares[0.5] <= 1, f"nothing broke: {shares}")
    expect_equal(w.run("stats", "odd-20", "--fail-if", f"broken-at-50%>={shares[0.5]}").code, 1, "the gate that holds")
    expect_equal(w.run("stats", "odd-20", "--fail-if", f"broken-at-50%>{shares[0.5]}").code, 0, "the gate that does not")
    w.refused(2, "stats", "odd-20", "--fail-if", "broken-at-3%>0", names="broken-at-5%")


FUZZ = ["--data", "digits:test[0:300]", *PROFILE, "--seeds", 40, "--energy", 16, "--batch", 4, "--seed", 5]

add_checks("help", [(verb, verb) for verb in ("check", "fuzz", "replay", "stats", "export")], helps)


def fuzz(*more, folder, iterations=24, guide="kmnc"):
    return ["fuzz", "eight.onnx", *FUZZ, "--guide", guide, "--iterations", iterations, "-o", folder, *more]


def store(folder):
    """What a campaign stored, but for its clock."""
    connection = sqlite3.connect(f"file:{folder / 'campaign.db'}?mode=ro", uri=True)
    lines = [line for line in connection.iterdump() if not line.startswith('INSERT INTO "clock"')]
    connection.close()
    return lines


@check("fuzz, stats, replay, export")
def _(w):
    lines = [json.loads(line) for line in w.done(*fuzz("--json-lines", folder="all-run")).out.splitlines()]
    expect_equal([line["event"] for line in (lines[0], lines[-2], lines[-1])], ["started", "finished", "summary"], "the events")
    stats = json.loads(w.done("stats", "all-run", "--json").out)
    expect_equal({k: stats[k] for k in lines[-1] if k != "event"}, {k: v for k, v in lines[-1].items() if k != "event"}, "stats")
    expect_equal((stats["iterations"], stats["mutants"], stats["seeds"]), (24, 24 * 16, 40), "the work done")
    expect(stats["faults"] > 0, "no faults")
    expect_equal(len(stats["wrong_seeds"]), lines[0]["wrong_seeds"], "the inputs that were wrong from the start")
    expect(all(seed["label"] != seed["predicted"] for seed in stats["wrong_seeds"]), "a wrong seed is right")
    expect_equal(len(w.done("stats", "all-run", "--wrong-seeds").out.splitlines()), 4 + len(stats["wrong_seeds"]), "lines of wrong seeds")
    for key in ("mutators", "by_class"):
        expect_equal(sum(y["faults"] for y in stats[key]), stats["faults"], f"the faults of {key}")
    expect_equal(sum(c["faults"] for c in stats["confusion"]), stats["faults"], "the faults of all pairs")
    expect_equal(len(list((w / "all-run/faults").iterdir())), stats["distinct_faults"], "the files")
    for part in ("RFT", "OI", "rotation", "kmnc:k=100"):
        expect(part in w.done("stats", "all-run").out, f"no {part} in the text")
    replay = json.loads(w.done("replay", "all-run", "--json").out)
    expect_equal((replay["same_model"], replay["faults"], replay["fail"], replay["as_before"]),
                 (True, stats["faults"], stats["faults"], stats["faults"]), "the replay")
    other = json.loads(w.done("replay", "all-run", "--model", "one.onnx", "--json").out)
    expect(not other["same_model"] and 0 < other["transfer_rate"] <= 1, str(other))
    expect_equal([len(other["failing"]), len(other["failing"]) + len(other["fixed"])], [other["fail"], stats["faults"]], "the lists of faults")
    expect(other["fixed"] and replay["fixed"] == [] and len(replay["failing"]) == stats["faults"], str(other["fixed"]))
    w.done("replay", "all-run", "--model", "one.onnx", "--fixed", "--junit", "replay.xml")
    fixed = [line for line in w.done("replay", "all-run", "--model", "one.onnx", "--fixed").out.splitlines() if line.startswith("fixed: ")]
    with sqlite3.connect(f"file:{w / 'all-run' / 'campaign.db'}?mode=ro", uri=True) as database:
        files = dict(database.execute("SELECT id, file FROM faults"))
    expect_equal([re.match(r"fixed: (\S+): .* was taken for \d+$", line)[1] for line in fixed], [files[i] for i in other["fixed"]], "what is fixed")
    cases = xml.etree.ElementTree.parse(w / "replay.xml").getroot().findall(".//testcase")
    expect_equal([int(case.get("name").split()[1]) for case in cases[1:] if case.find("failure") is not None], other["failing"], "the tests that fail")
    w.refused(2, "replay", "all-run", "--fixed", names="--model")
    w.done("export", "all-run", "--to", "csv", "-o", "faults.csv")
    rows = list(csv.DictReader((w / "faults.csv").open()))
    expect_equal(len(rows), stats["faults"], "the exported rows")
    expect(all(row["lineage"].count(" | ") + 1 == int(row["steps"]) for row in rows), "lineages have other lengths")
    for form, target in (("npz", "faults.npz"), ("folder", "faults-folder")):
        w.done("export", "all-run", "--to", form, "-o", target)
        said = json.loads(w.done("predict", "eight.onnx", "--data", f"./{target}", "--json").out)
        expect_equal((said["images"], said["accuracy"]), (stats["faults"], 0), f"images of the {form} and accuracy on them")
    w.done("export", "all-run", "--kept", "--to", "csv", "-o", "kept.csv")
    kept = list(csv.DictReader((w / "kept.csv").open()))
    expect_equal((len(kept), {row["kept"] for row in kept}), (stats["kept_faults"], {"1"}), "the kept faults")
    w.done("export", "all-run", "--what", "outputs", "--distinct", "--to", "npz", "-o", "outputs.npz")
    w.refused(4, "export", "all-run", "--to", "csv", "-o", "no/such/folder/f.csv", names="no/such/folder")
    # A fault's file that changed is noticed.
    name = rows[0]["file"]
    (w / "all-run" / name).write_bytes((w / "all-run" / rows[1]["file"]).read_bytes() if rows[0]["sha256"] != rows[1]["sha256"]
                                      else b"")
    expect_equal(w.run("replay", "all-run").code, 1, "the exit code of a replay with a changed file")
    (w / "all-run" / name).write_bytes((w / "all-run" / name).read_bytes()[:60])
    w.refused(3, "export", "all-run", "--to", "npz", "-o", "damaged.npz", names=name)
    (w / "all-run" / name).unlink()
    result = w.run("replay", "all-run")
    expect(result.code == 1 and name in result.out, f"a missing file is not named: {result}")


@check("fuzz: files of the first faults, all from the store")
def _(w):
    w.done(*fuzz(folder="many-files"))
    said = w.done(*fuzz("--keep-files", 9, folder="few-files")).out
    many, few = (json.loads(w.done("stats", f"{name}-files", "--json").out) for name in ("many", "few"))
    expect_equal(few["faults"], many["faults"], "the faults")
    expect_equal(len(list((w / "few-files/faults").iterdir())), 9, "the files")
    expect(f"files of 9 of {few['distinct_faults']:,} distinct faults" in said, said)
    for verb in (["replay", "few-files"], ["check", "few-files"], ["report", "few-files", "--fail-if", "bad-files>0"], ["faults", "few-files", "--distinct", "--cluster"]):
        w.done(*verb)
    for name in ("many", "few"):
        w.done("export", f"{name}-files", "--to", "npz", "-o", f"{name}-files.npz")
    with zipfile.ZipFile(w / "many-files.npz") as one, zipfile.ZipFile(w / "few-files.npz") as other:
        expect_equal([one.read(name) == other.read(name) for name in one.namelist()], [True] * len(one.namelist()), "what is exported")
    w.done("fuzz", "-o", "few-files", "--iterations", 40)
    expect_equal(len(list((w / "few-files/faults").iterdir())), 9, "the files of a campaign that went on")
    w.refused(2, "fuzz", "-o", "few-files", "--keep-files", 3, names="--keep-files is settled")


@check("fuzz goes on where it stopped")
def _(w):
    w.done(*fuzz(folder="at-once", iterations=40))
    w.done(*fuzz(folder="in-parts", iterations=12))
    again = [json.loads(line) for line in w.done(*fuzz("--json-lines", "--threads", 1, folder="in-parts", iterations=40)).out.splitlines()]
    expect_equal((again[0]["resumed"], again[0]["iterations"]), (True, 12), "the start of the second part")
    expect_equal(store(w / "in-parts") == store(w / "at-once"), True, "the store equal to that of one go")
    w.done(*fuzz(folder="by-name", iterations=12))
    w.done("fuzz", "-o", "by-name", "--iterations", 40)
    expect(store(w / "by-name") == store(w / "at-once"), "going on by the folder's name leads elsewhere")
    w.refused(2, "fuzz", "-o", "by-name", "--energy", 3, names="--energy is settled")
    w.refused(2, "fuzz", "-o", "no-campaign", names="name a model")
    w.refused(2, *fuzz("--alpha", 0.3, folder="at-once"), names="alpha=0.2,beta=0.4,snr=5,tries=50,exempt=none,validity=nsgen there and mutate:set=nsgen,alpha=0.3")
    w.refused(2, *fuzz(folder="at-once", guide="nc"), names="guide is kmnc:k=100 there and nc:")


@check("fuzz goes on with a campaign of the earlier format")
def _(w):
    with tarfile.open(pathlib.Path(__file__).parent.parent / "golden/campaign-v2.tar.gz") as stored:
        stored.extractall(w.folder)
    old = w / "campaign-v2/run"
    before = contents(old)
    stats = json.loads(w.done("stats", old, "--json").out)
    expect_equal((stats["iterations"], stats["faults"]), (12, len(json.loads(w.done("faults", old, "--most", 0, "--json").out)["faults"])), "what it holds")
    expect(stats["faults"] > 20, "there are few faults")
    w.done("check", old)
    w.done("report", old, "-o", "v2.html")
    expect_equal({k: v for k, v in contents(old).items() if not k.endswith(("-shm", "-wal"))}, before, "what reading leaves")
    command = ["fuzz", w / "campaign-v2/lenet1.onnx", "--data", "digits:test[0:200]", "--guide", "nc", "--seeds", 10, "--energy", 6,
               "--batch", 2, "--micro-batch", 8, "--plain"]
    result = w.run(*command, "--iterations", 40, "-o", old)
    if result.code == 4 and "computes other values here" in result.err:
        print("skipped: this processor computes other bits than the one the campaign began on")
        return
    expect_equal(result.code, 0, result.err)
    w.done(*command, "--unfused", "--scheduler", "decay", "--iterations", 40, "-o", "v3-of-v2")
    same = lambda folder: rows_of_store(folder, {"origin", "unrepeatable", "figures", "metadata", "passes", "source", "change", "chain"})
    expect_equal(same(old) == same(w / "v3-of-v2"), True, "the rows equal to those of one go")
    w.done("check", old)


def rows_of_store(folder, without):
    """Every row of every table but the clock's, without some columns and without the record's own values."""
    database = sqlite3.connect(f"file:{folder}/campaign.db?mode=ro", uri=True)
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    result = {}
    for table in tables:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[1] not in without]
        if table not in ("clock", "meta"):
            result[table] = database.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1").fetchall()
    return result


@check("fuzz alone: a folder, a guide and training data of its own, every seed once before any again")
def _(w):
    short = ["fuzz", "eight.onnx", "--data", "digits:test[0:120]", "--iterations", 48]
    result = w.done(*short)
    (folder,) = (w / "galvani-runs").iterdir()
    expect(re.fullmatch(r"eight-\d{8}-\d{6}", folder.name), folder.name)
    for _ in range(2):
        w.done("attack", "eight.onnx", "--data", "digits:test[0:4]", "--method", "fgsm", "--eps", "0.1", "-q")
    expect_equal(len(list((w / "galvani-runs").iterdir())), 3, "two that begin within a second have folders of their own")
    expect("compared with digits:train" in result.err, "what it compares with is not said")
    expect(re.match(r"eight.onnx gets \d+ of \d+ inputs right \(.*preprocessing: .*as stated", result.out.splitlines()[0]), result.out)
    stats = json.loads(w.done("stats", folder, "--json").out)
    expect_equal((stats["tried_seeds"], stats["broken_seeds"] <= 48), (48, True), "48 picks try 48 seeds")
    shares = [step["share"] for step in stats["broken_by_change"]]
    expect(shares == sorted(shares) and shares[-1] <= stats["broken_share"], "a larger change breaks no less")
    w.done("fuzz", "-o", folder, "--iterations", 160, "-q")
    again = json.loads(w.done("stats", folder, "--json").out)
    expect_equal(again["tried_seeds"], again["seeds"], "all are tried in the end")
    listed = json.loads(w.done("faults", folder, "--json").out)["faults"]
    expect_equal(len({f["seed"] for f in listed}), min(len(listed), again["broken_seeds"]), "seeds among the first faults")
    expect_equal(w.run("stats", folder, "--fail-if", "broken-seeds>100%").code, 0, "no more than all")
    expect_equal(w.run("stats", folder, "--fail-if", "broken-seeds>0.1%").code, 1, "a share as a gate")
    w.done("data", "export", "digits:test[0:60]", "-o", "photos")
    (w / "photos/labels.csv").unlink()
    w.refused(3, *short[:2], "--data", "photos", "-q", "-o", "x", names="--labels model")
    result = w.done(*short[:2], "--data", "photos", "--labels", "model", "--iterations", 8, "-o", "own-labels")
    expect("guide nlc, which needs no training data" in result.err, "the guide is not said")
    elsewhere = w / "elsewhere"
    elsewhere.mkdir()
    here = subprocess.run([w.binary, "fuzz", "-o", "../own-labels", "--iterations", "16", "-q"], cwd=elsewhere, env=w.environment,
                          capture_output=True, text=True, timeout=LIMIT)
    expect_equal(here.returncode, 0, here.stderr)
    w.refused(2, *short[:2], "--data", "photos", "--labels", "model", "--generator", "mutate:set=contrast,alpha=0,beta=0", "--iterations", 8, "-q", "-o", "nothing",
              names="nothing was tested")


@check("fuzz by methods and other generators")
def _(w):
    listed = w.done("fuzz", "--list").out
    for name in ("deephunter", "dh-d", "dh-n", "nlc", "random", "mutate", "noise", "kmnc", "decay"):
        expect(re.search(rf"\b{name}\b", listed), f"{name} is not listed")
    w.refused(2, *fuzz("--method", "deephunt", folder="m"), names="did you mean 'deephunter'")
    base = ["fuzz", "eight.onnx", *FUZZ, "--iterations", 8]
    w.done(*base, "--method", "dh-n", "-o", "by-dh-n")
    drawn = {m["name"] for m in json.loads(w.done("stats", "by-dh-n", "--json").out)["mutators"]}
    expect(drawn and drawn <= {"translation", "scale", "shear", "rotation", "blur"}, str(drawn))
    # As its authors run it: what the training sample covers counts as covered, and wrong seeds are seeds.
    w.refused(2, *base, "--method", "nlc", "-o", "by-nlc", names="--train")
    base = [argument for argument in base if argument not in PROFILE] + ["--train", "digits:train[0:600]"]
    w.done(*base, "--method", "nlc", "-o", "by-nlc")
    w.done(*base, "--guide", "nlc", "-o", "by-guide-nlc")
    of = lambda folder: json.loads(w.done("stats", folder, "--json").out)
    expect(of("by-nlc")["covered"] > of("by-guide-nlc")["covered"], "the training sample covers nothing")
    w.done(*[16 if argument == 8 else argument for argument in base], "--method", "nlc", "-o", "by-nlc")
    w.done("check", "by-nlc")
    # Noise is the control of attacks; its faults are faults when read back.
    w.done(*base, "--generator", "noise:eps=128/255", "--guide", "random", "-o", "noisy")
    noisy = of("noisy")
    expect_equal([m["name"] for m in noisy["mutators"]], ["noise"], "the kinds")
    found = json.loads(w.done("faults", "noisy", "--json").out)["faults"]
    expect(found and all(0 < f["remarks"]["figures"]["linf"] <= 128 / 255 for f in found), "what the generator says of faults is not told")
    expect_equal(noisy["outputs"], noisy["valid"], "what random keeps")
    w.done("check", "noisy")
    w.done("replay", "noisy")
    w.refused(2, *base, "--generator", "noise", "--mutators", "blur", "-o", "m", names="noise: has no option 'set'")
    w.refused(2, *base, "--generator", "noise:eps=1/1000", "-o", "m", names="less than one step")


DIFFERENTIAL = ["--data", "digits:test[0:120]", "--seed", 3, "--seeds", 48, "--iterations", 48]


@check("fuzz by models that differ")
def _(w):
    listed = w.done("fuzz", "--list").out
    for name in ("deepxplore", "dlfuzz"):
        expect(len(re.findall(rf"\b{name}\b", listed)) >= 2, f"{name} is not listed as method and generator")
    command = ["fuzz", "eight.onnx", *DIFFERENTIAL, "--method", "deepxplore", "--with", "one.onnx", "--generator", "deepxplore:step=40/255"]
    found = json.loads(w.done(*command, "-o", "explored", "--json").out)
    expect(found["faults"] > 0, "no model was led away")
    faults = json.loads(w.done("faults", "explored", "--most", 0, "--json").out)["faults"]
    for fault in faults:
        figures = fault["remarks"]["figures"]
        expect(1 <= figures["steps"] <= 50 and figures["differ"] >= 1 and figures["linf"] > 0, str(figures))
        expect(fault["lineage"][-1].split(":")[0] in ("light", "occl", "blackout"), str(fault["lineage"]))
    # What fools the one model and not the other.
    split = json.loads(w.done("replay", "explored", "--model", "one.onnx", "--json").out)
    expect(split["as_before"] < len(faults), "both models are fooled alike")
    w.done(*command, "-o", "explored-3", "--threads", 3)
    expect_equal(store(w / "explored-3"), store(w / "explored"), "the store on other threads")
    w.done("check", "explored")
    w.done("replay", "explored")
    fuzzed = json.loads(w.done("fuzz", "eight.onnx", *DIFFERENTIAL, "--method", "dlfuzz", "-o", "dl", "--json").out)
    expect(fuzzed["broken_seeds"] > 20, f"dlfuzz broke only {fuzzed['broken_seeds']} seeds")
    for strategy in ("seldom", "(weights,near)"):
        w.done("fuzz", "eight.onnx", *DIFFERENTIAL, "--method", "dlfuzz", "--generator", f"dlfuzz:strategy={strategy}", "-o", "dl-" + strategy)
    w.done("check", "dl")


@check("fuzz by models that differ is interrupted and goes on from another folder")
def _(w):
    command = ["fuzz", "eight.onnx", *DIFFERENTIAL[:-1], 20, "--method", "deepxplore", "--with", "one.onnx", "--batch", 4]
    w.done(*command, "-o", "whole-explored")
    process = w.start(*command, "-o", "cut-explored", "--plain")
    while not (w / "cut-explored" / "campaign.toml").exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate()
    expect(process.returncode in (0, 130), f"exit code {process.returncode}")
    (w / "far-away").mkdir()
    again = subprocess.run([w.binary, "fuzz", "-o", "../cut-explored", "--iterations", "20"], cwd=w / "far-away", env=w.environment,
                           capture_output=True, text=True, timeout=LIMIT)
    expect_equal(again.returncode, 0, again.stderr)
    expect_equal(store(w / "cut-explored"), store(w / "whole-explored"), "the store")
    # Another model under the same name.
    shutil.copy(w / "one.onnx", w / "twin.onnx")
    twin = ["fuzz", "eight.onnx", *DIFFERENTIAL[:-1], 12, "--method", "deepxplore", "--with", "twin.onnx"]
    w.done(*twin, "-o", "with-twin")
    shutil.copy(w / "eight.onnx", w / "twin.onnx")
    w.refused(2, *twin, "-o", "with-twin", names="a file of the generator has another content")
    for arguments, code, words in ((["deepxplore"], 2, "--with"), (["deepxplore", "--with", "nothing.onnx"], 3, "nothing.onnx"),
                                   (["dlfuzz", "--with", "one.onnx"], 2, "has no option 'with'"),
                                   (["deepxplore", "--with", "one.csv"], 3, "one.csv")):
        w.refused(code, "fuzz", "eight.onnx", *DIFFERENTIAL, "--method", *arguments, "-o", "no", names=words)
        expect_equal(list((w / "no").glob("*")), [], "what a refused campaign leaves")


@check("fuzz with every guide, scheduler and budget")
def _(w):
    for guide, more in (("random", ["--scheduler", "newest"]), ("deephunter:group=d", ["--scheduler", "coverage"]),
                        ("nlc", ["--scheduler", "uniform"]), ("tknc", ["--reset-when-full", "--outputs", 5])):
        folder = "guide-" + guide.split(":")[0]
        w.done(*fuzz(*more, folder=folder, guide=guide, iterations=400 if "--outputs" in more else 8))
        stats = json.loads(w.done("stats", folder, "--json").out)
        if guide == "random":
            expect_equal(stats["outputs"], stats["valid"], "what random keeps")
        if guide.startswith("deephunter"):
            expect({m["name"] for m in stats["mutators"]} <= {"contrast", "brightness", "pixel-change", "noise"}, str(stats["mutators"]))
        if "--outputs" in more:
            expect(stats["outputs"] >= 5, f"only {stats['outputs']} outputs")
    expect("decay" in w.done("fuzz", "--list").out, "no schedulers are listed")
    w.done(*fuzz("--stop-at-kept", folder="one-a-pick", guide="random"))
    stats = json.loads(w.done("stats", "one-a-pick", "--json").out)
    expect_equal((stats["outputs"], stats["valid"]), (24, 24), "outputs and valid mutants with one output a pick")


@check("fuzz as a gate")
def _(w):
    result = w.run(*fuzz("--fail-if", "faults>0", "--fail-if", "rft>1", "--junit", "fuzz.xml", folder="gate"))
    expect_equal(result.code, 1, "the exit code")
    expect("failed: faults>0" in result.out, result.out)
    suite = xml.etree.ElementTree.parse(w / "fuzz.xml").getroot().find("testsuite")
    expect_equal((suite.get("tests"), suite.get("failures")), ("2", "1"), "tests and failures")
    expect("faults/00000001-" in suite.find("testcase/failure").text, "the failure names no file")
    w.done(*fuzz("--fail-if", "faults<0", folder="gate"))
    w.refused(2, *fuzz("--fail-if", "fault>0", folder="gate"), names="did you mean 'faults'")
    w.refused(2, *fuzz("--fail-if", "faults>nan", folder="gate"), names="is not a condition")


@check("conditions on the figures of every verb")
def _(w):
    w.done(*fuzz(folder="figures", guide="random"))
    w.done(*fuzz(folder="figures-2", guide="tknc"))
    predict = ["predict", "eight.onnx", *TEST, "-o", "figures.csv"]
    for holds, does_not, unknown, *command in (
            ("nc>0", "tknc:k=10>1", "inputs, dropped, nc, tknc:k=10, tknc:k=5", "cover", "eight.onnx", *TEST, "--criteria", "nc,tknc:k=10,tknc:k=5"),
            ("nc-adds<=0", "nc-a>1", "nc-a, nc-b, nc-together, nc-adds", "cover", "eight.onnx", "--compare", "digits:test[0:9]", "digits:test[0:9]", "--criteria", "nc"),
            ("accuracy>0.5", "accuracy<0.5", "images, not-a-number, accuracy", *predict),
            ("faults>0", "unreadable>0", "not-failing", "replay", "figures"),
            ("mr>0", "ass>1", "tests, misclassified, not-a-number, mr, ass, clever", "quality", "eight.onnx", "--tests", "figures",
             "--metrics", "mr,ass", "--clever", "--inputs", 1, "--batches", 3, "--samples", 4),
            ("faults-p>=0", "runs<2", "faults-a12", "compare", "figures", "figures-2"),
            ("damage==0", "damage>0", "known are damage", "check", "figures", "--no-lineages"),
            ("faults>0", "outputs<1", "rft-all", "stats", "figures"),
            ("images>0", "bad-files>0", "shown, images, bad-files", "report", "figures", "-o", "figures.html"),
            ("picked>0", "not-a-number>0", "inputs, picked, not-a-number", "select", "eight.onnx", *TEST, "--by", "gini"),
            ("gini-fdr-5>=0", "gini-apfd>1", "gini-fdr-20, gini-rauc", "select", "eight.onnx", *TEST, "--by", "gini", "--evaluate")):
        result = w.run(*command, "--fail-if", does_not, "--fail-if", holds, "--junit", "figures.xml")
        expect_equal(result.code, 1, f"the exit code of {command[0]}")
        suite = xml.etree.ElementTree.parse(w / "figures.xml").getroot().find("testsuite")
        # Faults of replay are tests of their own.
        conditions = [case.find("failure") is not None for case in suite.findall("testcase") if case.get("name").startswith("not ")]
        expect_equal((conditions, suite.get("failures")), ([False, True], "1"), f"tests and failures of {command[0]}")
        expect(f"failed: {holds} (it is " in result.out and does_not not in result.out, f"{command[0]} says {result.out[-300:]}")
        w.refused(2, *command, "--fail-if", "zebras>0", names=unknown)
    silent = w.run(*predict[:-2], "--fail-if", "accuracy>0.5")
    expect(silent.code == 1 and "failed" not in silent.out, "the table has a line that is none")
    w.refused(2, *predict, "--junit", "x.xml", names="--fail-if")


@check("fuzz on a full disk, in folders that cannot be written or hold something else")
def _(w):
    def little_space():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 * 10**6, 2 * 10**6))
    result = subprocess.run([w.binary, *map(str, fuzz(folder="full-disk", iterations=10**6))], cwd=w.folder, env=w.environment,
                            text=True, capture_output=True, timeout=LIMIT, preexec_fn=little_space)
    expect_equal(result.returncode, 4, "the exit code on a full disk")
    expect(len(result.stderr.splitlines()) == 1 and "full-disk/" in result.stderr, f"not one sentence: {result.stderr!r}")
    done = json.loads(w.done("stats", "full-disk", "--json").out)["iterations"]
    w.done(*fuzz(folder="full-disk", iterations=done + 8))
    w.done(*fuzz(folder="empty-disk", iterations=done + 8))
    expect_equal(store(w / "full-disk") == store(w / "empty-disk"), True, "the store equal to that of a disk with space")
    expect_equal(w.run("replay", "full-disk").code, 0, "the exit code of its replay")
    w.refused(4, *fuzz(folder="/proc/run"), names="/proc/run")
    (w / "thesis").mkdir()
    (w / "thesis/thesis.tex").write_text("years of work")
    w.refused(2, *fuzz(folder="thesis"), names="thesis.tex")
    expect_equal([p.name for p in (w / "thesis").iterdir()], ["thesis.tex"], "what is in the folder")
    w.refused(3, "stats", "thesis", names="campaign.toml")
    w.refused(3, "replay", "nowhere", names="nowhere")
    shutil.copytree(w / "empty-disk", w / "damaged")
    (w / "damaged/campaign.db").write_bytes(noise(30000))
    w.refused(3, "stats", "damaged", names="campaign.db")
    w.refused(2, "fuzz", "eight.onnx", *FUZZ[2:], "-o", "x", names="--data")
    w.done("data", "export", "digits:test[0:60]", "-o", "some-digits")
    w.refused(2, "fuzz", "eight.onnx", "--data", "some-digits", "--guide", "kmnc", "-o", "x", names="--profile")
    w.refused(2, *fuzz("--time", "soon", folder="x"), names="soon")


def contents(folder):
    """Every file below a folder, but for the process in the lock."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "campaign.lock"}


@check("fuzz deletes nothing that is not its own")
def _(w):
    mine = {"faults/cat.png": "an image", "faults/00000001-3-5.png": "an image", "state/texas.csv": "a table", ".profile": "a shell's",
            "profile/me.txt": "text", "campaign.lock": "a file of this name"}
    for number, (name, content) in enumerate(mine.items()):
        folder = w / f"user-{number}"
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(content)
        w.refused(2, *fuzz(folder=folder), names=name.split("/")[0])
        expect_equal((folder / name).read_text(), content, f"the user's {name}")
        expect_equal(len(list(folder.rglob("*"))), 1 + name.count("/"), f"what is beside the user's {name}")
    w.done(*fuzz(folder="lost-record", guide="random"))
    toml = (w / "lost-record/campaign.toml").read_bytes()
    (w / "lost-record/campaign.toml").unlink()
    before = contents(w / "lost-record")
    w.refused(2, *fuzz(folder="lost-record", guide="random"), names="without its campaign.toml")
    expect_equal(contents(w / "lost-record") == before, True, "the folder as it was")
    (w / "lost-record/campaign.toml").write_bytes(toml)
    w.done(*fuzz(folder="lost-record", guide="random", iterations=28))


@check("fuzz notices what it rests on before it writes")
def _(w):
    network, other = style_network(0.9, 0.05), style_network(0.8, 0.1)
    (w / "style.onnx").write_bytes(network)
    command = fuzz("--mutators", "style-net:model=style.onnx,output=0..1,nsgen", "--json-lines", folder="styled", guide="random",
                   iterations=10**9)
    process = w.start(*command)
    try:
        while json.loads(process.stdout.readline()).get("batches", 0) < 2:
            pass
    finally:
        process.kill()
        process.communicate()
    before = contents(w / "styled")
    (w / "style.onnx").write_bytes(other)
    w.refused(2, *command, names="a file of the generator has another content")
    now = contents(w / "styled")
    for name in ("campaign.db-shm", "campaign.db-wal"):
        before.pop(name, None), now.pop(name, None)
    expect_equal(now == before, True, "the folder as it was with another style network")
    (w / "style.onnx").write_bytes(network)
    done = json.loads(w.done("stats", "styled", "--json").out)["iterations"] + 8
    command = [done if argument == 10**9 else argument for argument in command]
    w.done(*command)
    w.done(*["undisturbed" if argument == "styled" else argument for argument in command])
    expect_equal(store(w / "styled") == store(w / "undisturbed"), True, "the store equal to that of an undisturbed campaign")
    expect_equal(contents(w / "styled/faults") == contents(w / "undisturbed/faults"), True, "the files equal to those")
    # The record itself.
    w.done(*fuzz(folder="edited"))
    toml = (w / "edited/campaign.toml").read_text()
    for old, new in (("energy = 16", "energy = 17"), ("seed = '5'", "seed = '6'"), ("channels-last = ", "channels-last = !")):
        value = toml.replace(old, new).replace("!true", "false").replace("!false", "true")
        expect(value != toml, f"no {old} in {toml}")
        (w / "edited/campaign.toml").write_text(value)
        w.refused(3, "fuzz", "-o", "edited", names="was edited")
        w.refused(3, "stats", "edited", names="was edited")
    (w / "edited/campaign.toml").write_text(toml)
    # What was learned of the training data.
    (w / "edited/profile").rename(w / "edited-profile")
    w.refused(2, "fuzz", "-o", "edited", "--iterations", 28, names="edited/profile: is missing")
    w.done("fuzz", "-o", "edited", "--iterations", 28, *PROFILE)
    expect_equal((w / "edited/profile").read_bytes() == (w / "edited-profile").read_bytes(), True, "the profile put back")
    w.done("fuzz", "-o", "edited", "--iterations", 32)


@check("fuzz notices a processor that computes otherwise")
def _(w):
    slow = dict(w.environment, ONEDNN_MAX_CPU_ISA="SSE41")

    def scores(environment, name):
        subprocess.run([w.binary, "trace", "eight.onnx", "--data", "digits:test[0:64]", "-o", name], cwd=w.folder, env=environment,
                       capture_output=True, check=True, timeout=LIMIT)
        return zipfile.ZipFile(w / name).read("logits.npy")
    if scores(w.environment, "here.npz") == scores(slow, "there.npz"):
        return  # a processor without anything better
    # To its end, with a snapshot, so that no batch is repeated.
    for guide in ("kmnc", "random"):
        w.done(*fuzz(folder=f"here-{guide}", guide=guide))
        rows = store(w / f"here-{guide}")
        for environment in (slow, dict(w.environment, ATEN_CPU_CAPABILITY="default")):
            result = subprocess.run([w.binary, "fuzz", "-o", f"here-{guide}", "--iterations", "40"], cwd=w.folder, env=environment,
                                    text=True, capture_output=True, timeout=LIMIT)
            expect_equal(result.returncode, 4, "the exit code")
            expect("the network computes other values here" in result.stderr, result.stderr)
        expect_equal(store(w / f"here-{guide}") == rows, True, "the rows as they were")


topic("campaigns")


@check("report and compare read campaigns")
def _(w):
    for seed in (1, 2):
        w.done("fuzz", "eight.onnx", "--data", "digits:test[0:200]", "--guide", "nc", "--seeds", 20, "--energy", 8, "--iterations", 32,
               "--seed", seed, "-o", f"compared-{seed}", "-q")
    w.done("report", "compared-1", "-o", "page.html")
    page = (w / "page.html").read_text()
    expect("<html" in page and "http://" not in page.replace("http://www.w3.org", ""), "not one page of its own")
    found = json.loads(w.done("compare", "compared-1", "compared-2", "--plot", "compared.svg", "--json").out)
    expect(found and (w / "compared.svg").read_text().startswith("<svg"), "no comparison")
    w.refused(3, "report", "eight.onnx", names="eight.onnx")
    w.refused(3, "compare", "compared-1", "no-such-run", names="no-such-run")


@check("report, compare: what they say")
def _(w):
    w.done(*fuzz(folder="paged", guide="random"))
    found = json.loads(w.done("report", "paged", "--most", 10, "--json").out)
    expect_equal((found["shown"], found["bad_files"]), (10, []), "the gallery")
    expect_equal(found["bytes"], (w / "paged/report.html").stat().st_size, "the page's size")
    expect_equal(w.run("report", "paged", "--most", "many").code, 2, "the exit code")
    w.refused(4, "report", "paged", "-o", "no/such/folder/page.html", names="no/such/folder")
    w.done(*fuzz(folder="paged-2", guide="tknc"))
    found = json.loads(w.done("compare", "paged", "paged-2", "--json").out)
    expect_equal([g["name"] for g in found["groups"]], ["random", "tknc:k=10"], "the groups")
    tests = {t["measure"]: t for t in found["tests"]}
    expect("coverage" not in tests and tests["faults"]["p"] == 1 and tests["faults"]["exact"], str(tests))
    out = w.done("compare", "paged", "paged-2", "--measure", "distinct,oi").out
    for part in ("OI", "A12", "no p can be below"):
        expect(part in out, f"no {part!r} in {out}")
    w.refused(2, "compare", "paged", names="two")
    w.refused(2, "compare", "paged", "paged/", names="twice")
    w.refused(2, "compare", "paged", "paged-2", "--by", "luck", names="luck")
    w.refused(2, "compare", "paged", "paged-2", "--measure", "luck", names="luck")


@check("compare: plain numbers")
def _(w):
    (w / "values.csv").write_text("measure,x,y\nlow,1,4\nlow,2,5\nlow,3,6\nhigh,9,1\nhigh,8,2\nhigh,7,\nhigh,,3\n")
    found = json.loads(w.done("compare", "--values", "values.csv", "--json").out)
    expect_equal([(t["measure"], round(t["p"], 9), round(t["holm_p"], 9), t["effect"]) for t in found["tests"]],
                 [("low", 0.1, 0.2, 0), ("high", 0.1, 0.2, 1)], "the tests")
    expect("high" in w.done("compare", "--values", "values.csv").out, "no table")
    expect_equal(w.run("compare", "--values", "values.csv", "--fail-if", "low-p<0.2").code, 1, "the exit code")
    w.refused(3, "compare", "--values", "values.csv", "--test", "wilcoxon", names="line 7")
    w.refused(3, "compare", "--values", "no.csv", names="no.csv")
    w.refused(2, "compare", "--values", "values.csv", "--test", "t", names="--test")
    w.refused(2, "compare", "--values", "values.csv", "some-run", names="not both")
    w.refused(2, "compare", names="--values")


@check("faults are listed, clustered and minimised")
def _(w):
    w.done(*fuzz(folder="sorted", guide="random", iterations=48))
    stats = json.loads(w.done("stats", "sorted", "--json").out)
    found = json.loads(w.done("faults", "sorted", "--most", 0, "--json").out)
    expect_equal((found["matching"], len(found["faults"])), (stats["faults"], stats["faults"]), "the number of faults")
    expect_equal(sorted((g["true"], g["predicted"], g["faults"]) for g in found["groups"]),
                 sorted((c["true"], c["predicted"], c["faults"]) for c in stats["confusion"]), "the groups")
    one = found["groups"][0]
    chosen = json.loads(w.done("faults", "sorted", "--true", one["true"], "--pred", one["predicted"], "--mutator",
                               one["mutator"], "--distinct", "--min-confidence", 0.3, "--json").out)["faults"]
    for fault in chosen:
        expect(fault["distinct"] and fault["confidence"] >= 0.3 and fault["lineage"][-1].startswith(one["mutator"]), str(fault))
    clusters = json.loads(w.done("faults", "sorted", "--cluster", "--json").out)
    expect_equal(sorted(i for c in clusters["clusters"] for i in c["faults"]), [f["id"] for f in found["faults"]],
                 "what is in the clusters")
    again = json.loads(w.done("faults", "sorted", "--cluster", "--threads", 1, "--json").out)
    expect_equal(again, clusters, "the clusters of one thread")
    small = json.loads(w.done("faults", "sorted", "--distinct", "--minimise", "--keep-class", "--most", 15, "--json").out)
    rows = list(csv.DictReader((w / "sorted/minimised/minimised.csv").open()))
    expect_equal(len(rows), 15, "the minimised faults")
    labels = {f["id"]: f["predicted"] for f in small["faults"]}
    (w / "only-images").mkdir()
    for row in rows:
        shutil.copy(w / "sorted/minimised" / row["file"], w / "only-images")
    verdicts = predictions(w.done("predict", "eight.onnx", "--data", "only-images").out)
    expect_equal([int(v["predicted"]) for v in verdicts], [labels[int(row["fault"])] for row in rows],
                 "the verdicts on what was minimised")
    expect((w / "sorted/minimised/sheet.png").read_bytes().startswith(b"\x89PNG"), "no contact sheet")
    w.refused(2, "faults", "sorted", "--true", "eleven", names="eleven")
    w.refused(2, "faults", "sorted", "--mutator", "blurr", names="did you mean 'blur'")
    w.refused(2, "faults", "sorted", "--cluster", "--minimise", names="--cluster")
    w.refused(3, "faults", "no-such-run", names="no-such-run")


@check("what is written into a campaign's folder follows no link")
def _(w):
    w.done(*fuzz(folder="linked", guide="random"))
    (w / "precious").mkdir()
    (w / "precious/sheet.png").write_text("mine")
    page = w / "linked/report.html"
    for target in ("../precious/sheet.png", "../precious/made.html", "report.html"):
        page.symlink_to(target)
        w.done("report", "linked")
        expect(not page.is_symlink() and page.read_text().startswith("<!doctype html>"), f"the link to {target} is not replaced")
        page.unlink()
    os.mkfifo(page)
    w.done("report", "linked")
    expect(page.is_file(), "the FIFO is not replaced")
    # Where the user says, a link is followed.
    (w / "my-page.html").symlink_to("precious/page.html")
    w.done("report", "linked", "-o", "my-page.html")
    expect((w / "my-page.html").is_symlink() and (w / "precious/page.html").is_file(), "the user's own link is not followed")
    (w / "precious/page.html").unlink()
    (w / "linked/minimised").symlink_to("../precious")
    w.refused(3, "faults", "linked", "--minimise", "--most", 1, names="linked/minimised: is a symbolic link")
    (w / "linked/minimised").unlink()
    (w / "linked/minimised").mkdir()
    (w / "linked/minimised/sheet.png").symlink_to("../../precious/sheet.png")
    w.done("faults", "linked", "--minimise", "--most", 1)
    expect(not (w / "linked/minimised/sheet.png").is_symlink(), "the link to a sheet is not replaced")
    expect_equal(contents(w / "precious"), {"sheet.png": b"mine"}, "what links led to")


@check("islands are merged whole or not at all, and what is in the way is left alone")
def _(w):
    for island in ("1/2", "2/2"):
        w.done(*fuzz("--island", island, folder="to-merge", iterations=16))
    merge = ["merge", "to-merge"]
    # Beside the output: a folder of the user's, also one whose marker is not ours, and a link.
    for number, make in enumerate((lambda path: path.mkdir(), lambda path: path.write_text("mine"),
                                   lambda path: ((w / "linked-to").mkdir(), path.symlink_to("linked-to")))):
        made = w / f"m{number}.merging"
        make(made)
        if made.is_dir() and not made.is_symlink():
            (made / "campaign.begun").write_text("mine")
            (made / "thesis.tex").write_text("mine")
        w.refused(2, *merge, "-o", f"m{number}", names=f"m{number}.merging: is in the way")
        expect(not (w / f"m{number}").exists() and made.exists(), "what was in the way is gone")
    expect_equal(contents(w / "m0.merging"), {"campaign.begun": b"mine", "thesis.tex": b"mine"}, "the user's files")
    # What a merge that was killed has left is cleared away: a copy of what it makes, with the marker of a beginning.
    w.done(*merge, "-o", "whole")
    marker = "galvani: a campaign begins in this folder (c1f7a3d0-5a54-4a0e-9b0b-3f6f0c8f2d11)\n"
    shutil.copytree(w / "whole", w / "m.merging")
    (w / "m.merging/campaign.begun").write_text(marker)
    (w / "m.merging/faults/mine.png").write_text("mine")
    w.refused(2, *merge, "-o", "m", names="it holds 'faults/mine.png'")
    (w / "m.merging/faults/mine.png").unlink()
    w.done(*merge, "-o", "m")
    expect_equal(store(w / "m") == store(w / "whole"), True, "the store equal to that of a merge that was not killed")
    expect_equal(contents(w / "m/faults") == contents(w / "whole/faults"), True, "the faults")
    # What check calls damaged.
    store_file = w / "to-merge/island-2/campaign.db"
    sound = store_file.read_bytes()
    for number, change in enumerate(("UPDATE faults SET confidence = 0.5 WHERE id = 1", "UPDATE seeds SET gain = gain + 1 WHERE id = 1",
                                     "DELETE FROM classes", "UPDATE picks SET count = count + 1", "UPDATE clock SET seconds = 9e999 WHERE batch = 1")):
        connection = sqlite3.connect(store_file)
        connection.execute(change)
        connection.commit()
        connection.close()
        expect_equal(w.run("check", "to-merge/island-2").code, 1, "the exit code of check")
        w.refused(3, *merge, "-o", f"damaged-{number}", names="galvani check to-merge/island-2")
        expect(not any(w.folder.glob(f"damaged-{number}*")), "something is left of the merge")
        store_file.write_bytes(sound)
    w.done("check", "to-merge")


@check("fuzz resumes no campaign whose first rows were changed")
def _(w):
    w.done(*fuzz(folder="first-rows", guide="random"))
    store_file = w / "first-rows/campaign.db"
    sound = store_file.read_bytes()
    for snapshot in (w / "first-rows/state").glob("snapshot-*"):
        snapshot.unlink()
    for change in ("DELETE FROM classes", "DELETE FROM classes WHERE label = 3", "DELETE FROM seeds", "DELETE FROM batches",
                   "UPDATE seeds SET label = 1000000000"):
        connection = sqlite3.connect(store_file)
        connection.execute(change)
        connection.commit()
        connection.close()
        said = w.refused(3, "fuzz", "-o", "first-rows", "--iterations", 28, names="first-rows/campaign.db: ")
        expect("damage" in said, said)
        store_file.write_bytes(sound)
    w.done("fuzz", "-o", "first-rows", "--iterations", 28)


# How a file nests: by the dots of a key, by tables, by brackets.
DEEP = {"dots": "a." * 400000 + "a = 1\n", "table": "[" + "a." * 400000 + "a]\n", "brackets": "a = " + "[" * 400000,
        "inline": "a = " + "{ a = " * 100000}


@check("files that nest without end are refused by whatever reads them")
def _(w):
    w.done(*fuzz(folder="deep", guide="random"))
    toml = (w / "deep/campaign.toml").read_text()
    shutil.copy(w / "eight.onnx", w / "deep.onnx")
    for text in DEEP.values():
        (w / "deep/campaign.toml").write_text(toml + text)
        for verb in (["stats", "deep"], ["check", "deep"], ["fuzz", "-o", "deep"], ["faults", "deep"], ["report", "deep"], ["replay", "deep"]):
            w.refused(3, *verb, names="campaign.toml: nests deeper than")
        (w / "deep.toml").write_text(text)
        w.refused(3, "inspect", "deep.onnx", names="deep.toml: nests deeper than")
    (w / "deep/campaign.toml").write_text(toml)
    w.done("describe", "eight.onnx", "--data", "digits:test[0:20]", "--layers", "conv1", "-o", "deep.json")
    (w / "deep.json").write_text('{"format": ' + "[" * 10**6)
    w.refused(3, "explain", "eight.onnx", "digits:test[0]", "--describe", "deep.json", names="deep.json")
    # Figures and metadata of faults are JSON in the store.
    connection = sqlite3.connect(w / "deep/campaign.db")
    connection.execute("UPDATE faults SET metadata = ?, figures = ?", ("[" * 10**6, "[" * 10**6))
    connection.commit()
    connection.close()
    for verb in (["faults", "deep", "--json"], ["stats", "deep"], ["report", "deep"], ["explain", "deep", "--fault", 1, "--describe", "deep.json"]):
        result = w.run(*verb)
        expect(result.code in (0, 3), f"exit {result.code} of {verb}: {result.err[-300:]}")


@check("check finds damage and says what is still good")
def _(w):
    def folder_of(name):
        return {path: path.read_bytes() for path in (w / name).rglob("*") if path.is_file()}

    def damage(name):
        before = folder_of(name)
        result = w.run("check", name, "--json")
        expect(folder_of(name) == before, "check changed the folder")
        expect_equal(result.code, 1, "the exit code")
        return json.loads(result.out)

    w.done(*fuzz(folder="checked"))
    before = folder_of("checked")
    sound = json.loads(w.done("check", "checked", "--json").out)
    expect(folder_of("checked") == before, "check changed the folder")
    stats = json.loads(w.done("stats", "checked", "--json").out)
    expect_equal((sound["sound"], sound["damage"], sound["notes"]), (True, [], []), "a sound campaign")
    expect_equal(sound["parts"]["faults"], {"all": stats["faults"], "intact": stats["faults"]}, "its faults")
    expect("checked: sound" in w.done("check", "checked").out, "the text says otherwise")

    rows = json.loads(w.done("faults", "checked", "--distinct", "--json").out)["faults"]
    first, second = (w / "checked" / rows[i]["file"] for i in (0, 1))
    good = first.read_bytes()
    first.write_bytes(second.read_bytes())
    found = damage("checked")
    expect(len(found["damage"]) >= 1 and rows[0]["file"] in found["damage"][0], str(found["damage"]))
    expect(found["parts"]["faults"]["intact"] < stats["faults"], "every fault is intact")
    text = w.run("check", "checked").out
    expect("checked: damaged" in text and f"of {stats['faults']} faults" in text.replace(",", ""), text)
    # Every verb that reads the image notices it, too.
    w.refused(3, "export", "checked", "--to", "npz", "-o", "x.npz", names="other pixels")
    w.refused(3, "faults", "checked", "--minimise", names="other pixels")
    w.refused(3, "faults", "checked", "--cluster", names="other pixels")
    expect_equal(w.run("replay", "checked").code, 1, "the exit code of replay")
    for replace, names in ((lambda: first.symlink_to(second), "symbolic link"), (lambda: os.mkfifo(first), "regular file")):
        first.unlink()
        replace()
        w.refused(3, "export", "checked", "--to", "npz", "-o", "x.npz", names=names)
        expect(names in json.loads(w.run("check", "checked", "--json").out)["damage"][0], f"check does not say {names}")
    first.unlink()
    first.write_bytes(good)
    w.done("check", "checked")

    # A store that names files elsewhere.
    shutil.copytree(w / "checked", w / "elsewhere")
    for name in ("/etc/hostname", "../checked/" + rows[0]["file"], "campaign.toml"):
        connection = sqlite3.connect(w / "elsewhere/campaign.db")
        connection.execute("UPDATE faults SET file = ? WHERE id = 1", (name,))
        connection.commit()
        connection.close()
        w.refused(3, "export", "elsewhere", "--to", "npz", "-o", "x.npz", names="no campaign writes")
        expect(any("no campaign writes" in line for line in damage("elsewhere")["damage"]), "check does not say so")

    # Killed, it is sound as far as it goes; going on seals it again.
    process = w.start(*fuzz("--json-lines", folder="check-killed", iterations=10**9))
    process.stdout.readline()
    time.sleep(1)
    w.refused(4, "check", "check-killed", names="a process works in this folder")
    process.kill()
    process.communicate()
    before = folder_of("check-killed")
    killed = json.loads(w.done("check", "check-killed", "--json").out)
    expect(folder_of("check-killed") == before, "check changed the folder")
    expect(killed["sound"] and "no seal" in killed["notes"][0], str(killed))
    w.done("fuzz", "-o", "check-killed", "--iterations", killed["parts"]["batches"]["all"] * 4)
    expect_equal(json.loads(w.done("check", "check-killed", "--json").out)["notes"], [], "the notes after going on")
    w.refused(3, "check", "eight.onnx", names="eight.onnx")
    w.refused(3, "check", "cache", names="campaign.toml")


topic("diff")


@check("diff: every flip is what two tables of predictions say")
def _(w):
    for name in ("one", "eight"):
        w.done("predict", f"{name}.onnx", *TEST, "-o", f"{name}-diff.csv")
    one, eight = ([(row["index"], row["label"], row["predicted"]) for row in csv.DictReader((w / f"{name}-diff.csv").open())] for name in ("one", "eight"))
    wanted = {"newly wrong": [], "newly right": [], "other": []}
    for (index, label, old), (_, _, new) in zip(one, eight):
        if old != new:
            wanted["newly wrong" if old == label else "newly right" if new == label else "other"].append(index)
    expect(wanted["newly wrong"] and wanted["newly right"], f"the models are too alike: {wanted}")
    command = ["diff", "one.onnx", "eight.onnx", *TEST]
    said = w.done(*command, "-o", "diff.csv", "--page", "diff.html", "--json").out
    found = json.loads(said)
    for flip, rows in wanted.items():
        expect_equal([f["input"] for f in found["flips_of_inputs"] if f["flip"] == flip], rows, f"the inputs that are {flip}")
    expect_equal([found["negative-flips"], found["positive-flips"]], [len(wanted["newly wrong"]), len(wanted["newly right"])], "the figures")
    expect_equal(found["flips"], sum(map(len, wanted.values())), "all flips")
    expect_equal([sum(c["newly_wrong"] for c in found["classes"]), sum(c["inputs"] for c in found["classes"])], [len(wanted["newly wrong"]), len(one)],
                 "the classes")
    rows = list(csv.DictReader((w / "diff.csv").open()))
    expect_equal([(r["input"], r["label"], r["old"]) for r in rows], one, "the old model's column")
    expect_equal([(r["input"], r["label"], r["new"]) for r in rows], eight, "the new model's column")
    page = (w / "diff.html").read_text()
    expect_equal(page.count("<img "), found["flips"], "the pictures")
    text = w.done(*command, "--most", 1).out
    expect(f"newly wrong  {wanted['newly wrong'][0]}: is " in text and "sign test" in text, text)
    expect_equal(json.loads(w.done(*command, "--json", "--threads", 3).out), found, "the same on other threads")
    same = json.loads(w.done("diff", "one.onnx", "one.onnx", *TEST, "--json").out)
    expect_equal([same["flips"], same["agreement"], same["p"]], [0, 1, 1], "a model and itself")


@check("diff: gates, and what it refuses")
def _(w):
    command = ["diff", "eight.onnx", "one.onnx", *TEST]
    expect_equal(w.run(*command, "--fail-if", "negative-flips>0", "--junit", "diff.xml").code, 1, "the exit code")
    failure = xml.etree.ElementTree.parse(w / "diff.xml").getroot().find(".//failure")
    expect("newly wrong" in failure.text, failure.text)
    # Every input is a test, too, whatever is asked; without a condition nothing fails but what is newly wrong.
    w.done(*command, "--junit", "inputs.xml", "-o", "inputs.csv")
    rows = list(csv.DictReader((w / "inputs.csv").open()))
    suite = xml.etree.ElementTree.parse(w / "inputs.xml").getroot().find("testsuite")
    kinds = {case.get("name"): [part.tag for part in case] for case in suite.findall("testcase")[1:]}
    wanted = {row["input"]: ["failure"] if row["label"] == row["old"] != row["new"] else ["skipped"] if row["new"] != row["label"] else [] for row in rows}
    expect_equal(kinds, wanted, "the tests")
    expect_equal([int(suite.get(name)) for name in ("tests", "failures", "skipped")],
                 [len(rows) + 1, 1 + list(wanted.values()).count(["failure"]), list(wanted.values()).count(["skipped"])], "their numbers")
    w.done(*command, "--fail-if", "negative-flips>99%")
    w.refused(2, *command, "--fail-if", "negative-flip>1%", names="did you mean 'negative-flips'")
    w.refused(3, "diff", "eight.onnx", "./no-such.onnx", *TEST, "-q", names="no-such.onnx")


topic("tasks")


def asked(w, name, *ends, output="answer"):
    """eight.onnx with more operators behind its scores, as one more output: protocol buffers one after the other are one.

    `ends`: names of operators, with a matrix, rows first, where they take one.
    """
    scores = json.loads(w.done("inspect", "eight.onnx", "--json").out)["outputs"][0]["name"]
    fields, last = [], scores
    for i, end in enumerate(ends):
        operator, matrix = end if isinstance(end, tuple) else (end, None)
        result = output if i == len(ends) - 1 else f"{output}{i}"
        inputs = [(1, last)]
        if matrix is not None:
            flat = [value for row in matrix for value in row]
            fields.append((5, message(*((1, n) for n in (len(matrix), len(matrix[0]))), (2, 1), (8, f"{output}-w{i}"),
                                      (9, struct.pack(f"<{len(flat)}f", *flat)))))
            inputs.append((1, f"{output}-w{i}"))
        fields.append((1, message(*inputs, (2, result), (4, operator))))
        last = result
    fields.append((12, message((1, output))))
    (w / name).write_bytes((w / "eight.onnx").read_bytes() + message((7, message(*fields))))
    forget_card(w / name)
    return name


# What is asked of digits: are they five or more, odd, with a closed curve?
LABELS_OF = [[int(d >= 5), d % 2, int(d in (0, 6, 8, 9))] for d in range(10)]
SMALL = ("Add", [[1e-6]])


def of_labels(columns):
    """From scores to a log-odds for each of these labels."""
    pairs = [[value for c in columns for value in (1 - LABELS_OF[d][c], LABELS_OF[d][c])] for d in range(10)]
    difference = [[(-1 if row % 2 == 0 else 1) if row // 2 == c else 0 for c in range(len(columns))] for row in range(2 * len(columns))]
    return ["Softmax", ("MatMul", pairs), SMALL, "Log", ("MatMul", difference)]


def digits_with(w, name, truth, kind="<f4"):
    """300 digits of the test split, with numbers made of their labels."""
    if not (w / "plain.npz").exists():
        w.done("data", "export", TEST[1], "--to", "npz", "-o", "plain.npz")
    with zipfile.ZipFile(w / "plain.npz") as archive:
        images, labels = archive.read("images.npy"), archive.read("labels.npy")
    digits = struct.unpack("<300q", labels[-2400:])
    rows = [truth(d) for d in digits]
    flat = [value for row in rows for value in row]
    shape = [300] if kind == "<i8" else [300, len(rows[0])]
    with zipfile.ZipFile(w / name, "w") as archive:
        archive.writestr("images.npy", images)
        archive.writestr("labels.npy", npy(shape, kind, struct.pack(f"<{len(flat)}{'q' if kind == '<i8' else 'f'}", *flat)))
    return digits


def tested(w, name, data, *options):
    """A campaign, seen by every verb that reads one: its faults."""
    run = f"{name}-run"
    found = w.done("fuzz", f"{name}.onnx", "--data", data, "--train", data, "--guide", "kmnc", "--iterations", 64, "--seeds", 30, *options, "-o", run, "--json")
    summary = json.loads(found.out)
    expect(0 < summary["faults"] < summary["valid"], f"{summary['faults']} faults of {summary['valid']}")
    w.done("check", run)
    again = json.loads(w.done("replay", run, "--json").out)
    expect_equal((again["fail"], again["as_before"]), (summary["faults"], summary["faults"]), "faults that fail again")
    w.done("report", run)
    expect((w / run / "report.html").stat().st_size > 10000, "the page is empty")
    expect_equal(w.run("fuzz", "-o", run, "--iterations", 80, "--fail-if", "faults>0", "-q").code, 1, "the gate's exit code")
    w.done("faults", run, "--minimise", "--most", 3, "-q")
    listed = json.loads(w.done("faults", run, "--most", 0, "--json").out)["faults"]
    return [fault for fault in listed if fault["distinct"]]


def answers_to(w, name, folder, *options):
    """What predict says of the images in a folder: its row for each."""
    rows = csv.DictReader(io.StringIO(w.done("predict", f"{name}.onnx", "--data", folder, *options).out))
    return {f"faults/{row['file']}": row for row in rows}


@check("binary: one probability, one score or two of them are yes or no, through a campaign")
def _(w):
    digits_with(w, "high.npz", lambda d: [int(d >= 5)], "<i8")
    asked(w, "binary.onnx", *of_labels([0]), "Sigmoid")
    asked(w, "logit.onnx", *of_labels([0]))
    asked(w, "two.onnx", "Softmax", ("MatMul", [[1 - row[0], row[0]] for row in LABELS_OF]), SMALL, "Log")
    second = ["--model-output", "answer"]
    accuracy = set()
    for name, options in (("binary", []), ("logit", ["--task", "binary"]), ("two", [])):
        shown = json.loads(w.done("inspect", f"{name}.onnx", "--data", "high.npz", *second, *options, "--json").out)
        expect_equal((shown["task"], shown["classes"]), ("classes" if name == "two" else "binary", 2), f"what {name} is asked")
        accuracy.add(shown["correct"])
        faults = tested(w, name, "high.npz", *second, *options)
        again = answers_to(w, name, f"{name}-run/faults", *second, *options)
        for fault in faults:
            expect_equal((again[fault["file"]]["predicted"], abs(float(again[fault["file"]]["confidence"]) - fault["confidence"]) < 1e-4),
                         (str(fault["predicted"]), True), f"{name}: {fault['file']}")
    expect(len(accuracy) == 1 and accuracy.pop() > 240, f"three ways to say the same: {accuracy}")
    # What is sure enough to be a yes is the user's to say.
    rows = [list(csv.DictReader(io.StringIO(w.done("predict", "binary.onnx", "--data", "high.npz", *second, *more).out))) for more in ([], ["--threshold", 0.9])]
    for before, after in zip(*rows):
        p = float(before["p1"])
        expect_equal((abs(float(after["p1"]) - p) < 1e-5, after["predicted"]), (True, str(int(p > 0.9))), "a verdict at 0.9")
    # Another network is asked what the campaign's was: of one score, is it a yes?
    other = json.loads(w.done("replay", "binary-run", "--model", "logit.onnx", *second, "--json").out)
    expect(not other["same_model"] and other["fail"] > 0.9 * other["faults"], f"{other['fail']} of {other['faults']}")
    robust = json.loads(w.done("attack", "binary.onnx", "--data", "high.npz", *second, "--method", "pgd:steps=5", "--eps", 0.1, "-o", "binary-pgd", "--json").out)
    expect(robust["levels"][-1]["accuracy"] < robust["clean"], str(robust))
    w.refused(3, "predict", "logit.onnx", "--data", "high.npz", *second, names="--task binary if that is a score of yes")


@check("multi-label: a fault is a label that flips")
def _(w):
    digits_with(w, "labels.npz", lambda d: LABELS_OF[d])
    asked(w, "labels.onnx", *of_labels([0, 1, 2]), "Sigmoid")
    second = ["--model-output", "answer"]
    said = w.done("inspect", "labels.onnx", "--data", "labels.npz", *second, "--json")
    expect("asked for labels (--task multi-label)" in said.err, said.err)
    figures = json.loads(said.out)["figures"]
    expect(figures["all-right"] > 0.75 and figures["accuracy"] > 0.85 and len(figures["outputs"]) == 3, str(figures))
    faults = tested(w, "labels", "labels.npz", *second)
    again = answers_to(w, "labels", "labels-run/faults", *second, "--task", "multi-label")
    digits = digits_with(w, "labels.npz", lambda d: LABELS_OF[d])
    with sqlite3.connect(w / "labels-run/campaign.db") as store:
        right = {seed: (LABELS_OF[digits[item]], [float(n) for n in reference.split(",")])
                 for seed, item, reference in store.execute("SELECT id, item, reference FROM seeds")}
    for fault in faults:
        row = [float(again[fault["file"]][f"answer {k}"]) for k in range(3)]
        wanted, stored = right[fault["seed"]]
        expect_equal(stored, [float(n) for n in wanted], "what is right of a seed")
        flipped = sum((value > 0.5) != bool(label) for value, label in zip(row, wanted))
        expect_equal((flipped > 0, flipped), (True, fault["remarks"]["figures"]["flipped"]), f"{fault['file']}: {row} and not {wanted}")
    attacked = json.loads(w.done("attack", "labels.onnx", "--data", "labels.npz", *second, "--method", "pgd:steps=5", "--eps", 0.1, "-o", "labels-pgd", "--json").out)
    expect(attacked["levels"][-1]["accuracy"] < attacked["clean"], str(attacked))
    w.refused(2, "attack", "labels.onnx", "--data", "labels.npz", *second, "--task", "multi-label", "--target", 1, "-q", "-o", "aimed", names="no classes to aim at")
    expect(not (w / "aimed").exists(), "a refused attack left a folder")
    w.refused(3, "predict", asked(w, "soft.onnx", "Softmax", ("MatMul", LABELS_OF), "Softmax"), "--data", "labels.npz", *second, names="ends in a softmax")


@check("regression: a fault is an answer beyond the tolerance, of the label or of the answer to the original")
def _(w):
    digits_with(w, "height.npz", lambda d: [d / 9])
    asked(w, "height.onnx", "Softmax", ("MatMul", [[d / 9] for d in range(10)]))
    second = ["--model-output", "answer", "--task", "regression"]
    figures = json.loads(w.done("inspect", "height.onnx", "--data", "height.npz", *second, "--tolerance", 0.2, "--json").out)["figures"]
    expect(figures["mean-error"] < 0.1 and figures["within"] > 0.8 and figures["outputs"][0]["explained"] > 0.5, str(figures))
    w.done("predict", "height.onnx", "--data", "height.npz", *second, "--fail-if", "mean-error>0.5", "-o", "height.csv")
    faults = tested(w, "height", "height.npz", *second, "--tolerance", 0.25)
    again = answers_to(w, "height", "height-run/faults", *second)
    with sqlite3.connect(w / "height-run/campaign.db") as store:
        right = {seed: float(reference) for seed, reference in store.execute("SELECT id, reference FROM seeds")}
    for fault in faults:
        answer, figures = float(again[fault["file"]]["answer 0"]), fault["remarks"]["figures"]
        expect(abs(answer - right[fault["seed"]]) > 0.25, f"{fault['file']}: {answer} is no deviation from {right[fault['seed']]}")
        expect(abs(figures["answer"] - answer) < 1e-4 and abs(figures["deviation"] - abs(answer - right[fault["seed"]])) < 1e-4, str(figures))
    # Nobody says what is right: the answer to the original does, and every input can be tried.
    own = w.done("fuzz", "height.onnx", "--data", TEST[1], *second, "--labels", "model", "--guide", "random", "--iterations", 16, "-o", "height-own")
    expect("held against its own answers" in own.out and "gets" not in own.out.splitlines()[0], own.out[:300])
    expect("deviates by more than" in own.err, own.err)
    attacked = json.loads(w.done("attack", "height.onnx", "--data", "height.npz", *second, "--tolerance", 0.25, "--method", "pgd:steps=5", "--eps", 0.1,
                                 "-o", "height-pgd", "--json").out)
    expect(attacked["levels"][-1]["accuracy"] < attacked["clean"], str(attacked))
    expect_equal(json.loads(w.done("replay", "height-run", "--model", "height.onnx", "--model-output", "answer", "--json").out)["same_model"], True, "the same model")
    w.refused(2, "replay", "height-run", "--model", "eight.onnx", "--task", "classes", names="that of height-run is regression")


@check("verbs that do not take a task say which it is")
def _(w):
    digits_with(w, "height.npz", lambda d: [d / 9])
    asked(w, "height.onnx", "Softmax", ("MatMul", [[d / 9] for d in range(10)]))
    model = ["height.onnx", "--model-output", "answer"]
    for verb in (["select", "--data", "height.npz", "--top", "5%"], ["describe", "--data", "height.npz"],
                 ["excite", "--data", "height.npz", "--change", "noise:eps=0.1", "-q"], ["features", "--data", "height.npz"],
                 ["quality", "--tests", "height.npz", "--originals", "height.npz"], ["fuzz", "--data", "height.npz", "--task", "regression", "--guide", "nsgen", "-q", "-o", "none"]):
        w.refused(3, verb[0], *model, *verb[1:], names="its task is")
    expect(not (w / "none").exists(), "a refused campaign left a folder")
    w.done("cover", *model, "--data", "height.npz", "--task", "regression", "--criteria", "nc")


@check("a network without layers is fuzzed and attacked, and has nothing to cover")
def _(w):
    (w / "bare.onnx").write_bytes(onnx_model([("Flatten", "x", "y")]))
    write_npz(w / "bare.npz", [8, 2, 2], [0] * 8)
    model = ["bare.onnx", "--data", "bare.npz"]
    w.done("fuzz", *model, "--labels", "model", "--guide", "random", "--iterations", 8, "-q", "-o", "bare-run")
    expect(json.loads(w.done("replay", "bare-run", "--json").out)["fail"] > 0, "no fault fails again")
    w.done("report", "bare-run")
    w.done("attack", *model, "--labels", "model", "--method", "fgsm", "--eps", 0.3, "-o", "bare-fgsm")
    for verb in (["cover", "--criteria", "nc"], ["fuzz", "--labels", "model", "--guide", "nc", "-o", "none"]):
        w.refused(2, verb[0], *model, *verb[1:], names="there are none to observe")
    w.refused(3, "trace", *model, "-o", "none.npy", names="has no layers whose neurons could be observed")


@check("numbers in labels.csv are answers, and folders with them are tested")
def _(w):
    w.done("data", "export", "digits:test[:20]", "--to", "folder", "-o", "angles")
    lines = (w / "angles/labels.csv").read_text().splitlines()
    (w / "angles/classes.txt").unlink(missing_ok=True)
    (w / "angles/labels.csv").write_text("file,angle\n" + "".join(f"{line.split(',')[0]},{int(line.split(',')[1]) / 9:.6f}\n" for line in lines[1:]))
    asked(w, "height.onnx", "Softmax", ("MatMul", [[d / 9] for d in range(10)]))
    rows = list(csv.DictReader(io.StringIO(w.done("predict", "height.onnx", "--data", "angles", "--model-output", "answer", "--task", "regression").out)))
    expect(len(rows) == 20 and all(abs(float(row["answer 0"]) - float(row["right 0"])) < 1 for row in rows), str(rows[:3]))


topic("quality")


def measured(w, *more):
    return json.loads(w.done("quality", *more, "--json").out)


def value(found, name):
    return next(metric["value"] for metric in found["metrics"] if metric["id"] == name)


@check("quality of a campaign: its own counts, and the faults it stored")
def _(w):
    w.done(*fuzz(folder="good", guide="random"))
    stats = json.loads(w.done("stats", "good", "--json").out)
    found = measured(w, "eight.onnx", "--tests", "good", "-o", "good.json", "--each", "good.csv")
    expect_equal(json.loads((w / "good.json").read_text()), found, "the file")
    with open(w / "good.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    expect_equal(len(rows), found["tests"], "lines of single tests")
    for name in ("ass", "afs"):
        mean = sum(float(row[name]) for row in rows) / len(rows)
        expect(abs(mean - value(found, name)) < 1e-6, f"{name}: the mean of the lines is {mean}")
    expect("mr" not in rows[0], "what the campaign counted is of no single test")
    expect_equal((found["tests"], found["misclassified"]), (stats["distinct_faults"], stats["distinct_faults"]), "tests and wrong ones")
    expect(abs(value(found, "mr") - stats["faults"] / stats["valid"]) < 1e-9, "the misclassification ratio")
    for metric in found["metrics"]:
        low, high = metric["interval"]
        expect(low <= metric["value"] <= high, f"the interval of {metric}")
    expect(0 < value(found, "ald0") <= 1 and value(found, "ass") < 1 and value(found, "acac") > value(found, "actc"), str(found))
    expect_equal(measured(w, "--tests", "good")["metrics"], found["metrics"], "the metrics of the campaign's own model")
    for threads in (1, 3):
        expect_equal(measured(w, "eight.onnx", "--tests", "good", "--threads", threads)["metrics"], found["metrics"], "on other threads")
    some = measured(w, "eight.onnx", "--tests", "good", "--most", 5, "--metrics", "acac")
    expect_equal((some["looked_at"], some["metrics"][0]["n"]), (5, 5), "how many were looked at")
    other = measured(w, "one.onnx", "--tests", "good", "--metrics", "mr,asr")
    expect_equal([metric["counted"] for metric in other["metrics"]], [False, False], "counts of another model")
    out = w.done("quality", "eight.onnx", "--tests", "good").out
    expect("95% interval" in out and "confidence in the wrong class" in out and "by its own counts" in out, out)


@check("quality of pairs")
def _(w):
    same = ["--tests", "digits:test[0:50]", "--originals", "digits:test[0:50]"]
    found = measured(w, "eight.onnx", *same, "--metrics", "mr,asr,ass,ald2")
    expect_equal(value(found, "asr"), 0, "the success of tests that are the originals")
    expect(value(found, "ass") in (None, 1) and value(found, "ald2") in (None, 0), str(found))
    found = measured(w, "eight.onnx", "--tests", "digits:test[1:51]", "--originals", "digits:test[0:50]")
    expect(value(found, "mr") > 0.5 and value(found, "ass") < 0.9, "neighbours in the data are not different")
    w.refused(2, "quality", "eight.onnx", "--tests", "digits:test[0:50]", "--originals", "digits:test[0:49]", names="in the same order")


@check("quality --clever")
def _(w):
    few = ["--clever", "--inputs", 2, "--batches", 5, "--samples", 10]
    w.done(*fuzz(folder="near", guide="random"))
    found = measured(w, "eight.onnx", "--tests", "near", "--metrics", "mr", *few)["clever"]
    expect_equal((len(found["inputs"]), found["compared"]), (2, 2), "the inputs, and those that tests were made of")
    for one in found["inputs"]:
        expect_equal(len(one["targets"]), 9, "the other classes")
        expect_equal(one["score"], min(t["score"] for t in one["targets"]), "the score")
        expect(all(t["bound"] >= t["largest_slope"] * (1 - 1e-9) for t in one["targets"]), "a bound below a slope that was seen")
    again = measured(w, "eight.onnx", "--tests", "near", "--metrics", "mr", *few, "--threads", 1)["clever"]
    expect_equal(again["inputs"], found["inputs"], "on another number of threads")
    for norm in ("l1", "linf"):
        data = measured(w, "eight.onnx", *TEST, *few, "--norm", norm, "--radius", 0.3, "--targets", 2)["clever"]
        expect(all(0 < one["score"] <= 0.3 and len(one["targets"]) == 2 for one in data["inputs"]), str(data)[:500])
    expect("nearest" in w.done("quality", "eight.onnx", *TEST, *few).out, "no table")


add_checks("quality refuses", [
    ("nothing to measure", "give --tests", "quality", "eight.onnx"),
    ("data without --clever", "--data is for --clever", "quality", "eight.onnx", *TEST),
    ("an option of --clever alone", "--norm is of --clever", "quality", "eight.onnx", "--tests", "x", "--norm", "l1"),
    ("an unknown norm", "--norm is 'l3'", "quality", "eight.onnx", *TEST, "--clever", "--norm", "l3"),
    ("a radius of nothing", "--radius is 0", "quality", "eight.onnx", *TEST, "--clever", "--radius", 0),
    ("a mistyped metric", "did you mean 'acac'", "quality", "eight.onnx", "--tests", "x", "--metrics", "acacc"),
    ("JPEG of no quality", "must be from 1 to 100", "quality", "eight.onnx", "--tests", "x", "--metrics", "ric:quality=0"),
    ("no model for pairs", "name a model", "quality", "--tests", "digits", "--originals", "digits"),
], misused)


topic("attacks")

ATTACK = ["--data", "digits:test[0:120]", "--seed", 3]


def attacked(w, *more):
    return json.loads(w.done("attack", "eight.onnx", *ATTACK, *more, "--json").out)


@check("attack: accuracy by radius, and a folder that every reader takes")
def _(w):
    found = attacked(w, "--method", "pgd:steps=10", "--eps", "0..4/255,0.2", "-o", "adv", "--plot", "curve.svg")
    levels = found["levels"]
    expect_equal([level["name"] for level in levels], ["0", "1/255", "2/255", "3/255", "4/255", "51/255"], "the levels")
    accuracies = [level["accuracy"] for level in levels]
    expect(accuracies == sorted(accuracies, reverse=True) and accuracies[0] == found["clean"] > accuracies[-1], str(accuracies))
    expect(all(level["low"] <= level["accuracy"] <= level["high"] for level in levels), "the intervals")
    for level in levels:
        expect(level["linf"]["mean"] <= (level["eps"] or 0) + 1e-9, f"beyond its radius: {level}")
        expect(level["broken"] <= (level["broken_before_rounding"] or 0) or level["eps"] == 0, "more after rounding than before")
    expect_equal(sum(c["broken"] for c in found["classes"]), levels[-1]["broken"], "the classes' sum")
    expect("<svg" in (w / "curve.svg").read_text(), "no curve")
    stats = json.loads(w.done("stats", "adv", "--json").out)
    expect_equal((stats["broken_seeds"], stats["tried_seeds"]), (levels[-1]["broken"], found["tried"]), "the folder's seeds")
    replay = json.loads(w.done("replay", "adv", "--json").out)
    expect_equal(replay["as_before"], levels[-1]["broken"], "the replay")
    for command in (["check", "adv"], ["faults", "adv"], ["report", "adv"], ["export", "adv", "--to", "csv", "-o", "adv.csv"],
                    ["quality", "eight.onnx", "--tests", "adv", "--metrics", "mr,ald2"]):
        w.done(*command)
    expect("Accuracy under attack" in (w / "adv" / "report.html").read_text(), "the page says nothing of the attack")
    again = json.loads(w.done("attack", "-o", "adv", "--json").out)
    expect_equal(again, dict(found, seconds=again["seconds"]), "what the finished folder says")
    for threads in (1, 3):
        other = attacked(w, "--method", "pgd:steps=10", "--eps", "0..4/255,0.2", "-o", f"adv-{threads}", "--threads", threads)
        expect_equal(store(w / f"adv-{threads}"), store(w / "adv"), "the store on other threads")
        expect_equal(other["levels"], levels, "the levels on other threads")
    w.refused(2, "attack", "eight.onnx", *ATTACK, "--eps", "0.1", "-o", "adv", names="generator")
    expect("robust" in w.done("attack", "eight.onnx", *ATTACK, "--method", "fgsm").out, "no table without -o")


@check("attack: the smallest change, and a class to reach")
def _(w):
    found = attacked(w, "--method", "deepfool", "--eps", "0.5,2", "-o", "near")
    expect_equal([level["name"] for level in found["levels"]], ["0", "0.5", "510/255", "any size"], "the levels")
    far = found["levels"][-1]
    expect(far["accuracy"] < 0.05 and far["eps"] is None, "DeepFool leaves much standing")
    expect(far["broken"] >= 0.97 * far["broken_before_rounding"], "rounding undoes it")
    for target in ("7", "next", "least", "random"):
        attacked(w, "--method", "bim", "--eps", 0.3, "--target", target, "-o", f"to-{target}")
        faults = json.loads(w.done("faults", f"to-{target}", "--most", 0, "--json").out)["faults"]
        expect(faults, f"nothing reaches {target}")
        for fault in faults:
            wanted = int(re.search("target=([0-9]+)", fault["lineage"][-1])[1])
            expect_equal(fault["predicted"], wanted, "the class that was reached")
            expect(wanted in ((7, 8) if target == "7" else range(10)) and wanted != fault["true"], f"{target} gives {wanted}")


@check("attack without labels")
def _(w):
    w.done("data", "export", "digits:test[0:6]", "-o", "digits-labelled")
    (w / "digits-bare").mkdir()
    for file in (w / "digits-labelled").rglob("*.png"):
        shutil.copy(file, w / "digits-bare" / file.name)
    w.refused(3, "attack", "eight.onnx", "--data", "digits-bare", "--method", "fgsm", "-o", "bare", names="--labels model")
    found = json.loads(w.done("attack", "eight.onnx", "--data", "digits-bare", "--method", "fgsm", "--labels", "model", "-o", "bare", "--json").out)
    expect_equal((found["clean"], found["tried"]), (1, 6), "what the model says of itself")
    w.done("attack", "-o", "bare")


@check("attack is interrupted and goes on")
def _(w):
    command = ["attack", "eight.onnx", *ATTACK, "--method", "square:queries=100", "--eps", 0.08, "--batch", 8]
    w.done(*command, "-o", "whole-attack")
    process = subprocess.Popen([w.binary, *map(str, command), "-o", "cut-attack"], cwd=w.folder, env=w.environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    while not (w / "cut-attack" / "campaign.toml").exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate()
    expect(process.returncode in (0, 130), f"exit code {process.returncode}")
    w.done("attack", "-o", "cut-attack")
    expect_equal(store(w / "cut-attack"), store(w / "whole-attack"), "the store")


add_checks("attack refuses", [
    ("no model", "name a model to attack", "attack"),
    ("no data", "--data is missing", "attack", "eight.onnx"),
    ("an unknown attack", "did you mean 'square'", "attack", "eight.onnx", *ATTACK, "--method", "sqare"),
    ("an eps below 0", "eps", "attack", "eight.onnx", *ATTACK, "--eps", "-1"),
    ("an eps that is no number", "eps", "attack", "eight.onnx", *ATTACK, "--eps", "much"),
    ("a range without steps", "0..16/255", "attack", "eight.onnx", *ATTACK, "--eps", "0..0.3"),
    ("an eps that changes nothing", "changes nothing", "attack", "eight.onnx", *ATTACK, "--eps", "0"),
    ("eps twice", "given twice", "attack", "eight.onnx", *ATTACK, "--method", "pgd:eps=0.1", "--eps", "0.2"),
    ("an unknown norm", "--norm is 'l7'", "attack", "eight.onnx", *ATTACK, "--norm", "l7"),
    ("a norm the attack has not", "norm", "attack", "eight.onnx", *ATTACK, "--method", "jsma", "--norm", "l2"),
    ("a class that does not exist", "no class 10", "attack", "eight.onnx", *ATTACK, "--target", "10"),
    ("a target that is no class", "must be any, next", "attack", "eight.onnx", *ATTACK, "--target", "cat"),
    ("an unknown figure", "known are clean, robust", "attack", "eight.onnx", *ATTACK, "--fail-if", "faults>0"),
], misused)


topic("numbers")

# Pixels so large that the scores of bright images overflow: a model that gives NaN for some inputs.
OVERFLOW = ["--range", "0..1.5e37"]


@check("scores that are not a number are faults of their own kind")
def _(w):
    run = ["fuzz", "eight.onnx", *FUZZ, *OVERFLOW, "--guide", "random", "--iterations", 24]
    lines = [json.loads(line) for line in w.done(*run, "-o", "nan-run", "--json-lines").out.splitlines()]
    count = lines[-1]["not_a_number"]
    expect(0 < count < lines[-1]["faults"], f"{count} of {lines[-1]['faults']} faults are not a number")
    expect_equal(lines[-2]["not_a_number"], count, "the number in the last event")
    stats = json.loads(w.done("stats", "nan-run", "--json").out)
    cells = [cell for cell in stats["confusion"] if cell["predicted"] == -1]
    expect_equal((sum(cell["faults"] for cell in cells), {cell["predicted_name"] for cell in cells}),
                 (count, {"not a number"}), "the faults of the confusion")
    expect_equal(stats["outputs"], stats["valid"] - count, "what random keeps")
    wrong = [seed for seed in stats["wrong_seeds"] if seed["predicted"] == -1]
    expect(wrong and all(seed["confidence"] == 0 for seed in wrong), "no seed without a verdict")
    for arguments in (["stats", "nan-run"], ["stats", "nan-run", "--wrong-seeds"], ["faults", "nan-run"]):
        expect("not a number" in w.done(*arguments).out, f"{' '.join(arguments)} does not say it")
    replay = json.loads(w.done("replay", "nan-run", "--json").out)
    expect_equal((replay["as_before"], replay["not_a_number"]), (stats["faults"], count), "the replay")
    quality = json.loads(w.done("quality", "--tests", "nan-run", "--most", 0, "--json").out)
    of = {metric["id"]: metric["n"] for metric in quality["metrics"]}
    expect_equal(of["ald0"] - of["acac"], quality["not_a_number"], "the tests without a confidence")
    expect(quality["not_a_number"] > 0, "none is counted")
    for name in ("nan", "not a number"):
        found = json.loads(w.done("faults", "nan-run", "--pred", name, "--most", 0, "--json").out)["faults"]
        expect_equal(len(found), count, "the listed faults")
        for fault in found:
            expect(re.fullmatch(r"faults/\d{8}-\d-nan\.png", fault["file"]) and not fault["kept"], str(fault))
    w.done("faults", "nan-run", "--cluster")
    small = json.loads(w.done("faults", "nan-run", "--pred", "nan", "--minimise", "--most", 3, "--json").out)["faults"]
    expect_equal([fault["minimised_predicted"] for fault in small], [-1] * 3, "the verdicts of what was minimised")
    w.done("report", "nan-run")
    expect('"not a number"' in (w / "nan-run/report.html").read_text(), "the page does not say it")
    w.done("export", "nan-run", "--to", "csv", "-o", "nan.csv")
    rows = [row for row in csv.DictReader((w / "nan.csv").open()) if row["predicted"] == "-1"]
    expect_equal((len(rows), {row["predicted_name"] for row in rows}), (count, {"not a number"}), "the exported rows")
    w.done("export", "nan-run", "--to", "npz", "-o", "nan.npz")
    predicted = zipfile.ZipFile(w / "nan.npz").read("predicted.npy")[-8 * stats["faults"]:]
    expect_equal(struct.unpack(f"<{stats['faults']}q", predicted).count(-1), count, "the exported verdicts")
    gate = w.run(*run, "-o", "nan-run", "--fail-if", "not-a-number>0", "--junit", "nan.xml")
    expect(gate.code == 1 and "not-a-number" in (w / "nan.xml").read_text(), "the gate does not see it")
    w.done("fuzz", "-o", "nan-run", "--iterations", 32)
    # The guide is never shown such mutants, so its coverage stays a number; the same in one go or two.
    for folder, parts in (("nan-kmnc", (24,)), ("nan-parts", (12, 24))):
        for iterations in parts:
            w.done("fuzz", "eight.onnx", *FUZZ[:2], *OVERFLOW, *FUZZ[4:], "--train", "digits:train[0:200]", "--taps", "fc3",
                   "--guide", "kmnc", "--iterations", iterations, "-o", folder)
    expect(store(w / "nan-kmnc") == store(w / "nan-parts"), "two parts lead elsewhere")
    compared = json.loads(w.done("compare", "nan-run", "nan-kmnc", "--json").out)
    expect(all(run["not-a-number"] > 0 for run in compared["runs"]), "the comparison does not count them")


@check("predict, inspect, cover and trace name scores that are not a number")
def _(w):
    model = ["eight.onnx", *TEST, *OVERFLOW]
    said = json.loads(w.done("predict", *model, "--json").out)
    unknown = [p for p in said["predictions"] if p["predicted"] == -1]
    expect(0 < len(unknown) < 300, f"{len(unknown)} predictions are not a number")
    expect_equal((said["not_a_number"], unknown[0]["name"], unknown[0]["probabilities"]),
                 (len(unknown), "not a number", None), "what predict says")
    result = w.done("predict", *model)
    rows = [row for row in csv.DictReader(io.StringIO(result.out)) if row["predicted"] == "-1"]
    expect_equal((len(rows), rows[0]["name"], rows[0]["confidence"], rows[0]["p3"]), (len(unknown), "not a number", "0", ""), "the CSV")
    expect(f"{len(unknown)} are not a number" in result.err, result.err)
    info = json.loads(w.done("inspect", *model, "--json").out)
    expect_equal((sum(info["not_a_number"]), info["correct"]),
                 (len(unknown), sum(p["predicted"] == p["label"] for p in said["predictions"])), "what inspect says")
    expect_equal(sum(map(sum, info["confusion"])) + len(unknown), 300, "the sum of the confusion table")
    expect("not a number" in w.done("inspect", *model).out, "the table has no column for them")
    covered = w.done("cover", *model, "--criteria", "nc,tknc,cc", "--taps", "fc3", "--json")
    found = json.loads(covered.out)
    # At the end of the range of numbers the order of a sum decides, which is another in a pass with taps.
    dropped = found["dropped"]
    expect(abs(dropped - len(unknown)) <= 2, f"{dropped} inputs are dropped, {len(unknown)} are not a number")
    expect_equal([c["dropped"] for c in found["criteria"]], [dropped] * 3, "dropped inputs")
    expect_equal(covered.err.count("NaN or infinite"), 1, "how often it is said")
    traced = w.done("trace", *model, "--taps", "fc3", "-o", "nan-traces.npz", "--json")
    expect_equal(json.loads(traced.out)["not_finite"], dropped, "what trace counts")
    expect_equal(traced.err.count("NaN or infinite"), 1, "how often it is said")


@check("fuzz on a terminal: a screen that is given back")
def _(w):
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as e:  # a chroot without /dev/pts
        print(f"skipped: {e}")
        return
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
    import terminal_svg
    command = ["env", "-C", str(w.folder), f"GALVANI_CACHE={w.folder}/cache", w.binary]
    screen, everything, code = terminal_svg.run(command + [str(a) for a in fuzz(folder="on-screen")], 100, 26)
    expect_equal((code, screen.alternate, screen.cursor_shown), (0, False, True), "the end")
    shown = "\n".join("".join(c for c, _ in row) for row in screen.last or [])
    for part in ("galvani fuzz", "on-screen", "latest faults", "kmnc:k=100"):
        expect(part in shown, f"no {part!r} on the screen: {shown}")
    for size, more in (((60, 10), []), ((100, 26), ["--plain"]), ((100, 26), ["--quiet"])):
        folder = f"no-screen-{size[0]}{'-'.join(more)}"
        screen, everything, code = terminal_svg.run(command + [str(a) for a in fuzz(*more, folder=folder)], *size)
        expect(code == 0 and screen.last is None, f"a full screen with {size} {more}")


# Where results go, and what is in them.

topic("outputs")


def no_leftovers(folder, *expected):
    expect_equal(sorted(p.name for p in folder.iterdir()), sorted(expected), f"what is in {folder.name}")


@check("outputs go to FIFOs, devices and behind links as they are")
def _(w):
    place = w / "places"
    place.mkdir()
    wanted = w.done("predict", "eight.onnx", *TEST).out
    command = ["predict", "eight.onnx", *TEST, "-q", "-o"]
    os.mkfifo(place / "fifo")
    reader = subprocess.Popen(["cat", place / "fifo"], stdout=subprocess.PIPE, text=True)
    try:
        w.done(*command, place / "fifo")
        expect((place / "fifo").is_fifo(), "the FIFO was replaced")
        expect(reader.communicate(timeout=LIMIT)[0] == wanted, "another text came through the FIFO")
    finally:
        reader.kill()
    (place / "target").write_text("old")
    (place / "target").chmod(0o600)
    (place / "link").symlink_to("target")
    (place / "dangling").symlink_to("made")
    (place / "circle").symlink_to("circle")
    for name, written in (("link", "target"), ("dangling", "made")):
        w.done(*command, place / name)
        expect((place / name).is_symlink(), f"{name} was replaced")
        expect_equal((place / written).read_text() == wanted, True, f"{written} holding the predictions")
    expect_equal((place / "target").stat().st_mode & 0o777, 0o600, "the permissions")
    w.refused(4, *command, place / "circle", names="lead in a circle")
    w.refused(4, *command, place, names="is a folder")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(place, os.O_RDONLY)  # paths of sockets must be short
        server.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
        w.refused(4, *command, place / "socket", names="is a socket")
    expected = ["fifo", "target", "link", "dangling", "circle", "made", "socket"]
    try:
        os.mknod(place / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        w.done(*command, place / "null")
        expect((place / "null").is_char_device(), "the device was replaced")
        expected.append("null")
    except PermissionError:
        print("skipped: devices can be made by root only")
    no_leftovers(place, *expected)
    expect_equal(w.done(*command, "/dev/stdout").out == wanted, True, "/dev/stdout giving the predictions")
    with (w / "appended.csv").open("w+") as file:
        file.write("first line\n")
        file.flush()
        subprocess.run([w.binary, *map(str, command), "/dev/stdout"], cwd=w.folder, env=w.environment, stdout=file, check=True)
        expect_equal((w / "appended.csv").read_text() == "first line\n" + wanted, True, "a redirected output kept and added to")


def many_faults(w, name, count):
    """A copy of a campaign with `count` faults more."""
    w.done(*fuzz(folder=name, guide="random"))
    connection = sqlite3.connect(w / name / "campaign.db")
    columns = [row[1] for row in connection.execute("PRAGMA table_info(faults)")]
    values = ", ".join("(SELECT max(id) FROM faults) + n" if c == "id" else f"faults.{c}" for c in columns)
    connection.execute(f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) INSERT INTO "
                       f"faults SELECT {values} FROM numbers, faults WHERE faults.id = 1 + n % (SELECT max(id) FROM faults)")
    connection.commit()
    connection.close()


def writes_into(process, folder):
    for entry in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            if str(folder) in os.readlink(entry):
                return True
        except OSError:
            pass  # closed meanwhile
    return False


def signalled(w, signals, folder, *arguments, ready=writes_into):
    """Runs a command, sends it signals as soon as it writes into the folder, returns its exit code."""
    process = w.start(*arguments)
    try:
        end = time.monotonic() + LIMIT
        while not ready(process, folder):
            expect(process.poll() is None and time.monotonic() < end, f"{arguments} never wrote into {folder}")
        for number in signals:
            process.send_signal(number)
            time.sleep(0.02)
        process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    return process.returncode


@check("an interrupted export leaves nothing behind")
def _(w):
    many_faults(w, "interrupted-run", 80000)
    place = w / "exports"
    place.mkdir()
    for signals, code in (([signal.SIGINT], 130), ([signal.SIGTERM], 143), ([signal.SIGHUP], 129),
                          ([signal.SIGINT, signal.SIGTERM], 143), ([signal.SIGHUP, signal.SIGHUP], 129)):
        found = signalled(w, signals, place, "export", "interrupted-run", "--to", "csv", "-o", place / "faults.csv")
        if len(signals) == 1 or signals[0] == signals[1]:
            expect_equal(found, code, f"the exit code after {signals}")
        else:  # the first may have ended it before the second came
            expect(found in (code, 128 + signals[0]), f"exit {found} after {signals}")
        no_leftovers(place)
    (place / "faults.csv").write_text("old")
    expect_equal(signalled(w, [signal.SIGTERM], place, "export", "interrupted-run", "--to", "csv", "-o", place / "faults.csv"), 143,
                 "the exit code")
    expect_equal((place / "faults.csv").read_text(), "old", "the file that was there")
    no_leftovers(place, "faults.csv")
    (place / "faults.csv").unlink()
    command = ["export", "interrupted-run", "--to", "folder", "-o", place / "images"]
    expect_equal(signalled(w, [signal.SIGTERM], place, *command), 143, "the exit code")
    no_leftovers(place)
    # Killed, it leaves what nobody takes for the whole.
    signalled(w, [signal.SIGKILL], place, *command, ready=lambda _, folder: any(folder.glob("images.incomplete-*/*.png")))
    left = [p for p in place.iterdir()]
    expect(len(left) == 1 and left[0].name.startswith("images.incomplete-"), f"killed, it leaves {left}")
    w.refused(3, "predict", "eight.onnx", "--data", left[0], names="did not come to its end")


@check("the page of operators is the list")
def _(w):
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "torchscript-operators.md"
    expect(w.done("inspect", "--operators").out == page.read_text(),
           "docs/torchscript-operators.md is not what galvani inspect --operators prints")


@check("a verb that runs models is confined")
def _(w):
    said = w.done("inspect", "eight.onnx", "-v").err
    expect("confined: " in said, f"it says nothing about it: {said[-300:]!r}")
    made = w / "confined"
    w.refused(2, "fuzz", "eight.onnx", "--data", "digits:test[0:60]", "--guide", "nonsense", "-o", made, names="nonsense")
    for _ in range(100):
        if not made.exists():
            break
        time.sleep(0.05)
    expect(not made.exists(), "a folder that was not used is left behind")


@check("paths that are not UTF-8")
def _(w):
    model, data, run = (os.fsdecode(name) for name in (b"m\xff.onnx", b"d\xff", b"r\xff"))
    shutil.copy(w / "eight.onnx", w / model)
    w.done("data", "export", "digits:test[0:60]", "--to", "folder", "-o", data, "--json")
    given = ["--data", f"./{data}"]
    for command in (["inspect", model, *given], ["predict", model, *given], ["cover", model, *given, "--criteria", "nc"],
                    ["cover", model, "--compare", f"./{data}", f"./{data}", "--criteria", "nc"],
                    ["profile", model, *given, "--criteria", "kmnc", "-o", os.fsdecode(b"p\xff")],
                    ["trace", model, *given, "-o", os.fsdecode(b"t\xff.npz")], ["data", "info", f"./{data}"],
                    ["mutate", *given, "--mutators", "blur", "-o", os.fsdecode(b"s\xff.png")]):
        json.loads(w.done(*command, "--json").out)
        w.done(*command)
    lines = w.done("train", "lenet1", *given, "--epochs", 1, "-o", os.fsdecode(b"t\xff.onnx"), "--json-lines").out.splitlines()
    expect_equal(len([json.loads(line) for line in lines]), 2, "the lines of training")
    w.done("predict", os.fsdecode(b"t\xff.onnx"), *given)
    for iterations in (4, 8):  # the second time it goes on
        w.done("fuzz", model, *given, "--guide", "nc", "--seeds", 20, "--iterations", iterations, "--batch", 4, "-o", run, "--json",
               "--junit", "odd.xml")
    w.done("fuzz", "-o", run, "--iterations", 12)
    for command in ("stats", "replay", "report"):
        json.loads(w.done(command, run, "--json").out)
    for more in ([], ["--json"]):
        w.done("quality", model, "--tests", run, "--metrics", "mr,ald2", "-o", os.fsdecode(b"q\xff.json"), *more)
    json.loads((w / os.fsdecode(b"q\xff.json")).read_text())
    xml.etree.ElementTree.parse(w / "odd.xml")
    w.refused(3, "inspect", os.fsdecode(b"none\xff.onnx"), names="none?.onnx")


DRIVES_TERMINALS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@check("hostile names do not drive terminals, spreadsheets or XML readers")
def _(w):
    names = ["\x1b[31mred", "=cmd|' /C calc'!A0", "\u009b31m", "a\u202eb", "two\nlines", "+1", "@x", "-y", "\ufffe", "\ttab"]
    shutil.copy(w / "eight.onnx", w / "hostile.onnx")
    (w / "hostile.toml").write_text("classes = [" + ", ".join(json.dumps(name) for name in names) + "]\n")
    given = ["--data", "digits:test[0:200]"]
    campaign = ["fuzz", "hostile.onnx", *given, "--guide", "random", "--seeds", 40, "--energy", 16, "--seed", 5, "--iterations", 24]
    for command in (["inspect", "hostile.onnx", *given], ["predict", "hostile.onnx", *given],
                    ["cover", "hostile.onnx", *given, "--criteria", "nc", "--by-class"],
                    [*campaign, "-o", "hostile", "--junit", "hostile.xml", "--fail-if", "faults<0"], ["stats", "hostile"],
                    ["stats", "hostile", "--wrong-seeds"], ["faults", "hostile"], ["faults", "hostile", "--cluster"], ["replay", "hostile"],
                    ["quality", "hostile.onnx", "--tests", "hostile", "--clever", "--inputs", 1, "--batches", 3, "--samples", 4],
                    ["report", "hostile"]):
        for more in ([], ["--json"]):
            result = w.done(*command, *more)
            found = DRIVES_TERMINALS.search(result.out + result.err)
            expect(not found, f"{found and found[0]!r} in what {command} {more} prints")
    xml.etree.ElementTree.parse(w / "hostile.xml")
    w.done("fuzz", "-o", "hostile", "--iterations", 32, "--fail-if", "faults>1000000", "--junit", "hostile.xml")
    w.run("fuzz", "-o", "hostile", "--iterations", 32, "--fail-if", "faults>0", "--junit", "hostile.xml")
    xml.etree.ElementTree.parse(w / "hostile.xml")
    w.done("export", "hostile", "--to", "csv", "-o", "hostile.csv")
    w.done("export", "hostile", "--to", "folder", "-o", "hostile-folder")
    for table in ("hostile.csv", "hostile-folder/mutants.csv"):
        text = (w / table).read_text()
        expect(not DRIVES_TERMINALS.search(text), f"{table} drives a terminal")
        rows = list(csv.reader(io.StringIO(text)))
        expect(all(cell[:1] not in tuple("=+-@\t\r") for row in rows for cell in row), f"{table} holds a formula")
    said = json.loads(w.done("predict", "eight.onnx", "--data", "./hostile-folder", "--json").out)
    expect_equal(said["accuracy"], 0, "the accuracy on faults whose labels came back from a table")
    confidence = predictions(w.done("predict", "hostile.onnx", *given).out)[0]["confidence"]
    expect(0 < float(confidence) <= 1, "numbers are numbers no more")


def stopped_fuzz(w, number, code, ignored=()):
    folder = f"stopped-{number}-{len(ignored)}"
    command = [w.binary, *map(str, fuzz("--json-lines", folder=folder, iterations=10**9))]
    process = subprocess.Popen(command, cwd=w.folder, env=w.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=lambda: [signal.signal(each, signal.SIG_IGN) for each in ignored])
    try:
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(number)
        if number in ignored:
            time.sleep(0.5)
            expect(process.poll() is None, "an ignored signal ended it")
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    expect_equal(process.returncode, code, f"the exit code after signal {number}")
    expect("the same command goes on" in err and "error" not in err, err)
    expect_equal(json.loads(out.splitlines()[-1])["event"], "summary", "the last thing said")
    done = json.loads(w.done("stats", folder, "--json").out)["iterations"]
    w.done(*fuzz(folder=folder, iterations=done + 4))
    w.done(*fuzz(folder=f"not-{folder}", iterations=done + 4))
    expect_equal(store(w / folder) == store(w / f"not-{folder}"), True, "the store equal to that of one go")


add_checks("fuzz is interrupted", [("Ctrl-C", signal.SIGINT, 130), ("SIGTERM", signal.SIGTERM, 143), ("SIGHUP", signal.SIGHUP, 129),
                                   ("SIGHUP under nohup", signal.SIGHUP, 130, [signal.SIGHUP])], stopped_fuzz)


@check("a hung-up terminal is given back")
def _(w):
    try:
        master, slave = os.openpty()
    except OSError as e:  # a chroot without /dev/pts
        print(f"skipped: {e}")
        return
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 26, 100, 0, 0))
    command = [w.binary, *map(str, fuzz(folder="hung-up", iterations=10**9))]
    process = subprocess.Popen(command, cwd=w.folder, env=dict(w.environment, TERM="xterm"), stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    try:
        while b"iterations" not in seen:
            seen += os.read(master, 65536)
        process.send_signal(signal.SIGHUP)
        while chunk := read_some(master):
            seen += chunk
        expect_equal(process.wait(LIMIT), 129, "the exit code")
    finally:
        process.kill()
        os.close(master)
    expect(b"\x1b[?1049l" in seen[seen.rindex(b"\x1b[?1049h"):], "the alternate screen stays")


def read_some(descriptor):
    try:
        return os.read(descriptor, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


def on_terminal(w, columns, *arguments, **environment):
    """What a command prints on a terminal of that width; None where there are no terminals."""
    try:
        master, slave = os.openpty()
    except OSError as e:  # a chroot without /dev/pts
        print(f"skipped: {e}")
        return None
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    surroundings = {k: v for k, v in w.environment.items() if k not in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")}
    surroundings.update(environment, TERM="xterm")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        done = pool.submit(w.run_on, slave, arguments, surroundings)
        seen = b""
        while chunk := read_some(master):
            seen += chunk
        done.result()
    os.close(master)
    return seen.decode().replace("\r\n", "\n")


@check("tables fit the terminal, and what is no terminal gets all of it")
def _(w):
    whole = w.done("fuzz", "--list").out
    expect(max(map(len, whole.splitlines())) > 140, "this table would fit anyway")
    for columns in (60, 80, 140):
        for command in (["fuzz", "--list"], ["train", "--list"], ["cover", "--list"], ["mutate", "--list"], ["quality", "--list"],
                        ["attack", "--list"]):
            text = on_terminal(w, columns, *command)
            if text is None:
                return
            widest = max(text.splitlines(), key=len)
            expect(len(widest) <= columns, f"{len(widest)} of {columns}: {widest!r}")
    expect_equal(collections.Counter(on_terminal(w, 60, "fuzz", "--list").split())["Revisiting"], whole.split().count("Revisiting"),
                 "the words that wrap")


@check("bars of training leave no line in its table")
def _(w):
    text = on_terminal(w, 100, "train", "lenet1", "--data", "digits:train[0:4000]", "--test", "digits:test[0:2000]", "--epochs", 2, "-o", "table.onnx")
    if text is None:
        return
    expect("epoch 1/2 [" in text, "no bar was drawn")
    rows = [line.split("\r")[-1].replace("\x1b[K", "") for line in text.split("\n")]
    expect_equal([row.split()[0] for row in rows if row.split() and row.split()[0].isdigit()], ["1", "2"], "the rows")
    expect(not any("[#" in row for row in rows), f"a bar stays: {rows}")


@check("colour is as the environment says")
def _(w):
    red = "\x1b["
    seen = on_terminal(w, 80, "inspect", "none.onnx")
    if seen is not None:
        expect(red in seen and "error:" in seen, f"no colour on a terminal: {seen!r}")
        expect_equal(red in on_terminal(w, 80, "inspect", "none.onnx", NO_COLOR="1"), False, "colour with NO_COLOR")
    expect_equal(red in w.run("inspect", "none.onnx").err, False, "colour in a file")
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        forced = subprocess.run([w.binary, "inspect", "none.onnx"], cwd=w.folder, env=dict(w.environment, **{name: "1"}), text=True,
                                stderr=subprocess.PIPE).stderr
        expect(red in forced, f"no colour with {name}")


MISHAP_LOCK = threading.Lock()  # whoever makes a campaign for several checks


# Repair.

topic("repair")

REPAIR = ["repair", "eight.onnx", "--data", "digits:train[0:1000]", "--clean", "digits:test[300:800]"]


def repair_run(w):
    """A campaign whose faults are repaired with; made by whoever comes first."""
    with MISHAP_LOCK:
        if not (w / "repair-run").exists():
            w.done(*fuzz(folder="repair-run", guide="random", iterations=120))
    return ["--tests", "repair-run"]


@check("repair mends held-out tests, and its control does not")
def _(w):
    original = (w / "eight.onnx").read_bytes()
    said = json.loads(w.done(*REPAIR, *repair_run(w), "--measure", "fgsm:eps=0.05", "--attacked", 50, "-o", "mended.onnx", "--json",
                             "--report", "mended.html", "--junit", "mended.xml", "--fail-if", "clean-lost>0.05", "--clean-loss", 0.1,
                             "--optimizer", "sgd:lr=0.02").out)
    sets = {s["kind"]: s["accuracy"] for s in said["sets"]}
    expect_equal(sets["held-out tests"]["before"], 0, "the accuracy on faults before")
    gain = sets["held-out tests"]["after"] - sets["held-out tests"]["control clean"]
    expect(gain > 0.15, f"the gain beyond the control is {gain}: {sets}")
    expect("attacked" in sets, f"no attack was measured: {sets}")
    clean = next(s["inputs"] for s in said["sets"] if s["kind"] == "clean")
    expect_equal(clean + said["blended_on"], 500, "the clean inputs")
    changed = (len(said["mended"]) - len(said["broken"])) / clean
    expect(abs(sets["clean"]["after"] - sets["clean"]["before"] - changed) < 1e-9, f"{changed} is not the change of {sets['clean']}")
    expect_equal((w / "eight.onnx").read_bytes() == original, True, "the original is as it was")
    expect_equal(sorted(p.name for p in w.folder.glob("mended.onnx*")), ["mended.onnx"], "what is left")
    page = (w / "mended.html").read_text()
    expect_equal(page.count("data:image/png"), len(said["broken"]), "the pictures of what broke anew")
    expect("control clean" in page and "<script" not in page, "the page is not what it should be")
    expect("failures=\"0\"" in (w / "mended.xml").read_text(), "the gate failed")
    # What was written is what was measured, and says so.
    card = json.loads(w.done("inspect", "mended.onnx", "--data", "digits:test[300:800]", "--json").out)
    expect(abs(card["accuracy"] - sets["clean"]["after"]) < 0.03, f"{card['accuracy']} on clean data: {sets['clean']}")
    expect("repaired with" in json.dumps(card), "the card does not say what it was repaired with")


@check("an interrupted repair goes on to the same bytes")
def _(w):
    command = [*REPAIR, *repair_run(w), "--per-seed", 2, "--epochs", 3]
    w.done(*command, "-o", "undisturbed.onnx")
    process = w.start(*command, "-o", "stopped.onnx", "--json-lines")
    for _ in range(4):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=LIMIT)
    expect_equal(process.returncode, 128 + signal.SIGINT, f"the exit code ({err[-300:]})")
    expect((w / "stopped.onnx.checkpoint").exists() and (w / "stopped.onnx.checkpoint-clean").exists(), "checkpoints are missing")
    w.refused(2, *command[:-1], 4, "-o", "stopped.onnx", names="epochs")
    w.done(*command, "-o", "stopped.onnx", "--threads", 1)
    expect((w / "stopped.onnx").read_bytes() == (w / "undisturbed.onnx").read_bytes(), "the models differ")
    expect_equal(sorted(p.name for p in w.folder.glob("stopped.onnx*")), ["stopped.onnx"], "what is left")


@check("repair by rounds and against an attack")
def _(w):
    said = json.loads(w.done(*REPAIR, "--loop", "k=2,most=40", "--keep", "all", "--epochs", 1, "--control", "none", "-o", "rounds.onnx", "--json").out)
    expect_equal([r["kept"] for r in said["rounds"]], [40, 40], "what the rounds kept")
    robust = json.loads(w.done(*REPAIR, "--adversarial", "pgd:eps=0.1,steps=3", "--epochs", 4, "--measure", "pgd:eps=0.1,steps=5",
                               "--attacked", 100, "-o", "robust.onnx", "--json").out)
    gained = robust["sets"][-1]["accuracy"]
    expect(gained["after"] > max(gained["before"], gained["control clean"]) + 0.1, f"training against an attack gained {gained}")
    expect_equal(w.run(*REPAIR, "--adversarial", "pgd", "--epochs", 0, "--control", "none", "-o", "same.onnx", "--fail-if", "broken<1").code, 1,
                 "the exit code of a gate that fails")


def refuses_repair(w, given):
    code, mentions, *flags = given
    repair_run(w)
    w.refused(code, *REPAIR, *flags, names=mentions)


add_checks("repair refuses", [
    ("to overwrite the model", (2, "never overwritten", "--tests", "repair-run", "-o", "./eight.onnx")),
    ("a page over the model", (2, "never overwritten", "--tests", "repair-run", "-o", "x.onnx", "--report", "eight.onnx")),
    ("to do nothing", (2, "--tests, --adversarial or --loop", "-o", "x.onnx")),
    ("an unknown attack", (2, "attack", "--tests", "repair-run", "--measure", "nothing", "-o", "x.onnx")),
    ("an unknown adversary", (2, "adversary", "--adversarial", "nothing", "-o", "x.onnx")),
    ("an unknown control", (2, "control", "--tests", "repair-run", "--control", "nothing", "-o", "x.onnx")),
    ("a layer that does not exist", (2, "to freeze", "--tests", "repair-run", "--freeze", "nothing", "-o", "x.onnx")),
    ("an unknown figure", (2, "clean-lost", "--tests", "repair-run", "--fail-if", "nothing>1", "-o", "x.onnx")),
    ("a single test", (3, "one seed", "--tests", "digits:test[0:1]", "-o", "x.onnx")),
    ("parts it cannot make", (2, "k", "--loop", "k=0", "-o", "x.onnx")),
], refuses_repair)


topic("select")

POOL = ["--data", "digits:test[0:200]"]


def selection(w, *more):
    return json.loads(w.done("select", "eight.onnx", *more, "--json").out)


def picked(w, name):
    with open(w / name, newline="") as file:
        return list(csv.DictReader(file))


@check("select writes picks that agree with predict")
def _(w):
    w.done("select", "eight.onnx", *POOL, "--by", "gini", "--top", "10%", "-o", "picked.csv")
    w.done("predict", "eight.onnx", *POOL, "-o", "pool.csv")
    gini = [1 - sum(float(v) ** 2 for k, v in row.items() if re.fullmatch(r"p\d+", k)) for row in picked(w, "pool.csv")]
    order = sorted(range(200), key=lambda i: -gini[i])[:20]
    rows = picked(w, "picked.csv")
    expect_equal([int(row["rank"]) for row in rows], list(range(1, 21)), "the ranks")
    expect_equal({int(row["index"]) for row in rows}, set(order), "what was picked")
    expect(all(abs(float(row["score"]) - gini[int(row["index"])]) < 1e-4 for row in rows), "other scores than those of predict")
    expect_equal({(row["label"], row["pool"], row["file"]) for row in rows}, {("", "digits:test[0:200]", "")}, "label, pool and file")
    said = picked(w, "pool.csv")
    expect_equal([row["predicted"] for row in rows], [said[int(row["index"])]["predicted"] for row in rows], "the verdicts")
    j = selection(w, *POOL, "--by", "gini", "--top", 20)
    expect_equal([pick["index"] for pick in j["selectors"][0]["picks"]], [int(row["index"]) for row in rows], "the picks as JSON")


@check("select takes what it says where nothing is said, and the same seed gives the same picks")
def _(w):
    out = w.done("select", "eight.onnx", *POOL)
    expect("selecting by nns" in out.err and "--train, may find more" in out.err and "10 of 200 images by nns" in out.out, out)
    out = w.done("select", "eight.onnx", *POOL, "--train", "digits:train[0:300]", "--originals", "digits:test[0:200]")
    expect("selecting by fused" in out.err and "similar inputs of the pool, the training data, the originals, the default" in out.err, out.err)
    out = w.done("select", "eight.onnx", *POOL, "--originals", "digits:test[0:200]")
    expect("selecting by fused" in out.err and "--train, may find more" in out.err, out.err)
    for by in ("nss", "nss:find=nss:only=blur,k=5", "random", "mc-dropout:samples=4"):
        one, two, other = (selection(w, *POOL, "--by", by, "--seed", seed, "--threads", threads)["selectors"][0]["picks"]
                           for seed, threads in ((1, 1), (1, 2), (2, 2)))
        expect(one == two, f"{by}: another number of threads gives other picks")
        expect(one != other, f"{by}: the seed does not matter")


@check("select copies files as they are, draws a sheet, and repair takes the labels that were filled in")
def _(w):
    w.done("mutate", *POOL, "--set", "nss", "--one-each", "-o", "select-pool")
    expect_equal(len(picked(w, "select-pool/mutants.csv")), 200, "the rules")
    labels = {row["file"]: row["label"] for row in picked(w, "select-pool/labels.csv")}
    w.done("predict", "eight.onnx", *POOL, "-o", "select-labels.csv")
    expect_equal(list(labels.values()), [row["label"] for row in picked(w, "select-labels.csv")], "the labels of the pool")
    w.done("select", "eight.onnx", "--data", "select-pool/", "--by", "flip", "--originals", "digits:test[0:200]", "--top", 12, "-o",
           "filled.csv", "--copy-to", "chosen", "--sheet", "chosen.png")
    rows = picked(w, "filled.csv")
    for row in rows:
        copy = w / "chosen" / f"{int(row['rank']):06}-{row['file']}"
        expect(copy.read_bytes() == (w / "select-pool" / row["file"]).read_bytes(), f"{copy.name} is not the file that was picked")
    expect_equal(len(list((w / "chosen").iterdir())), 12, "the files that were copied")
    expect((w / "chosen.png").read_bytes().startswith(b"\x89PNG"), "the sheet is no PNG")
    repair = ["repair", "eight.onnx", "--data", "digits:train[0:64]", "--clean", "digits:test[200:260]", "--epochs", 1, "--control", "none"]
    w.refused(3, *repair, "--tests", "filled.csv", "-o", "filled.onnx", names="no label is filled in")
    def fill(label, name):
        with open(w / name, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows({**row, "label": label(row)} for row in rows)
    fill(lambda row: labels[row["file"]] if int(row["rank"]) <= 9 else "", "filled.csv")
    done = json.loads(w.done(*repair, "--tests", "filled.csv", "-o", "filled.onnx", "--json").out)
    expect_equal(done["trained_tests"] + [s["inputs"] for s in done["sets"] if s["kind"] == "held-out tests"][0], 9, "the tests")
    fill(lambda row: "a zebra", "zebra.csv")
    w.refused(3, *repair, "--tests", "zebra.csv", "-o", "zebra.onnx", names="line 2 has the label 'a zebra'")
    (w / "other.csv").write_text("a,b\n1,2\n")
    w.refused(3, *repair, "--tests", "other.csv", "-o", "zebra.onnx", names="has no column 'label'")


@check("select explains its picks and makes a page to label them on")
def _(w):
    j = selection(w, *POOL, "--by", "nss", "--top", 9, "--explain", "--report", "picks.html", "-o", "why.csv")
    picks, why = j["selectors"][0]["picks"], j["reasons"]["picks"]
    expect_equal([p["index"] for p in why], [p["index"] for p in picks], "the picks that are explained")
    expect(all(p["second"] not in (-1, q["predicted"]) and p["second_confidence"] <= q["confidence"] for p, q in zip(why, picks)), why)
    expect_equal({layer["tap"] for layer in j["reasons"]["layers"]}, {"conv1", "conv2", "fc1", "fc2", "fc3"}, "the layers")
    rows = picked(w, "why.csv")
    expect(all(row["against"] and row["layer"] and int(row["neuron"]) >= 0 for row in rows), "a pick without a reason")
    page = (w / "picks.html").read_text()
    expect_equal((page.count("<li "), page.count("data:image/png")), (9, 9), "the pictures of the page")
    expect("http" not in page.replace("http-equiv", ""), "the page wants something from elsewhere")
    expect("most sensitive neuron" in w.done("select", "eight.onnx", *POOL, "--by", "gini", "--explain").out, "no table of layers")
    originals = selection(w, *POOL, "--by", "gini", "--top", 5, "--explain", "--originals", "digits:test[200:400]")["reasons"]["picks"]
    expect_equal({p["against"] for p in originals}, {"original"}, "what picks are compared with")


@check("a pool with broken files and photos of any size")
def _(w):
    folder = w / "snapshots"
    folder.mkdir()
    w.done("data", "export", "digits:test[0:30]", "--to", "folder", "-o", "thirty")
    for i, file in enumerate(sorted((w / "thirty").glob("*.png"))):
        shutil.copy(file, folder / f"photo {i}.png")
    (folder / "duplicate.png").write_bytes((folder / "photo 3.png").read_bytes())
    (folder / "photo 7.png").write_bytes(b"no image")
    write_png(folder / "wide.png", 50, 40, (200, 120, 90))
    w.refused(3, "select", "eight.onnx", "--data", "snapshots/", "--by", "gini", names="photo 7.png")
    out = w.done("select", "eight.onnx", "--data", "snapshots/", "--by", "gini", "--top", "100%", "--skip-broken")
    for said in ("photo 7.png", "50x40", "photo 3.png is duplicate.png; they are left out"):
        expect(said in out.err, f"nothing is said of {said}: {out.err}")
    j = selection(w, "--data", "snapshots/", "--by", "gini,nss,datis", "--train", "digits:train[0:100]", "--top", "100%", "--skip-broken")
    for by in j["selectors"]:
        files = [pick["file"] for pick in by["picks"]]
        expect_equal(len(files), 30, f"the picks of {by['name']}")
        expect("photo 7.png" not in files, "a broken file is picked")
        expect(("duplicate.png" in files) != ("photo 3.png" in files), "of two that are the same, one is to be picked")
    expect_equal([(c["file"], c["of_file"]) for c in j["copies"]], [("photo 3.png", "duplicate.png")], "the copies")
    (folder / "photo 7.png").unlink()
    said = "snapshots/: 1 of the 31 inputs is an exact copy of others: photo 3.png is duplicate.png; --skip-broken leaves them out"
    w.refused(3, "select", "eight.onnx", "--data", "snapshots/", "--by", "gini", "--top", "100%", "-o", "copies.csv", "-q", names=said)
    expect(not (w / "copies.csv").exists(), "picks of a pool that is refused are written")
    write_npz(w / "other-size.npz", [3, 20, 20], [0, 1, 2])
    w.refused(3, "select", "eight.onnx", "--data", "./other-size.npz", "--by", "gini", names="20x20")


@check("evaluation counts what predict gets wrong")
def _(w):
    train = ["--train", "digits:train[0:400]"]
    every = "random,softmax,gini,entropy,pcs,internal-gini,mc-dropout:samples=3,nss,nac,kmnc,npc,dsa,lsa,mdsa,ats,datis,sets,nns,fused"
    w.done("mutate", "--data", "digits:test[0:300]", "--set", "nss", "--one-each", "-o", "hard.npz", "--seed", 3)
    j = selection(w, "--data", "./hard.npz", *train, "--by", every, "--evaluate", "--repeats", 2, "-o", "figures-select.csv", "--plot",
                  "select.svg")
    accuracy = json.loads(w.done("predict", "eight.onnx", "--data", "./hard.npz", "--json").out)["accuracy"]
    expect_equal(j["faults"], round(300 * (1 - accuracy)), "the faults of the pool")
    expect_equal([by["name"] for by in j["selectors"]], every.split(","), "the selectors")
    by_name = {by["name"]: by for by in j["selectors"]}
    expect_equal([len(by_name[name]["seeds"]) for name in ("gini", "random", "nss")], [1, 2, 2], "the runs")
    for by in j["selectors"]:
        expect_equal([at["picks"] for at in by["at"]], [15, 30, 45, 60], "the budgets")
        for at in by["at"]:
            expect(0 <= at["fdr"]["interval"][0] <= at["fdr"]["mean"] <= at["fdr"]["interval"][1] <= 1, f"{by['name']}: {at}")
    expect(by_name["gini"]["at"][0]["fdr"]["mean"] > by_name["random"]["at"][0]["fdr"]["mean"], "gini is no better than chance")
    expect_equal(len(picked(w, "figures-select.csv")), 4 * sum(len(by["seeds"]) for by in j["selectors"]), "the lines of the table")
    xml.etree.ElementTree.parse(w / "select.svg")
    expect("FDR at 5%" in w.done("select", "eight.onnx", "--data", "./hard.npz", "--by", "gini", "--evaluate").out, "no table")


@check("interrupting a selection leaves nothing behind")
def _(w):
    process = w.start("select", "eight.onnx", "--data", "digits:pool[:200000]", "--by", "mc-dropout", "-o", "never.csv")
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=LIMIT)
    expect_equal(process.returncode, 130, f"the exit code ({error[-300:]})")
    expect(not [p.name for p in w.folder.glob("*never*")], "a file was left behind")


add_checks("select refuses", [
    ("no data", "--data is missing", "select", "eight.onnx"),
    ("no such selector", "did you mean 'gini'", "select", "eight.onnx", *POOL, "--by", "gimi"),
    ("no training data", "--train", "select", "eight.onnx", *POOL, "--by", "dsa"),
    ("no originals", "--originals", "select", "eight.onnx", *POOL, "--by", "nss:pair=original"),
    ("too many", "only 200 inputs", "select", "eight.onnx", *POOL, "--by", "gini", "--top", "201"),
    ("no number", "must be a number of inputs", "select", "eight.onnx", *POOL, "--by", "gini", "--top", "many"),
    ("more than all", "must be a number of inputs", "select", "eight.onnx", *POOL, "--by", "gini", "--top", "101%"),
    ("the same twice", "names gini twice", "select", "eight.onnx", *POOL, "--by", "gini,gini"),
    ("repeats of nothing", "--repeats is of --evaluate", "select", "eight.onnx", *POOL, "--by", "gini", "--repeats", 3),
    ("top of an evaluation", "--top is not of --evaluate", "select", "eight.onnx", *POOL, "--by", "gini", "--evaluate", "--top", 3),
    ("one folder for two", "--by names 2", "select", "eight.onnx", *POOL, "--by", "gini,pcs", "--copy-to", "two"),
    ("a pool without a place", "name a folder or an NPZ file", "mutate", *POOL, "--one-each"),
], lambda w, names, *command: w.refused(2, *command, names=names))


# Models by name, and texts.

topic("encoders")


def similarity(w, encoder, *texts):
    return json.loads(w.done("model", "similarity", encoder, *texts, "--json").out)


def text_network(rows, second_input=None):
    """An ONNX network that gives row i of a table for token i: last_hidden_state [1, T, 2]."""
    def port(name, kind, *sides):
        shape = message(*((1, message((2, "T")) if n is None else message((1, n))) for n in sides))
        return message((1, name), (2, message((1, message((1, kind), (2, shape))))))
    table = message((1, len(rows)), (1, 2), (2, 1), (8, "table"), (9, b"".join(struct.pack("<2f", *row) for row in rows)))
    node = message((1, "table"), (1, "input_ids"), (2, "last_hidden_state"), (4, "Gather"))
    inputs = [(11, port("input_ids", 7, 1, None))] + ([(11, port(second_input, 7, 1, None))] if second_input else [])
    graph = message((1, node), (2, "texts"), (5, table), *inputs, (12, port("last_hidden_state", 1, 1, None, 2)))
    return message((1, 8), (7, graph), (8, message((2, 13))))


# [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, red 4, blue 5, ##ish 6
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "red", "blue", "##ish"]
ROWS = [(9, 9), (0, 0), (0, 0), (0, 0), (4, 0), (0, 3), (0, 4)]


def text_files(w, folder):
    (w / folder).mkdir(exist_ok=True)
    (w / folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (w / folder / "m.onnx").write_bytes(text_network(ROWS))
    return f"onnx:model={folder}/m.onnx,tokenizer={folder}"


@check("model list says what there is")
def _(w):
    listed = json.loads(w.done("model", "list", "--json").out)
    expect_equal([m["name"] for m in listed], ["resnet50-imagenet", "mobilenet-imagenet", "minilm", "glove"], "the names")
    for model in listed:
        expect(model["download_bytes"] > 1e6 and len(model["package_sha256"]) == 64 and model["licence"] and model["use"], str(model))
    text = w.done("model", "list").out
    expect(all(m["name"] in text and m["licence"] in text for m in listed), text)


@check("model get says why nothing comes")
def _(w):
    w.refused(2, "model", "get", "minlm", names="did you mean 'minilm'?")
    w.refused(2, "model", "get", "minilm", "glove", "-o", "both.onnx", names="-o goes with one model, not 2")
    (w / "other.tgz").write_bytes(noise(5000))
    w.refused(3, "model", "get", "minilm", "--from", "other.tgz", names="other.tgz: is not the archive of npm's @lat.md")
    w.refused(3, "model", "get", "glove", "--from", "no-such.tgz", names="no-such.tgz")
    tools = w / "tools"
    tools.mkdir()
    (tools / "npm").write_text("#!/bin/sh\necho 'npm error code EAI_AGAIN'\necho 'npm error request failed' >&2\nexit 1\n")
    (tools / "npm").chmod(0o755)
    for path, why in ((tools, "minilm cannot be fetched: npm reaches no network"), (w / "empty-tools", "npm is needed to fetch minilm")):
        result = w.run("model", "get", "minilm", "-q", PATH=f"{path}:/nowhere", GALVANI_CACHE=str(w / "cache-away"))
        expect(why in one_sentence(result, 4, "model get"), result.err)
    expect_equal(list((w / "cache-away" / "models").iterdir()), [], "what is left in the cache")


@check("encoders compare texts")
def _(w):
    found = similarity(w, "hash", "a photo of a cat", "photos of cats", "blue sky", "!")
    expect_equal([round(row[i], 6) for i, row in enumerate(found["similarity"])], [1, 1, 1, 0], "each with itself, and nothing with nothing")
    expect(found["similarity"][0][1] > 0.3 > found["similarity"][0][2], str(found))
    # [CLS] red ##ish [SEP]: the mean of (0, 0), (4, 0), (0, 4), (0, 0); "blue" is (0, 3) alone.
    found = similarity(w, text_files(w, "own"), "reddish blue", "RED", "redish", "blue")["similarity"]
    expect_equal([round(value, 4) for value in found[2]], [round(0.5**0.5, 4)] * 2 + [1] + [round(0.5**0.5, 4)], "what redish is near to")
    expect_equal(round(found[1][3], 6), 0, "red and blue")
    (w / "glove.txt").write_text("the 1 1\ncat 2 0\ndog 0 2\n")
    expect_equal(similarity(w, "glove:file=glove.txt,centre=false", "cat", "dog")["similarity"][0][1], 0, "cat and dog")
    threads = [w.done("model", "similarity", text_files(w, "own"), "red", "blue red", "--threads", n).out for n in (1, 3)]
    expect_equal(threads[0], threads[1], "what three threads say")


@check("encoders refuse files that are missing, cut short or of another kind")
def _(w):
    def refuses(spec, names):
        w.refused(3, "model", "similarity", spec, "a", "b", names=names)
    for name in ("minilm", "glove"):
        result = w.run("model", "similarity", name, "a", GALVANI_CACHE=str(w / "cache-none"))
        expect(f"galvani model get {name}" in one_sentence(result, 3, name), result.err)
    w.refused(2, "model", "similarity", "hsh", "a", names="did you mean 'hash'?")
    w.refused(2, "model", "similarity", "onnx", "a", names="onnx:model=encoder.onnx,tokenizer=tokenizer.json")
    good = text_files(w, "bad")
    refuses(good.replace("m.onnx", "none.onnx"), "none.onnx")
    refuses(good.replace("tokenizer=bad", "tokenizer=no-such.json"), "no-such.json")
    refuses(good.replace("m.onnx", "vocab.txt"), "bad/vocab.txt")
    refuses("onnx:model=eight.onnx,tokenizer=bad", "eight.onnx: its input 'input' is nothing that a text gives")
    for name, content, why in (("cut.onnx", text_network(ROWS)[:90], "cut.onnx"), ("past.onnx", text_network(ROWS, "past_key_values"), "'past_key_values'"),
                               ("few.onnx", text_network(ROWS[:3]), "few.onnx: fails while running")):
        (w / "bad" / name).write_bytes(content)
        refuses(good.replace("m.onnx", name), why)
    for name, content, why in (("t.json", '{"version": "1.0", "model": {"type": "BPE", "vocab": {"a"', "t.json: is no JSON; it may be cut short"),
                               ("u.json", '{"model": {"type": "Unigram", "vocab": []}}', "u.json: a model of the kind 'Unigram' is not supported"),
                               ("v.json", '{"a": 0, "b": 1}', "merges.txt"), ("plain.txt", "cat\ndog\n", "plain.txt"), ("none.txt", "", "none.txt: is empty")):
        (w / "bad" / name).write_text(content)
        refuses(good.replace("tokenizer=bad", f"tokenizer=bad/{name}"), why)
    for content, why in (("the 1 2\ncat 1\n", "v.txt: line 2"), ("9 2\nthe 1 2\n", "v.txt: is cut short"), ("no vectors here\n", "v.txt: holds no word vectors")):
        (w / "v.txt").write_text(content)
        refuses("glove:file=v.txt", why)
    (w / "v.txt").write_bytes(noise(5000))
    refuses("glove:file=v.txt", "v.txt")


@check("fetched models are what they should be")
def _(w):
    """Of those that the user's own cache has: a test does not fetch hundreds of megabytes."""
    home = os.environ.get("GALVANI_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "galvani")

    def asked(*arguments):
        result = w.run(*arguments, "--json", GALVANI_CACHE=home)
        expect_equal(result.code, 0, f"the exit code of {arguments} ({result.err[-300:]})")
        return json.loads(result.out)
    ready = {model["name"]: model["file"] for model in asked("model", "list") if model["ready"]}
    if set(ready) != {"resnet50-imagenet", "mobilenet-imagenet", "minilm", "glove"}:
        print(f"skipped in part: only {sorted(ready)} are in the cache")
    if "minilm" in ready:
        cat = asked("model", "similarity", "minilm", "a photo of a cat", "a picture of a kitten", "a photo of a truck")["similarity"][0]
        expect(abs(cat[1] - 0.795) < 0.01 and abs(cat[2] - 0.449) < 0.01, f"the cat's similarities are {cat}")
        shutil.copytree(pathlib.Path(ready["minilm"]).parent, w / "damaged" / "models" / "minilm")
        whole = (w / "damaged/models/minilm/model.onnx").read_bytes()
        for name, content in (("model.onnx", whole[:len(whole) // 2]), ("tokenizer.json", b"{}")):
            (w / "damaged/models/minilm" / name).write_bytes(content)
            result = w.run("model", "similarity", "minilm", "a", GALVANI_CACHE=str(w / "damaged"))
            expect(name in one_sentence(result, 3, f"a damaged {name}"), result.err)
            if name == "model.onnx":
                (w / "damaged/models/minilm/model.onnx").write_bytes(whole)
    if "glove" in ready:
        cat = asked("model", "similarity", "glove", "cat", "kitten", "speech")["similarity"][0]
        expect(cat[1] > cat[2] + 0.3, f"the cat's similarities are {cat}")
    for name, classes in (("resnet50-imagenet", 1000), ("mobilenet-imagenet", 1001)):
        if name in ready:
            seen = asked("inspect", ready[name])
            expect_equal([seen["input"], seen["classes"], len(set(seen["class_names"]))], [[3, 224, 224], classes, classes], name)
            expect("npm" in seen["preprocess"]["source"] and "MIT" in seen["preprocess"]["licence"], str(seen["preprocess"])[:300])


topic("excite")


EXCITED = ["excite", "eight.onnx", "--data", "digits:test[0:16]", "--by", "path:tolerance=0.003"]


@check("excite: layers, neurons, groups and what they have in common")
def _(w):
    command = [*EXCITED, "--change", "noise:eps=0.3", "attack:eps=0.3", "--picture", "e.svg", "-o", "e.csv"]
    result = w.done(*command, "--json")
    found = json.loads(result.out)
    expect_equal([found["neurons"], found["values_are"]], [236, "Aumann-Shapley values"], "what was looked at")
    expect_equal([g["name"] for g in found["groups"]], ["noise:eps=0.3", "attack:eps=0.3"], "the groups")
    noise, attack = found["groups"]
    for group in (noise, attack):
        expect(group["residual"] < 0.02 * max(1, group["loss_change"]), f"values leave {group['residual']} of the sum")
        layers = sum(layer["value"] for layer in group["layers"])
        expect(abs(layers - group["loss_change"]) < 0.02 * max(1, abs(layers)), f"layers add up to {layers}, not {group['loss_change']}")
        expect_equal([layer["neurons"] for layer in group["layers"]], [6, 16, 120, 84, 10], "the layers")
        expect_equal(len(group["top"]), 10, "the most excited neurons")
    expect(attack["excitable"] > 2 * noise["excitable"], "an attack excites no more than noise does")
    both = found["overlap"][0]
    expect(both["pairs"] > 8 and both["by_chance"] < both["each"] <= 10, str(both))
    rows = list(csv.DictReader((w / "e.csv").open()))
    expect_equal(len(rows), 236 * (noise["inputs"] + attack["inputs"]), "the rows of the table")
    above = [sum(float(r["value"]) > 0.01 for r in rows if r["group"] == g["name"]) / g["inputs"] for g in found["groups"]]
    expect(all(abs(a - g["excitable"]) < 0.2 for a, g in zip(above, found["groups"])), f"{above} neurons are above lambda")
    expect_equal(xml.etree.ElementTree.parse(w / "e.svg").getroot().tag, "{http://www.w3.org/2000/svg}svg", "the picture")
    expect_equal(w.done(*command, "--json", "--threads", 3).out, result.out, "the same on other threads")
    text = w.done(*command).out
    for words in ("conv2", "most excited by attack:eps=0.3", "by chance"):
        expect(words in text, f"does not say {words!r}")
    # A campaign's faults are a group, too, compared by their seeds.
    w.done("fuzz", "eight.onnx", "--data", "digits:test[0:16]", "--generator", "noise:eps=0.5,at=corners", "--guide", "none", "--energy", 20, "--iterations", 16,
           "--seeds", 16, "-o", "noisy-excite")
    also = json.loads(w.done(*EXCITED, "--tests", "noisy-excite", "--json").out)
    expect(also["groups"][1]["name"] == "noisy-excite" and also["overlap"][0]["pairs"] > 0, "a campaign is no group")
    alone = json.loads(w.done("excite", "eight.onnx", "--tests", "noisy-excite", "--most", 5, "--json").out)
    expect_equal([g["inputs"] for g in alone["groups"]], [5], "the inputs of a campaign")


@check("features: neighbours by group, and a map")
def _(w):
    for i, at in enumerate(("corners", "inside")):
        w.done("fuzz", "eight.onnx", "--data", "digits:test[0:30]", "--generator", f"noise:eps=0.5,at={at}", "--guide", "none", "--energy", 10, "--iterations", 30,
               "--seeds", 30, "-o", f"noisy-{at}")
    command = ["features", "eight.onnx", "--data", "digits:test[0:60]", "--tests", "noisy-corners", "--most", 40, "--steps", 60]
    said = w.done(*command, "--picture", "map.svg", "-o", "map.csv", "--json").out
    found = json.loads(said)
    benign, noisy = found["groups"]
    expect_equal([benign["inputs"], noisy["name"], found["layer"], found["width"]], [40, "noisy-corners", "the input of fc3", 84], "what was looked at")
    for group in found["groups"]:
        expect(abs(sum(group["neighbours_in"]) - 1) < 1e-9, f"neighbours add up to {sum(group['neighbours_in'])}")
    # Noise at the corners of so large a ball is a place of its own, where labels mean nothing; near a digit they do.
    expect(noisy["neighbours_in"][1] > 0.9 and benign["same_label"] > 2 * noisy["same_label"] and noisy["same_verdict"] > noisy["same_label"], str(found["groups"]))
    rows = list(csv.DictReader((w / "map.csv").open()))
    expect_equal([len(rows), len({row["group"] for row in rows})], [benign["inputs"] + noisy["inputs"], 2], "the rows of the table")
    expect_equal((w / "map.svg").read_text().count('r="2.6"'), 2 * len(rows), "the points of the picture")
    expect_equal(xml.etree.ElementTree.parse(w / "map.svg").getroot().tag, "{http://www.w3.org/2000/svg}svg", "the picture")
    expect_equal(w.done(*command, "--picture", "map.svg", "-o", "map-1.csv", "--json", "--threads", 1).out, said, "the same on one thread")
    expect_equal((w / "map-1.csv").read_bytes(), (w / "map.csv").read_bytes(), "the same map on one thread")
    fast = json.loads(w.done(*command, "--exact", 0, "-o", "map-2.csv", "--json").out)["tsne"]
    expect([fast["exact"], found["tsne"]["exact"]] == [False, True] and abs(fast["divergence"] - found["tsne"]["divergence"]) < 0.5, str(fast))
    text = w.done(*command, "--tests", "noisy-corners", "noisy-inside").out
    for words in ("near in noisy-inside", "by chance", "input of fc3"):
        expect(words in text, f"does not say {words!r}")
    w.refused(2, "features", "eight.onnx", names="--data")
    w.refused(3, *command[:3], "digits:test[0:5]", "-q", names="too few")
    w.refused(2, *command, "--layer", "conv*", "-q", names="taps, but one is meant")
    w.refused(3, *command, "--tests", "no-such-run", "-q", names="no-such-run")


@check("excite: estimators against each other")
def _(w):
    for name in ("exact", "permutation", "regression", "path"):
        expect(re.search(rf"\b{name}\b", w.done("excite", "--list").out), f"{name} is not listed")
    few = ["excite", "eight.onnx", "--data", "digits:test[0:6]", "--change", "noise:eps=0.5,at=corners", "--taps", "fc3"]
    def against(by, other):
        return json.loads(w.done(*few, "--by", by, "--against", other, "--json").out)["groups"][0]
    exact = against("permutation:pairs=24", "exact")
    expect(exact["against"]["inside_interval"] > 0.85 and exact["residual"] < 1e-5, str(exact["against"]))
    fitted = against("regression:coalitions=256", "exact")
    expect(fitted["against"]["inside_interval"] > 0.85 and fitted["against"]["rank_correlation"] > 0.9, str(fitted["against"]))
    path = against("path:tolerance=1e-5", "exact")
    # It is another value, and of scores a very different one.
    expect(path["residual"] < 1e-5 and path["against"]["difference"] > 1e-3, str(path))
    w.refused(2, *EXCITED[:-1], "exact", "-q", names="at most 16")
    w.refused(2, *EXCITED[:-1], "shapley", names="there is no estimator of Shapley values called 'shapley'")
    w.refused(2, *EXCITED, "--change", "nothing", names="there is no generator called 'nothing'")
    w.refused(2, "excite", "eight.onnx", names="--data")
    w.refused(3, "excite", "eight.csv", "--data", "digits", "-q", names="eight.csv")
    w.refused(2, *EXCITED, "-q", "--change", "noise:eps=1/1000", names="less than one step")


@check("excite: estimators are documented with the defaults they have")
def _(w):
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "deepsensor.md").read_text()
    listed = {e["name"]: {o["name"]: o["default"] for o in e["options"]} for e in json.loads(w.done("excite", "--list", "--json").out)["estimators"]}
    documented = re.findall(r"^\| `(exact|permutation|regression|path)(?::([^`]*))?`", text, re.M)
    expect_equal({name for name, _ in documented}, set(listed), "the estimators")
    for name, options in documented:
        told = {key: float(value) for key, value in (option.split("=") for option in options.split(",") if option)}
        expect_equal(told, {key: float(value) for key, value in listed[name].items()}, f"the defaults of {name}")


@check("excite stops soon when it is asked to")
def _(w):
    # Minutes of work.
    command = [w.binary, *map(str, EXCITED[:-1]), "permutation:pairs=20000"]
    process = subprocess.Popen(command, cwd=w.folder, env=w.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(3)
    expect_equal(process.poll(), None, "it ended before")
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate()
    expect_equal(process.returncode, 130, "the exit code")
    expect(time.monotonic() - begun < 2, f"it took {time.monotonic() - begun:.1f} s")


@check("fuzz by swarms and genetic search")
def _(w):
    listed = w.done("fuzz", "--list").out
    for name in ("deepsensor", "swarm", "genetic"):
        expect(re.search(rf"\b{name}\b", listed), f"{name} is not listed")
    base = ["fuzz", "eight.onnx", "--data", "digits:test[0:60]", "--seed", 3, "--seeds", 20, "--batch", 8]
    size = "population=10,generations=6,eps=0.3"
    swarm = [*base, "--method", "deepsensor", "--generator", f"swarm:{size},by=(path:points=6,tolerance=0)"]
    found = json.loads(w.done(*swarm, "-o", "swarm", "--json").out)
    # Every seed once, all particles of all generations and the best of them once more.
    expect_equal([found["tried_seeds"], found["mutants"], found["outputs"]], [20, 20 * 61, 0], "what was made")
    expect(found["passes"] > 20 * 60 * 8, f"only {found['passes']} passes are counted")
    kinds = {m["name"]: m for m in json.loads(w.done("stats", "swarm", "--json").out)["mutators"]}
    expect_equal({k: m["mutants"] for k, m in kinds.items()}, {"swarm": 1200, "swarm-final": 20}, "intermediate and final ones")
    w.done(*swarm, "-o", "swarm-3", "--threads", 3)
    expect_equal(store(w / "swarm-3"), store(w / "swarm"), "the store on other threads")
    by_loss = json.loads(w.done(*base, "--method", "deepsensor", "--generator", f"swarm:{size},fitness=loss", "-o", "by-loss", "--json").out)
    noise = json.loads(w.done(*base, "--guide", "none", "--scheduler", "once", "--generator", "noise:eps=0.3", "--energy", 61, "-o", "by-noise", "--json").out)
    expect(by_loss["faults"] > 2 * noise["faults"], f"a swarm finds {by_loss['faults']}, noise {noise['faults']}")
    expect_equal(by_loss["passes"], by_loss["valid"], "passes of a swarm by loss")
    faults = json.loads(w.done("faults", "by-loss", "--most", 0, "--json").out)["faults"]
    for fault in faults:
        figures = fault["remarks"]["figures"]
        expect(0 < figures["linf"] <= 76 / 255 + 1e-9 and 1 <= figures["generation"] <= 6, str(figures))
    bred = json.loads(w.done(*base, "--method", "deepsensor", "--generator", f"genetic:{size},fitness=gain,criterion=tknc", "-o", "bred", "--json").out)
    expect_equal(bred["mutants"], 20 * 61, "what was bred")
    w.done("profile", "eight.onnx", "--data", "digits:train[0:300]", "--criteria", "kmnc", "-o", "for-gain")
    w.done(*base, "--method", "deepsensor", "--generator", f"swarm:{size},fitness=gain,criterion=kmnc,profile=for-gain", "-o", "by-kmnc")
    for folder in ("swarm", "by-loss", "bred", "by-kmnc"):
        w.done("check", folder)
        if json.loads(w.done("stats", folder, "--json").out)["faults"]:
            w.done("replay", folder)
    w.refused(2, *base, "--method", "deepsensor", "--generator", "swarm:fitness=gain,criterion=kmnc", "-o", "no", names="galvani profile")
    w.refused(2, *base, "--method", "deepsensor", "--generator", "swarm:by=(path:points=0)", "-o", "no", names="points")
    w.refused(2, *base, "--method", "deepsensor", "--generator", "swarm:population=0", "-o", "no", names="population")


@check("a swarm is interrupted and goes on")
def _(w):
    command = ["fuzz", "eight.onnx", "--data", "digits:test[0:60]", "--seed", 3, "--seeds", 16, "--batch", 2, "--method", "deepsensor", "--generator",
               "swarm:population=10,generations=6,eps=0.3,by=(path:points=8,tolerance=0)"]
    w.done(*command, "-o", "whole-swarm")
    process = w.start(*command, "-o", "cut-swarm", "--plain")
    while not (w / "cut-swarm" / "campaign.toml").exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate()
    expect(process.returncode in (0, 130), f"exit code {process.returncode}")
    w.done("fuzz", "-o", "cut-swarm")
    expect_equal(store(w / "cut-swarm"), store(w / "whole-swarm"), "the store")


# Every verb, and what goes wrong everywhere: one sentence and an exit code each.

topic("nsgen")

LOOK = ["--data", "digits:train[0:500]"]
NSGEN_LOCK = threading.Lock()
QUICK = "nsgen:describe=neurons.json,steps=6"


def prepare_neurons(w):
    """Made by whoever comes first; the checks may run side by side."""
    with NSGEN_LOCK:
        if not (w / "neurons.json").exists():
            w.done("describe", "eight.onnx", *LOOK, "-o", "neurons.part", "--page", "neurons.html", "--exemplars", "neurons.ex")
            os.rename(w / "neurons.part", w / "neurons.json")
        if not (w / "nsgen-run").exists():
            w.done("fuzz", "eight.onnx", *TEST, "--method", "nsgen", "--guide", QUICK + ",tau=0.95", "--seeds", 40, "--energy", 8,
                   "--iterations", 32, "-o", "nsgen-part")
            os.rename(w / "nsgen-part", w / "nsgen-run")


@check("describe says what neurons see, with what speaks for it")
def _(w):
    prepare_neurons(w)
    neurons = json.loads((w / "neurons.json").read_text())
    expect_equal([layer["tap"] for layer in neurons["layers"]], ["conv1", "conv2"], "the layers")
    every = [neuron for layer in neurons["layers"] for neuron in layer["neurons"]]
    expect_equal(len(every), 6 + 16, "the neurons")
    for neuron in every:
        expect(neuron["words"] and 0 <= neuron["p"] <= 1 and 0 <= neuron["above"] <= 0.01, f"{neuron}")
        expect(len(neuron["exemplars"]) == 15 and sorted(neuron["exemplars"], key=lambda e: -e[1]) == neuron["exemplars"],
               "the exemplars are not sorted")
        expect(not neuron["sure"] or all(part["p"] < 0.01 for part in neuron["parts"]), f"sure without reason: {neuron}")
    expect(sum(neuron["sure"] for neuron in every) > len(every) / 2, "most neurons of a LeNet have no name")
    page = (w / "neurons.html").read_text()
    expect(page.count("<li ") == len(every) and "data:image/png;base64" in page and "http:" not in page and "https:" not in page, "the page")
    kept = w.done("describe", "eight.onnx", *LOOK, "-o", "again.json", "--exemplars", "neurons.ex", "--threads", 1)
    expect("taken from there" in kept.err, "the exemplars were not used")
    expect_equal((w / "again.json").read_text(), (w / "neurons.json").read_text(), "words by one thread")


@check("describe knows the classes of output neurons")
def _(w):
    out = json.loads(w.done("describe", "eight.onnx", *LOOK, "--layers", "fc3", "-o", "outputs.json", "--json").out)
    words = out["layers"][0]["words"]
    right = sum(said == f"{digit} pictures" for digit, said in enumerate(words))
    expect(right >= 8, f"only {right} of ten: {words}")


@check("describers: formulas, and a list")
def _(w):
    out = json.loads(w.done("describe", "eight.onnx", *LOOK, "--layers", "conv1", "--describer", "formula:images=200", "-o", "formula.json",
                            "--json").out)
    expect(any(" or " in said or " and " in said or " but not " in said for said in out["layers"][0]["words"]), f"no formula in {out}")
    listed = [entry["name"] for entry in json.loads(w.done("describe", "--list", "--json").out)["describers"]]
    expect({"dissect", "formula", "captioner"} <= set(listed), f"{listed}")


TINY_CAPTIONER = ["--neurons", 60, "--epochs", 2, "--embedding", 16, "--hidden", 16, "--attention", 16, "--language", 16]


@check("train-captioner learns sentences, and describe says them")
def _(w):
    prepare_neurons(w)
    found = json.loads(w.done("train-captioner", *TINY_CAPTIONER, "--count", 4, "-o", "words.captioner", "--json").out)
    expect_equal([a["name"] for a in found["attributes"]], ["colour", "texture", "shape", "place"], "the attributes")
    expect_equal(found["neurons"] + found["held_out"], 60, "the neurons")
    expect("BLEU" in w.done("train-captioner", *TINY_CAPTIONER, "--count", 4, "-o", "words2.captioner", "--threads", 1).out, "no summary")
    expect_equal((w / "words2.captioner").read_bytes(), (w / "words.captioner").read_bytes(), "what one thread learns")
    said = json.loads(w.done("describe", "eight.onnx", *LOOK, "--exemplars", "neurons.ex", "--describer", "captioner:file=words.captioner",
                             "-o", "captions.json", "--json").out)
    expect_equal([len(layer["words"]) for layer in said["layers"]], [6, 16], "the neurons")
    expect_equal(said["describer"].split(":")[0], "captioner", "the describer")
    w.done("explain", "eight.onnx", "digits:test[0]", "--describe", "captions.json")
    good = (w / "words.captioner").read_bytes()
    for name, content in (("cut", good[:len(good) // 2]), ("empty", b""), ("noise", noise(5000)), ("exemplars", (w / "neurons.ex").read_bytes()),
                          ("flipped", good[:-9] + bytes([good[-9] ^ 1]) + good[-8:])):
        (w / f"bad-{name}.captioner").write_bytes(content)
        w.refused(3, "describe", "eight.onnx", *LOOK, "--describer", f"captioner:file=bad-{name}.captioner", "-o", "bad-captions.json",
                  names=f"bad-{name}.captioner")
    w.refused(3, "describe", "eight.onnx", *LOOK, "--describer", "captioner:file=missing.captioner", "-o", "bad-captions.json",
              names="missing.captioner")
    w.refused(2, "describe", "eight.onnx", *LOOK, "--describer", "captioner", "-o", "bad-captions.json", names="train-captioner")
    expect(not (w / "bad-captions.json").exists(), "something was written")


@check("train-captioner takes a folder of annotated neurons")
def _(w):
    folder = w / "annotated"
    (folder / "layer1").mkdir(parents=True, exist_ok=True)
    pixels = bytes(i * i * 7919 // 64 % 256 for i in range(24 * 3 * 3 * 400))
    (folder / "layer1/images.npy").write_bytes(npy([24, 3, 3, 20, 20], "|u1", pixels))
    (folder / "layer1/masks.npy").write_bytes(npy([24, 3, 1, 20, 20], "|u1", bytes(value > 200 for value in pixels[:24 * 3 * 400])))
    lines = ["layer,unit,summary"] + [f'layer1,{unit},"Thing {unit % 3}, seen."' for unit in range(24)]
    (folder / "annotations.csv").write_text("\n".join(lines) + "\n")
    command = ["train-captioner", "--data", "annotated", *TINY_CAPTIONER]
    found = json.loads(w.done(*command, "--count", 3, "-o", "people.captioner", "--json").out)
    expect_equal([found["neurons"] + found["held_out"], found["vocabulary"], found["attributes"]], [24, 5, []], "what was learned")
    w.refused(3, "train-captioner", "--data", "nowhere", "-o", "no.captioner", names="annotations.csv")
    w.refused(3, *command, "--count", 4, "-o", "no.captioner", names="--count")
    (folder / "annotations.csv").write_text("\n".join(lines) + "\nlayer1,99,x\n")
    w.refused(3, *command, "--count", 3, "-o", "no.captioner", names="unit 99")
    w.refused(2, "train-captioner", names="output")
    expect(not (w / "no.captioner").exists(), "something was written")


@check("calibrate records a threshold, and the guide uses it")
def _(w):
    prepare_neurons(w)
    found = json.loads(w.done("calibrate", "eight.onnx", "--describe", "neurons.json", *LOOK, "--guide", QUICK, "-o", "tau.json", "--json").out)
    expect_equal(found["mutants"], 95 * found["inputs"], "the mutants")
    expect(found["below"] <= 0.25 and found["tau"] == found["quartiles"][0] and -1 <= found["correlation"]["r"] < 0, f"{found}")
    again = json.loads(w.done("calibrate", "eight.onnx", "--describe", "neurons.json", *LOOK, "--guide", QUICK, "-o", "tau2.json", "--json",
                              "--threads", 1).out)
    expect_equal((w / "tau2.json").read_text(), (w / "tau.json").read_text(), "what one thread finds")
    expect_equal(again["tau"], found["tau"], "the threshold")
    result = w.done("fuzz", "eight.onnx", *TEST, "--method", "nsgen", "--guide", "nsgen:describe=tau.json,steps=6", "--seeds", 10, "--iterations",
                    4, "--energy", 4, "-o", "nsgen-tau")
    expect("is found on mutants" not in result.err, "it calibrated again")
    with sqlite3.connect(w / "nsgen-tau/campaign.db") as store:
        said = [json.loads(row[0]) for row in store.execute("SELECT metadata FROM inputs WHERE metadata != ''")]
    expect(all(abs(entry["threshold"] - found["tau"]) < 1e-12 and entry["similarity"] < found["tau"] for entry in said), f"{said[:2]}")


@check("fuzz --method nsgen keeps reasons, and needs no file")
def _(w):
    prepare_neurons(w)
    faults = json.loads(w.done("faults", "nsgen-run", "--json").out)
    with_reasons = [fault for fault in faults["faults"] if "reasons" in json.dumps(fault)]
    expect(with_reasons and len(with_reasons) == len(faults["faults"]), "faults without reasons")
    w.done("report", "nsgen-run", "-o", "nsgen.html")
    expect("a photo of a " in (w / "nsgen.html").read_text(), "the page does not show reasons")
    result = w.done("fuzz", "eight.onnx", "--data", "digits:test[0:60]", "--method", "nsgen", "--guide", "nsgen:steps=2", "--seeds", 10,
                    "--iterations", 2, "--energy", 2, "-o", "nsgen-alone")
    expect("no descriptions of neurons are given" in result.err and "no threshold is known" in result.err, result.err[-500:])
    w.done("check", "nsgen-run", "--no-lineages")


@check("explain prints a path and draws it")
def _(w):
    prepare_neurons(w)
    w.done("data", "export", "digits:test[0:1]", "--to", "folder", "-o", "why")
    shutil.copy(w / "why/000000.png", w / "why.png")
    for form, begins in (("png", b"\x89PNG"), ("svg", b"<svg "), ("html", b"<!doctype html>")):
        result = w.done("explain", "eight.onnx", "./why.png", "--describe", "neurons.json", "-o", f"why-{form}.{form}")
        expect((w / f"why-{form}.{form}").read_bytes().startswith(begins), f"no {form}")
    expect("a photo of a " in result.out and "conv1" in result.out and "conv2" in result.out, result.out)
    data = json.loads(w.done("explain", "eight.onnx", "./why.png", "--describe", "neurons.json", "--target", 3, "--json").out)
    expect_equal([data["inputs"][0]["target"], len(data["inputs"][0]["path"])], ["3", 2], "target and path")
    for step in data["inputs"][0]["path"]:
        expect(abs(step["share_of_layer"] - 1) < 0.01, f"what flows through a layer is not the rise of the score: {step}")
    fault = json.loads(w.done("faults", "nsgen-run", "--json").out)["faults"][0]["id"]
    pair = json.loads(w.done("explain", "nsgen-run", "--fault", fault, "--describe", "neurons.json", "-o", "fault.svg", "--json").out)
    expect(len(pair["inputs"]) == 2 and pair["similarity"] < 1 and "parts_at" in pair, f"{pair}")
    alone = w.done("explain", "one.onnx", "./why.png")
    expect("nobody described" in alone.err and "neuron " in alone.out, alone.err[-300:])
    w.refused(2, "explain", "eight.onnx", "./why.png", "--describe", "neurons.json", "-o", "why.jpg", names=".svg")
    w.refused(2, "explain", "nsgen-run", names="--fault")
    w.refused(2, "explain", "eight.onnx", "./why.png", "--describe", "neurons.json", "--target", "cat", names="cat")


def bad_neurons(w, name, make, mentions):
    prepare_neurons(w)
    path = w / f"bad-{name}.json"
    make((w / "neurons.json").read_bytes(), path)
    for verb in (["explain", "eight.onnx", "digits:test[0]", "--describe", path.name],
                 ["calibrate", "eight.onnx", "--describe", path.name, *LOOK, "-o", "bad.out"],
                 ["fuzz", "eight.onnx", *TEST, "--guide", f"nsgen:describe={path.name},tau=0.9", "-o", f"bad-{name}"]):
        w.refused(3, *verb, names=mentions)
    expect(not (w / "bad.out").exists(), "something was written")


add_checks("bad descriptions", [
    ("cut", "cut", lambda good, path: path.write_bytes(good[:len(good) // 2]), "cut short"),
    ("empty", "empty", lambda good, path: path.write_bytes(b""), "cut short"),
    ("noise", "noise", lambda good, path: path.write_bytes(noise(5000)), "bad-noise.json"),
    ("another format", "format", lambda good, path: path.write_bytes(b'{"format": "x"}'), "no description"),
    ("missing", "missing", lambda good, path: None, "bad-missing.json"),
    ("a layer too small", "layer", lambda good, path: path.write_text(json.dumps({**json.loads(good), "layers": [
        {**layer, "neurons": layer["neurons"][1:]} for layer in json.loads(good)["layers"]]})), "no layer"),
], bad_neurons)


@check("descriptions of another model are refused")
def _(w):
    prepare_neurons(w)
    w.refused(3, "explain", "one.onnx", "digits:test[0]", "--describe", "neurons.json", names="another model")
    w.refused(3, "fuzz", "one.onnx", *TEST, "--guide", QUICK + ",tau=0.9", "-o", "bad-model", names="another model")
    w.refused(3, "describe", "one.onnx", *LOOK, "--exemplars", "neurons.ex", "-o", "bad-ex.json", names="another model")
    (w / "cut.ex").write_bytes((w / "neurons.ex").read_bytes()[:5000])
    w.refused(3, "describe", "eight.onnx", *LOOK, "--exemplars", "cut.ex", "-o", "bad-ex.json", names="cut.ex")


topic("cagfuzz")

TINY = ["--translator", "resnet:width=4,blocks=1", "--critic-width", 4, "--epoch-images", 64, "--batch", 16, "--micro-batch", 8,
        "--optimizer", "adam:lr=0.002,beta1=0.5"]
AEG_DATA = ["--data", "digits:train[0:300]", "--test", "digits:test[0:60]"]
AEG_LOCK = threading.Lock()


def prepare_aeg(w):
    """A network that makes examples, hardly trained; made by whoever comes first."""
    with AEG_LOCK:
        if not (w / "aeg.onnx").exists():
            w.done("train-generator", *AEG_DATA, *TINY, "--epochs", 3, "--sheets", "none", "-o", "aeg.onnx")


def cagfuzz(folder, *more):
    return ["fuzz", "eight.onnx", "--data", "digits:test[0:100]", "--method", "cagfuzz", "--aeg", "aeg.onnx", "--reference", "one.onnx",
            "--seeds", 30, "--seed", 4, *more, "-o", folder]


@check("train-generator: figures, sheets, what is wrong with it, and a file that others open")
def _(w):
    command = ["train-generator", *AEG_DATA, *TINY, "--epochs", 2]
    said = json.loads(w.done(*command, "--metrics", "g.csv", "-o", "g.onnx", "--json").out)
    expect_equal([e["epoch"] for e in said["epochs"]], [1, 2], "the epochs")
    expect(said["epochs"][1]["cycle"] < said["epochs"][0]["cycle"], "the way back is not learned")
    figures = said["figures"]
    expect_equal(figures["images"], 60, "the images that are looked at")
    expect(0 < figures["ssim"] < 1 and figures["change"] > 0 and 0 <= figures["unchanged"] <= 1, str(figures))
    expect_equal(sorted(p.name for p in (w / "g.sheets").iterdir()), ["epoch-001.png", "epoch-002.png"], "the sheets")
    expect((w / "g.sheets" / "epoch-002.png").read_bytes().startswith(b"\x89PNG"), "a sheet is no PNG")
    expect_equal(len((w / "g.csv").read_text().splitlines()), 3, "the lines of metrics")
    expect_equal(sorted(p.name for p in w.folder.glob("g.onnx*")), ["g.onnx"], "what is left")
    # Two epochs do not make a generator, and it says so.
    result = w.run(*command, "-o", "g.onnx", "--sheets", "none", "--fail-if", "ssim<0.99")
    expect_equal(result.code, 1, "the gate")
    expect("SSIM" in result.out and "epoch" in result.out, result.out[-500:])
    expect(bool(figures["complaints"]) == ("warning:" in result.err), f"{figures['complaints']}: {result.err[-300:]}")
    listed = w.done("train-generator", "--list").out
    expect(all(name in listed for name in ("resnet", "unet", "halves", "pair", "clusters")), listed)
    seen = json.loads(w.done("train-generator", "--list", "--json").out)
    expect_equal([len(seen["translators"]), len(seen["domains"])], [2, 3], "what is listed")


@check("train-generator: other domains, networks and losses")
def _(w):
    base = ["train-generator", *TINY, "--epochs", 1, "--sheets", "none", "--json"]
    for name, more in {"pair": [*AEG_DATA, "--domains", "pair:a=3,b=8"], "clusters": [*AEG_DATA, "--domains", "clusters:features=one.onnx"],
                       "log": [*AEG_DATA, "--adversarial", "log", "--replay", 0, "--identity", 0],
                       "two": ["--data", "digits:train[class=1]", "--other", "digits:train[class=7]", "--test", "digits:test[0:20]"]}.items():
        said = json.loads(w.done(*base, *more, "-o", f"d-{name}.onnx").out)
        expect(math.isfinite(said["epochs"][0]["critics"]), name)
    said = w.done("train-generator", *AEG_DATA, *TINY[2:], "--translator", "unet:width=4", "--epochs", 1, "--sheets", "none", "-o", "u.onnx")
    expect("SSIM" in said.out, said.out)
    w.refused(2, *base, *AEG_DATA, "--domains", "thirds", "-o", "no.onnx", names="halves")
    w.refused(2, *base, *AEG_DATA, "--domains", "pair:a=3,b=12", "-o", "no.onnx", names="'12'")
    w.refused(2, *base, *AEG_DATA, "--domains", "halves", "--other", "digits", "-o", "no.onnx", names="--domains")
    w.refused(2, *base, *AEG_DATA, "--adversarial", "hinge", "-o", "no.onnx", names="squares")
    w.refused(2, "train-generator", "-o", "no.onnx", names="--data")
    w.refused(3, *base, *AEG_DATA, "--domains", "clusters:features=gone.onnx", "-o", "no.onnx", names="gone.onnx")
    expect(not (w / "no.onnx").exists(), "something was written")


@check("a killed training of a generator goes on to the same bytes")
def _(w):
    command = ["train-generator", *AEG_DATA, *TINY, "--epochs", 3, "--sheets", "none"]
    w.done(*command, "-o", "calm.onnx")
    process = w.start(*command, "-o", "cut.onnx", "--json-lines")
    # The checkpoint of an epoch is written after its line.
    for _ in range(2):
        process.stdout.readline()
    process.kill()
    process.communicate()
    expect((w / "cut.onnx.checkpoint").exists(), "there is no checkpoint")
    w.refused(2, *command, "--cycle", 5, "-o", "cut.onnx", names="cycle")
    w.done(*command, "-o", "cut.onnx", "--threads", 1)
    expect((w / "cut.onnx").read_bytes() == (w / "calm.onnx").read_bytes(), "the models differ")
    expect(not (w / "cut.onnx.checkpoint").exists(), "the checkpoint is left")


@check("fuzz --method cagfuzz: examples that are similar enough, the same ones every time")
def _(w):
    prepare_aeg(w)
    loose = ["--generator", "aeg:similarity=0.5", "--iterations", 64]
    found = json.loads(w.done(*cagfuzz("cag", *loose), "--json").out)
    expect_equal(found["mutants"], 64 * 10, "the examples")
    expect(0 < found["valid"] <= found["mutants"] / 2, f"{found['valid']} are valid")
    expect(found["passes"] >= 2 * found["mutants"], f"{found['passes']} passes are counted")
    w.done(*cagfuzz("cag-1", *loose, "--threads", 1))
    expect_equal(store(w / "cag-1"), store(w / "cag"), "the store on one thread")
    w.done(*cagfuzz("cag-cut", "--generator", "aeg:similarity=0.5", "--iterations", 32))
    w.done("fuzz", "-o", "cag-cut", "--iterations", 64)
    expect_equal(store(w / "cag-cut"), store(w / "cag"), "the store of what was gone on with")
    w.done("check", "cag")
    if found["faults"]:
        w.done("replay", "cag")
        for fault in json.loads(w.done("faults", "cag", "--most", 0, "--json").out)["faults"]:
            expect(fault["remarks"]["figures"]["similarity"] >= 0.5, str(fault["remarks"]))
    # Any guide may use examples, and mutation may be mixed in.
    mixed = json.loads(w.done("fuzz", "eight.onnx", *TEST, "--guide", "random", "--seeds", 20, "--iterations", 20, "--generator",
                              "mix:first=(aeg:model=aeg.onnx,features=none),second=mutate", "-o", "cag-mixed", "--json").out)
    kinds = {m["name"]: m["mutants"] for m in json.loads(w.done("stats", "cag-mixed", "--json").out)["mutators"]}
    expect(kinds["aeg"] == mixed["mutants"] / 2 and len(kinds) > 2, str(kinds))
    w.done("check", "cag-mixed")
    plain = ["fuzz", "eight.onnx", *TEST, "--method", "cagfuzz", "-o", "cag-no"]
    w.refused(2, *plain, names="train-generator")
    w.refused(2, *plain, "--aeg", "aeg.onnx", names="--reference")
    w.refused(3, *plain, "--aeg", "eight.onnx", "--reference", "none", names="eight.onnx")
    w.refused(3, *plain, "--aeg", "gone.onnx", "--reference", "none", names="gone.onnx")
    expect(not (w / "cag-no" / "campaign.toml").exists(), "a campaign was begun")


@check("transfer: campaigns and attacks on other models")
def _(w):
    w.done(*fuzz(folder="to-transfer", guide="random", iterations=40))
    w.done("attack", "one.onnx", *TEST, "--method", "fgsm", "--eps", "0.3", "-o", "attack-to-transfer")
    said = json.loads(w.done("transfer", "to-transfer", "attack-to-transfer", "--plot", "t.svg", "-o", "t.json", "--json").out)
    expect_equal(said, json.loads((w / "t.json").read_text()), "the file")
    expect_equal(said["models"], ["eight", "one"], "the models")
    matrix = [row["models"] for row in said["rows"]]
    expect_equal([matrix[0][0]["rate"], matrix[1][1]["rate"]], [1, 1], "what a model's own faults do to it")
    expect(matrix[0][0]["own"] and matrix[1][1]["own"] and not matrix[0][1]["own"], "whose they are")
    for row in matrix:
        for cell in row:
            expect_equal(len(set(cell["broken_ids"])), cell["broken"], "the ids")
            expect(cell["broken"] <= cell["right"] <= cell["tests"] and cell["broken"] <= cell["wrong"], str(cell))
    quality = json.loads(w.done("quality", "one.onnx", "--tests", "to-transfer", "--metrics", "mr", "--json").out)
    expect_equal([matrix[0][1]["tests"], matrix[0][1]["wrong"]], [quality["tests"], quality["misclassified"]], "what quality says")
    expect("%<" in (w / "t.svg").read_text(), "the heat map says nothing")
    result = w.run("transfer", "to-transfer", "--models", "one.onnx", "--fail-if", "highest>=0")
    expect_equal(result.code, 1, "the gate")
    expect("eight" in result.out and "one" in result.out, result.out)
    w.refused(2, "transfer", "to-transfer", names="--models")
    w.refused(3, "transfer", "to-transfer", "--models", "gone.onnx", names="gone.onnx")


topic("sounds")


def write_words(folder):
    """Two classes that a network of sounds tells apart by little: more above zero, or more below."""
    for i in range(6):
        write_wav(folder / f"high/{i}.wav", [1008 + 8 * i, -1000] * 400)
        write_wav(folder / f"low/{i}.wav", [1000, -1008 - 8 * i] * 400)


@check("a campaign on sounds keeps faults as WAV files that fail again")
def _(w):
    (w / "heard.onnx").write_bytes(sound_network(800))
    write_words(w / "spoken")
    run = ["fuzz", "heard.onnx", "--data", "spoken/", "--guide", "nlc", "--seeds", 8, "--energy", 16, "--batch", 4, "--plain", "-o", "heard"]
    stats = json.loads(w.done(*run, "--iterations", 8, "--json").out)
    expect(stats["faults"] > 0, "nothing was found")
    record = (w / "heard/campaign.toml").read_text()
    expect("input = '1,800@8000'" in record and "set=audio" in record, record)
    files = sorted((w / "heard/faults").iterdir())
    expect(files and all(f.suffix == ".wav" for f in files), str(files[:3]))
    with wave.open(str(files[0])) as f:
        expect_equal((f.getnchannels(), f.getsampwidth(), f.getframerate(), f.getnframes()), (1, 2, 8000, 800), "a fault's file")
    more = json.loads(w.done("fuzz", "-o", "heard", "--iterations", 16, "--plain", "--json").out)
    expect(more["faults"] >= stats["faults"] and more["iterations"] == 16, str(more))
    run[-1] = "heard-at-once"
    expect_equal(json.loads(w.done(*run, "--iterations", 16, "--threads", 1, "--json").out)["faults"], more["faults"], "the faults at once")
    replay = json.loads(w.done("replay", "heard", "--json").out)
    expect_equal((replay["faults"], replay["fail"], replay["as_before"]), (more["faults"],) * 3, "the replay")
    expect(json.loads(w.done("check", "heard", "--json").out)["sound"], "the campaign is damaged")
    small = json.loads(w.done("faults", "heard", "--minimise", "--most", 3, "--json").out)
    expect(all(f["minimised_pixels"] <= f["pixels"] for f in small["faults"]), str(small["faults"]))
    expect(any((w / "heard/minimised").glob("*.wav")) and (w / "heard/minimised/sheet.png").exists(), "the minimised sounds")
    w.done("faults", "heard", "--cluster", "--json")
    w.done("export", "heard", "-o", "heard-faults")
    expect(any((w / "heard-faults").glob("*.wav")), "no WAV file was exported")
    w.done("export", "heard", "--to", "npz", "-o", "heard.npz")
    w.done("report", "heard", "-o", "heard.html")
    page = (w / "heard.html").read_text()
    expect('"sounds"' in page and "media-src data:" in page, "the page has no sounds")
    damaged = files[0].read_bytes()
    files[0].write_bytes(damaged[:-2] + b"\x12\x34")
    expect_equal(w.run("replay", "heard").code, 1, "the exit code of a replay with a changed file")
    w.refused(3, "faults", "heard", "--minimise", names="other samples")


@check("inspect says of a network of sounds what is true of sounds")
def _(w):
    (w / "named.onnx").write_bytes(sound_network(800))
    write_words(w / "named")
    shown = w.done("inspect", "named.onnx").out
    expect(re.search(r"^input +1x800 \(sounds\)$", shown, re.M) and "samples -1..1" in shown, shown[:500])
    expect("rgb" not in shown and "nchw" not in shown, shown[:500])
    run = w.done("fuzz", "named.onnx", "--data", "named/", "--guide", "nlc", "--iterations", 16, "--plain", "-o", "named-run")
    told = run.out + run.err
    expect("preprocessing: samples -1..1" in told and "rgb" not in told, told)
    for tests in (["--tests", "named-run"], ["--adversarial", "pgd"]):
        w.refused(3, "repair", "named.onnx", *tests, "--data", "named/", "--rate", 8000, "-o", "no.onnx", names="only image models are repaired")


@check("sounds of formats that are not read are left out aloud")
def _(w):
    write_words(w / "partly")
    (w / "partly/high/7.mp3").write_bytes(b"ID3")
    for _ in range(2):
        told = w.done("data", "info", "partly/")
        expect_equal(told.err.count("1 file is left out (high/7.mp3): sounds are read from WAV, AIFF and FLAC files"), 1, "times it is said")
    (w / "partly/low/8.OGG").write_bytes(b"OggS")
    expect("2 files are left out (high/7.mp3, ...)" in w.done("data", "info", "partly/").err, "two are not counted")


@check("attacks on sounds say how loud the change is")
def _(w):
    (w / "loud.onnx").write_bytes(sound_network(800))
    write_words(w / "shouted")
    told = w.done("attack", "loud.onnx", "--data", "shouted/", "-o", "loud")
    expect("SNR in dB" in told.out and "eps 0.002 of the full scale in linf, as is usual for sounds" in told.err, told.out + told.err)
    found = json.loads(w.done("attack", "-o", "loud", "--json").out)
    level = found["levels"][-1]
    expect(level["broken"] > 0 and 10 < level["snr"]["mean"] < 60, str(level))
    replay = json.loads(w.done("replay", "loud", "--json").out)
    expect_equal(replay["faults"], replay["fail"], "the replay")
    expect_equal(w.run("attack", "loud.onnx", "--data", "shouted/", "-o", "gated", "--fail-if", "mean-snr<60").code, 1, "the gate")


@check("sounds of other rates, channels and lengths are made the model's")
def _(w):
    (w / "mixed.onnx").write_bytes(sound_network(800))
    (w / "mixed.toml").write_text("rate = 8000\n")
    write_wav(w / "mixed/high/slow.wav", [900] * 400, rate=4000)
    write_wav(w / "mixed/high/long.wav", [900] * 9000)
    write_wav(w / "mixed/low/short.wav", [-900] * 300)
    with wave.open(str(w / "mixed/low/stereo.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(3)
        file.setframerate(16000)
        file.writeframes(b"\x00\x00\xf0" * 2 * 1600)
    result = w.done("predict", "mixed.onnx", "--data", "mixed/")
    expect("accuracy 100.00%" in result.err, result.err)
    for what in ("of 4 clips, as the model takes 1x800 at 8000 Hz", "1 resampled from 4000 Hz", "1 resampled from 16000 Hz",
                 "1 mixed to one channel", "1 cut to its first 0.1 s", "1 padded with silence"):
        expect(what in result.err, f"{what} is not in {result.err}")
    info = json.loads(w.done("data", "info", "mixed/", "--json").out)
    expect_equal((info["clips"], len(info["sizes"]), info["rate"]), (4, 4, 8000), "what is known of mixed sounds")
    expect("4000 Hz (1), 8000 Hz (2), 16000 Hz (1); 1 channel (3), 2 channels (1)" in w.done("data", "info", "mixed/").out, "the sizes")
    w.refused(2, "predict", "mixed.onnx", "--data", "mixed/", "--rate", "fast", names="--rate")
    (w / "mixed.toml").write_text("rate = 0\n")
    w.refused(3, "predict", "mixed.onnx", "--data", "mixed/", names="samples a second")
    (w / "mixed.toml").write_text("rate = 8000\n")
    (w / "mixed/low/cut.wav").write_bytes((w / "mixed/high/long.wav").read_bytes()[:5000])
    w.refused(3, "predict", "mixed.onnx", "--data", "mixed/", names="cut off: its header says 18000 bytes of sound")
    w.done("predict", "mixed.onnx", "--data", "mixed/", "--skip-broken")
    (w / "mixed/low/cut.wav").write_bytes(b"")
    w.refused(3, "predict", "mixed.onnx", "--data", "mixed/low/cut.wav", names="is empty")
    # Ten hours, most of it a hole in the file.
    head = (w / "mixed/high/long.wav").read_bytes()[:44]
    samples = 2 * 8000 * 36000
    with open(w / "mixed/low/cut.wav", "wb") as file:
        file.write(head[:4] + struct.pack("<I", 36 + samples) + head[8:40] + struct.pack("<I", samples) + struct.pack("<h", -9) * 900)
        file.truncate(44 + samples)
    expect_equal(len(w.done("predict", "mixed.onnx", "--data", "mixed/").out.splitlines()), 6, "rows")


@check("a network of sounds is trained, changed and selected from")
def _(w):
    write_wav(w / "tones/a/0.wav", [0])
    for i in range(24):
        for name, hz in (("a", 300), ("b", 900)):
            write_wav(w / f"tones/{name}/{i}.wav",
                      [int(6000 * math.sin(2 * math.pi * (hz + 7 * i) * k / 8000)) + (k * 7919 + i) % 400 for k in range(4000)])
    trained = json.loads(w.done("train", "audionet", "--data", "tones/", "--optimizer", "adam:lr=0.003", "--epochs", 4, "--batch", 8,
                                "-o", "tones.onnx", "--json").out)
    expect(trained["accuracy"] >= 0.8, str(trained))
    layers = w.done("inspect", "tones.onnx").out
    expect("conv1" in layers and "logmel.cos" not in layers.split("taps")[-1], "the front end counts as neurons")
    w.refused(2, "train", "audionet", "--data", "tones/", "--augment", "flip", "-o", "x.onnx", names="for images")
    w.done("mutate", "--data", "tones/", "--mutators", "audio", "-o", "changes.png")
    picks = w.done("select", "tones.onnx", "--data", "tones/", "--by", "gini,nss", "--top", 5).out
    expect(".wav" in picks, picks)
    w.done("cover", "tones.onnx", "--data", "tones/", "--criteria", "nc", "--json")
    w.done("train", "audionet", "--data", "tones/", "--optimizer", "adam:lr=0.003", "--epochs", 4, "--batch", 8, "--seed", 5, "-o", "others.onnx", "-q")
    explored = ["fuzz", "tones.onnx", "--data", "tones/", "--method", "deepxplore", "--with", "others.onnx", "--seeds", 8, "--iterations", 8]
    found = json.loads(w.done(*explored, "--generator", "deepxplore:step=0.001", "-o", "explored", "--json").out)
    expect(found["mutants"] > 0 and found["faults"] > 0, "models of sounds come to differ")
    expect("fail again" in w.done("replay", "explored").out, "from their files")
    w.refused(2, *explored, "--generator", "deepxplore:constraint=light", "-o", "dark", names="must be one of free")


topic("mishaps")

Habit = collections.namedtuple("Habit", "verb kind command writes", defaults=[True])  # writes: to a file that {output} names
HABITS = [
    Habit("inspect", "model", ["inspect", "{input}", *TEST], False),
    Habit("inspect --guess", "model", ["inspect", "{input}", *TEST, "--guess", "--sample", 20], False),
    Habit("predict", "model", ["predict", "{input}", *TEST, "-o", "{output}"]),
    Habit("diff", "model", ["diff", "one.onnx", "{input}", *TEST, "-o", "{output}"]),
    Habit("cover", "model", ["cover", "{input}", *TEST, "--criteria", "nc", "--csv", "{output}"]),
    Habit("profile", "model", ["profile", "{input}", *TEST, "--criteria", "kmnc", "-o", "{output}"]),
    Habit("trace", "model", ["trace", "{input}", *TEST, "-o", "{output}"]),
    Habit("excite", "model", ["excite", "{input}", "--data", "digits:test[0:8]", "--change", "noise:eps=0.5", "--taps", "fc3", "-o", "{output}"]),
    Habit("features", "model", ["features", "{input}", *TEST, "--neighbours", 2, "--steps", 3, "-o", "{output}"]),
    Habit("train", "data", ["train", "lenet1", "--data", "{input}", "--epochs", 1, "--force", "-o", "{output}"]),
    Habit("train-generator", "data", ["train-generator", "--data", "{input}", *TINY[:4], "--epochs", 1, "--epoch-images", 8, "--sheets", "none",
                                      "-o", "{output}"]),
    Habit("transfer", "campaign", ["transfer", "{input}", "--models", "one.onnx", "--plot", "{output}"]),
    Habit("fuzz", "model", ["fuzz", "{input}", *TEST, "--guide", "random", "--seeds", 9, "--iterations", 4, "--junit", "{output}", "-o",
                            "mishap-{case}"]),
    Habit("attack", "model", ["attack", "{input}", *TEST, "--method", "fgsm", "--junit", "{output}", "--fail-if", "robust<0", "-o",
                              "mishap-{case}"]),
    Habit("repair", "model", ["repair", "{input}", "--tests", "./mishap.npz", "--data", "digits:train[0:64]", "--clean", "digits:test[40:60]",
                              "--epochs", 1, "--control", "none", "-o", "{output}"]),
    Habit("repair --tests", "campaign", ["repair", "eight.onnx", "--tests", "{input}", "--data", "digits:train[0:64]", "--clean",
                                         "digits:test[40:60]", "--per-seed", 1, "--epochs", 1, "--control", "none", "-o", "{output}"]),
    Habit("select", "model", ["select", "{input}", *TEST, "--by", "gini", "-o", "{output}"]),
    Habit("select --evaluate", "data", ["select", "eight.onnx", "--data", "{input}", "--by", "gini,pcs", "--evaluate", "-o", "{output}"]),
    Habit("mutate --one-each", "data", ["mutate", "--data", "{input}", "--set", "blur", "--one-each", "-o", "{output}.npz"], False),
    Habit("mutate", "data", ["mutate", "--data", "{input}", "--mutators", "blur", "-o", "{output}"]),
    Habit("model list", None, ["model", "list"], False),
    Habit("model similarity", None, ["model", "similarity", "hash", "a cat", "cats"], False),
    Habit("data list", None, ["data", "list"], False),
    Habit("data get", None, ["data", "get", "digits"], False),
    Habit("data info", "data", ["data", "info", "{input}", "-o", "{output}"]),
    Habit("data export", "data", ["data", "export", "{input}", "--to", "npz", "-o", "{output}"]),
    Habit("stats", "campaign", ["stats", "{input}", "--junit", "{output}", "--fail-if", "faults<0"]),
    Habit("faults", "campaign", ["faults", "{input}"], False),
    Habit("report", "campaign", ["report", "{input}", "-o", "{output}"]),
    Habit("compare", "campaign", ["compare", "{input}", "mishap-other", "--plot", "{output}"]),
    Habit("export", "campaign", ["export", "{input}", "--to", "csv", "-o", "{output}"]),
    Habit("replay", "campaign", ["replay", "{input}", "--junit", "{output}", "--fail-if", "faults<0"]),
    Habit("quality", "campaign", ["quality", "eight.onnx", "--tests", "{input}", "--metrics", "mr", "-o", "{output}"]),
    Habit("quality --clever", "model", ["quality", "{input}", *TEST, "--clever", "--inputs", 1, "--batches", 2, "--samples", 4, "-o",
                                        "{output}"]),
    Habit("describe", "model", ["describe", "{input}", *TEST, "--layers", "conv1", "-o", "{output}"]),
    Habit("train-captioner", None, ["train-captioner", "--neurons", 20, "--count", 1, "--epochs", 1, "--hidden", 4, "--attention", 4, "--language", 4,
                                    "-o", "{output}"]),
    Habit("calibrate", "model", ["calibrate", "{input}", "--describe", "mishap.neurons", "--data", "digits:test[0:20]", "--guide",
                                 "nsgen:steps=1", "-o", "{output}"]),
    Habit("explain", "model", ["explain", "{input}", "digits:test[0]", "--describe", "mishap.neurons", "--as", "svg", "-o", "{output}"]),
    Habit("merge", "islands", ["merge", "{input}", "-o", "merged-{case}"], False),
    Habit("check", "campaign", ["check", "{input}", "--no-lineages", "--junit", "{output}"]),
]
GOOD = {None: "", "model": "eight.onnx", "data": "./mishap.npz", "campaign": "mishap-run", "islands": "mishap-islands/island-1"}


def filled(habit, case, given, output="mishap.out"):
    folder = f"{case}-{habit.verb.replace(' ', '-')}"
    return [str(word).format(input=given, output=output, case=folder) if isinstance(word, str) else word for word in habit.command]


def prepare_mishaps(w):
    """Made by whoever comes first; the checks may run side by side."""
    with MISHAP_LOCK:
        if not (w / "mishap.npz").exists():
            w.done(*fuzz(folder="mishap-run", guide="random"))
            w.done(*fuzz(folder="mishap-other", guide="tknc"))
            w.done(*fuzz("--island", "1/2", folder="mishap-islands"))
            w.done("describe", "eight.onnx", "--data", "digits:test[0:40]", "--layers", "conv1", "-o", "mishap.neurons")
            w.done("data", "export", "digits:test[0:40]", "--to", "npz", "-o", "mishap.npz")


def one_sentence(result, code, what):
    expect_equal(result.code, code, f"the exit code of {what} ({result.err[-300:]!r})")
    # A generator of examples that was hardly trained says so, whatever else happens.
    lines = [line for line in result.err.splitlines()
             if line.startswith(("error", "warning", "terminate")) and "has not learned the way back" not in line]
    expect(len(lines) == 1 and lines[0].startswith("error: "), f"not one sentence from {what}: {result.err[-500:]!r}")
    return lines[0]


def wrong_flag(w, habit):
    words = habit.command[:2] if habit.verb.startswith(("data ", "model ")) else habit.command[:1]
    said = w.refused(2, *filled(habit, "flag", GOOD[habit.kind]), "--thraeds", 1, names=f"there is no --thraeds in {' '.join(words)}")
    expect("did you mean --threads?" in said, said)


def missing_file(w, habit):
    prepare_mishaps(w)
    if habit.kind:
        w.refused(3, *filled(habit, "missing", "./no-such-thing"), names="no-such-thing")


def broken_file(w, habit):
    prepare_mishaps(w)
    if not habit.kind:
        return
    broken = w / f"broken-{habit.verb.replace(' ', '-')}"
    if habit.kind in ("campaign", "islands"):
        shutil.copytree(w / GOOD[habit.kind], broken)
        (broken / "campaign.db").write_bytes(noise(5000))
        for rest in broken.glob("campaign.db-*"):
            rest.unlink()
    else:
        broken = broken.with_suffix(".onnx" if habit.kind == "model" else ".npz")
        broken.write_bytes(noise(5000))
    w.refused(3, *filled(habit, "broken", f"./{broken.name}"), names=broken.name)


def no_permission(w, habit):
    prepare_mishaps(w)
    closed = w / f"closed-{habit.verb.replace(' ', '-')}"
    closed.mkdir()
    if habit.kind:
        source = w / GOOD[habit.kind]
        target = closed / source.name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        (target / "campaign.toml" if source.is_dir() else target).chmod(0)
        result = w.run(*filled(habit, "unread", f"{closed}/{source.name}"), obeys=True)
        expect("ermission denied" in one_sentence(result, 3, f"{habit.verb} that may not read"), result.err)
    if habit.writes:
        closed.chmod(0o500)
        result = w.run(*filled(habit, "unwritten", GOOD[habit.kind], f"{closed}/out.file"), obeys=True)
        expect("out.file" in one_sentence(result, 4, f"{habit.verb} that may not write"), result.err)
    closed.chmod(0o700)


def full_disk(w, habit):
    prepare_mishaps(w)
    result = w.run(*filled(habit, "full", GOOD[habit.kind]), output="/dev/full")
    if habit.verb not in ("predict",):  # it has nothing to say on standard output
        expect("standard output" in one_sentence(result, 4, f"{habit.verb} > /dev/full"), result.err)
    if habit.writes:
        result = w.run(*filled(habit, "no-space", GOOD[habit.kind], "/dev/full"))
        expect("/dev/full" in one_sentence(result, 4, f"{habit.verb} into /dev/full"), result.err)


for case, function in (("a wrong flag", wrong_flag), ("a missing file", missing_file), ("a broken file", broken_file),
                       ("no permission", no_permission), ("a full disk", full_disk)):
    add_checks(case, [(habit.verb, habit) for habit in HABITS], function)


@check("every verb has its mishaps checked")
def _(w):
    verbs = set(re.findall(r"^  (\S+)", w.done("--help").out, re.MULTILINE)) - {"galvani"}
    expect_equal(verbs - {habit.verb.split()[0] for habit in HABITS}, set(), "the verbs without")


def timed(check, workshop):
    start = time.monotonic()
    check.function(workshop)
    return time.monotonic() - start


def run_checks(workshop, checks, side_by_side):
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(side_by_side) as pool:
        for check, future in zip(checks, [pool.submit(timed, check, workshop) for check in checks]):
            try:
                print(f"ok {future.result():6.1f} s  {check.name}", flush=True)
            except Exception as problem:  # whatever it is, the next check must still run
                failed += 1
                print(f"FAILED  {check.name}\n        {problem}", flush=True)
    return failed


def run_all(workshop, options):
    models = [check for check in CHECKS if check.topic == MODELS]
    others = [check for check in CHECKS if check.topic != MODELS and all(word in check.name for word in options.words)]
    if options.topic:
        others = [check for check in others if check.topic == options.topic]
        expect(others, f"there is no topic {options.topic}: known are {', '.join(TOPICS)}")
    failed = count = 0
    if options.models:
        shutil.copytree(options.models, workshop.folder, dirs_exist_ok=True)
    else:
        failed, count = run_checks(workshop, models, 1), len(models)
    if not options.prepare:
        # CTest runs several topics at a time.
        failed += run_checks(workshop, others, 1 if options.topic else max(2, os.cpu_count() or 2))
        count += len(others)
    return count, failed


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("binary")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--prepare", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--topic")
    options = parser.parse_intermixed_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="galvani-e2e.") as folder:
        workshop = Workshop(options.binary, folder)
        count, failed = run_all(workshop, options)
        workshop.standing.close()
        if options.prepare and not failed:
            shutil.rmtree(options.prepare, ignore_errors=True)
            shutil.copytree(folder, options.prepare)
    print(f"{count - failed} passed, {failed} failed in {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
