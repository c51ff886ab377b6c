"""A constant factor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..canonical import canonical
from ..errors import ScoreError, explain
from ..expr import Expr, call, const
from .base import Score

if TYPE_CHECKING:
    from ..problems.attention import Attention


@canonical("scale")
@dataclass(frozen=True)
class Scale(Score):
    """score * value."""

    value: float

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)) or not math.isfinite(self.value):
            raise ScoreError(explain("scale must be a finite number", got=repr(self.value)))
        object.__setattr__(self, "value", float(self.value))

    def expr(self, score: Expr, problem: Attention) -> Expr:
        return call("mul", score, const(self.value))
