"""Arrays of block-list kernels: partial tiles first in each row, and their bits in the order in which a warpgroup's lanes hold elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def partial_first(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """row_ptr, col, whole (and tile, tiles, order) -> row_ptr, col, tested (and tile, bits, order).

    ``tested[row]`` tiles at the head of each row are not whole; within both parts columns stay ascending.
    """
    row_ptr, whole = arrays["row_ptr"], np.asarray(arrays["whole"])
    count = int(row_ptr[-1])
    rows = np.repeat(np.arange(len(row_ptr) - 1), np.diff(row_ptr))
    permutation = np.lexsort((np.arange(count), whole[:count], rows))
    partial = np.bincount(rows[whole[:count] == 0], minlength=len(row_ptr) - 1)
    made = {"row_ptr": row_ptr, "col": _permuted(arrays["col"], permutation), "tested": partial.astype(np.int32)}
    if "tiles" in arrays:
        made["tile"] = _permuted(arrays["tile"], permutation)
        made["bits"] = lane_bits(arrays["tiles"])
    if "order" in arrays:
        made["order"] = arrays["order"]
    return made


def _permuted(array: Array, permutation: Array) -> Array:
    """Permuted, keeping the one unread element of an empty array."""
    return np.ascontiguousarray(array[permutation]) if len(permutation) else array


def lane_bits(tiles: Array) -> Array:
    """uint8[n, rows, cols] -> uint32[n, rows, 4, words].

    Lane l of a quad holds columns 8 k + 2 l and the next for every k, in this order.
    """
    n, rows, cols = tiles.shape
    per_lane = (tiles != 0).reshape(n, rows, cols // 8, 4, 2).transpose(0, 1, 3, 2, 4).reshape(n, rows, 4, cols // 4)
    words = -(-cols // 128)
    padded = np.zeros((n, rows, 4, words * 32), np.uint8)
    padded[..., : cols // 4] = per_lane
    return np.packbits(padded, axis=-1, bitorder="little").view(np.uint32)
