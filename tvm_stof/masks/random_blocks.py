"""Random blocks of keys for every block of queries."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..canonical import canonical
from ..errors import MaskError, explain
from . import rectangles
from .base import BlockGrid, from_counts
from .checks import whole
from .hashing import Draw, coarse
from .position import Position


@canonical("random")
@dataclass(frozen=True)
class RandomBlocks(Position):
    """Whole blocks: every block of queries draws ``per_row`` blocks of keys, one from each of as many equal parts of the keys.

    What is drawn is a hash of (seed, block row, draw): the same on every machine and for every block size of a kernel.

    Parameters
    ----------
    block : side of a block.
    per_row, percent : how many key blocks each query block draws, as a number or as a share (at least one block). Give one.
    away : draw only blocks at least this many blocks from the diagonal, counted around the ends.
    kv_len : length that was drawn for; 0 takes it from the problem.

    Examples
    --------
    >>> mask = RandomBlocks(4, 2).bind(16, 32)
    >>> [k // 4 for k in range(0, 32, 4) if mask(5, k)], bool(mask(4, 3)) == bool(mask(7, 0))
    ([2, 6], True)
    """

    block: int
    per_row: int = 0
    seed: int = 0
    percent: int = field(default=0, kw_only=True)
    away: int = field(default=0, kw_only=True)
    kv_len: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("random block", self.block, 1)
        whole("random percent", self.percent, 0, 100)
        for name in ("per_row", "away", "seed", "kv_len"):
            whole(f"random {name}", getattr(self, name))
        if (self.per_row > 0) == (self.percent > 0):
            raise MaskError(explain("random blocks need per_row or percent", got=f"per_row={self.per_row}, percent={self.percent}",
                                    accepted="exactly one of them above 0"))  # fmt: skip
        if self.kv_len:
            self._draw().check()

    def bind(self, q_len: int, kv_len: int) -> RandomBlocks:
        bound = super().bind(q_len, kv_len)
        return bound if bound.kv_len else replace(bound, kv_len=kv_len)

    def check(self, q_len: int, kv_len: int, batch: int, heads: int) -> None:
        if self.kv_len not in (0, kv_len):
            raise MaskError(explain("the random blocks were drawn for another length", got=f"kv_len={self.kv_len}", accepted=kv_len))
        self.bind(q_len, kv_len)

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        return coarse(self._draw().hit, (q + self.offset) // self.block, k // self.block)

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        rows = rectangles.rows_of(grid, self.block, self.offset)
        columns = self._draw().table(rows)
        q = np.repeat(rows * self.block - self.offset, columns.shape[1])
        k = columns.ravel() * self.block
        return from_counts(rectangles.count(grid, q, q + self.block, k, k + self.block), grid.areas())

    def _draw(self) -> Draw:
        if not self.kv_len:
            raise MaskError(explain("the mask is not bound", got=repr(self), way_out="Call mask.bind(q_len, kv_len) first"))
        columns = -(-self.kv_len // self.block)
        return Draw(columns, self.away, self.per_row or max(1, (columns * self.percent + 50) // 100), self.seed)
