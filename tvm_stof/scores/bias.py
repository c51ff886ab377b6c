"""An additive bias tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..canonical import canonical
from ..errors import ScoreError, explain
from ..expr import Expr, call, const, index, load
from .base import Score

if TYPE_CHECKING:
    from ..problems.attention import Attention
    from ..problems.base import TensorSpec


@canonical("bias")
@dataclass(frozen=True)
class Bias(Score):
    """score + bias[b or 0, h or 0, i, j].

    Brings the tensor bias (batch, heads, q_len, kv_len) float32; ``batch`` and ``heads`` are 1 where it is shared.
    """

    batch: int = 1
    heads: int = 1

    def __post_init__(self) -> None:
        for name in ("batch", "heads"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ScoreError(explain(f"bias {name} must be a positive whole number", got=repr(value)))

    def expr(self, score: Expr, problem: Attention) -> Expr:
        b = index("b") if self.batch > 1 else const(0)
        h = index("h") if self.heads > 1 else const(0)
        return call("add", score, load("bias", b, h, index("i"), index("j")))

    def tensors(self, problem: Any) -> tuple[TensorSpec, ...]:
        from ..problems.base import TensorSpec

        if self.batch not in (1, problem.batch) or self.heads not in (1, problem.heads):
            got, accepted = f"batch={self.batch}, heads={self.heads}", f"batch 1 or {problem.batch}, heads 1 or {problem.heads}"
            raise ScoreError(explain("the bias does not fit the problem", got=got, accepted=accepted))
        return (TensorSpec("bias", (self.batch, self.heads, problem.q_len, problem.kv_len), "float32"),)
