"""BigBird (Zaheer et al., 2020): a window of blocks, global blocks and random blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..canonical import canonical
from ..errors import MaskError, explain
from .base import BlockGrid, Mask
from .checks import LIMIT, whole
from .granular import classify_blocks
from .random_blocks import RandomBlocks


@canonical("bigbird")
@dataclass(frozen=True)
class BigBird(Mask):
    """Block-granular, as in the paper; its causal form is ``Causal() & BigBird(...)``.

    Parameters
    ----------
    block : positions of a block.
    window : blocks around the query's own, itself included (odd).
    tokens : global blocks at the start, in rows and columns.
    random : draws of a random block for every block row.
    seed, columns : see RandomBlocks.

    Examples
    --------
    >>> mask = BigBird(2, window=1, tokens=1, random=1).bind(8, 8)
    >>> bool(mask(0, 7)), bool(mask(7, 0)), bool(mask(4, 5))
    (True, True, True)
    """

    block: int = 64
    window: int = 3
    tokens: int = 2
    random: int = 3
    seed: int = 0
    columns: int | None = None

    def __post_init__(self) -> None:
        whole("bigbird block", self.block, 1)
        whole("bigbird window", self.window, 1)
        if self.window % 2 == 0:
            raise MaskError(explain("bigbird window must be odd", got=self.window, way_out="It counts blocks around the query's own"))
        whole("bigbird tokens", self.tokens)
        whole("bigbird random", self.random, 0, 64)
        whole("bigbird seed", self.seed, -LIMIT)
        if self.columns is not None:
            whole("bigbird columns", self.columns, 1)

    def bind(self, q_len: int, kv_len: int) -> BigBird:
        return replace(self, columns=-(-kv_len // self.block)) if self.columns is None else self

    def _draws(self) -> RandomBlocks | None:
        return RandomBlocks(self.block, self.random, self.seed, self.columns) if self.random else None

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        row, column, half = q // self.block, k // self.block, self.window // 2
        allowed = ((row - column <= half) & (column - row <= half)) | (row < self.tokens) | (column < self.tokens)
        draws = self._draws()
        return allowed if draws is None else allowed | draws(q, k, b, h)

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        rows, columns = np.arange(-(-grid.q_len // self.block))[:, None], np.arange(-(-grid.kv_len // self.block))
        own = (np.abs(rows - columns) <= self.window // 2) | (rows < self.tokens) | (columns < self.tokens)
        draws = self._draws()
        if draws is not None:
            own = own | draws.own_blocks(grid.q_len, grid.kv_len)[:, : len(columns)]
        return classify_blocks(own, self.block, grid)
