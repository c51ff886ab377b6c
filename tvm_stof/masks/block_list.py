"""Blocks named one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..canonical import canonical
from ..errors import MaskError, explain
from . import rectangles
from .base import BlockGrid, Mask, from_counts
from .checks import whole, wholes
from .logic import constant, symbolic

#: a predicate of more comparisons than this is slower than stored bits
MAX_COMPARISONS = 16


@canonical("blocks")
@dataclass(frozen=True)
class BlockList(Mask):
    """Whole blocks: for every block of queries, the blocks of keys it attends to.

    Parameters
    ----------
    block : side of a block; the last ones may be shorter.
    rows : the key blocks of each block of queries, in any order.

    Examples
    --------
    >>> [k for k in range(6) if BlockList(2, ((0,), (2, 0), ()))(3, k)]
    [0, 1, 4, 5]
    """

    block: int
    rows: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        whole("block", self.block, 1)
        if not isinstance(self.rows, (tuple, list)) or not all(isinstance(r, (tuple, list)) for r in self.rows):
            raise MaskError(explain("rows must be lists of key blocks", got=repr(self.rows)[:80], accepted="[[0], [0, 1], ...]"))
        for n, row in enumerate(self.rows):
            wholes(f"rows[{n}]", tuple(row))
        object.__setattr__(self, "rows", tuple(tuple(sorted(set(r))) for r in self.rows))

    def check(self, q_len: int, kv_len: int, batch: int, heads: int) -> None:
        rows, columns = -(-q_len // self.block), -(-kv_len // self.block)
        if len(self.rows) != rows:
            raise MaskError(explain("the block list needs a row for every block of queries", got=len(self.rows), accepted=rows))
        last = max((r[-1] for r in self.rows if r), default=0)
        if last >= columns:
            raise MaskError(explain("the block list names a key block that does not exist", got=last, accepted=f"0 to {columns - 1}"))

    @property
    def arithmetic(self) -> bool:
        return 0 < 4 * len(self._rectangles()[0]) <= MAX_COMPARISONS

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        if not symbolic(q, k):
            return self._member(np.asarray(q, np.int64) // self.block, np.asarray(k, np.int64) // self.block)
        some = None
        for q0, q1, k0, k1 in zip(*(x.tolist() for x in self._rectangles())):
            one = (q >= q0) & (q < q1) & (k >= k0) & (k < k1)
            some = one if some is None else some | one
        return constant(False, q, k) if some is None else some

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        return from_counts(rectangles.count(grid, *self._rectangles()), grid.areas())

    def _member(self, row: npt.NDArray[np.int64], column: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        rows = np.repeat(np.arange(len(self.rows), dtype=np.int64), [len(r) for r in self.rows])
        columns = np.array([c for r in self.rows for c in r], np.int64)
        width = int(columns.max(initial=0)) + 2
        cells = np.append(rows * width + columns, np.iinfo(np.int64).max)
        wanted = row * width + np.minimum(column, width - 1)
        found: npt.NDArray[np.bool_] = cells[np.searchsorted(cells, wanted)] == wanted
        return found

    def _rectangles(self) -> tuple[npt.NDArray[np.int64], ...]:
        """First and last + 1 query and key of disjoint rectangles: runs of columns, over neighbouring rows that are alike."""
        found: list[tuple[int, int, int, int]] = []
        first = 0
        for n in range(1, len(self.rows) + 1):
            if n < len(self.rows) and self.rows[n] == self.rows[first]:
                continue
            row = np.array(self.rows[first], np.int64)
            for run in np.split(row, np.flatnonzero(np.diff(row) > 1) + 1) if len(row) else []:
                found.append((first, n, int(run[0]), int(run[-1]) + 1))
            first = n
        table = np.array(found, np.int64).reshape(-1, 4) * self.block
        return tuple(table.T)
