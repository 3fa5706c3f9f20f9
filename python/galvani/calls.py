"""How keyword arguments become the options of a verb."""
from __future__ import annotations

import os
import queue
import threading
from typing import Any, Callable, Iterator, Sequence, Union

import numpy as np

from galvani import _galvani
from galvani.arrays import short
from galvani.data import Data
from galvani.errors import UsageError
from galvani.network import Network

# What is written as text: a spec, a path, a number, or several, which are joined by commas.
Text = Union[str, int, float, "os.PathLike[str]", Sequence[Union[str, int, float]]]
Model = Union[str, "os.PathLike[str]", Network]
# A spec, a path, Data, an array, or a pair of arrays: inputs and labels.
Inputs = Any


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray) or hasattr(value, "__dlpack__")


class Result(dict[str, Any]):
    """What a verb found: a dictionary that a notebook shows in short. dict(result) has all of it shown."""

    def __repr__(self) -> str:
        return "{" + ",\n ".join(f"{key!r}: {short(value)}" for key, value in self.items()) + "}"


class _Words:
    """The words of a call, and what they stand for, which must live as long as it does."""

    def __init__(self, verb: Sequence[str]) -> None:
        self.words = list(verb)
        self.networks: list[_galvani.Network] = []
        self.kept: list[Data] = []

    def text(self, name: str, value: object) -> str:
        if isinstance(value, Network):
            self.networks.append(value._core)
            return value.path
        if _is_array(value):
            value = Data(value)
        elif isinstance(value, tuple) and len(value) == 2 and _is_array(value[0]):
            value = Data(value[0], value[1])
        if isinstance(value, Data):
            self.kept.append(value)
            return value.spec
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, (list, tuple)):
            return ",".join(self.text(name, part) for part in value)
        if isinstance(value, bool) or not isinstance(value, (str, int, float, np.integer, np.floating)):
            raise UsageError(f"{name} is of type {type(value).__name__}, which is nothing that it can be")
        text = str(value)
        if not text:
            raise UsageError(f"{name} is empty: leave it out, or give it a value")
        if "\0" in text:
            raise UsageError(f"{name} has a character in it that no name may have")
        return text

    def several(self, name: str, value: object) -> list[str]:
        one = isinstance(value, (str, os.PathLike, Data)) or _is_array(value)
        pair = isinstance(value, tuple) and len(value) == 2 and _is_array(value[0])
        if one or pair:
            return [self.text(name, value)]
        if not isinstance(value, (list, tuple)):
            raise UsageError(f"{name} is of type {type(value).__name__}, but must be a list")
        return [self.text(name, part) for part in value]


def call(verb: Sequence[str], positional: Sequence[str], several: Sequence[str], given: dict[str, Any]) -> Any:
    """Does what a verb does. None and False: an option is not given."""
    on_event = given.pop("on_event", None)
    words = _Words(verb)
    for name in positional:
        value = given.pop(name)
        if value is None:
            continue
        for text in words.several(name, value) if name in several else [words.text(name, value)]:
            words.words.append("./" + text if text.startswith("-") else text)
    for name, value in given.items():
        if value is None or value is False:
            continue
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            words.words.append(option)
        elif name in several:
            words.words += [option, *words.several(name, value)]
        else:
            words.words.append(f"{option}={words.text(name, value)}")
    document, columns = _galvani.call_verb(words.words, words.networks, on_event)
    if columns:
        document.update(columns)
    return Result(document) if isinstance(document, dict) else document


def events(verb: Callable[..., dict[str, Any]], *args: Any, **options: Any) -> Iterator[dict[str, Any]]:
    """The news of a verb that has some (fuzz, attack, train, repair), one after the other as they come, and its result
    at the end, whose "event" is "summary".

    for event in galvani.events(galvani.fuzz, network, data="mnist:test", time="60s"):
        print(event["event"], event["faults"])

    The work goes on in a thread of its own; leaving the loop stops it as Ctrl-C does, so that a campaign can be gone on
    with.
    """
    news: queue.Queue[dict[str, Any] | BaseException] = queue.Queue(maxsize=64)
    left = threading.Event()

    def put(event: dict[str, Any] | BaseException) -> None:
        while not left.is_set():
            try:
                return news.put(event, timeout=0.1)
            except queue.Full:
                pass

    def work() -> None:
        try:
            result = verb(*args, **options, on_event=put)
            result["event"] = "summary"
            put(result)
        except BaseException as e:  # handed on to who waits
            put(e)

    thread = threading.Thread(target=work, name="galvani", daemon=True)
    thread.start()
    try:
        while True:
            event = news.get()
            if isinstance(event, BaseException):
                raise event
            yield event
            if event.get("event") == "summary":
                return
    finally:
        left.set()
        while thread.is_alive():
            _galvani.request_interrupt()
            thread.join(0.1)
