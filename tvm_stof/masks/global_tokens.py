"""Tokens that see all and are seen by all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..canonical import canonical
from .base import BlockGrid, from_bounds
from .checks import whole
from .position import Position


@canonical("global")
@dataclass(frozen=True)
class Global(Position):
    """Everything for queries at the first ``tokens`` positions, the first ``tokens`` keys for the others.

    Examples
    --------
    >>> [k for k in range(4) if Global(2)(0, k)], [k for k in range(4) if Global(2)(3, k)]
    ([0, 1, 2, 3], [0, 1])
    """

    tokens: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("global tokens", self.tokens)

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        return (q + self.offset < self.tokens) | (k < self.tokens)

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        (q_lo, q_hi), (k_lo, k_hi) = grid.q_bounds(), grid.k_bounds()
        p_lo, p_hi = q_lo[:, None] + self.offset, q_hi[:, None] + self.offset
        return from_bounds((p_lo < self.tokens) | (k_lo < self.tokens), (p_hi < self.tokens) | (k_hi < self.tokens))
