"""An attention sink: one more exponential in the denominator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..canonical import canonical
from ..expr import Expr
from .base import Score

if TYPE_CHECKING:
    from ..problems.attention import Attention
    from ..problems.base import TensorSpec


@canonical("sink")
@dataclass(frozen=True)
class Sink(Score):
    """Adds exp(sink[h]) to the softmax's denominator. No score changes; problems read ``isinstance(score, Sink)``."""

    def expr(self, score: Expr, problem: Attention) -> Expr:
        return score

    def tensors(self, problem: Any) -> tuple[TensorSpec, ...]:
        from ..problems.base import TensorSpec

        return (TensorSpec("sink", (problem.heads,), "float32"),)
