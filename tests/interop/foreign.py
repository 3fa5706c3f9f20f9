"""Files as other programs write them, taken through Galvani's verbs; the table of docs/onnx.md.

usage: foreign.py path/to/galvani [--markdown docs/onnx.md] [words in the names of files ...]

Weights are random (seeded); nothing is downloaded. Every verb has to do its work, or to refuse in one sentence with exit
code 3. Exit code 1 if one does neither, or if a file that is listed as one to be refused is not.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
import torchvision
from onnx import TensorProto, helper, numpy_helper
from torch import nn

LIMIT = 300  # seconds for a command
GRAY, COLOUR, PHOTO, FOUR = (1, 28, 28), (3, 32, 32), (3, 224, 224), (1, 2, 2)
OK = "yes"


class Net(nn.Module):
    """A body and what stands behind it."""

    def __init__(self, body, end):
        super().__init__()
        self.body, self.end = body, end

    def forward(self, x):
        return self.end(self.body(x))


def small(outputs, channels=1):
    return nn.Sequential(nn.Conv2d(channels, 6, 5, 2), nn.ReLU(), nn.Conv2d(6, 8, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(8, outputs))


class Rows(nn.Module):
    """Reads the rows of an image one after the other."""

    def __init__(self, kind):
        super().__init__()
        self.cell, self.out = kind(28, 16, batch_first=True), nn.Linear(16, 10)

    def forward(self, x):
        return self.out(self.cell(x)[0][:, -1])


class Maps(nn.Module):
    """Segmentation: a score of each of five classes at every place."""

    def forward(self, x):
        return F.conv_transpose2d(F.relu(F.conv2d(x, self.down, stride=2)), self.up, stride=2)

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Parameter(torch.randn(8, 3, 2, 2)), nn.Parameter(torch.randn(8, 5, 2, 2))


class Grid(nn.Module):
    """A detector whose boxes are one long row."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 30, 3, 2)

    def forward(self, x):
        return torch.sigmoid(self.conv(x)).flatten(1)


class Scripted(nn.Module):
    """A branch and a loop that depend on the input."""

    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv2d(1, 6, 5, 2), nn.Linear(6, 10)

    def forward(self, x):
        x = self.conv(x).relu().mean([2, 3])
        if float(x.sum()) > 1e9:
            x = x * 2
        for _ in range(3):
            x = torch.tanh(x)
        return self.out(x)


def exported(model, shape, opset, dynamic=True, names=("scores",)):
    def write(path):
        axes = {name: {0: "n"} for name in ("image", *names)} if dynamic else {}
        torch.onnx.export(model.eval(), torch.zeros(1, *shape), str(path), opset_version=opset, input_names=["image"],
                          output_names=list(names), dynamic_axes=axes, do_constant_folding=True)
    return write


def torchscript(model, shape, trace=True):
    def write(path):
        made = torch.jit.trace(model.eval(), torch.zeros(2, *shape)) if trace else torch.jit.script(model.eval())
        made.save(str(path))
    return write


def weight(name, *shape):
    rng = np.random.RandomState(len(name) + sum(shape))
    return numpy_helper.from_array(rng.randn(*shape).astype(np.float32) * 0.5, name)


def graph(nodes, initializers, opset=17, domains=(), shape=GRAY, ir=8, outputs=("scores",)):
    """A file with this body; `nodes` are (operator, inputs, outputs, attributes[, domain])."""
    def write(path):
        made = [helper.make_node(op, i, o, domain=(rest[0] if rest else None), **a) for op, i, o, a, *rest in nodes]
        body = helper.make_graph(made, "net", [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", *shape])],
                                 [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs], initializers)
        imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(name, 1 if "microsoft" in name else 3) for name in domains]
        onnx.save(helper.make_model(body, opset_imports=imports, ir_version=ir), str(path))
    return write


CONV = [("Conv", ["image", "k"], ["c"], {"strides": [2, 2]}), ("Relu", ["c"], ["r"], {}), ("GlobalAveragePool", ["r"], ["p"], {}),
        ("Flatten", ["p"], ["f"], {})]
KERNEL = [weight("k", 6, 1, 5, 5)]
DENSE = [("Gemm", ["f", "w"], ["scores"], {})]


def branch(operator, name):
    node = helper.make_node(operator, ["f"], [name])
    return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])


