"""A band around the diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..canonical import canonical
from .checks import whole
from .position import Relative


@canonical("window")
@dataclass(frozen=True)
class SlidingWindow(Relative):
    """Keys at most ``size`` before and ``ahead`` after the query's position, itself included.

    Parameters
    ----------
    size : how far back.
    ahead : how far forward; None means ``size`` (two-sided), 0 is one-sided.

    Examples
    --------
    >>> [k for k in range(9) if SlidingWindow(2)(4, k)], [k for k in range(9) if SlidingWindow(2, ahead=0)(4, k)]
    ([2, 3, 4, 5, 6], [2, 3, 4])
    """

    size: int
    ahead: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("window size", self.size)
        if self.ahead is not None:
            whole("window ahead", self.ahead)
            if self.ahead == self.size:
                object.__setattr__(self, "ahead", None)

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        p = q + self.offset
        return (p - k <= self.size) & (k - p <= (self.size if self.ahead is None else self.ahead))
