"""BigBird (Zaheer et al., 2020): window, global and random blocks."""

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


@canonical("bigbird")
@dataclass(frozen=True)
class BigBird(Position):
    """Whole blocks: near the diagonal, the first rows and columns, and far blocks drawn at random.

    Random blocks come from outside window and global blocks, differ from row to row, and are a hash of (seed, block row, draw).
    For a decoder take ``Causal() & BigBird(...)``.

    Parameters
    ----------
    block : side of a block.
    window : blocks on each side of the query's own.
    global_blocks : block rows and columns at the start that are whole.
    random_blocks : drawn blocks per block row.
    kv_len : length that was drawn for; 0 takes it from the problem.

    Examples
    --------
    >>> mask = BigBird(4, window=1, global_blocks=1, random_blocks=2).bind(64, 64)
    >>> [k // 4 for k in range(0, 64, 4) if mask(20, k)]
    [0, 3, 4, 5, 6, 9]
    """

    block: int = 64
    window: int = field(default=1, kw_only=True)
    global_blocks: int = field(default=2, kw_only=True)
    random_blocks: int = field(default=3, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    kv_len: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("bigbird block", self.block, 1)
        for name in ("window", "global_blocks", "random_blocks", "seed", "kv_len"):
            whole(f"bigbird {name}", getattr(self, name))
        if self.kv_len:
            self._draw().check()

    def bind(self, q_len: int, kv_len: int) -> BigBird:
        bound = super().bind(q_len, kv_len)
        return bound if bound.kv_len else replace(bound, kv_len=kv_len)

    def check(self, q_len: int, kv_len: int, batch: int, heads: int) -> None:
        if self.kv_len not in (0, kv_len):
            raise MaskError(explain("the random blocks were drawn for another length", got=f"kv_len={self.kv_len}", accepted=kv_len))
        self.bind(q_len, kv_len)

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        return coarse(self._blocks, (q + self.offset) // self.block, k // self.block)

    def _blocks(self, row: Any, column: Any) -> Any:
        fixed = (row < self.global_blocks) | (column < self.global_blocks)
        near = (row - column <= self.window) & (column - row <= self.window)
        draw = self._draw()
        return fixed | near | draw.hit(row, column) if draw.draws else fixed | near

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        rows = rectangles.rows_of(grid, self.block, self.offset)
        n, g = self._columns(), self.global_blocks
        rows, whole_rows = rows[rows >= g], rows[rows < g]
        drawn = g + (self._draw().table(rows) - g) % max(1, n - g)
        left = np.clip(rows - self.window, g, max(n, g))
        # (block row, first and last + 1 block column) of rectangles that do not overlap.
        parts = (
            (whole_rows, np.zeros_like(whole_rows), np.full_like(whole_rows, n)),
            (rows, np.zeros_like(rows), np.full_like(rows, g)),
            (rows, left, np.clip(rows + self.window + 1, left, max(n, g))),
            (np.repeat(rows, drawn.shape[1]), drawn.ravel(), drawn.ravel() + 1),
        )
        row, begin, end = (np.concatenate(x) for x in zip(*parts))
        q = row * self.block - self.offset
        return from_counts(rectangles.count(grid, q, q + self.block, begin * self.block, end * self.block), grid.areas())

    def _columns(self) -> int:
        if not self.kv_len:
            raise MaskError(explain("the mask is not bound", got=repr(self), way_out="Call mask.bind(q_len, kv_len) first"))
        return -(-self.kv_len // self.block)

    def _draw(self) -> Draw:
        """Distances are counted around the columns behind the global ones, so a draw is never inside the window."""
        return Draw(max(0, self._columns() - self.global_blocks), self.window + 1, self.random_blocks, self.seed)
