"""No query sees a later key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..canonical import canonical
from .position import Relative


@canonical("causal")
@dataclass(frozen=True)
class Causal(Relative):
    """Keys up to the query's own position.

    Examples
    --------
    >>> bool(Causal()(2, 3))
    False
    >>> bool(Causal(align="bottom_right").bind(4, 8)(2, 6))  # query 2 of 4 stands at key 6 of 8
    True
    """

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        return k <= q + self.offset