def loop_body():
    nodes = [helper.make_node("Tanh", ["state"], ["next"]), helper.make_node("Identity", ["go"], ["again"])]
    info = helper.make_tensor_value_info
    return helper.make_graph(nodes, "body", [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("state", TensorProto.FLOAT, None)],
                             [info("again", TensorProto.BOOL, []), info("next", TensorProto.FLOAT, None)])


def scan_body():
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["sum", "row"], ["total"]), helper.make_node("Identity", ["total"], ["out"])]
    return helper.make_graph(nodes, "scan", [info("sum", TensorProto.FLOAT, [1, 28]), info("row", TensorProto.FLOAT, [1, 28])],
                             [info("total", TensorProto.FLOAT, [1, 28]), info("out", TensorProto.FLOAT, [1, 28])])


def scalar(name, kind, value):
    return helper.make_tensor(name, kind, [], [value])


TREE = dict(nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0], nodes_values=[0.5, 0.0, 0.0],
            nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0])
ML = "ai.onnx.ml"
MS = "com.microsoft"


def file(name, made_by, what, write, shape=GRAY, refused="", flags=()):
    return dict(name=name, made_by=made_by, what=what, write=write, shape=shape, refused=refused, flags=list(flags))


def files():
    torch.manual_seed(1)
    table = []

    def of_torch(name, what, model, shape=GRAY, opset=17, refused="", flags=(), **more):
        table.append(file(f"{name}.onnx", f"PyTorch, opset {opset}", what, exported(model, shape, opset, **more), shape, refused, flags))

    def of_onnx(name, what, nodes, weights, made_by="onnx", **more):
        keep = {key: more.pop(key) for key in ("refused", "flags") if key in more}
        opset = more.get("opset", 17)
        table.append(file(f"{name}.onnx", f"{made_by}, opset {opset}", what, graph(nodes, weights, **more), more.get("shape", GRAY), **keep))

    for name in ("resnet18", "mobilenet_v2", "squeezenet1_1", "shufflenet_v2_x1_0", "efficientnet_b0", "vit_b_16"):
        for opset in (13, 17):
            model = getattr(torchvision.models, name)(weights=None)
            of_torch(f"{name}-{opset}", "torchvision", model, PHOTO, opset)
    of_torch("lraspp", "torchvision, segmentation", Net(torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None),
                                                        lambda out: out["out"]), PHOTO, 13, refused="as of segmentation")
    of_torch("autoencoder", "an image from an image", Net(Maps(), lambda x: x[:, :3]), COLOUR, refused="as of segmentation")
    of_torch("maps", "segmentation", Maps(), COLOUR, refused="as of segmentation")
    of_torch("boxes", "rows of boxes", Net(Grid(), lambda x: x.reshape(x.shape[0], -1, 6)), COLOUR, refused="object detector")
    of_torch("flat-boxes", "boxes in one row", Grid(), COLOUR, refused="object detector")
    of_torch("embedding", "a vector of length 1", Net(small(16), lambda x: x / x.norm(dim=1, keepdim=True)), refused="embedding")
    of_torch("chosen", "classes already chosen", Net(small(10), lambda x: x.argmax(1)), refused="already chosen")
    of_torch("logits", "logits", small(10))
    of_torch("softmax", "softmax", Net(small(10), nn.Softmax(1)))
    of_torch("log-softmax", "log-softmax", Net(small(10), nn.LogSoftmax(1)))
    of_torch("written-softmax", "exp(x) / sum(exp(x))", Net(small(10), lambda x: x.exp() / x.exp().sum(1, keepdim=True)))
    of_torch("clipped-softmax", "softmax, clipped", Net(small(10), lambda x: x.softmax(1).clamp(1e-7, 1)))
    of_torch("sigmoids", "sigmoids, one a class", Net(small(10), nn.Sigmoid()))
    of_torch("yes-no", "one sigmoid", Net(small(1), nn.Sigmoid()))
    of_torch("yes-no-row", "one sigmoid, [N]", Net(small(1), lambda x: torch.sigmoid(x).squeeze(1)))
    of_torch("yes-no-score", "one score of yes", small(1), flags=["--task", "binary"])
    of_torch("number", "one number", small(1))
    of_torch("numbers", "three numbers", small(3), flags=["--task", "regression"])
    of_torch("labels", "labels independent of each other", Net(small(5), nn.Sigmoid()), flags=["--task", "multi-label"])
    of_torch("two-outputs", "two outputs, the second counts", Net(small(10), lambda x: (x[:, :1], x)), names=("first", "scores"), flags=["--model-output", "scores"])
    of_torch("one-image", "batches of one only", small(10), dynamic=False)
    flat = nn.Sequential(nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10))
    for opset in (13, 17):
        table.append(file(f"flat-{opset}.onnx", f"PyTorch, opset {opset}", "takes [N, 784]", exported(flat, (784,), opset)))
    table.append(file("rows-lstm.onnx", "PyTorch, opset 17", "LSTM over [N, 28, 28]", exported(Rows(nn.LSTM), (28, 28), 17)))
    table.append(file("rows-gru.onnx", "PyTorch, opset 13", "GRU over [N, 28, 28]", exported(Rows(nn.GRU), (28, 28), 13)))
    last = Net(nn.Identity(), lambda x: x.permute(0, 3, 1, 2))
    table.append(file("channels-last.onnx", "PyTorch, opset 17", "takes [N, H, W, C]", exported(nn.Sequential(last, small(10, 3)), (32, 32, 3), 17), COLOUR,
                      flags=["--layout", "nhwc"]))
    table.append(file("two-inputs.onnx", "onnx, opset 17", "two inputs", None, refused="takes 2 inputs"))
    table.append(file("traced.pt", "PyTorch, traced", "TorchScript", torchscript(small(10), GRAY)))
    table.append(file("scripted.pt", "PyTorch, scripted", "TorchScript with a branch and a loop", torchscript(Scripted(), GRAY, trace=False)))
    for opset in range(18, 29):
        of_onnx(f"opset-{opset}", "a version number", CONV + DENSE, KERNEL + [weight("w", 6, 10)], opset=opset, ir=8 if opset < 19 else 10)
    of_onnx("opset-29", "a version that does not exist yet", CONV + DENSE, KERNEL + [weight("w", 6, 10)], opset=29, ir=10)
    of_onnx("if", "If that depends on the input", CONV + [("ReduceSum", ["f"], ["s"], {"keepdims": 0}), ("Greater", ["s", "zero"], ["more"], {}),
            ("If", ["more"], ["b"], {"then_branch": branch("Tanh", "t"), "else_branch": branch("Sigmoid", "e")}), ("Gemm", ["b", "w"], ["scores"], {})],
            KERNEL + [weight("w", 6, 10), scalar("zero", TensorProto.FLOAT, 1e9)])
    of_onnx("loop", "Loop", CONV + [("Loop", ["times", "go", "f"], ["l"], {"body": loop_body()}), ("Gemm", ["l", "w"], ["scores"], {})],
            KERNEL + [weight("w", 6, 10), scalar("times", TensorProto.INT64, 100), scalar("go", TensorProto.BOOL, True)])
    of_onnx("scan", "Scan over the rows of one image", [("Reshape", ["image", "rows"], ["x"], {}), ("Scan", ["start", "x"], ["sum", "all"], {"body": scan_body(), "num_scan_inputs": 1}),
            ("Gemm", ["sum", "w"], ["scores"], {})],
            [weight("w", 28, 10), numpy_helper.from_array(np.zeros((1, 28), np.float32), "start"), numpy_helper.from_array(np.array([28, 1, 28]), "rows")])
    of_onnx("sequence", "a sequence of tensors", CONV + [("SequenceConstruct", ["f", "f"], ["q"], {}), ("ConcatFromSequence", ["q"], ["d"], {"axis": 1}),
            ("Gemm", ["d", "w"], ["scores"], {})], KERNEL + [weight("w", 12, 10)])
    of_onnx("gelu-20", "Gelu of opset 20", CONV + [("Gelu", ["f"], ["g"], {}), ("Gemm", ["g", "w"], ["scores"], {})], KERNEL + [weight("w", 6, 10)], opset=20, ir=9)
    of_onnx("rms-23", "RMSNormalization of opset 23", CONV + [("RMSNormalization", ["f", "s"], ["g"], {}), ("Gemm", ["g", "w"], ["scores"], {})],
            KERNEL + [weight("w", 6, 10), weight("s", 6)], opset=23, ir=10)
    of_onnx("swish-24", "Swish of opset 24", CONV + [("Swish", ["f"], ["g"], {}), ("Gemm", ["g", "w"], ["scores"], {})], KERNEL + [weight("w", 6, 10)], opset=24, ir=10)
    of_onnx("fused", "FusedMatMul and Gelu of com.microsoft", CONV + [("Gelu", ["f"], ["g"], {}, MS), ("FusedMatMul", ["g", "w"], ["scores"], {"alpha": 0.5}, MS)],
            KERNEL + [weight("w", 6, 10)], domains=(MS,), made_by="as ONNX Runtime")
    scale = lambda name, value: scalar(name, TensorProto.FLOAT, value)
    of_onnx("qdq", "quantised to 8 bits", CONV + [("QuantizeLinear", ["f", "s", "z"], ["q"], {}), ("DequantizeLinear", ["q", "s", "z"], ["d"], {}), ("Gemm", ["d", "w"], ["scores"], {})],
            KERNEL + [weight("w", 6, 10), scale("s", 0.01), scalar("z", TensorProto.UINT8, 128)], made_by="as ONNX Runtime")
    of_onnx("qlinear", "QLinearAdd and QLinearGlobalAveragePool of com.microsoft",
            [("Conv", ["image", "k"], ["c"], {"strides": [2, 2]}), ("QuantizeLinear", ["c", "s", "z"], ["q"], {}),
             ("QLinearAdd", ["q", "s", "z", "q", "s", "z", "s", "z"], ["a"], {}, MS), ("QLinearGlobalAveragePool", ["a", "s", "z", "s", "z"], ["p"], {"channels_last": 0}, MS),
             ("DequantizeLinear", ["p", "s", "z"], ["d"], {}), ("Flatten", ["d"], ["f"], {})] + DENSE,
            KERNEL + [weight("w", 6, 10), scale("s", 0.05), scalar("z", TensorProto.UINT8, 128)], domains=(MS,), made_by="as ONNX Runtime")
    packed = onnx.TensorProto(name="w4", data_type=22, dims=[6, 10], raw_data=bytes(i * 37 % 256 for i in range(30)))
    of_onnx("int4", "weights of 4 bits", CONV + [("DequantizeLinear", ["w4", "s"], ["w"], {}), ("MatMul", ["f", "w"], ["scores"], {})], KERNEL + [packed, scale("s", 0.1)], opset=21, ir=10)
    votes = dict(class_treeids=[0] * 2, class_nodeids=[1, 2], class_ids=[0, 1], class_weights=[1.0, 1.0], classlabels_int64s=[0, 1, 2], post_transform="NONE")
    of_onnx("trees", "a tree of classes, as scikit-learn's", [("Flatten", ["image"], ["x"], {}), ("TreeEnsembleClassifier", ["x"], ["label", "scores"], {**TREE, **votes}, ML)],
            [], domains=(ML,), shape=FOUR, made_by="as skl2onnx")
    of_onnx("forest", "a tree of numbers", [("Flatten", ["image"], ["x"], {}), ("TreeEnsembleRegressor", ["x"], ["scores"], {**TREE, "target_treeids": [0, 0], "target_nodeids": [1, 2],
            "target_ids": [0, 0], "target_weights": [0.0, 1.0], "n_targets": 1}, ML)], [], domains=(ML,), shape=FOUR, made_by="as skl2onnx")
    of_onnx("linear", "a linear model behind a scaler", [("Flatten", ["image"], ["x"], {}), ("Scaler", ["x"], ["n"], {"offset": [0.5] * 4, "scale": [2.0] * 4}, ML),
            ("LinearClassifier", ["n"], ["label", "scores"], {"coefficients": [0.3, -1.0, 0.5, 2.0] * 3, "intercepts": [0.1, 0.0, -0.1], "classlabels_ints": [0, 1, 2],
             "multi_class": 1, "post_transform": "SOFTMAX"}, ML)], [], domains=(ML,), shape=FOUR, made_by="as skl2onnx")
    of_onnx("unknown", "an operator of nobody's", CONV + [("Frobnicate", ["f"], ["scores"], {}, "com.example")], KERNEL, domains=("com.example",), refused="Frobnicate")
    return table


