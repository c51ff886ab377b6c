"""Attention with linear biases (Press et al., 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..canonical import canonical
from ..expr import Expr, call, const, index
from .base import Score

if TYPE_CHECKING:
    from ..problems.attention import Attention


@canonical("alibi")
@dataclass(frozen=True)
class ALiBi(Score):
    """score - slope[h] * abs(i + kv_len - q_len - j): the last query stands at the last key.

    Slopes are the paper's: with n the largest power of two up to ``heads``, 2^(-8 (h + 1) / n) for the first n heads and every second
    one of the series for 2 n heads for the rest.
    """

    def expr(self, score: Expr, problem: Attention) -> Expr:
        n = 1 << (problem.heads.bit_length() - 1)
        step = call("mul", call("add", index("h"), const(1)), const(2))
        if n < problem.heads:
            # Head n + m has the (2 m + 1)-th slope of the series for 2 n heads.
            step = call("select", call("lt", index("h"), const(n)), step, call("sub", step, const(2 * n + 1)))
        slope = call("exp", call("mul", Expr("cast", ("float32", step)), const(-4.0 * math.log(2.0) / n)))
        position = call("sub", call("add", index("i"), const(problem.kv_len - problem.q_len)), index("j"))
        distance = Expr("cast", ("float32", call("max", position, call("sub", const(0), position))))
        return call("sub", score, call("mul", slope, distance))
