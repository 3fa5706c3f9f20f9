"""Inputs: what a spec names, or arrays."""
from __future__ import annotations

import itertools
import os
import weakref
from typing import Any, Sequence

import numpy as np
import numpy.typing as npt

from galvani import _galvani
from galvani.arrays import as_array
from galvani.errors import UsageError

_numbers = itertools.count(1)


class Data:
    """Inputs with their labels.

    Data("mnist:test[:1000]")          what a spec names (docs/data.md); files are read when rows are asked for
    Data(images, labels)               arrays: images (N, C, H, W) uint8, or sounds (N, channels, length) int16
    Data(images, labels, name="mine")  the same under a name of its own, which records of campaigns then show

    Arrays are not copied, so what they hold must not change while they are in use; pickled data have them with them. A network takes labels as numbers
    from 0, -1 where one is not known.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Any,
        labels: npt.ArrayLike | None = None,
        *,
        class_names: Sequence[str] = (),
        name: str | None = None,
        rate: int = 0,
        split: str = "test",
    ) -> None:
        self._split = split
        self._opened: _galvani.DataView | None = None
        if isinstance(source, (str, os.PathLike)):
            if labels is not None or class_names or name is not None:
                raise UsageError("labels, class_names and name are of arrays; a spec has its own")
            self.spec = os.fspath(source)
            self._arrays: tuple[Any, ...] | None = None
            return
        values = as_array(source, "inputs")
        known = None if labels is None else as_array(labels, "labels")
        self._arrays = (values, known, list(class_names), name, rate)
        given = name if name is not None else f"array-{os.getpid()}-{next(_numbers)}"
        _galvani.lend_data(given, values, known, list(class_names), rate)
        self.spec = f"memory:{given}"
        # Under a name of the user's own they stay: a campaign is gone on with by it.
        if name is None:
            weakref.finalize(self, _galvani.take_back_data, given)

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_back, (self.spec if self._arrays is None else self._arrays, self._split)

    def _view(self) -> _galvani.DataView:
        if self._opened is None:
            self._opened = _galvani.open_data(self.spec, self._split, None)
        return self._opened

    def __len__(self) -> int:
        return len(self._view())

    def __getitem__(self, rows: int | slice | Sequence[int] | npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        """The values of one row, or of several: uint8 images, int16 sounds."""
        if isinstance(rows, slice):
            return self._view().fetch(list(range(*rows.indices(len(self)))))
        if isinstance(rows, (int, np.integer)):
            values: npt.NDArray[Any] = self._view().fetch([self._row(rows)])[0]
            return values
        return self._view().fetch([self._row(row) for row in rows])

    def _row(self, index: int | np.integer[Any]) -> int:
        row = int(index) + len(self) if index < 0 else int(index)
        # An IndexError ends a loop over all rows.
        if not 0 <= row < len(self):
            raise IndexError(f"{self.spec}: there is no input {int(index)} among {len(self)}")
        return row

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """All values."""
        values = self[:]
        return values if dtype is None else values.astype(dtype)

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        """(N,) int64; -1 where a label is not known."""
        return self._view().labels

    @property
    def class_names(self) -> list[str]:
        return self._view().class_names

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input."""
        return self._view().shape

    def __repr__(self) -> str:
        return f"Data({self.spec!r})"


def _read_back(source: str | tuple[Any, ...], split: str) -> Data:
    if isinstance(source, str):
        return Data(source, split=split)
    values, labels, class_names, name, rate = source
    return Data(values, labels, class_names=class_names, name=name, rate=rate, split=split)
