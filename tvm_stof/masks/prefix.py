"""A prefix that all queries see, causal after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..canonical import canonical
from .base import BlockGrid, from_bounds
from .checks import whole
from .position import Position


@canonical("prefix")
@dataclass(frozen=True)
class PrefixLM(Position):
    """The first ``length`` keys, and keys up to the query's own position.

    Examples
    --------
    >>> [k for k in range(6) if PrefixLM(2)(0, k)], [k for k in range(6) if PrefixLM(2)(3, k)]
    ([0, 1], [0, 1, 2, 3])
    """

    length: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("prefix length", self.length)

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        return (k <= q + self.offset) | (k < self.length)

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        (q_lo, q_hi), (k_lo, k_hi) = grid.q_bounds(), grid.k_bounds()
        last = np.maximum(np.stack((q_lo, q_hi)) + self.offset, self.length - 1)
        return from_bounds(k_lo <= last[1][:, None], k_hi <= last[0][:, None])
