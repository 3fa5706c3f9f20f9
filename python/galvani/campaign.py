"""What a campaign found."""
from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from galvani import _galvani

Rows = list[dict[str, Any]]
Columns = dict[str, npt.NDArray[Any]]


def _rows(read: Callable[[dict[str, Any], bool], Any], filter: dict[str, Any]) -> Rows:
    rows: Rows = read(filter, False)
    return rows


def _columns(read: Callable[[dict[str, Any], bool], Any], filter: dict[str, Any]) -> Columns:
    columns: Columns = read(filter, True)
    return columns


def _given(**filter: Any) -> dict[str, Any]:
    return {name: value for name, value in filter.items() if value is not None}


class Campaign:
    """The folder of `galvani fuzz` or `galvani attack`, to read: while it runs or after.

    with galvani.Campaign("run1") as run:
        for fault in run.faults(most=10):
            print(fault["rule"], run.class_name(fault["predicted"]))
        changes = run.fault_columns()["change"]     # a NumPy array
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._core = _galvani.Campaign(os.fspath(folder))

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Nothing can be read any more."""
        self._core.close()

    @property
    def folder(self) -> str:
        return self._core.folder()

    @property
    def settings(self) -> dict[str, Any]:
        """What it was begun with."""
        return self._core.settings()

    def faults(self, *, label: int | None = None, predicted: int | None = None, kept_only: bool = False,
               distinct_only: bool = False, by_turns: bool = False, first: int = 1, most: int = 0) -> Rows:
        """Its faults, a dictionary each; `most` of them (0: all), from number `first` on. by_turns: one of every seed,
        then a second of each, and so on."""
        return _rows(self._core.faults, _given(label=label, predicted=predicted, kept_only=kept_only,
                                               distinct_only=distinct_only, by_turns=by_turns, first=first, most=most))

    def fault_columns(self, *, label: int | None = None, predicted: int | None = None, kept_only: bool = False,
                      distinct_only: bool = False, by_turns: bool = False, first: int = 1, most: int = 0) -> Columns:
        """The same as a NumPy array for each column."""
        return _columns(self._core.faults, _given(label=label, predicted=predicted, kept_only=kept_only,
                                               distinct_only=distinct_only, by_turns=by_turns, first=first, most=most))

    def inputs(self) -> Rows:
        """The mutants that its guide kept."""
        return _rows(self._core.inputs, {})

    def input_columns(self) -> Columns:
        return _columns(self._core.inputs, {})

    def seeds(self) -> Rows:
        """What it started from."""
        return _rows(self._core.seeds, {})

    def seed_columns(self) -> Columns:
        return _columns(self._core.seeds, {})

    def timeline(self) -> Columns:
        """Its counters after every batch, the first row before the first one."""
        return _columns(self._core.timeline, {})

    def fault_image(self, fault: int) -> npt.NDArray[np.uint8]:
        """(C, H, W) uint8, read from the fault's file."""
        return self._core.fault_image(fault)

    def input_image(self, number: int) -> npt.NDArray[np.uint8]:
        """(C, H, W) uint8 of a seed or a kept mutant."""
        return self._core.input_image(number)

    def rules(self, fault: int) -> list[str]:
        """What was done to the seed, step by step."""
        return self._core.rules(fault)

    def class_name(self, label: int) -> str:
        return self._core.class_name(label)

    @property
    def classes(self) -> int:
        return self._core.classes()

    def __repr__(self) -> str:
        return f"<galvani.Campaign {self.folder}{', closed' if self._core.closed() else ''}>"
