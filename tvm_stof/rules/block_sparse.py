"""Row tiles that visit only the tiles the mask leaves (STOF's block-wise kernel, section 2 of stof.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..cascade.program import FusedProgram
from ..problems import Problem
from . import cpu_model, cpu_space, predicates
from .base import Cost, Rule, Value


class BlockSparse(Rule):
    """for row tile: for tile in its block list: update, tested only where the tile is partial; epilogue

    Partial tiles are tested by the definition's predicate or by stored bits, whichever measures faster.
    """

    family = "block_sparse"

    def choices(self, problem: Problem, program: FusedProgram, device: Any) -> dict[str, list[Value]]:
        mask = problem.bound_mask
        if mask is None or program.predicate is None or cpu_model.layout(program) is None:
            return {"block_q": []}
        return {**cpu_space.tiles(program, device), "test": predicates.tests(problem)}

    def legal(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> str | None:
        return cpu_space.legal(problem, decisions, device)

    def cost(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> Cost:
        return cpu_space.cost(problem, decisions, device)
