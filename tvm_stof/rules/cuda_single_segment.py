"""Hopper: a block of threads streams the tiles inside the mask's closed-form range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..cascade.program import FusedProgram
from ..problems import Problem
from . import cuda_model, cuda_space, predicates
from .base import Cost, Rule, Value


class CudaSingleSegment(Rule):
    """for row tile: for tile in range(first, last): update, tested only where the tile is not full; epilogue

    The range follows from the predicate's half-planes (causal, windows); tiles of any other predicate are all visited and tested.
    """

    family = "single_segment"

    def choices(self, problem: Problem, program: FusedProgram, device: Any) -> dict[str, list[Value]]:
        return cuda_space.tiles(program) if predicates.testable(problem) else {"block_q": []}

    def legal(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> str | None:
        found = cuda_space.plan(problem, decisions)
        return found if isinstance(found, str) else None

    def cost(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> Cost:
        found = cuda_space.plan(problem, decisions)
        assert not isinstance(found, str), found
        return cuda_model.cost(problem, found, decisions, device)
