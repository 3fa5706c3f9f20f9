"""What the tests share."""
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import numpy as np

import galvani

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stand_by"))
from stand_by import Standing  # noqa: E402

STANDING = Standing(os.environ["GALVANI"])
MODELS = pathlib.Path(os.environ["GALVANI_MODELS"])
TEST = "digits:test[0:300]"
TRAIN = "digits:train[0:600]"
# What two runs of the same work differ in.
OF_THE_RUN = {"seconds", "forward_seconds", "times", "rate", "rft", "rft_all", "fre", "fre_all", "event", "bytes"}


def command(*words, folder=".", code=0):
    """The command line's own answer."""
    done = STANDING.run(words, os.path.abspath(folder), os.environ)
    if done.code != code:
        raise AssertionError(f"galvani {' '.join(map(str, words))}: {done.code}\n{done.err}")
    return done.out


def told(document):
    """A result without what the clock decided."""
    if isinstance(document, dict):
        return {key: told(value) for key, value in document.items() if key not in OF_THE_RUN}
    if isinstance(document, list):
        return [told(value) for value in document]
    if isinstance(document, np.ndarray):
        return document.tolist()
    return document


class Case(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir="."))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, self.before)
        for name in ("eight.onnx", "one.onnx", "eight.profile"):
            shutil.copy(MODELS / name, name)

    def refuses(self, kind, words, work):
        """`work` ends with an exception of `kind` that is one sentence with `words` in it."""
        with self.assertRaises(kind) as caught:
            work()
        sentence = str(caught.exception)
        self.assertIn(words, sentence)
        self.assertNotIn("\n", sentence)


def digits(n=300, split="test"):
    data = galvani.Data(f"digits:{split}[0:{n}]")
    return np.array(data[:]), np.array(data.labels)


def document(*words):
    return json.loads(command(*words, "--json"))
