"""Each row gathers its own keys (STOF's row-wise kernel)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..cascade.program import FusedProgram
from ..codegen.visitors import MAX_COLUMNS
from ..problems import Problem
from . import cpu_model, cpu_space
from .base import Cost, Rule, Value


class RowWise(Rule):
    """for row: for chunk of the row's key list: scores by dot products, update, weighted sum; epilogue

    For few or scattered keys, single query rows and tiny problems.
    """

    family = "row_wise"

    def choices(self, problem: Problem, program: FusedProgram, device: Any) -> dict[str, list[Value]]:
        at = cpu_model.layout(program)
        if at is None:
            return {"rows": []}
        lanes = device.vector_bytes // 4
        return {"rows": [n for n in (1, 4, 16, 64) if n == 1 or n <= at.rows], "cols": [c * lanes for c in (1, 2, 4, 8, 16)]}

    def legal(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> str | None:
        reason = cpu_space.legal(problem, decisions, device)
        if reason is None:
            program = cpu_space.program(problem)
            if cpu_model.elements(problem, program) > MAX_COLUMNS:
                return f"the key lists would have over {MAX_COLUMNS} entries"
        return reason

    def cost(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> Cost:
        return cpu_space.cost(problem, decisions, device)
