"""Random key blocks for every block of queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..canonical import canonical
from ..errors import MaskError, explain
from .base import BlockGrid, Mask
from .checks import LIMIT, whole
from .granular import classify_blocks, hashed
from .logic import equal


@canonical("random")
@dataclass(frozen=True)
class RandomBlocks(Mask):
    """``per_row`` draws of a key block for each block of ``block`` queries, anywhere along the keys (draws may coincide).

    Parameters
    ----------
    seed : another seed, other blocks; the same on every machine.
    columns : number of key blocks; ``bind`` sets it from the length.

    Examples
    --------
    >>> int(RandomBlocks(4, per_row=1).bind(8, 64)(np.arange(8)[:, None], np.arange(64)).sum())
    32
    """

    block: int
    per_row: int
    seed: int = 0
    columns: int | None = None

    def __post_init__(self) -> None:
        whole("random block", self.block, 1)
        whole("random per_row", self.per_row, 1, 64)
        whole("random seed", self.seed, -LIMIT)
        if self.columns is not None:
            whole("random columns", self.columns, 1)

    def bind(self, q_len: int, kv_len: int) -> RandomBlocks:
        return replace(self, columns=-(-kv_len // self.block)) if self.columns is None else self

    def chosen(self, row: Any) -> list[Any]:
        """The drawn key blocks of a block row."""
        if self.columns is None:
            raise MaskError(explain("the mask is not bound", got=repr(self), way_out="Call mask.bind(q_len, kv_len) first"))
        return [hashed(row, self.columns, self.seed, turn) for turn in range(self.per_row)]

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        row, column = q // self.block, k // self.block
        first, *rest = self.chosen(row)
        allowed = equal(column, first)
        for one in rest:
            allowed = allowed | equal(column, one)
        return allowed

    def own_blocks(self, q_len: int, kv_len: int) -> npt.NDArray[np.bool_]:
        """Allowed blocks of its own size, bool [block rows, block columns]."""
        rows = np.arange(-(-q_len // self.block))
        own = np.zeros((len(rows), max(self.columns or 0, -(-kv_len // self.block))), bool)
        for column in self.chosen(rows):
            own[rows, column] = True
        return own

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        return classify_blocks(self.own_blocks(grid.q_len, grid.kv_len), self.block, grid)
