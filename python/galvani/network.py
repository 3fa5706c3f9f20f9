"""Networks: load, run, look into, differentiate, save."""
from __future__ import annotations

import hashlib
import importlib
import io
import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from galvani import _galvani
from galvani.arrays import as_array, short
from galvani.errors import InputError, UsageError

Path = str | os.PathLike[str]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Tap:
    """A place in the network that can be observed."""

    name: str
    kind: str
    op: str
    shape: tuple[int, ...]
    neurons: int


class _Shown:
    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={short(value)}' for name, value in vars(self).items())})"


@dataclass(frozen=True, repr=False)
class Outputs(_Shown):
    """What Network.run found, for N inputs."""

    logits: Floats  # (N, classes); of a regression or of several labels the answers
    taps: dict[str, Floats]  # (N, neurons), or (N, ...) in full
    input_gradient: Floats | None  # (N, ...) per unit of the file
    tap_gradients: dict[str, Floats]  # (N, ...)


@dataclass(frozen=True, repr=False)
class Predictions(_Shown):
    """What a network says about N inputs."""

    predicted: npt.NDArray[np.int64]  # (N,); -1: its scores are not finite
    probabilities: Floats  # (N, classes)
    confidence: Floats  # (N,)
    logits: Floats  # (N, classes)
    reexamined: int  # verdicts that hung on the last bits and were decided by the input alone


