"""Which keys each row attends to, as intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..masks import Mask
from ..masks.position import allowed_distances
from .blocks import ELEMENTS


@dataclass(frozen=True)
class RowLists:
    """Half-open intervals of allowed keys, row by row; groups as in BlockLists.

    Attributes
    ----------
    row_ptr : int32 [groups * q_len + 1].
    start, stop : int32 [n], ascending and disjoint in a row.
    """

    groups: int
    stride_b: int
    stride_h: int
    row_ptr: npt.NDArray[np.int32]
    start: npt.NDArray[np.int32]
    stop: npt.NDArray[np.int32]

    def group(self, b: int, h: int) -> int:
        """List group of a batch entry and head."""
        return b * self.stride_b + h * self.stride_h


def row_lists(mask: Mask, q_len: int, kv_len: int, batch: int = 1, heads: int = 1) -> RowLists:
    """Intervals of a bound mask; O(intervals) where it depends on q - k alone, otherwise rows are looked at a portion at a time."""
    per_b, per_h = "b" in mask.depends_on, "h" in mask.depends_on
    entries = [(b, h) for b in range(batch if per_b else 1) for h in range(heads if per_h else 1)]
    counts, starts, stops = [np.zeros(1, np.int64)], [], []
    for b, h in entries:
        step = max(1, ELEMENTS // max(kv_len, 1))
        for first in range(0, q_len, step):
            rows = np.arange(first, min(first + step, q_len), dtype=np.int64)
            row, start, stop = _relative(mask, rows, q_len, kv_len) if mask.relative else _looked_at(mask, rows, kv_len, b, h)
            counts.append(np.bincount(row, minlength=len(rows)))
            starts.append(start.astype(np.int32))
            stops.append(stop.astype(np.int32))
    row_ptr = np.cumsum(np.concatenate(counts)).astype(np.int32)
    stride_b = (heads if per_h else 1) if per_b else 0
    return RowLists(len(entries), stride_b, 1 if per_h else 0, row_ptr, np.concatenate(starts), np.concatenate(stops))


Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _relative(mask: Mask, rows: npt.NDArray[np.int64], q_len: int, kv_len: int) -> Found:
    """(row, start, stop): intervals of allowed distances, shifted to each row and cut at both ends."""
    allowed = np.concatenate([[False], allowed_distances(mask, q_len, kv_len), [False]])
    edges = np.diff(allowed.astype(np.int8))
    low, high = np.flatnonzero(edges == 1) - (kv_len - 1), np.flatnonzero(edges == -1) - kv_len
    start = np.maximum(rows[:, None] - high[::-1], 0)
    stop = np.minimum(rows[:, None] - low[::-1] + 1, kv_len)
    row, n = np.nonzero(start < stop)
    return row, start[row, n], stop[row, n]


def _looked_at(mask: Mask, rows: npt.NDArray[np.int64], kv_len: int, b: int, h: int) -> Found:
    bits = np.broadcast_to(np.asarray(mask(rows[:, None], np.arange(kv_len), b, h), bool), (len(rows), kv_len))
    edges = np.diff(np.pad(bits, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    row, start = np.nonzero(edges == 1)
    return row, start, np.nonzero(edges == -1)[1]
