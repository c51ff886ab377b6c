"""Which keys each row attends to, as intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..masks import FULL, PARTIAL, BlockGrid, Mask
from ..masks.position import allowed_distances
from .settle import BLOCKS, Groups, Ints, look, settled

#: side of the blocks that rows are put together from
BLOCK = 64


@dataclass(frozen=True, eq=False)
class RowLists:
    """Half-open intervals of allowed keys, row by row; groups as in BlockLists.

    Attributes
    ----------
    row_ptr : int32 [groups * q_len + 1].
    start, stop : int32 [n], ascending in a row, neither overlapping nor touching.
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
    """Intervals of a bound mask.

    O(intervals) where it depends on q - k alone; otherwise O(blocks + elements of partial blocks).

    Examples
    --------
    >>> from tvm_stof.masks import Longformer
    >>> lists = row_lists(Longformer(1, tokens=1), 5, 5)
    >>> list(zip(lists.start[-2:].tolist(), lists.stop[-2:].tolist()))
    [(0, 1), (3, 5)]
    """
    groups = Groups.of(mask, batch, heads)
    found = [(_relative if mask.relative else _from_blocks)(mask, q_len, kv_len, b, h) for b, h in groups.members()]
    per_row = [np.bincount(row, minlength=q_len) for row, _, _ in found]
    row_ptr = np.cumsum(np.concatenate([np.zeros(1, np.int64), *per_row])).astype(np.int32)
    start, stop = (np.concatenate([f[n] for f in found]).astype(np.int32) for n in (1, 2))
    return RowLists(groups.count, groups.stride_b, groups.stride_h, row_ptr, start, stop)


#: row, start and stop of intervals
Found = tuple[Ints, Ints, Ints]


def _relative(mask: Mask, q_len: int, kv_len: int, b: int, h: int) -> Found:
    """Runs of allowed distances, shifted to each row and cut at both ends."""
    allowed = np.pad(allowed_distances(mask, q_len, kv_len, b, h), 1)
    edges = np.diff(allowed.astype(np.int8))
    # Distances fall as keys rise.
    near, far = (np.flatnonzero(edges == 1) - (kv_len - 1))[::-1], (np.flatnonzero(edges == -1) - kv_len)[::-1]
    q = np.arange(q_len, dtype=np.int64)
    first, end = np.searchsorted(-near, -q), np.searchsorted(-far, kv_len - 1 - q, side="right")
    count = np.maximum(end - first, 0)
    row = np.repeat(q, count)
    run = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return row, np.maximum(row - far[run], 0), np.minimum(row - near[run] + 1, kv_len)


def _from_blocks(mask: Mask, q_len: int, kv_len: int, b: int, h: int) -> Found:
    """Runs of full blocks, and runs of bits within partial ones, sorted and joined where they touch."""
    grid = BlockGrid(q_len, kv_len, BLOCK, BLOCK)
    pieces: list[Found] = []
    for slab in grid.slabs(BLOCKS):
        classes = settled(mask, slab, b, h)
        pieces.append(_whole(slab, classes == FULL))
        row, col = np.nonzero(classes == PARTIAL)
        for part, bits, _ in look(mask, slab, row, col, b, h):
            edges = np.diff(np.pad(bits, ((0, 0), (0, 0), (1, 1))).astype(np.int8), axis=2)
            n, q, start = np.nonzero(edges == 1)
            left = col[part][n] * BLOCK
            pieces.append(((slab.first + row[part][n]) * BLOCK + q, left + start, left + np.nonzero(edges == -1)[2]))
    row, start, stop = (np.concatenate(x) for x in zip(*pieces))
    order = np.argsort(row * (kv_len + 1) + start, kind="stable")
    row, start, stop = row[order], start[order], stop[order]
    joined = np.zeros(len(row) + 1, bool)
    joined[1:-1] = (row[1:] == row[:-1]) & (start[1:] == stop[:-1])
    return row[~joined[:-1]], start[~joined[:-1]], stop[~joined[1:]]


def _whole(grid: BlockGrid, full: npt.NDArray[np.bool_]) -> Found:
    edges = np.diff(np.pad(full, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    block_row, left = np.nonzero(edges == 1)
    right = np.nonzero(edges == -1)[1]
    low, high = grid.q_bounds()
    height = (high - low + 1)[block_row]
    of = np.repeat(np.arange(len(left)), height)
    row = low[block_row][of] + np.arange(len(of)) - np.repeat(np.cumsum(height) - height, height)
    return row, left[of] * BLOCK, np.minimum(right[of] * BLOCK, grid.kv_len)
