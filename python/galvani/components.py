"""Components written in Python: a guide, a selector, a generator.

They stand in the same registries as those of Galvani and are named in the same options. Every call is for a whole
batch, so that its cost is that of NumPy on the batch (docs/python.md has measurements); the interpreter's lock is taken
for the call alone.
"""
from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Protocol

import numpy as np
import numpy.typing as npt

from galvani import _galvani
from galvani.errors import UsageError

Floats = npt.NDArray[np.float32]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Judged:
    """Candidates, or at the beginning seeds, as the network judged them: one row each, in the order they are decided."""

    images: npt.NDArray[Any]  # (N, ...) as files hold them
    logits: Floats  # (N, classes)
    predicted: Whole  # (N,)
    labels: Whole  # (N,): what is right
    parents: Whole  # (N,): the entry of the corpus each was made of
    seeds: Whole  # (N,): the seed that began its lineage
    iterations: Whole  # (N,): the pick; 0 of seeds
    traces: Floats | None  # (N, neurons), if the guide asks for them
    relevance: Floats | None  # likewise


@dataclass(frozen=True)
class Seen:
    """Inputs of a pool, or of the training data, as the network sees them."""

    images: npt.NDArray[Any]
    logits: Floats
    probabilities: Floats
    predicted: Whole
    features: list[Floats]  # one for each layer the selector asks for
    traces: Floats | None
    labels: Whole | None = None  # of training data


class Guide(Protocol):
    """Which candidates are worth keeping. `needs_traces = True` asks for the values of the neurons, `needs_relevance =
    True` for their relevance. Optional: absorb(batch), which sees the seeds and returns their gains (default: decide);
    covered(), how much is covered, or a pair with what can be; reset(); merge(other); save() and load(bytes), where
    pickling its attributes is not enough."""

    def decide(self, batch: Judged) -> npt.ArrayLike:
        """The gain of every row; those above 0 are kept. Row by row as if each came alone: how a campaign is cut into
        batches must not matter."""


class Selector(Protocol):
    """Which inputs are worth a label. `needs_traces = True`; `features = ["penultimate"]` asks for what goes into a
    layer. With train(batch), it is shown the training data first."""

    def score(self, batch: Seen) -> npt.ArrayLike:
        """One number a row: the most worthwhile have the largest; NaN cannot be scored."""


# A candidate of every row, from its parent, the seed of its lineage and a number drawn for it. A row's candidate must
# depend on the row alone, so that it can be made again.
Generate = Callable[[npt.NDArray[Any], npt.NDArray[Any], Whole], npt.NDArray[Any]]


def _column(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    return np.ascontiguousarray(values, dtype=np.float64)


class _Factory:
    """Makes an adapter with the options of a spec."""

    def __init__(self, adapter: Callable[[Any], Any], make: Callable[..., Any]) -> None:
        self._adapter = adapter
        self._make = make

    def make(self, options: dict[str, Any]) -> Any:
        return self._adapter(self._make(**options))


class _GuideAdapter:
    def __init__(self, guide: Any) -> None:
        self._guide = guide
        self._gained = 0.0

    def itself(self) -> Any:
        return self._guide

    def needs(self) -> tuple[bool, bool]:
        relevance = bool(getattr(self._guide, "needs_relevance", False))
        return bool(getattr(self._guide, "needs_traces", False)) or relevance, relevance

    def _gains(self, method: str, rows: dict[str, Any]) -> npt.NDArray[np.float64]:
        gains = _column(getattr(self._guide, method)(Judged(**rows)))
        self._gained += float(gains[gains > 0].sum())
        return gains

    def absorb(self, rows: dict[str, Any]) -> npt.NDArray[np.float64]:
        return self._gains("absorb" if hasattr(self._guide, "absorb") else "decide", rows)

    def decide(self, rows: dict[str, Any]) -> npt.NDArray[np.float64]:
        return self._gains("decide", rows)

    def covered(self) -> tuple[float, float]:
        if not hasattr(self._guide, "covered"):
            return self._gained, 0.0
        amount = self._guide.covered()
        return (float(amount[0]), float(amount[1])) if isinstance(amount, tuple) else (float(amount), 0.0)

    def reset(self) -> None:
        if not hasattr(self._guide, "reset"):
            raise UsageError(f"the guide {type(self._guide).__name__} cannot forget what is covered: it has no reset")
        self._guide.reset()
        self._gained = 0.0

    def merge(self, other: Any) -> None:
        if not hasattr(self._guide, "merge"):
            raise UsageError(f"the guide {type(self._guide).__name__} cannot be merged: it has no merge")
        self._guide.merge(other)

    def save(self) -> bytes:
        state = self._guide.save() if hasattr(self._guide, "save") else pickle.dumps(self._guide.__dict__)
        return pickle.dumps((self._gained, state))

    def load(self, state: bytes) -> None:
        self._gained, inner = pickle.loads(state)
        if hasattr(self._guide, "load"):
            self._guide.load(inner)
        else:
            self._guide.__dict__.update(pickle.loads(inner))


class _SelectorAdapter:
    def __init__(self, selector: Any) -> None:
        self._selector = selector

    def needs(self) -> dict[str, Any]:
        return {"traces": bool(getattr(self._selector, "needs_traces", False)),
                "training": hasattr(self._selector, "train"),
                "features": list(getattr(self._selector, "features", []))}

    def train(self, rows: dict[str, Any]) -> None:
        self._selector.train(Seen(**rows))

    def score(self, rows: dict[str, Any]) -> npt.NDArray[np.float64]:
        return _column(self._selector.score(Seen(**rows)))


class _GeneratorAdapter:
    def __init__(self, generate: Generate) -> None:
        self._generate = generate

    def generate(self, parents: npt.NDArray[Any], seeds: npt.NDArray[Any], draws: Whole) -> npt.NDArray[Any]:
        made = np.asarray(self._generate(parents, seeds, draws))
        return made if made.dtype == parents.dtype else np.ascontiguousarray(made, dtype=np.float32)


def _options(options: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    return list((options or {}).items())


def _help(text: str | None, made: Any) -> str:
    return text or (made.__doc__ or "written in Python").strip().splitlines()[0]


def add_guide(name: str, make: Callable[..., Guide], *, options: Mapping[str, Any] | None = None,
              help: str | None = None) -> None:
    """`make(**options)` is a guide from now on: fuzz(guide="name:option=value"). `options` has the defaults."""
    _galvani.add_guide(name, _help(help, make), _options(options), _Factory(_GuideAdapter, make))


def add_selector(name: str, make: Callable[..., Selector], *, options: Mapping[str, Any] | None = None,
                 help: str | None = None) -> None:
    """`make(**options)` is a selector from now on: select(by="name:option=value")."""
    _galvani.add_selector(name, _help(help, make), _options(options), _Factory(_SelectorAdapter, make))


def add_generator(name: str, make: Callable[..., Generate], *, options: Mapping[str, Any] | None = None,
                  help: str | None = None) -> None:
    """What `make(**options)` returns is a generator from now on: fuzz(generator="name:option=value")."""
    _galvani.add_generator(name, _help(help, make), _options(options), _Factory(_GeneratorAdapter, make))
