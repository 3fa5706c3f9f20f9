"""Inputs as pictures, for notebooks and files."""
from __future__ import annotations

import base64
import os
from typing import Any

import numpy as np

from galvani import _galvani
from galvani.arrays import as_array
from galvani.errors import InputError

_PNG = b"\x89PNG\r\n\x1a\n"
_LOOK = 1000  # bytes in which an SVG file says what it is


class Picture:
    """A PNG or SVG file in memory; notebooks show it."""

    def __init__(self, data: bytes) -> None:
        if not data.startswith(_PNG) and b"<svg" not in data[:_LOOK]:
            raise InputError("a picture is the bytes of a PNG or an SVG file")
        self.data = data

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Picture:
        """What a verb has drawn: `plot=`, or `output=` of explain."""
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise InputError(f"{os.fspath(path)}: {error.strerror}") from None
        try:
            return cls(data)
        except InputError:
            raise InputError(f"{os.fspath(path)}: is neither a PNG nor an SVG file") from None

    def _repr_png_(self) -> bytes | None:
        return self.data if self.data.startswith(_PNG) else None

    def _repr_html_(self) -> str | None:
        # As an image: what shows notebooks to strangers strips an SVG of its lines where it stands by itself.
        svg = not self.data.startswith(_PNG)
        return f'<img src="data:image/svg+xml;base64,{base64.b64encode(self.data).decode()}">' if svg else None

    def __repr__(self) -> str:
        return f"<galvani.Picture, {len(self.data)} bytes>"

    def save(self, path: str | os.PathLike[str]) -> None:
        with open(path, "wb") as file:
            file.write(self.data)


def sheet(images: Any, *, columns: int = 10, scale: int = 2, gap: int = 4) -> Picture:
    """Images (N, C, H, W) uint8 beside and below each other, each pixel `scale` times as large."""
    array = as_array(images, "images")
    if array.ndim != 4 or array.shape[0] == 0 or array.shape[1] not in (1, 3) or array.dtype != np.uint8:
        raise InputError("images: a sheet is made of (N, C, H, W) uint8, with one or three channels")
    n, channels, height, width = array.shape
    columns = max(1, min(columns, n))
    rows = -(-n // columns)
    step = (height * scale + gap, width * scale + gap)
    page = np.full((channels, rows * step[0] + gap, columns * step[1] + gap), 255, np.uint8)
    for i, image in enumerate(array.repeat(scale, 2).repeat(scale, 3)):
        y, x = gap + i // columns * step[0], gap + i % columns * step[1]
        page[:, y:y + height * scale, x:x + width * scale] = image
    return Picture(_galvani.png(page))
