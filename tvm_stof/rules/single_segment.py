"""One worker streams the whole axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..cascade.program import FusedProgram
from ..problems import Problem
from . import cpu_model, cpu_space, predicates
from .base import Cost, Rule, Value


class SingleSegment(Rule):
    """for row tile: for every tile of the streamed axis: update; epilogue

    Reductions that fed one another now share one loop; nothing but inputs and outputs touches memory.
    """

    family = "single_segment"

    def choices(self, problem: Problem, program: FusedProgram, device: Any) -> dict[str, list[Value]]:
        if cpu_model.layout(program) is None:
            return cpu_space.streamed(program, device)
        return cpu_space.tiles(program, device) if predicates.testable(problem) else {"block_q": []}

    def legal(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> str | None:
        return cpu_space.legal(problem, decisions, device)

    def cost(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> Cost:
        return cpu_space.cost(problem, decisions, device)
