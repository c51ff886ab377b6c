"""Which blocks of the scores a mask leaves, as compressed rows; never a q_len x kv_len array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..masks import EMPTY, FULL, PARTIAL, UNKNOWN, BlockGrid, Mask

#: elements looked at, and blocks classified, at a time
ELEMENTS, BLOCKS = 1 << 24, 1 << 20


@dataclass(frozen=True)
class BlockLists:
    """Blocks that are not empty, row by row (STOF's load list; section 2.1 of stof.md).

    A group is one (b, h) the mask differs for: group(b, h) = b * stride_b + h * stride_h; rows of group g start at row_ptr[g * R].

    Attributes
    ----------
    row_ptr : int32 [groups * R + 1], R = ceil(q_len / block_q).
    col : int32 [n], ascending in a row.
    full : uint8 [n], 1 where every element of the block (within the scores) takes part.
    """

    mask: Mask
    grid: BlockGrid
    groups: int
    stride_b: int
    stride_h: int
    row_ptr: npt.NDArray[np.int32]
    col: npt.NDArray[np.int32]
    full: npt.NDArray[np.uint8]

    def group(self, b: int, h: int) -> int:
        """List group of a batch entry and head."""
        return b * self.stride_b + h * self.stride_h

    @cached_property
    def _stored(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """Index of each block's bits (-1 when full) and the bits, identical ones once."""
        index = np.full(len(self.col), -1, np.int32)
        partial = np.flatnonzero(self.full == 0)
        seen: dict[bytes, int] = {}
        kept: list[npt.NDArray[np.uint8]] = []
        for at, bits in partial_bits(self, partial):
            packed = np.packbits(bits.reshape(len(at), -1), axis=1)
            for n, line in zip(at, range(len(at))):
                key = packed[line].tobytes()
                if key not in seen:
                    seen[key] = len(kept)
                    kept.append(bits[line].astype(np.uint8))
                index[n] = seen[key]
        shape = (0, self.grid.block_q, self.grid.block_k)
        return index, np.stack(kept) if kept else np.zeros(shape, np.uint8)

    @property
    def tile(self) -> npt.NDArray[np.int32]:
        """int32 [n]: which of ``tiles()`` has the block's bits, -1 when it is full."""
        return self._stored[0]

    def tiles(self) -> npt.NDArray[np.uint8]:
        """uint8 [unique, block_q, block_k]: 1 = takes part; identical blocks once, 0 past the ends of the scores."""
        return self._stored[1]


def block_lists(mask: Mask, q_len: int, kv_len: int, block_q: int, block_k: int, batch: int = 1, heads: int = 1) -> BlockLists:
    """Lists of a bound mask.

    O(blocks) where the mask classifies its blocks in closed form; what it leaves open is looked at, block by block.
    """
    grid = BlockGrid(q_len, kv_len, block_q, block_k)
    per_b, per_h = "b" in mask.depends_on, "h" in mask.depends_on
    entries = [(b, h) for b in range(batch if per_b else 1) for h in range(heads if per_h else 1)]
    counts, cols, fulls = [np.zeros(1, np.int64)], [], []
    for b, h in entries:
        for slab in grid.slabs(BLOCKS):
            classes = settled(mask, slab, b, h)
            row, col = np.nonzero(classes != EMPTY)
            counts.append(np.bincount(row, minlength=slab.rows))
            cols.append(col.astype(np.int32))
            fulls.append((classes[row, col] == FULL).astype(np.uint8))
    row_ptr = np.cumsum(np.concatenate(counts)).astype(np.int32)
    stride_h = 1 if per_h else 0
    stride_b = (heads if per_h else 1) if per_b else 0
    return BlockLists(mask, grid, len(entries), stride_b, stride_h, row_ptr, np.concatenate(cols), np.concatenate(fulls))


def settled(mask: Mask, grid: BlockGrid, b: int, h: int) -> npt.NDArray[np.uint8]:
    """The mask's classes with every UNKNOWN settled by looking at that block."""
    classes = np.array(mask.classify(grid, b, h))
    row, col = np.nonzero(classes == UNKNOWN)
    for first, bits, inside in _looked_at(mask, grid, row, col, b, h):
        some, every = bits.any((1, 2)), (bits | ~inside).all((1, 2))
        part = slice(first, first + len(bits))
        classes[row[part], col[part]] = np.where(every, FULL, np.where(some, PARTIAL, EMPTY))
    return classes


def partial_bits(lists: BlockLists, at: npt.NDArray[np.intp]) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]]:
    """(positions in the lists, their bits [n, block_q, block_k]) of some blocks, in bounded portions."""
    rows = np.searchsorted(lists.row_ptr, at, side="right") - 1
    heads = lists.stride_b if lists.stride_b else lists.groups
    groups = rows // lists.grid.rows
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        b, h = divmod(int(group), heads) if lists.stride_b else (0, int(group))
        row, col = rows[members] % lists.grid.rows, lists.col[at[members]]
        for first, bits, _ in _looked_at(lists.mask, lists.grid, row, col, b, h):
            yield at[members[first : first + len(bits)]], bits


def _looked_at(mask: Mask, grid: BlockGrid, row: npt.NDArray[np.intp], col: npt.NDArray[np.integer], b: int,
               h: int) -> Iterator[tuple[int, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:  # fmt: skip
    """(first, bits, inside) of blocks: the mask's values, and whether a position lies within the scores at all."""
    step = max(1, ELEMENTS // (grid.block_q * grid.block_k))
    for first in range(0, len(row), step):
        q = (grid.first + row[first : first + step]).astype(np.int64)[:, None, None] * grid.block_q + np.arange(grid.block_q)[:, None]
        k = col[first : first + step].astype(np.int64)[:, None, None] * grid.block_k + np.arange(grid.block_k)
        inside = (q < grid.q_len) & (k < grid.kv_len)
        values = mask(np.minimum(q, grid.q_len - 1), np.minimum(k, grid.kv_len - 1), b, h)
        yield first, np.asarray(values, bool) & inside, inside
