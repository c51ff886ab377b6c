"""Longformer (Beltagy et al., 2020): a window and global tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..canonical import canonical
from .base import BlockGrid, from_bounds
from .checks import whole
from .position import Position


@canonical("longformer")
@dataclass(frozen=True)
class Longformer(Position):
    """Keys at most ``window`` away, and ``tokens`` global positions at the start.

    Examples
    --------
    >>> [k for k in range(9) if Longformer(1, tokens=1)(5, k)]
    [0, 4, 5, 6]
    """

    window: int
    tokens: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("longformer window", self.window)
        whole("longformer tokens", self.tokens)

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        p = q + self.offset
        return (p < self.tokens) | (k < self.tokens) | ((p - k <= self.window) & (k - p <= self.window))

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        (q_lo, q_hi), (k_lo, k_hi) = grid.q_bounds(), grid.k_bounds()
        p_lo, p_hi = q_lo[:, None] + self.offset, q_hi[:, None] + self.offset
        some = (p_lo < self.tokens) | (k_lo < self.tokens) | ((p_lo - k_hi <= self.window) & (k_lo - p_hi <= self.window))
        # Global rows and columns are allowed anyway: only what is left of the block has to lie inside the window.
        p_left, k_left = np.maximum(p_lo, self.tokens), np.maximum(k_lo, self.tokens)
        inside = (p_hi - k_left <= self.window) & (k_hi - p_left <= self.window)
        return from_bounds(some, (p_left > p_hi) | (k_left > k_hi) | inside)
