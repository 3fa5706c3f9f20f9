"""Arrays of others as NumPy sees them, without a copy; how they are shown."""
from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
import numpy.typing as npt

from galvani.errors import InputError


def as_array(values: Any, what: str) -> npt.NDArray[Any]:
    """`values` as a NumPy array on the same memory, if it has one: NumPy, torch, anything with DLPack or buffers."""
    if isinstance(values, np.ndarray):
        return values
    try:
        if hasattr(values, "__dlpack__"):
            return np.from_dlpack(values)
        array = np.asarray(values)
    except (RuntimeError, TypeError, ValueError, BufferError) as e:
        raise InputError(f"{what}: cannot be read as an array ({e})") from e
    if array.dtype.kind not in "buifc":
        raise InputError(f"{what}: is no array of numbers")
    return array


class _Short(reprlib.Repr):
    """Long lists, texts and arrays in one line each."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxdict = 6
        self.maxlevel = 3
        self.maxstring = self.maxother = 120
        self.maxlong = 40

    def repr_list(self, x: list[Any], level: int) -> str:
        text = super().repr_list(x, level)
        return f"{text[:-4]}... {len(x)} in all]" if len(x) > self.maxlist and text.endswith("...]") else text

    def repr_ndarray(self, x: np.ndarray[Any, Any], level: int) -> str:
        return f"array of {x.dtype} {x.shape}"


def short(value: object) -> str:
    """How a value is shown where it is one of many."""
    return _Short().repr(value)