class Network:
    """A trained network, from ONNX or TorchScript.

    network = Network("lenet5.onnx")
    network = Network.from_torch(module, example)

    It is pickled as its file and options, which must be there, unchanged, where it is read back.
    """

    def _take(self, core: _galvani.Network, given: dict[str, Any]) -> None:
        self._core = core
        self._given = given
        info = core.info()
        self.path: str = info["path"]
        self.format: str = info["format"]
        self.sha256: str = info["sha256"]
        self.classes: int = info["classes"]
        self.task: str = info["task"]
        self.class_names: list[str] = info["class_names"]
        self.parameters: int = info["parameters"]
        self.notes: list[str] = info["notes"]

    def __init__(
        self,
        path: Path,
        *,
        range: str | None = None,
        mean: str | None = None,
        std: str | None = None,
        channels: Literal["rgb", "bgr"] | None = None,
        layout: Literal["nchw", "nhwc"] | None = None,
        input: str | None = None,
        head: Literal["logits", "softmax", "log-softmax", "sigmoid"] | None = None,
        task: Literal["classes", "binary", "multi-label", "regression"] | None = None,
        model_output: str | int | None = None,
        threshold: float | None = None,
        tolerance: float | None = None,
        resize: str | None = None,
        crop: str | None = None,
        classes: str | None = None,
        label_shift: int | None = None,
        skip_broken: bool = False,
        micro_batch: int | None = None,
        unfused: bool = False,
    ) -> None:
        """Loads an ONNX or TorchScript file. The options are those of every verb that runs a model: they say what the
        file does not (docs/models.md)."""
        texts = {"range": range, "mean": mean, "std": std, "channels": channels, "layout": layout, "input": input,
                 "head": head, "task": task, "model_output": model_output, "threshold": threshold, "tolerance": tolerance,
                 "resize": resize, "crop": crop, "classes": classes, "label_shift": label_shift}
        given: dict[str, Any] = {name: str(text) for name, text in texts.items() if text is not None}
        given["skip_broken"] = bool(skip_broken)
        given["unfused"] = bool(unfused)
        if micro_batch is not None:
            given["micro_batch"] = int(micro_batch)
        self._take(_galvani.Network.load(os.fspath(path), given, []), given)

    @staticmethod
    def load(path: Path, **options: Any) -> Network:
        """The same as Network(path, **options)."""
        return Network(path, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._core.identity() != self.sha256:
            raise UsageError(f"{self.path}: its weights are not those of the file any more; save it, and pickle what was saved")
        return _read_back, (os.path.abspath(self.path), self._given, self.sha256)

    @staticmethod
    def from_torch(module: Any, example: Any, path: Path | None = None, **options: Any) -> Network:
        """A module of torch, as it is now, in evaluation mode: traced with `example`, a batch of what it takes, and
        kept as TorchScript in `path` (default: a file in the cache folder). `options` are those of load; by default
        the bytes 0 to 255 of an image become 0 to 1."""
        torch: Any = importlib.import_module("torch")  # of python3-torch, which nothing else needs
        if not isinstance(example, torch.Tensor) or example.dim() < 2:
            raise UsageError("example must be a batch of inputs as the module takes them, such as torch.zeros(1, 3, 32, 32)")
        training = module.training
        module.eval()
        try:
            with torch.no_grad():
                traced = torch.jit.trace(module, example)
        finally:
            module.train(training)
        stored = io.BytesIO()
        torch.jit.save(traced, stored)
        text = stored.getvalue()
        if path is None:
            folder = os.path.join(_galvani.cache_folder(), "from-torch")
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, hashlib.sha256(text).hexdigest()[:32] + ".pt")
        with open(path, "wb") as file:
            file.write(text)
        options.setdefault("input", ",".join(str(size) for size in example.shape[1:]))
        return Network.load(path, **options)

    def run(
        self,
        images: Any,
        *,
        taps: str | None = None,
        form: Literal["neurons", "full"] = "neurons",
        gradient_of: Literal["predicted"] | npt.ArrayLike | None = None,
        tap_gradients: bool = False,
        alone: bool = False,
    ) -> Outputs:
        """One pass of `images`, (N, C, H, W) uint8, or float32 from 0 to 255; sounds (N, channels, length) int16.

        taps: what to observe: "default", "relu", "all", or names and globs separated by commas
        form: of a tap: its neurons (means over space), or all of it
        gradient_of: the score that is differentiated by the input: "predicted", or a class for every input
        tap_gradients: by the taps, too
        alone: every input in a pass of its own: the same bits whatever else is asked
        """
        if form not in ("neurons", "full"):
            raise UsageError(f"form is {form!r}, but must be 'neurons' or 'full'")
        wanted = gradient_of
        if wanted is not None and not isinstance(wanted, str):
            wanted = as_array(wanted, "gradient_of")
        found = self._core.run(as_array(images, "images"), taps or "", form == "full", wanted, tap_gradients, alone)
        return Outputs(**found)

    def predict(self, images: Any) -> Predictions:
        """The classes of `images`, as `galvani predict` says them."""
        return Predictions(**self._core.predict(as_array(images, "images")))

    def answers(self, images: Any) -> Floats:
        """(N, outputs): what a regression says of `images`, or how likely each of several labels is."""
        return self._core.answers(as_array(images, "images"))

    @property
    def input_shape(self) -> tuple[int, ...]:
        """(C, H, W), or (channels, length) of a sound. One whose module takes rows of values is (1, values) until
        images of as many values are given."""
        shape: tuple[int, ...] = self._core.info()["input"]
        return shape

    @property
    def taps(self) -> list[Tap]:
        """All places that can be observed, in the order of the graph."""
        return [Tap(**tap) for tap in self._core.taps()]

    def select_taps(self, spec: str = "default") -> list[str]:
        """The names of the taps that a spec means."""
        return self._core.select_taps(spec)

    @property
    def parameter_names(self) -> list[str]:
        return self._core.parameter_names()

    def parameter(self, name: str) -> Floats:
        """A copy of a weight."""
        return self._core.parameter(name)

    def set_parameter(self, name: str, value: npt.ArrayLike) -> None:
        """The network computes with the new value from now on."""
        self._core.set_parameter(name, as_array(value, name))

    @property
    def preprocessing(self) -> str:
        """What becomes of the values of a file before the first layer."""
        text: str = self._core.info()["preprocessing"]
        return text

    def clone(self) -> Network:
        """An independent one in the same state."""
        copy = Network.__new__(Network)
        copy._take(self._core.clone(), self._given)
        return copy

    def save(self, path: Path) -> None:
        """Writes it in the format it came in."""
        self._core.save(os.fspath(path))

    def __repr__(self) -> str:
        return f"<galvani.Network {self.path}: {'x'.join(map(str, self.input_shape))} to {self.classes} classes>"


def _read_back(path: str, given: dict[str, Any], sha256: str) -> Network:
    network = Network(path, **given)
    if network.sha256 != sha256:
        raise InputError(f"{path}: is not the file of the network that was pickled any more; its content has changed")
    return network
