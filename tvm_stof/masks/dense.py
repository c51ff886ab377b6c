"""Every query attends to every key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..canonical import canonical
from .base import FULL, BlockGrid, Mask
from .logic import constant


@canonical("dense")
@dataclass(frozen=True)
class Dense(Mask):
    """No masking.

    Examples
    --------
    >>> bool(Dense()(3, 5))
    True
    """

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        return constant(True, q, k)

    @property
    def relative(self) -> bool:
        return True

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        return np.full((grid.rows, grid.cols), FULL, np.uint8)
