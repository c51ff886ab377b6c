"""A soft limit, as in Gemma 2."""

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


@canonical("softcap")
@dataclass(frozen=True)
class Softcap(Score):
    """cap * tanh(score / cap)."""

    cap: float

    def __post_init__(self) -> None:
        if isinstance(self.cap, bool) or not isinstance(self.cap, (int, float)) or not math.isfinite(self.cap) or self.cap <= 0:
            raise ScoreError(explain("softcap must be a positive number", got=repr(self.cap)))
        object.__setattr__(self, "cap", float(self.cap))

    def expr(self, score: Expr, problem: Attention) -> Expr:
        return call("mul", call("tanh", call("mul", score, const(1.0 / self.cap))), const(self.cap))
