"""Random blocks as index arithmetic: the same few multiplications on NumPy arrays, tracers and TIR variables.

Everything stays below 2**31, so 32-bit kernels and NumPy agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import MaskError, explain
from .logic import constant, equal, symbolic

#: The largest prime whose square fits in int32; P - 1 is no multiple of 3, so cubing permutes the residues.
P = 46337
_FACTORS = (40014, 40692, 39373)


def mix(seed: int, row: Any, turn: Any) -> Any:
    """A well mixed number in [0, P) from a row (any sign) and a turn (0 to 2**18)."""
    salts = (seed % P, seed // P % P)
    x = _cube((row % P * _FACTORS[0] + salts[0]) % P)
    x = _cube((x * _FACTORS[1] + turn + salts[1]) % P)
    return _cube((x * _FACTORS[2] + salts[0]) % P)


def _cube(x: Any) -> Any:
    return x * x % P * x % P


def coarse(f: Callable[[Any, Any], Any], row: Any, column: Any) -> Any:
    """f(row, column) for block rows [..., m, 1] and block columns [n] or [..., 1, n], computed once where neighbours are alike."""
    if symbolic(row, column) or np.shape(row)[-1:] != (1,) or np.ndim(row) < 2 or np.shape(column)[-2:-1] not in ((), (1,)):
        return f(row, column)
    if np.ndim(column) == 0:
        return f(row, column)
    rows, row_lengths = _runs(row, -2)
    columns, column_lengths = _runs(column, -1)
    once = f(row.take(rows, -2), column.take(columns, -1))
    return np.repeat(np.repeat(once, row_lengths, axis=-2), column_lengths, axis=-1)


def _runs(x: npt.NDArray[Any], axis: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Where along the axis something changes anywhere, and how long it stays the same from there."""
    changes = (np.diff(x, axis=axis) != 0).any(axis=tuple(n for n in range(x.ndim) if n != x.ndim + axis))
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    return starts, np.diff(np.append(starts, x.shape[axis]))


@dataclass(frozen=True)
class Draw:
    """For every row, ``count`` of ``columns`` columns, none of them less than ``away`` from the row (counted around the ends).

    The allowed columns, counted from the row on, are cut into ``count`` equal parts and one column is drawn from each. So
    draws never collide, and whether a column was drawn takes one hash, however many there are.
    """

    columns: int
    away: int
    count: int
    seed: int

    @property
    def free(self) -> int:
        """Columns a row may draw from."""
        return max(0, self.columns - max(0, 2 * self.away - 1))

    @property
    def draws(self) -> int:
        """Columns a row does draw."""
        return min(self.count, self.free)

    def hit(self, row: Any, column: Any) -> Any:
        """Whether ``row`` drew ``column``."""
        if self.draws < 1:
            return constant(False, row, column)
        v = (column - row - self.away) % self.columns
        turn = ((v + 1) * self.draws - 1) // self.free
        return (v < self.free) & equal(v, self._drawn(row, turn))

    def table(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The drawn columns of some rows [rows, draws]."""
        if self.draws < 1:
            return np.zeros((len(rows), 0), np.int64)
        v = self._drawn(rows[:, None], np.arange(self.draws, dtype=np.int64))
        table: npt.NDArray[np.int64] = (v + rows[:, None] + self.away) % self.columns
        return table

    def _drawn(self, row: Any, turn: Any) -> Any:
        first = turn * self.free // self.draws
        return first + mix(self.seed, row, turn) % ((turn + 1) * self.free // self.draws - first)

    def check(self) -> None:
        """Raise MaskError unless the arithmetic stays in 32 bits and every free column can be drawn."""
        fits = (self.columns + 1) * (self.draws + 1) < 1 << 31 and self.columns < 1 << 18 and self.free <= P * max(1, self.draws)
        if not fits:
            raise MaskError(explain("too many random blocks", got=f"{self.draws} of {self.columns} blocks a row",
                                    way_out="Use larger blocks or fewer draws"))  # fmt: skip
