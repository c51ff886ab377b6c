"""Blocks named one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..canonical import canonical
from ..errors import MaskError, explain
from .base import BlockGrid, Mask
from .checks import whole, wholes
from .granular import classify_blocks
from .logic import constant, equal, symbolic

#: a predicate of more comparisons than this is slower than stored bits
_LONGEST = 16


@canonical("blocks")
@dataclass(frozen=True)
class BlockList(Mask):
    """For each block of ``block`` queries, the key blocks it attends to; rows past the list attend to nothing.

    Examples
    --------
    >>> [k for k in range(8) if BlockList(2, ((0,), (0, 3)))(2, k)]
    [0, 1, 6, 7]
    """

    block: int
    rows: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        whole("blocks block", self.block, 1)
        if not isinstance(self.rows, tuple):
            raise MaskError(explain("blocks rows must be a list of lists", got=repr(self.rows)[:80]))
        for n, row in enumerate(self.rows):
            wholes(f"blocks rows[{n}]", row)
        object.__setattr__(self, "rows", tuple(tuple(sorted(set(r))) for r in self.rows))

    @property
    def arithmetic(self) -> bool:
        return sum(map(len, self.rows)) <= _LONGEST

    def check(self, q_len: int, kv_len: int, batch: int, heads: int) -> None:
        rows, columns = -(-q_len // self.block), -(-kv_len // self.block)
        last = max((r[-1] for r in self.rows if r), default=-1)
        if len(self.rows) > rows or last >= columns:
            got = f"{len(self.rows)} rows, column {last}"
            raise MaskError(explain("blocks lie outside the scores", got=got, accepted=f"{rows} rows, columns 0 to {columns - 1}"))

    def _own(self, q_len: int, kv_len: int) -> npt.NDArray[np.bool_]:
        own = np.zeros((-(-q_len // self.block), -(-kv_len // self.block)), bool)
        for n, row in enumerate(self.rows):
            own[n, list(row)] = True
        return own

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        row, column = q // self.block, k // self.block
        if not symbolic(q, k):
            rows = max(len(self.rows), 1 + int(np.max(row, initial=0)))
            columns = 1 + max(int(np.max(column, initial=0)), max((r[-1] for r in self.rows if r), default=0))
            own = self._own(rows * self.block, columns * self.block)
            return own[np.asarray(row, int), np.asarray(column, int)]
        allowed = constant(False, q, k)
        for n, columns_of in enumerate(self.rows):
            for c in columns_of:
                allowed = allowed | (equal(row, n) & equal(column, c))
        return allowed

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        return classify_blocks(self._own(grid.q_len, grid.kv_len), self.block, grid)
