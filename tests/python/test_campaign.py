"""Campaigns: their rows, their news, and being stopped."""
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np

import galvani
from common import TEST, Case, told

FUZZ = dict(data=TEST, guide="nc", seeds=60, energy=8, batch=8)


class Campaigns(Case):
    def test_rows_and_columns(self):
        result = galvani.fuzz("eight.onnx", output="run", iterations=64, **FUZZ)
        with galvani.Campaign("run") as run:
            rows, columns = run.faults(), run.fault_columns()
            self.assertEqual(len(rows), result["faults"])
            self.assertGreater(len(rows), 3)
            for name, values in columns.items():
                self.assertEqual(values.tolist(), [row[name] for row in rows], name)
            self.assertEqual(len(run.inputs()), result["outputs"])
            self.assertEqual(len(run.seeds()), result["seeds"])
            self.assertEqual(run.timeline()["faults"][-1], result["faults"])
            image = run.fault_image(rows[0]["id"])
            self.assertEqual((image.shape, image.dtype), ((1, 28, 28), np.uint8))
            self.assertEqual(galvani.Network.load("eight.onnx").predict(image[None]).predicted[0], rows[0]["predicted"])
            self.assertEqual(run.input_image(rows[0]["seed"]).shape, (1, 28, 28))
            self.assertTrue(run.rules(rows[0]["id"]))
            self.assertEqual(len(run.faults(most=2)), 2)
            self.assertEqual(run.settings["guide"].split(":")[0], "nc")
            self.refuses(galvani.UsageError, "999999", lambda: run.fault_image(999999))
        self.refuses(galvani.UsageError, "closed", run.faults)
        self.refuses(galvani.UsageError, "closed", lambda: run.fault_image(1))
        self.refuses(galvani.InputError, "nowhere", lambda: galvani.Campaign("nowhere"))

    def test_news_by_a_callback_and_by_a_loop(self):
        heard = []
        result = galvani.fuzz("eight.onnx", output="a", iterations=64, on_event=heard.append, **FUZZ)
        self.assertEqual([e["event"] for e in heard], ["started"] + ["status"] * 8 + ["finished"])
        self.assertEqual(sum(len(e["faults_now"]) for e in heard if e["event"] == "status"), result["faults"])
        looped = list(galvani.events(galvani.fuzz, "eight.onnx", output="b", iterations=64, **FUZZ))
        self.assertEqual(len(looped), len(heard) + 1)
        self.assertEqual({**told(looped[-1]), "folder": ""}, {**told(result), "folder": ""})
        epochs = list(galvani.events(galvani.train, "lenet5", data="digits:train[0:200]", epochs=2, output="t.onnx"))
        self.assertEqual([e.get("epoch") for e in epochs], [1, 2, None])

    def test_an_exception_of_a_callback_ends_the_work(self):
        def stop(event):
            raise KeyError("enough")

        with self.assertRaises(KeyError):
            galvani.fuzz("eight.onnx", output="run", iterations=64, on_event=stop, **FUZZ)
        galvani.fuzz("eight.onnx", output="run", iterations=64, **FUZZ)

    def test_leaving_the_loop_stops_the_campaign_and_it_can_be_gone_on_with(self):
        for count, event in enumerate(galvani.events(galvani.fuzz, "eight.onnx", output="run", time="60s", **FUZZ)):
            if count == 3:
                break
        stopped = galvani.stats("run")["iterations"]
        self.assertGreater(stopped, 0)
        went_on = galvani.fuzz(output="run", iterations=stopped + 16)
        self.assertEqual(went_on["iterations"], stopped + 16)
        straight = galvani.fuzz("eight.onnx", output="straight", iterations=stopped + 16, **FUZZ)
        self.assertEqual({**told(went_on), "folder": ""}, {**told(straight), "folder": ""})

    def test_errors_of_a_loop_are_raised_in_it(self):
        self.refuses(galvani.UsageError, "guide", lambda: list(galvani.events(galvani.fuzz, "eight.onnx", data=TEST, guide="x")))

    def test_ctrl_c(self):
        program = (
            "import time, galvani\n"
            "try:\n"
            f"    galvani.fuzz('eight.onnx', output='run', time='60s', on_event=lambda e: print(e['event'], flush=True), **{FUZZ!r})\n"
            "except KeyboardInterrupt:\n"
            "    print('stopped', galvani.stats('run')['iterations'] > 0, flush=True)\n"
            "try:\n"
            "    time.sleep(60)\n"
            "except KeyboardInterrupt:\n"
            "    print('as ever')\n"
        )
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        lines = iter(process.stdout.readline, "")
        for line in lines:
            if line == "status\n":
                process.send_signal(signal.SIGINT)
                break
        for line in lines:
            if line.startswith("stopped"):
                break
        self.assertEqual(line, "stopped True\n")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=60)[0], "as ever\n")
        self.assertEqual(process.returncode, 0)

    def test_ctrl_c_at_any_moment(self):
        """A handler that ran on the stack of the interrupted kernel would write over the heap, once in some forty times."""
        program = (
            "import galvani\n"
            "stops = 0\n"
            "while stops < 60:\n"
            "    try:\n"
            f"        galvani.fuzz('eight.onnx', output=f'run{{stops}}', time='60s', on_event=lambda e: print(e['event'], flush=True), **{FUZZ!r})\n"
            "    except KeyboardInterrupt:\n"
            "        stops += 1\n"
            "        print('stopped', flush=True)\n"
        )
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        moments = random.Random(1)
        stops, asked = 0, False
        for line in process.stdout:
            if line == "status\n" and not asked:
                time.sleep(moments.uniform(0, 0.02))
                process.send_signal(signal.SIGINT)
                asked = True
            elif line == "stopped\n":
                stops, asked = stops + 1, False
        self.assertEqual((process.wait(), stops), (0, 60))
        process.stdout.close()

    def test_arrays_under_a_name_are_gone_on_with(self):
        data = galvani.Data(TEST)
        images, labels = np.array(data[:]), np.array(data.labels)
        options = {**FUZZ, "data": galvani.Data(images, labels, name="mine")}
        galvani.fuzz("eight.onnx", output="run", iterations=16, **options)
        options["data"] = galvani.Data(images.copy(), labels, name="mine")
        self.assertEqual(galvani.fuzz("eight.onnx", output="run", iterations=32, **options)["iterations"], 32)
        options["data"] = galvani.Data(255 - images, labels, name="mine")
        self.refuses(galvani.UsageError, "data", lambda: galvani.fuzz("eight.onnx", output="run", iterations=48, **options))
