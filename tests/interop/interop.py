"""Models of PyTorch, exported as ONNX and as scripted and traced TorchScript, run by Galvani and compared with PyTorch.

usage: interop.py path/to/interop_run [model ...]

Checks logits (of passes with gradients and of fused ones), gradients with respect to the pixels, and that a saved model
gives the same bits. Weights are random (seeded); nothing is downloaded. Exit code 1 if anything disagrees.
"""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import torchvision

import small_models

LOGITS_TOLERANCE = 1e-4    # of the largest logit
GRADIENT_TOLERANCE = 1e-3  # of the largest derivative
LARGE = ["resnet18", "resnet50", "vgg16_bn", "mobilenet_v2", "squeezenet1_1", "densenet121", "inception_v3",
         "efficientnet_b0", "shufflenet_v2_x1_0", "vit_b_16"]
FORMATS = ["onnx", "scripted", "traced"]


def take_their_kernels():
    """PyTorch runs what OpenBLAS takes by itself, Galvani better kernels where there are; gradients of two that differ in their last bits
    differ wherever a ReLU is near its corner. Programs that are started from here run PyTorch's."""
    try:
        name = ctypes.CDLL("libopenblas.so.0").openblas_get_corename
    except (OSError, AttributeError):
        return
    name.restype = ctypes.c_char_p
    os.environ["OPENBLAS_CORETYPE"] = name().decode()


class Case:
    """A model with what is needed to run it. `formats` are those it can be exported to."""

    def __init__(self, name, model, shape, images=2, micro_batch=2, layout="nchw", fixed_batch=False, formats=FORMATS,
                 logits=None):
        self.name, self.model, self.shape, self.images = name, model.eval(), shape, images
        self.micro_batch, self.layout, self.fixed_batch, self.formats = micro_batch, layout, fixed_batch, formats
        self.logits = logits or model  # what Galvani should give: the model without its softmax


def large_case(name):
    torch.manual_seed(1)
    side = 299 if name == "inception_v3" else 224
    options = {"init_weights": True} if name == "inception_v3" else {}
    model = getattr(torchvision.models, name)(weights=None, **options)
    calibrate(model, torch.rand(2, 3, side, side))
    return Case(name, model, (3, side, side))


def small_case(name):
    torch.manual_seed(1)
    case = Case(name, **small_models.ALL[name]())
    calibrate(case.model, to_input(case, random_images(case, 8)))
    return case


