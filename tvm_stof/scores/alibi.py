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
    """score - slope[h] * abs(i + kv_len - q_len - j), slope[h] = 2^(-8 (h + 1) / heads): the last query stands at the last key."""

    def expr(self, score: Expr, problem: Attention) -> Expr:
        head = Expr("cast", ("float32", call("add", index("h"), const(1))))
        slope = call("exp", call("mul", head, const(-8.0 * math.log(2.0) / problem.heads)))
        position = call("sub", call("add", index("i"), const(problem.kv_len - problem.q_len)), index("j"))
        distance = Expr("cast", ("float32", call("max", position, call("sub", const(0), position))))
        return call("sub", score, call("mul", slope, distance))
