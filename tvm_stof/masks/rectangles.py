"""Counting allowed elements of blocks from rectangles of allowed elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .base import BlockGrid

Ints = npt.NDArray[np.int64]


def rows_of(grid: BlockGrid, block: int, offset: int) -> Ints:
    """Rows of blocks of another side that the grid's queries lie in, when query i stands at position i + offset."""
    q_lo, q_hi = grid.q_bounds()
    return np.arange((q_lo[0] + offset) // block, (q_hi[-1] + offset) // block + 1, dtype=np.int64)


def count(grid: BlockGrid, q_begin: Ints, q_end: Ints, k_begin: Ints, k_end: Ints) -> Ints:
    """Elements of each block [rows, cols] that lie in rectangles [q_begin, q_end) x [k_begin, k_end).

    Rectangles must not overlap; they may reach beyond the grid. Costs O(rectangles' block rows + blocks).
    """
    q_lo, q_hi = grid.q_bounds()
    q_begin, q_end = np.maximum(q_begin, q_lo[0]), np.minimum(q_end, q_hi[-1] + 1)
    k_begin, k_end = np.maximum(k_begin, 0), np.minimum(k_end, grid.kv_len)
    inside = (q_begin < q_end) & (k_begin < k_end)
    q_begin, q_end, k_begin, k_end = (x[inside] for x in (q_begin, q_end, k_begin, k_end))
    top = q_begin // grid.block_q
    pieces = (q_end - 1) // grid.block_q - top + 1
    of = np.repeat(np.arange(len(top)), pieces)
    row = top[of] + np.arange(len(of)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    height = np.minimum(q_end[of], (row + 1) * grid.block_q) - np.maximum(q_begin[of], row * grid.block_q)
    begin, end = k_begin[of], k_end[of]
    left, right, width = begin // grid.block_k, end // grid.block_k, grid.block_k
    row = row - grid.first
    shape = (grid.rows, grid.cols + 2)
    # Whole blocks between the two ends by a running sum along the row; what the first and last block hold, directly.
    whole = _scatter(shape, row, left + 1, height * width) - _scatter(shape, row, right, height * width)
    ends = _scatter(shape, row, left, height * ((left + 1) * width - begin)) + _scatter(shape, row, right, height * (end - right * width))
    counts: Ints = (np.cumsum(whole, axis=1) + ends)[:, : grid.cols]
    return counts


def _scatter(shape: tuple[int, int], row: Ints, col: Ints, amount: Any) -> Ints:
    # bincount sums in float64, which is exact for counts below 2**53.
    flat = np.bincount(row * shape[1] + col, weights=amount, minlength=shape[0] * shape[1])
    return flat.astype(np.int64).reshape(shape)
