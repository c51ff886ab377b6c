"""What a mask leaves, in numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..masks import Mask
from .blocks import block_lists


@dataclass(frozen=True)
class MaskReport:
    """Figures of one mask on one block grid, over all its groups.

    Attributes
    ----------
    density : allowed elements over all elements.
    full, partial, empty : shares of the blocks.
    longest_row, mean_row : blocks that are not empty, of the fullest block row and on average.
    balance : mean over longest row: 1 when all rows have the same work.
    efficiency : allowed elements over the elements of all blocks that are not empty.
    elements : allowed elements of one group, on average.
    """

    block_q: int
    block_k: int
    density: float
    full: float
    partial: float
    empty: float
    longest_row: int
    mean_row: float
    balance: float
    efficiency: float
    elements: float

    def to_data(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)


def analyse(mask: Mask, q_len: int, kv_len: int, block_q: int, block_k: int, batch: int = 1, heads: int = 1) -> MaskReport:
    """Report of a mask (checked and bound here) on a block grid.

    Examples
    --------
    >>> from tvm_stof.masks import Causal
    >>> analyse(Causal(), 256, 256, 64, 64).full
    0.375
    """
    mask.check(q_len, kv_len, batch, heads)
    lists = block_lists(mask.bind(q_len, kv_len), q_len, kv_len, block_q, block_k, batch, heads)
    rows = np.diff(lists.row_ptr)
    blocks = len(rows) * lists.grid.cols
    elements = int(lists.counts().sum())
    loaded = int(lists.grid.areas()[lists.row, lists.col].sum())
    full, longest = int(lists.full.sum()), int(rows.max(initial=0))
    return MaskReport(
        block_q=block_q, block_k=block_k, density=elements / (lists.groups * q_len * kv_len), full=full / blocks,
        partial=(len(lists.col) - full) / blocks, empty=(blocks - len(lists.col)) / blocks, longest_row=longest,
        mean_row=float(rows.mean()), balance=float(rows.mean()) / longest if longest else 1.0,
        efficiency=elements / loaded if loaded else 1.0, elements=elements / lists.groups,
    )  # fmt: skip
