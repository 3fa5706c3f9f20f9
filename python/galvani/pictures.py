"""Inputs as pictures, for notebooks and files."""
from __future__ import annotations

import os
from typing import Any

import numpy as np

from galvani import _galvani
from galvani.arrays import as_array
from galvani.errors import InputError


class Picture:
    """A PNG file in memory; notebooks show it."""

    def __init__(self, png: bytes) -> None:
        self.png = png

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return f"<galvani.Picture, {len(self.png)} bytes>"

    def save(self, path: str | os.PathLike[str]) -> None:
        with open(path, "wb") as file:
            file.write(self.png)


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
