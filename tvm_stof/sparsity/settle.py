"""Exact classes and bits of blocks: closed form where the mask has one, looking at single blocks where it has not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..masks import EMPTY, FULL, PARTIAL, UNKNOWN, BlockGrid, Mask

#: elements looked at, and blocks classified, at a time
ELEMENTS, BLOCKS = 1 << 20, 1 << 20

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """The (b, h) a mask differs for: group(b, h) = b * stride_b + h * stride_h."""

    count: int
    stride_b: int
    stride_h: int

    @staticmethod
    def of(mask: Mask, batch: int, heads: int) -> Groups:
        """Groups of a mask under a problem's batch and heads."""
        per_b, per_h = "b" in mask.depends_on, "h" in mask.depends_on
        stride_b = (heads if per_h else 1) if per_b else 0
        return Groups((batch if per_b else 1) * (heads if per_h else 1), stride_b, 1 if per_h else 0)

    def members(self) -> list[tuple[int, int]]:
        """One (b, h) of each group, in order."""
        return [divmod(g, self.stride_b) if self.stride_b > 1 else (g, 0) if self.stride_b else (0, g) for g in range(self.count)]


def settled(mask: Mask, grid: BlockGrid, b: int, h: int) -> npt.NDArray[np.uint8]:
    """The mask's classes with every UNKNOWN settled by looking at that block."""
    classes = np.array(mask.classify(grid, b, h))
    row, col = np.nonzero(classes == UNKNOWN)
    for part, bits, inside in look(mask, grid, row, col, b, h):
        some, every = bits.any((1, 2)), (bits | ~inside).all((1, 2))
        classes[row[part], col[part]] = np.where(every, FULL, np.where(some, PARTIAL, EMPTY))
    return classes


def look(mask: Mask, grid: BlockGrid, row: Ints, col: Ints, b: int,
         h: int) -> Iterator[tuple[slice, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:  # fmt: skip
    """(which, bits, inside) of blocks, some at a time: the mask's values, and whether a position lies within the scores at all."""
    step = max(1, ELEMENTS // (grid.block_q * grid.block_k))
    for first in range(0, len(row), step):
        part = slice(first, min(first + step, len(row)))
        q = (grid.first + row[part]).astype(np.int64)[:, None, None] * grid.block_q + np.arange(grid.block_q)[:, None]
        k = col[part].astype(np.int64)[:, None, None] * grid.block_k + np.arange(grid.block_k)
        inside = (q < grid.q_len) & (k < grid.kv_len)
        values = mask(np.minimum(q, grid.q_len - 1), np.minimum(k, grid.kv_len - 1), b, h)
        yield part, np.asarray(values, bool) & inside, inside


def look_once(mask: Mask, grid: BlockGrid, row: Ints, col: Ints, b: int,
              h: int) -> Iterator[tuple[Ints, Ints, npt.NDArray[np.bool_]]]:  # fmt: skip
    """(which, bits' index for each of them, bits) of blocks of a whole grid, looking at blocks that must be alike only once."""
    if not mask.relative:
        for part, bits, _ in look(mask, grid, row, col, b, h):
            yield np.arange(part.start, part.stop), np.arange(len(bits)), bits
        return
    shift = row * grid.block_q - col * grid.block_k
    edge = 2 * (row == grid.rows - 1) + (col == grid.cols - 1)
    _, one, which = np.unique(shift * 4 + edge, return_index=True, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    bounds = np.searchsorted(which.ravel()[order], np.arange(len(one) + 1))
    for part, bits, _ in look(mask, grid, row[one], col[one], b, h):
        members = order[bounds[part.start] : bounds[part.stop]]
        yield members, which.ravel()[members] - part.start, bits