def calibrate(model, batch):
    """Batch norm with statistics of real activations, then shifted, so that they matter; no all-zero weights."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.normal_(std=0.05)
        for norm in norms:
            norm.weight.uniform_(0.8, 1.2)
            norm.bias.normal_(std=0.1)
            norm.train()
            norm.momentum = 1.0
        if norms:
            model(batch)
        for norm in norms:
            norm.eval()
            # In units of the deviation: it is tiny in some layers, and a network far off its statistics amplifies rounding.
            norm.running_mean += 0.1 * norm.running_var.sqrt() * torch.randn_like(norm.running_mean)
            norm.running_var *= 0.8 + 0.4 * torch.rand_like(norm.running_var)


def random_images(case, count):
    generator = np.random.default_rng(7)
    return generator.integers(0, 256, (count, *case.shape), dtype=np.uint8)


def to_input(case, images):
    # As Galvani scales, to the last bit: a ReLU near zero turns a difference of one bit into another gradient.
    x = torch.from_numpy(images).float() * np.float32(1 / 255)
    return x.permute(0, 2, 3, 1).contiguous() if case.layout == "nhwc" else x


def expected(case, images, weights):
    x = to_input(case, images).requires_grad_(True)
    # In the batches that Galvani uses, which give the bits.
    parts = x.split(1 if case.fixed_batch else case.micro_batch or len(x))
    logits = torch.cat([case.logits(part) for part in parts])
    gradient, = torch.autograd.grad((logits * torch.from_numpy(weights)).sum(), x)
    if case.layout == "nhwc":
        gradient = gradient.permute(0, 3, 1, 2)
    return logits.detach().numpy(), gradient.numpy() / 255


def export(case, form, path):
    example = to_input(case, random_images(case, 1 if case.fixed_batch else 2))
    if form == "onnx":
        axes = None if case.fixed_batch else {"input": {0: "batch"}, "logits": {0: "batch"}}
        torch.onnx.export(case.model, example, str(path), opset_version=13, input_names=["input"],
                          output_names=["logits"], dynamic_axes=axes, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.PRESERVE)
    elif form == "scripted":
        torch.jit.script(case.model).save(str(path))
    else:
        torch.jit.trace(case.model, example, check_trace=False).save(str(path))


def relative_error(found, wanted):
    if found.shape != wanted.shape:
        return float("inf")
    error = np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-30)
    return float(error) if np.isfinite(error) else float("inf")


def run(program, jobs, folder):
    (folder / "jobs.json").write_text(json.dumps(jobs))
    done = subprocess.run([program, str(folder / "jobs.json")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "GALVANI_CACHE": str(folder / "cache")}, text=True)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    missing = {"error": f"interop_run ended with code {done.returncode}: {done.stderr.strip()[-300:]}"}
    return results + [missing] * (len(jobs) - len(results))


def check(case, program):
    """One row per format: [model, format, logits error, fused, gradient error, neurons, taps, verdict]."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="galvani-interop") as name:
        folder = pathlib.Path(name)
        images = random_images(case, case.images)
        with torch.no_grad():
            classes = case.logits(to_input(case, images[:1])).shape[1]
        weights = np.random.default_rng(8).standard_normal((case.images, classes)).astype(np.float32)
        np.save(folder / "images.npy", images)
        np.save(folder / "weights.npy", weights)
        logits, gradient = expected(case, images, weights)
        jobs = []
        for form in case.formats:
            suffix = ".onnx" if form == "onnx" else ".pt"
            export(case, form, folder / (form + suffix))
            jobs.append({"model": str(folder / (form + suffix)), "images": str(folder / "images.npy"),
                         "weights": str(folder / "weights.npy"), "out": str(folder / form), "shape": case.shape,
                         "micro_batch": case.micro_batch, "layout": case.layout,
                         "save": str(folder / (form + "-saved" + suffix))})
        reference_taps = None
        for form, result in zip(case.formats, run(program, jobs, folder)):
            if "error" in result:
                rows.append([case.name, form, "", "", "", "", "", "FAIL: " + result["error"]])
                continue
            errors = [relative_error(np.load(folder / f"{form}.logits.npy"), logits),
                      relative_error(np.load(folder / f"{form}.gradient.npy"), gradient),
                      relative_error(np.load(folder / f"{form}.fused.npy"), logits)]
            problems = []
            if not errors[0] <= LOGITS_TOLERANCE:
                problems.append("logits")
            if not errors[2] <= LOGITS_TOLERANCE:
                problems.append("fused logits")
            if not errors[1] <= GRADIENT_TOLERANCE:
                problems.append("gradient")
            if not result["same_bits"]:
                problems.append("saved model gives other bits")
            taps = result.get("taps", [])
            reference_taps = reference_taps or taps
            difference = sorted(set(taps) ^ set(reference_taps))
            tap_note = "same" if not difference else f"{len(difference)} differ: {', '.join(difference[:3])}"
            rows.append([case.name, form, f"{errors[0]:.1e}", f"{errors[2]:.1e}", f"{errors[1]:.1e}",
                         str(result["neurons"]), f"{len(taps)} {tap_note}",
                         "FAIL: " + ", ".join(problems) if problems else "ok"])
    return rows


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)  # other numbers of threads give other bits
    take_their_kernels()
    program, wanted = sys.argv[1], sys.argv[2:]
    unknown = [name for name in wanted if name not in LARGE and name not in small_models.ALL]
    if unknown:
        sys.exit(f"unknown model {unknown[0]}; known are {', '.join([*small_models.ALL, *LARGE])}")
    widths = (20, 9, 8, 8, 9, 8, 28)
    layout = " ".join(f"{{:{width}}}" for width in widths) + " {}"
    print(layout.format("model", "format", "logits", "fused", "gradient", "neurons", "taps", "verdict"))
    failed = False
    for name in wanted or [*small_models.ALL, *LARGE]:
        case = small_case(name) if name in small_models.ALL else large_case(name)
        for row in check(case, program):
            print(layout.format(*row), flush=True)
            failed |= row[-1] != "ok"
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
