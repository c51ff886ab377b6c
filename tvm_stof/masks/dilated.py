"""A window with gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..canonical import canonical
from .checks import whole
from .position import Relative


@canonical("dilated")
@dataclass(frozen=True)
class Dilated(Relative):
    """Every ``step``-th key at most ``window`` positions away, itself included.

    Examples
    --------
    >>> [k for k in range(9) if Dilated(4, step=2)(4, k)]
    [0, 2, 4, 6, 8]
    """

    window: int
    step: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("dilated window", self.window)
        whole("dilated step", self.step, 1)

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        d = q + self.offset - k
        # A remainder is never negative, and TVM's == is no expression.
        return (d <= self.window) & (d >= -self.window) & (d % self.step < 1)
