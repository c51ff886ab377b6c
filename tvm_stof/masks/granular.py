"""Masks made of whole blocks of their own size, seen through any other block grid."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from .base import BlockGrid, from_counts

#: A prime whose square fits int32: random choices are index arithmetic that kernels can do.
_PRIME = 46337


def classify_blocks(own: npt.NDArray[np.bool_], block: int, grid: BlockGrid) -> npt.NDArray[np.uint8]:
    """Exact classes of a mask that is constant on ``block`` x ``block`` squares: ``own`` [own rows, own columns]."""
    rows = _sums(own.astype(np.int64), block, *grid.q_bounds())
    return from_counts(_sums(rows.T, block, *grid.k_bounds()).T, grid.areas())


def _sums(own: npt.NDArray[np.int64], block: int, low: npt.NDArray[np.int64], high: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sum over element positions low..high of rows that each stand for ``block`` positions."""
    before = np.concatenate([np.zeros((1, own.shape[1]), np.int64), np.cumsum(own, axis=0)]) * block
    padded = np.concatenate([own, np.zeros((1, own.shape[1]), np.int64)])

    def until(position: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        whole, part = position // block, position % block
        upto: npt.NDArray[np.int64] = before[whole] + padded[whole] * part[:, None]
        return upto

    return until(high + 1) - until(low)


def hashed(row: Any, columns: int, seed: int, turn: int) -> Any:
    """A column for a block row, the ``turn``-th of its draws: integer hashing that works on NumPy, tracers and TIR alike."""
    digest = hashlib.sha256(f"{seed}:{turn}".encode()).digest()
    a, b, c = (1 + int.from_bytes(digest[4 * n : 4 * n + 4], "big") % (_PRIME - 1) for n in range(3))
    x = row % _PRIME
    mixed = (x * a + c) % _PRIME
    mixed = (mixed * mixed) % _PRIME
    mixed = (mixed * b + x) % _PRIME
    return ((mixed * mixed) % _PRIME) % columns
