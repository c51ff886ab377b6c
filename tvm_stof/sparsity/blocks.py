"""Which blocks of the scores a mask leaves, as compressed rows; never a q_len x kv_len array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..masks import EMPTY, FULL, BlockGrid, Mask
from .settle import BLOCKS, Groups, Ints, look_once, settled


@dataclass(frozen=True, eq=False)
class BlockLists:
    """Blocks that are not empty, row by row: STOF's load list, with its full and partial lists as a flag.

    A group is one (b, h) the mask differs for; block row r of group g holds entries row_ptr[g * R + r] to row_ptr[g * R + r + 1],
    R = ceil(q_len / block_q).

    Attributes
    ----------
    row_ptr : int32 [groups * R + 1].
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
    def row(self) -> npt.NDArray[np.int32]:
        """int32 [n]: the block row of each entry, within its group."""
        rows = np.arange(len(self.row_ptr) - 1, dtype=np.int32) % np.int32(self.grid.rows)
        return np.repeat(rows, np.diff(self.row_ptr))

    @property
    def tile(self) -> npt.NDArray[np.int32]:
        """int32 [n]: which of ``tiles()`` has the block's bits, -1 when it is full."""
        return self._stored[0]

    def tiles(self) -> npt.NDArray[np.uint8]:
        """uint8 [unique, block_q, block_k]: 1 = takes part; identical blocks once, 0 past the ends of the scores."""
        return self._stored[1]

    def counts(self) -> Ints:
        """Elements that take part in each entry's block."""
        counts = self.grid.areas()[self.row, self.col]
        for at, which, bits in self.partial_bits():
            counts[at] = bits.sum((1, 2), dtype=np.int64)[which]
        return counts

    def partial_bits(self) -> Iterator[tuple[Ints, Ints, npt.NDArray[np.bool_]]]:
        """(entries, index of each one's bits, bits [m, block_q, block_k]) of all partial blocks, in bounded portions."""
        groups = Groups(self.groups, self.stride_b, self.stride_h).members()
        for g, (b, h) in enumerate(groups):
            begin, end = self.row_ptr[g * self.grid.rows], self.row_ptr[(g + 1) * self.grid.rows]
            at = begin + np.flatnonzero(self.full[begin:end] == 0)
            row, col = self.row[at].astype(np.int64), self.col[at].astype(np.int64)
            for part, which, bits in look_once(self.mask, self.grid, row, col, b, h):
                yield at[part], which, bits

    @cached_property
    def _stored(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        index = np.full(len(self.col), -1, np.int32)
        seen: dict[bytes, int] = {}
        kept: list[npt.NDArray[np.uint8]] = []
        for at, which, bits in self.partial_bits():
            numbers = np.empty(len(bits), np.int32)
            for n, line in enumerate(np.packbits(bits.reshape(len(bits), -1), axis=1)):
                packed = line.tobytes()
                if packed not in seen:
                    seen[packed] = len(kept)
                    kept.append(bits[n].astype(np.uint8))
                numbers[n] = seen[packed]
            index[at] = numbers[which]
        return index, np.stack(kept) if kept else np.zeros((0, self.grid.block_q, self.grid.block_k), np.uint8)


def block_lists(mask: Mask, q_len: int, kv_len: int, block_q: int, block_k: int, batch: int = 1, heads: int = 1) -> BlockLists:
    """Lists of a bound mask.

    O(blocks) where the mask classifies its blocks in closed form; what it leaves open is looked at, block by block.

    Examples
    --------
    >>> from tvm_stof.masks import Causal
    >>> lists = block_lists(Causal(), 4, 4, 2, 2)
    >>> lists.row_ptr.tolist(), lists.col.tolist(), lists.full.tolist(), lists.tiles().tolist()
    ([0, 1, 3], [0, 0, 1], [0, 1, 0], [[[1, 0], [1, 1]]])
    """
    grid, groups = BlockGrid(q_len, kv_len, block_q, block_k), Groups.of(mask, batch, heads)
    counts, cols, fulls = [np.zeros(1, np.int64)], [], []
    for b, h in groups.members():
        for slab in grid.slabs(BLOCKS):
            classes = settled(mask, slab, b, h)
            row, col = np.nonzero(classes != EMPTY)
            counts.append(np.bincount(row, minlength=slab.rows))
            cols.append(col.astype(np.int32))
            fulls.append((classes[row, col] == FULL).astype(np.uint8))
    row_ptr = np.cumsum(np.concatenate(counts)).astype(np.int32)
    return BlockLists(mask, grid, groups.count, groups.stride_b, groups.stride_h, row_ptr, np.concatenate(cols), np.concatenate(fulls))
