#!/usr/bin/env python3
"""Makes cases.tar.gz: models of operators that the ONNX suites have no cases for, with what ONNX Runtime gives for them.

usage: cases.py FOLDER_OF_ONNXRUNTIME_NODE

Needs python3-onnx, numpy, node and, in the folder, `npm install --ignore-scripts onnxruntime-node@1.30.0`. The cases have
the layout of the ONNX suites, so that `build/conformance --root` runs them.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

import ml_cases
import microsoft_cases
import standard_cases

ELEMENT = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
           "float64": 11}


class Suite:
    def __init__(self, root):
        self.root = root

    def case(self, name, nodes, inputs, constants={}, outputs=("y",), types=None, opset=13, tensors=()):
        """One model. `constants`: initialisers by name; `tensors`: initialisers that numpy has no type for."""
        inputs = {key: np.asarray(value) for key, value in inputs.items()}
        ports = [helper.make_tensor_value_info(key, ELEMENT[str(value.dtype)], [None] * value.ndim)
                 for key, value in inputs.items()]
        ends = [helper.make_tensor_value_info(key, kind, None) for key, kind in zip(outputs, types or [1] * len(outputs))]
        held = [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()] + list(tensors)
        model = helper.make_model(
            helper.make_graph(nodes, name, ports, ends, held),
            opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1),
                           helper.make_opsetid("ai.onnx.ml", 3)])
        model.ir_version = 8 if opset < 21 else 10
        folder = os.path.join(self.root, "node", name)
        data = os.path.join(folder, "test_data_set_0")
        os.makedirs(data)
        with open(os.path.join(folder, "model.onnx"), "wb") as file:
            file.write(model.SerializeToString())
        feeds = {}
        for i, (key, value) in enumerate(inputs.items()):
            with open(os.path.join(data, f"input_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(value, key).SerializeToString())
            feeds[key] = {"type": str(value.dtype), "dims": list(value.shape),
                          "data": base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()}
        with open(os.path.join(folder, "feeds.json"), "w") as file:
            json.dump({"inputs": feeds, "outputs": list(outputs)}, file)

    def run(self, runtime):
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run(["node", os.path.join(here, "run.mjs"), runtime, self.root], check=True)
        for name in sorted(os.listdir(os.path.join(self.root, "node"))):
            folder = os.path.join(self.root, "node", name)
            with open(os.path.join(folder, "results.json")) as file:
                results = json.load(file)
            for i, result in enumerate(results):
                array = np.frombuffer(base64.b64decode(result["data"]), dtype=np.dtype(result["type"]))
                tensor = numpy_helper.from_array(array.reshape(result["dims"]).copy(), result["name"])
                with open(os.path.join(folder, "test_data_set_0", f"output_{i}.pb"), "wb") as file:
                    file.write(tensor.SerializeToString())
            os.remove(os.path.join(folder, "feeds.json"))
            os.remove(os.path.join(folder, "results.json"))


def plain(entry):
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() else 0o644
    return entry


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as root:
        suite = Suite(root)
        for family in (microsoft_cases, standard_cases, ml_cases):
            family.add(suite)
        suite.run(os.path.abspath(sys.argv[1]))
        target = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.tar.gz")
        with tarfile.open(target, "w:gz", compresslevel=9) as archive:
            archive.add(os.path.join(root, "node"), "node", filter=plain)


if __name__ == "__main__":
    main()
