"""The command line's figures and Python's, for every verb, in one table."""
import os

import galvani
from common import TEST, TRAIN, Case, document, told

FUZZ = dict(data=TEST, guide="nc", seeds=60, energy=8, iterations=64, batch=8)

# A verb, its options; a name says where the command line's are other words.
TABLE = [
    ("inspect", ["eight.onnx"], dict(data=TEST)),
    ("predict", ["eight.onnx"], dict(data=TEST)),
    ("cover", ["eight.onnx"], dict(data=TEST, criteria="nc,tknc,nlc", by_class=True)),
    ("cover", ["eight.onnx"], dict(data=TEST, criteria="kmnc,nbc", profile="eight.profile")),
    ("cover", ["eight.onnx"], dict(compare=["digits:test[0:100]", "digits:test[100:300]"], criteria="nc,tknc")),
    ("profile", ["eight.onnx"], dict(data=TRAIN, output="p")),
    ("trace", ["eight.onnx"], dict(data=TEST, output="t.npz")),
    ("fuzz", ["eight.onnx"], dict(output="run", **FUZZ)),
    ("fuzz", ["eight.onnx"], dict(output="run-islands", islands=2, exchange=16, **FUZZ)),
    ("merge", ["run-islands"], dict(output="merged")),
    ("fuzz", ["eight.onnx"], dict(output="run-kmnc", train=TRAIN, **{**FUZZ, "guide": "kmnc"})),
    ("fuzz", ["eight.onnx"], dict(output="run-noise", **{**FUZZ, "guide": "random", "generator": "noise:eps=16/255"})),
    ("stats", ["run"], {}),
    ("faults", ["run"], {}),
    ("replay", ["run"], {}),
    ("check", ["run"], {}),
    ("export", ["run"], dict(output="faults.npz")),
    ("report", ["run"], dict(output="page.html")),
    ("quality", ["eight.onnx"], dict(tests="run")),
    ("attack", ["eight.onnx"], dict(data="digits:test[0:60]", method="fgsm", eps="0,8/255,32/255", output="adv")),
    ("attack", ["eight.onnx"], dict(data="digits:test[0:20]", method="deepfool", output="smallest")),
    ("select", ["eight.onnx"], dict(data=TEST, by="gini,nss", top="5%")),
    ("select", ["eight.onnx"], dict(data=TEST, train=TRAIN, by="dsa", evaluate=True)),
    ("describe", ["eight.onnx"], dict(data=TRAIN, layers="conv1", output="neurons.json")),
    ("explain", ["eight.onnx", "digits:test[7]"], dict(describe="neurons.json", guide="nsgen:steps=8")),
    ("explain", ["run"], dict(fault=1, describe="neurons.json", guide="nsgen:steps=8")),
    ("excite", ["eight.onnx"], dict(data="digits:test[0:20]", change="noise:eps=16/255")),
    ("train", ["lenet5"], dict(data=TRAIN, test=TEST, epochs=1, output="trained.onnx")),
    ("repair", ["eight.onnx"], dict(tests=["run"], data=TRAIN, clean=TEST, epochs=1, output="repaired.onnx")),
    ("mutate", [], dict(data="digits:test[0:3]", mutators="rotation", output="sheet.png")),
    ("compare", ["run", "run-noise"], {}),
    ("diff", ["one.onnx", "eight.onnx"], dict(data=TEST)),
    ("transfer", ["run"], dict(models=["one.onnx"])),
    ("features", ["eight.onnx"], dict(data="digits:test[0:60]", tests=["run"], most=40)),
    ("data export", ["digits:test[0:5]"], dict(output="exported", to="folder")),
    ("data info", ["digits:test[0:50]"], {}),
    ("data list", [], {}),
    ("model list", [], {}),
]

# What needs the network outside, or minutes.
LEFT_OUT = {"data_get", "model_get", "model_similarity", "calibrate", "train_captioner", "train_generator"}


def words_of(verb, positional, options):
    words = [*verb.split(), *positional]
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            words.append(option)
        else:
            words += [option, *(value if isinstance(value, list) else [value])]
    return words


def without_folder(value, folder):
    if isinstance(value, dict):
        return {key: without_folder(part, folder) for key, part in value.items()}
    if isinstance(value, list):
        return [without_folder(part, folder) for part in value]
    return value.replace(folder, "") if isinstance(value, str) else value


class Verbs(Case):
    def test_every_verb_says_what_the_command_line_says(self):
        here = os.getcwd()
        shutil_models = [os.path.join(here, name) for name in ("eight.onnx", "one.onnx", "eight.profile")]
        for side in ("typed", "called"):
            os.mkdir(side)
            for path in shutil_models:
                os.symlink(path, os.path.join(side, os.path.basename(path)))
        for verb, positional, options in TABLE:
            with self.subTest(verb=verb, options=options):
                os.chdir(os.path.join(here, "typed"))
                typed = document(*words_of(verb, positional, options))
                os.chdir(os.path.join(here, "called"))
                function = getattr(galvani, verb.replace(" ", "_"))
                if verb == "explain" and len(positional) > 1:
                    called = function(positional[0], positional[1:], **options)
                elif verb in ("compare", "merge", "transfer"):
                    called = function(positional, **options)
                else:
                    called = function(*positional, **options)
                if verb == "predict":
                    typed = columns_of(typed)
                self.assertEqual(without_folder(told(called), os.getcwd()),
                                 without_folder(told(typed), os.path.join(here, "typed")))
        os.chdir(here)

    def test_no_verb_is_forgotten(self):
        looked_at = {verb.replace(" ", "_") for verb, _, _ in TABLE}
        self.assertEqual(set(galvani.verbs.__all__) - LEFT_OUT, looked_at)

    def test_a_network_and_arrays_say_the_same_as_their_files(self):
        network = galvani.Network.load("eight.onnx")
        data = galvani.Data(TEST)
        images, labels = data[:], data.labels
        file = galvani.cover("eight.onnx", data=TEST, criteria="nc,nlc")
        for inputs in (data, (images, labels), galvani.Data(images, labels, name="three-hundred")):
            memory = galvani.cover(network, data=inputs, criteria="nc,nlc")
            self.assertEqual([c["covered"] for c in memory["criteria"]], [c["covered"] for c in file["criteria"]])
        self.assertEqual(galvani.predict(network, data=(images, labels))["accuracy"],
                         galvani.predict("eight.onnx", data=TEST)["accuracy"])

    def test_threads_change_nothing(self):
        one = galvani.fuzz("eight.onnx", output="one", threads=1, **FUZZ)
        two = galvani.fuzz("eight.onnx", output="two", threads=2, **FUZZ)
        self.assertEqual({**told(one), "folder": ""}, {**told(two), "folder": ""})


def columns_of(typed):
    """The rows of predict's document, as columns."""
    import numpy as np

    rows = typed.pop("predictions")
    typed["labels"] = [row["label"] for row in rows]
    typed["predicted"] = [row["predicted"] for row in rows]
    typed["probabilities"] = [row["probabilities"] for row in rows]
    typed["confidence"] = [max(row["probabilities"]) for row in rows]
    assert np.isfinite(typed["confidence"]).all()
    return typed
