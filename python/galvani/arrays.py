"""Arrays of others as NumPy sees them, without a copy."""
from __future__ import annotations

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
