"""The package as a whole: types, help, examples."""
import ast
import importlib.util
import inspect
import json
import os
import pathlib
import pydoc
import shutil
import subprocess
import sys
import unittest

import numpy as np

import galvani
from common import Case

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(galvani.__file__).parent

USE = '''
import numpy as np
import numpy.typing as npt
import galvani

network: galvani.Network = galvani.Network.load("m.onnx", mean="0.5")
images = np.zeros((2, 1, 28, 28), np.uint8)
labels: npt.NDArray[np.int64] = network.predict(images).predicted
result = galvani.fuzz(network, data=(images, labels), guide="nc", seeds=10, time="10s", on_event=print)
galvani.cover(network, data=galvani.Data("digits"), criteria=["nc", "tknc"])
for event in galvani.events(galvani.fuzz, network, data="digits"):
    print(event["event"])
with galvani.Campaign("run") as run:
    print(run.faults(most=3), run.fault_columns()["change"].mean())


class Mine:
    def decide(self, batch: galvani.Judged) -> npt.ArrayLike:
        gains: npt.NDArray[np.float32] = batch.logits.max(1) - batch.logits.mean(1)
        return gains


galvani.add_guide("mine", Mine)
'''

MISUSE = '''
import galvani
galvani.fuzz("m.onnx", data="digits", seeds="many")
galvani.fuzz("m.onnx", data="digits", sedes=3)
galvani.attack("m.onnx", data="digits", norm="l7")
galvani.Network.load(3)
'''


class Package(Case):
    @unittest.skipUnless(shutil.which("mypy"), "mypy is not installed")
    def test_mypy_accepts_the_package_and_its_use_and_finds_misuse(self):
        pathlib.Path("use.py").write_text(USE)
        pathlib.Path("misuse.py").write_text(MISUSE)
        # The package's own modules are looked at, too, for they are imported.
        done = subprocess.run(["mypy", "--strict", "--cache-dir", "mypy-cache", "use.py", "misuse.py"],
                              capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})
        wrong = [line.split(":")[:2] for line in done.stdout.splitlines() if ": error: " in line]
        self.assertEqual(wrong, [["misuse.py", str(line)] for line in (3, 4, 5, 6)], done.stdout + done.stderr)

    def test_every_verb_is_a_function_with_its_options_explained(self):
        tree = ast.parse((PACKAGE / "verbs.py").read_text())
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        self.assertGreater(len(functions), 25)
        for node in functions:
            function = getattr(galvani, node.name)
            text = inspect.getdoc(function)
            for name in inspect.signature(function).parameters:
                self.assertIn(f"{name}: ", text, f"{node.name} does not explain {name}")
            self.assertLessEqual(max(map(len, text.splitlines())), 120)

    def test_help_reads_well(self):
        text = pydoc.plain(pydoc.render_doc(galvani.fuzz))
        for words in ("Find inputs that break a network.", "guide: which candidates to keep", "(default: sweep)",
                      "on_event: called with", "Budget", "energy: candidates of an input that was picked"):
            self.assertIn(words, text)
        self.assertNotIn("--", text.split("For example:")[1])

    def test_examples_of_the_help_are_calls_that_python_takes(self):
        names = []
        for name in galvani.verbs.__all__:
            function = getattr(galvani, name)
            for line in inspect.getdoc(function).splitlines():
                if line.strip().startswith("galvani."):
                    call = ast.parse(line.strip(), mode="eval").body
                    self.assertEqual(call.func.attr, name)
                    values = [ast.literal_eval(value) for value in call.args]
                    inspect.signature(function).bind(*values, **{word.arg: ast.literal_eval(word.value) for word in call.keywords})
                    names.append(name)
        self.assertGreater(len(set(names)), 25)
        self.assertGreater(len(names), 70)

    def test_the_package_needs_no_torch_for_python(self):
        program = ("import sys; sys.modules['torch'] = None; import galvani, numpy as np; "
                   "print(galvani.Network.load('eight.onnx').predict(np.zeros((1, 1, 28, 28), np.uint8)).predicted.shape)")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual(done.stdout, "(1,)\n", done.stderr)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "python3-torch is not installed")
    def test_the_first_hour_as_a_program(self):
        done = subprocess.run([sys.executable, SOURCE / "examples/first_hour.py", "--quick"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("repaired", done.stdout)

    def test_the_notebook_is_the_program_and_has_its_pictures(self):
        notebook = SOURCE / "examples/first_hour.ipynb"
        done = subprocess.run([sys.executable, SOURCE / "scripts/make_notebook.py", SOURCE / "examples/first_hour.py", notebook,
                               "--same"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = [kind for cell in json.loads(notebook.read_text())["cells"] for output in cell.get("outputs", [])
                 for kind in output.get("data", {})]
        self.assertEqual([shown.count("image/png"), shown.count("text/html")], [3, 1])

    def test_pictures(self):
        galvani.attack("eight.onnx", data="digits:test[0:20]", method="fgsm", eps="0,0.1", output="adv", plot="curve.svg")
        curve, drawn = galvani.Picture.open("curve.svg"), galvani.sheet(np.zeros((3, 1, 28, 28), np.uint8))
        self.assertIn("data:image/svg+xml;base64,", curve._repr_html_())
        self.assertIsNone(curve._repr_png_())
        self.assertIsNone(drawn._repr_html_())
        drawn.save("sheet.png")
        self.assertEqual(galvani.Picture.open("sheet.png")._repr_png_(), drawn.data)
        self.refuses(galvani.InputError, "eight.onnx", lambda: galvani.Picture.open("eight.onnx"))
        self.refuses(galvani.InputError, "nowhere.png", lambda: galvani.Picture.open("nowhere.png"))

    @unittest.skipUnless(importlib.util.find_spec("torch") and importlib.util.find_spec("ipykernel") and
                         importlib.util.find_spec("nbconvert"), "python3-torch, python3-ipykernel or nbconvert is not installed")
    def test_the_notebook_runs(self):
        done = subprocess.run([sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output-dir", os.getcwd(),
                               SOURCE / "examples/first_hour.ipynb"], capture_output=True, text=True,
                              env={**os.environ, "FIRST_HOUR": "quick"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("repaired network", pathlib.Path("first_hour.ipynb").read_text())
