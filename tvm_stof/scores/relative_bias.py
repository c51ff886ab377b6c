"""A learned bias by distance, as in T5 (one bucket a distance)."""

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


@canonical("relative_bias")
@dataclass(frozen=True)
class RelativeBias(Score):
    """score + relative_bias[h, clip(j - i, -max_distance, max_distance) + max_distance].

    Brings the tensor relative_bias (heads, 2 * max_distance + 1) float32.
    """

    max_distance: int

    def __post_init__(self) -> None:
        if isinstance(self.max_distance, bool) or not isinstance(self.max_distance, int) or not 0 <= self.max_distance < 1 << 24:
            raise ScoreError(explain("max_distance must be a whole number", got=repr(self.max_distance), accepted=f"0 to {(1 << 24) - 1}"))

    def expr(self, score: Expr, problem: Attention) -> Expr:
        limit = const(self.max_distance)
        distance = call("sub", index("j"), index("i"))
        clipped = call("min", call("max", distance, const(-self.max_distance)), limit)
        return call("add", score, load("relative_bias", index("h"), call("add", clipped, limit)))

    def tensors(self, problem: Any) -> tuple[TensorSpec, ...]:
        from ..problems.base import TensorSpec

        return (TensorSpec("relative_bias", (problem.heads, 2 * self.max_distance + 1), "float32"),)