def two_inputs(path):
    info = helper.make_tensor_value_info
    body = helper.make_graph([helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Flatten", ["c"], ["scores"])], "two",
                             [info("a", TensorProto.FLOAT, ["n", *GRAY]), info("b", TensorProto.FLOAT, ["n", *GRAY])], [info("scores", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


class Table:
    def __init__(self, galvani, folder):
        self.galvani, self.folder, self.notes, self.problems = pathlib.Path(galvani).resolve(), folder, [], []

    def run(self, name, *words):
        done = subprocess.run([str(self.galvani), *words], cwd=self.folder, capture_output=True, text=True, timeout=LIMIT)
        errors = [line[7:] for line in done.stderr.splitlines() if line.startswith("error: ")]
        if done.returncode == 0:
            return OK, done
        if done.returncode not in (2, 3) or len(errors) != 1:
            self.problems.append(f"{name}: {' '.join(words)}: exit code {done.returncode}: {done.stderr[-300:]}")
        return (errors or ["?"])[0], done

    def note(self, name, sentence):
        if sentence == OK:
            return OK
        text = re.sub(re.escape(name) + ": ", "", sentence, count=1)
        if text not in self.notes:
            self.notes.append(text)
        return f"no ({self.notes.index(text) + 1})"

    def data(self, shape):
        path = self.folder / f"{'x'.join(map(str, shape))}.npz"
        if not path.exists():
            rng = np.random.RandomState(3)
            images = rng.randint(0, 256, (8, *shape), np.uint8)
            np.savez(path, images=images if shape[0] == 3 else images[:, 0])
        return path.name

    def row(self, entry):
        name = entry["name"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (entry["write"] or two_inputs)(self.folder / name)
        data = ["--data", self.data(entry["shape"])]
        stem = name.replace(".", "-")
        flags = entry["flags"]
        shown, done = self.run(name, "inspect", name, "--json", *flags)
        predicted, _ = self.run(name, "predict", name, *data, *flags, "-o", f"{stem}.csv")
        cells = [predicted]
        task = ""
        if predicted == OK:
            task = json.loads(done.stdout)["task"] if shown == OK else ""
            run = f"{stem}-run"
            cells.append(self.run(name, "fuzz", name, *data, *flags, "--labels", "model", "--guide", "random", "--seeds", "4", "--batch", "2", "--energy", "8",
                                  "--iterations", "4", "-q", "-o", run)[0])
            attack, _ = self.run(name, "attack", name, *data, *flags, "--labels", "model", "--method", "fgsm", "--eps", "8/255", "-q", "-o", f"{stem}-fgsm")
            cells.append(attack)
            cells.append(self.run(name, "report", run, "-o", f"{stem}.html")[0] if cells[1] == OK else cells[1])
        else:
            cells += [predicted] * 3
        if bool(entry["refused"]) != (predicted != OK) or entry["refused"] not in predicted:
            self.problems.append(f"{name}: should {'be refused: ' + entry['refused'] if entry['refused'] else 'work'}, but: {predicted}")
        loaded = OK if shown == OK else self.note(name, shown)
        return [f"`{name}`", entry["made_by"], entry["what"], loaded, task, *(self.note(name, cell) for cell in cells)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("galvani")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--markdown")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Table(options.galvani, pathlib.Path(folder))
        rows = []
        for entry in files():
            if options.words and not any(word in entry["name"] for word in options.words):
                continue
            rows.append(table.row(entry))
            print(" | ".join(rows[-1]), flush=True)
    text = f"{len(rows)} files. \"no\" is a refusal in one sentence, listed below the table.\n\n"
    heads = ["file", "made by", "what", "inspect", "task", "predict", "fuzz", "attack (fgsm)", "report"]
    text += "| " + " | ".join(heads) + " |\n|" + "---|" * len(heads) + "\n"
    text += "".join("| " + " | ".join(row) + " |\n" for row in rows) + "\n"
    text += "".join(f"{i + 1}. {note}\n" for i, note in enumerate(table.notes))
    if options.markdown:
        path = pathlib.Path(options.markdown)
        before, rest = path.read_text().split("<!-- foreign: begin -->\n")
        path.write_text(before + "<!-- foreign: begin -->\n" + text + "<!-- foreign: end -->" + rest.split("<!-- foreign: end -->")[1])
    for problem in table.problems:
        print(problem, file=sys.stderr)
    return 1 if table.problems else 0


if __name__ == "__main__":
    sys.exit(main())
