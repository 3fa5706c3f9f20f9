"""Networks and arrays: what is computed, what is not copied, what is refused."""
import gc
import json
import multiprocessing
import os
import pickle
import resource
import shutil
import subprocess
import sys
import threading
import warnings

import numpy as np

import galvani
from common import Case, command, digits

KIB = 1024


LENT = []  # networks that a forked process finds


def error_of_lent(images):
    try:
        return LENT[0].predict(images).predicted
    except galvani.Error as e:
        return f"{type(e).__name__}: {e}"


def predicted_by(path, images):
    return galvani.Network.load(path).predict(images).predicted


def predicted_labels(network, data):
    return network.predict(data).predicted, data.labels, data.class_names


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB


class Networks(Case):
    def test_predict_and_run(self):
        network = galvani.Network.load("eight.onnx")
        images, labels = digits(200)
        found = network.predict(images)
        self.assertEqual(found.probabilities.shape, (200, 10))
        np.testing.assert_allclose(found.probabilities.sum(1), 1, rtol=1e-5)
        self.assertGreater((found.predicted == labels).mean(), 0.9)
        out = network.run(images, taps="default", gradient_of="predicted")
        np.testing.assert_array_equal(out.logits.argmax(1), found.predicted)
        self.assertEqual(list(out.taps), network.select_taps())
        self.assertEqual(out.taps["conv1"].shape, (200, 6))
        full = network.run(images, taps="conv1", form="full").taps["conv1"]
        np.testing.assert_allclose(full.mean((2, 3)), out.taps["conv1"], rtol=1e-4, atol=1e-5)
        # Floats are taken on the scale of the bytes.
        np.testing.assert_array_equal(network.run(images.astype(np.float32)).logits, network.run(images).logits)

    def test_gradients_are_slopes(self):
        network = galvani.Network.load("eight.onnx")
        images = digits(2)[0].astype(np.float32)
        classes = np.array([3, 5])
        slope = network.run(images, gradient_of=classes).input_gradient
        self.assertEqual(slope.shape, images.shape)
        row, column = np.unravel_index(np.abs(slope[0, 0]).argmax(), slope[0, 0].shape)
        step = np.zeros_like(images)
        step[0, 0, row, column] = 0.5
        up, down = (network.run(images + sign * step, alone=True).logits[0, 3] for sign in (1, -1))
        self.assertAlmostEqual(float(up - down), float(slope[0, 0, row, column]), delta=0.02 * abs(float(up - down)) + 1e-4)

    def test_results_and_inputs_are_not_copied(self):
        network = galvani.Network.load("eight.onnx")
        few = digits(100)[0]
        images = np.ascontiguousarray(np.tile(few, (400, 1, 1, 1)))  # 40,000 images
        data = galvani.Data(images, name="many")
        self.assertTrue(np.shares_memory(data[100:200], images))
        floats = images.astype(np.float32)
        network.run(floats[:2048])  # what is needed once
        gc.collect()
        before = peak()
        logits = network.run(floats).logits
        grown = peak() - before
        self.assertEqual(logits.shape, (40000, 10))
        print(f"\n40,000 images of {floats.nbytes >> 20} MiB as floats: the process grew by {grown >> 20} MiB", flush=True)
        # Results, and a step of malloc, which is 64 MiB; a copy would be 119 MiB.
        self.assertLess(grown, 80 << 20)
        # The array owns what the tensor had.
        kept = network.run(few).logits
        copy = kept.copy()
        del network
        gc.collect()
        np.testing.assert_array_equal(kept, copy)

    def test_what_is_wrong_with_an_array_is_said(self):
        network = galvani.Network.load("eight.onnx")
        images, labels = digits(4)
        wrong = [
            (images.astype(np.float64), "float64"),
            (images.astype(np.int32), "int32"),
            (images.astype(">f4"), "type"),
            (images.astype(complex), "complex128"),
            (images[:, 0], "(4, 28, 28)"),
            (images[0, 0], "(28, 28)"),
            (images[:0], "no inputs"),
            (images[::-1], "one after the other"),
            (images[:, :, :, ::-1], "one after the other"),
            (images[:, :, :14], "images"),
            (np.repeat(images, 3, 1), "images"),
            (np.full((2, 1, 28, 28), np.nan, np.float32), "NaN"),
            (np.where(np.arange(28) == 3, np.inf, images).astype(np.float32), "input 0"),
            ("a picture", "array"),
            (None, "array"),
            ([[1, 2], [3]], "array"),
        ]
        for array, words in wrong:
            with self.subTest(words=words):
                self.refuses(galvani.InputError, words, lambda: network.predict(array))
                self.refuses(galvani.InputError, words, lambda: network.run(array))
        odd = np.zeros((4, 1, 28, 29), np.uint8)[:, :, :, :28]  # strides that a tensor can have
        np.testing.assert_array_equal(network.run(odd).logits, network.run(np.ascontiguousarray(odd)).logits)
        bytes_between = np.zeros(4 * 28 * 28 * 5 + 1, np.uint8)[1:].view(np.uint8)
        unaligned = np.ndarray((4, 1, 28, 28), np.float32, bytes_between.data)
        if unaligned.ctypes.data % 4:
            self.refuses(galvani.InputError, "memory", lambda: network.run(unaligned))
        self.refuses(galvani.InputError, "gradient_of", lambda: network.run(images, gradient_of=[1, 2]))
        self.refuses(galvani.InputError, "gradient_of", lambda: network.run(images, gradient_of=[1, 2, 3, 10]))
        self.refuses(galvani.InputError, "whole numbers", lambda: network.run(images, gradient_of=np.ones(4)))
        self.refuses(galvani.UsageError, "gradient_of", lambda: network.run(images, gradient_of="all"))
        self.refuses(galvani.UsageError, "form", lambda: network.run(images, form="whole"))
        self.refuses(galvani.UsageError, "conv9", lambda: network.run(images, taps="conv9"))

    def test_what_is_wrong_with_data_is_said(self):
        images, labels = digits(4)
        self.refuses(galvani.InputError, "3", lambda: galvani.Data(images, labels[:3]))
        self.refuses(galvani.InputError, "whole numbers", lambda: galvani.Data(images, labels.astype(float)))
        self.refuses(galvani.InputError, "uint8", lambda: galvani.Data(images.astype(np.float32), labels))
        self.refuses(galvani.InputError, "channels", lambda: galvani.Data(images.transpose(0, 2, 3, 1).copy(), labels))
        self.refuses(galvani.UsageError, "name", lambda: galvani.Data(images, labels, name="a+b"))
        self.refuses(galvani.UsageError, "of arrays", lambda: galvani.Data("digits", labels))
        sounds = np.zeros((2, 1, 800), np.int16)
        self.refuses(galvani.UsageError, "rate", lambda: galvani.Data(sounds, [0, 1]))
        self.assertEqual(galvani.Data(sounds, [0, 1], rate=8000)[0].shape, (1, 800))
        data = galvani.Data(images, labels)
        for rows in (9, -9, [0, 9]):
            with self.assertRaisesRegex(IndexError, "no input -?9 among"):
                data[rows]
        np.testing.assert_array_equal(data[-1], images[3])
        np.testing.assert_array_equal(data[[2, 0]], images[[2, 0]])
        spec = data.spec
        del data
        gc.collect()
        self.refuses(galvani.InputError, "memory", lambda: galvani.cover("eight.onnx", data=spec, criteria="nc"))

    def test_what_is_wrong_with_a_file_is_said(self):
        self.refuses(galvani.Error, "nothing.onnx", lambda: galvani.Network.load("nothing.onnx"))
        with open("broken.onnx", "wb") as file:
            file.write(open("eight.onnx", "rb").read()[:2000])
        self.refuses(galvani.InputError, "broken.onnx", lambda: galvani.Network.load("broken.onnx"))
        self.refuses(galvani.UsageError, "mean", lambda: galvani.Network.load("eight.onnx", mean="red"))
        self.refuses(galvani.UsageError, "criterion", lambda: galvani.cover("eight.onnx", data="digits[0:9]", criteria="x"))
        self.refuses(galvani.UsageError, "type", lambda: galvani.cover("eight.onnx", data="digits[0:9]", criteria=object()))
        self.refuses(galvani.UsageError, "top", lambda: galvani.select("eight.onnx", data="digits[0:9]", top=-1))
        self.refuses(galvani.UsageError, "empty", lambda: galvani.cover("eight.onnx", data=""))
        self.refuses(galvani.UsageError, "character", lambda: galvani.cover("eight.onnx", data="a\0b"))

    def test_a_model_that_is_deleted_meanwhile(self):
        network = galvani.Network.load("eight.onnx")
        images, labels = digits(50)
        os.remove("eight.onnx")
        self.assertEqual(network.predict(images).predicted.shape, (50,))
        galvani.cover(network, data=(images, labels), criteria="nc")
        self.refuses(galvani.Error, "eight.onnx", lambda: galvani.cover("eight.onnx", data=(images, labels)))

    def test_weights_can_be_changed_and_saved(self):
        network = galvani.Network.load("eight.onnx")
        images, _ = digits(20)
        before = network.run(images).logits
        name = network.parameter_names[0]
        network.set_parameter(name, network.parameter(name) * 0)
        self.assertFalse(np.array_equal(network.run(images).logits, before))
        self.refuses(galvani.UsageError, "save it", lambda: galvani.cover(network, data="digits[0:9]", criteria="nc"))
        self.refuses(galvani.Error, name, lambda: network.set_parameter(name, np.zeros(3, np.float32)))
        network.save("changed.onnx")
        again = galvani.Network.load("changed.onnx")
        np.testing.assert_array_equal(again.run(images).logits, network.run(images).logits)
        self.assertFalse(np.array_equal(network.clone().run(images).logits, before))

    def test_threads_of_python_take_turns(self):
        network = galvani.Network.load("eight.onnx")
        images, _ = digits(200)
        expected = network.run(images).logits
        found = []

        def work():
            for _ in range(5):
                found.append(np.array_equal(network.run(images).logits, expected))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [True] * 20)

    def test_from_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("python3-torch is not installed")
        torch.manual_seed(1)
        module = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4),
                                     torch.nn.Flatten(), torch.nn.Linear(64, 10))
        threads = torch.get_num_threads()
        network = galvani.Network.from_torch(module, torch.zeros(1, 1, 28, 28), mean="0.5", std="0.25")
        images, _ = digits(30)
        with torch.no_grad():
            expected = module((torch.from_numpy(images) / 255 - 0.5) / 0.25).numpy()
        np.testing.assert_allclose(network.run(images).logits, expected, rtol=1e-4, atol=1e-4)
        # Tensors of torch are arrays, too, without a copy.
        tensor = torch.from_numpy(images)
        np.testing.assert_array_equal(network.run(tensor).logits, network.run(images).logits)
        self.assertTrue(module.training)
        self.assertEqual(torch.get_num_threads(), threads)
        self.refuses(galvani.UsageError, "example", lambda: galvani.Network.from_torch(module, images))

    def test_from_torch_with_rows_of_values(self):
        try:
            import torch
        except ImportError:
            self.skipTest("python3-torch is not installed")
        torch.manual_seed(1)
        images, labels = digits(30)
        for example in (torch.zeros(1, 784), torch.zeros(1, 28, 28)):
            dense = torch.nn.Linear(784, 10)
            module = torch.nn.Sequential(torch.nn.Flatten(), dense) if example.dim() == 3 else dense
            network = galvani.Network.from_torch(module, example)
            with torch.no_grad():
                expected = module(torch.from_numpy(images).reshape(-1, *example.shape[1:]) / 255).numpy()
            np.testing.assert_allclose(network.run(images).logits, expected, rtol=1e-4, atol=1e-4)
            self.assertEqual(network.input_shape, (1, 28, 28))
            # A verb gives it the data's shape, too.
            again = galvani.Network.from_torch(module, example)
            found = galvani.predict(again, data=(images.astype(np.uint8), labels))
            np.testing.assert_array_equal(found["predicted"], expected.argmax(1))

    def test_floats_from_0_to_1_bring_a_warning(self):
        network = galvani.Network.load("one.onnx")
        images, _ = digits(4)
        with self.assertWarnsRegex(UserWarning, "multiply them by 255"):
            network.predict(images.astype(np.float32) / 255)
        with self.assertWarnsRegex(UserWarning, "multiply them by 255"):
            network.run(images.astype(np.float32) / 255)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            network.predict(images.astype(np.float32))
            network.predict(images)
            network.predict(np.zeros_like(images, np.float32))

    def test_data_are_gone_through(self):
        images, labels = digits(5)
        data = galvani.Data(images, labels)
        np.testing.assert_array_equal(list(data), images)
        np.testing.assert_array_equal(np.asarray(data), images)
        np.testing.assert_array_equal(data[[-1, 0]], images[[-1, 0]])
        network = galvani.Network.load("one.onnx")
        np.testing.assert_array_equal(network.predict(data).logits, network.predict(images).logits)

    def test_a_network_gives_answers_where_it_is_asked_for_numbers(self):
        images, _ = digits(12)
        classes = galvani.Network("eight.onnx")
        self.assertEqual(classes.task, "classes")
        numbers = galvani.Network("eight.onnx", task="regression", tolerance=0.5)
        self.assertEqual((numbers.task, numbers.classes), ("regression", 2))
        np.testing.assert_allclose(numbers.answers(images), classes.predict(images).logits, atol=1e-4)
        labels = galvani.Network("eight.onnx", task="multi-label").answers(images)
        np.testing.assert_allclose(labels, 1 / (1 + np.exp(-classes.predict(images).logits)), atol=1e-4)
        self.refuses(galvani.Error, "its task is regression", lambda: numbers.predict(images))
        self.refuses(galvani.Error, "its task is classes", lambda: classes.answers(images))

    def test_a_network_is_made_by_its_path(self):
        images, _ = digits(4)
        network = galvani.Network("one.onnx", mean="0.5", label_shift=1)
        loaded = galvani.Network.load("one.onnx", mean="0.5")
        np.testing.assert_array_equal(network.predict(images).logits, loaded.predict(images).logits)
        self.assertIn("mean 0.5", network.preprocessing)
        self.refuses(galvani.InputError, "gone.onnx", lambda: galvani.Network("gone.onnx"))

    def test_networks_and_data_are_pickled(self):
        images, labels = digits(6)
        network = galvani.Network("one.onnx", mean="0.5")
        again = pickle.loads(pickle.dumps(network))
        np.testing.assert_array_equal(again.predict(images).logits, network.predict(images).logits)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply_async(predicted_labels, (network, galvani.Data(images, labels, class_names=list("abcdefghij"))))
            said, known, names = found.get(timeout=60)
        np.testing.assert_array_equal(said, network.predict(images).predicted)
        np.testing.assert_array_equal(known, labels)
        self.assertEqual(names, list("abcdefghij"))
        spec = pickle.loads(pickle.dumps(galvani.Data("digits[0:7]", split="train")))
        np.testing.assert_array_equal(spec[:], galvani.Data("digits:train[0:7]")[:])
        named = galvani.Data(images, name="mine")
        self.assertEqual(pickle.loads(pickle.dumps(named)).spec, "memory:mine")
        changed = network.clone()
        first = changed.parameter_names[0]
        changed.set_parameter(first, np.zeros_like(changed.parameter(first)))
        self.refuses(galvani.UsageError, "save it", lambda: pickle.dumps(changed))
        kept = pickle.dumps(network)
        shutil.copy("eight.onnx", "one.onnx")
        self.refuses(galvani.InputError, "its content has changed", lambda: pickle.loads(kept))

    def test_errors_name_keywords(self):
        images, _ = digits(2)
        for words, work in (
            ("mean is 'x'", lambda: galvani.Network("one.onnx", mean="x")),
            ("resize='fit'", lambda: galvani.predict("one.onnx", data=np.zeros((2, 1, 9, 9), np.uint8))),
            ("label_shift is 'one'", lambda: galvani.predict("one.onnx", data="digits[0:9]", label_shift="one")),
            ("labels='model'", lambda: galvani.fuzz("one.onnx", data=images, output="x", iterations=1)),
            ("output", lambda: galvani.fuzz()),
        ):
            with self.assertRaises(galvani.Error, msg=words) as caught:
                work()
            self.assertIn(words, str(caught.exception))
            self.assertNotRegex(str(caught.exception), "(^|[ (])--?[a-z]")

    def test_results_are_short_to_look_at(self):
        result = galvani.predict("one.onnx", data="digits:test[0:200]")
        text = repr(result)
        self.assertLess(len(text), 1500)
        self.assertIn("'predicted': array of int64 (200,)", text)
        self.assertIn(f"'accuracy': {result['accuracy']!r}", text)
        covered = galvani.cover("one.onnx", data="digits:test[0:200]", criteria="nc")
        self.assertLess(len(repr(covered)), 4000)
        self.assertIsInstance(covered, dict)
        self.assertEqual(json.loads(json.dumps(covered)), covered)
        images, _ = digits(4)
        network = galvani.Network("one.onnx")
        self.assertTrue(repr(network.predict(images)).startswith("Predictions(predicted=array of int64 (4,), "))
        self.assertIn("taps={'conv1': array of float32 (4, ", repr(network.run(images, taps="conv1")))
        self.assertEqual(repr(galvani.calls.Result(list=list(range(100)))), "{'list': [0, 1, 2, 3, 4, 5, ... 100 in all]}")

    def test_a_forked_process_says_why_it_cannot_work(self):
        network = galvani.Network.load("one.onnx")
        images, _ = digits(4)
        network.predict(images)
        LENT[:] = [network]
        self.addCleanup(LENT.clear)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            waiting = pool.apply_async(error_of_lent, (images,))
            self.assertRegex(waiting.get(timeout=60), "UsageError.*spawn")
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            waiting = pool.apply_async(predicted_by, (os.path.abspath("one.onnx"), images))
            np.testing.assert_array_equal(waiting.get(timeout=60), network.predict(images).predicted)

    def test_a_forked_process_that_does_nothing_ends(self):
        program = ("import galvani, os, sys\n"
                   "galvani.predict('one.onnx', data='digits:test[:40]')\n"
                   "child = os.fork()\n"
                   "sys.exit(0 if child == 0 else os.waitpid(child, 0)[1])\n")
        self.assertEqual(subprocess.run([sys.executable, "-c", program], timeout=120).returncode, 0)

    def test_the_version_is_the_command_line_s(self):
        self.assertIn(galvani.__version__, command("--version"))
