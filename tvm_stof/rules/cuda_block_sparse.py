"""Hopper: a block of threads streams the tiles of a list (STOF's block-wise kernel)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..cascade.program import FusedProgram
from ..problems import Problem
from . import cuda_model, cuda_space, predicates
from .base import Cost, Rule, Value


class CudaBlockSparse(Rule):
    """for row tile: for tile in its list, partial ones first: update, tested by predicate or stored bits; epilogue"""

    family = "block_sparse"

    def choices(self, problem: Problem, program: FusedProgram, device: Any) -> dict[str, list[Value]]:
        mask, at = problem.bound_mask, cuda_space.laid(program)
        if mask is None or isinstance(at, str) or at.program.predicate is None:
            return {"block_q": []}
        offered = {n: v for n, v in cuda_space.tiles(program).items() if n != "heads_together"}
        return {**offered, "heads_together": [1], "test": predicates.tests(problem)}

    def legal(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> str | None:
        found = cuda_space.plan(problem, decisions)
        if isinstance(found, str):
            return found
        rows = found.row_tiles
        for axis in found.laid.shape.outer:
            rows *= axis.extent
        return f"lists of up to {rows * found.tiles} tiles" if rows * found.tiles > cuda_space.MAX_TILES else None

    def cost(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> Cost:
        found = cuda_space.plan(problem, decisions)
        assert not isinstance(found, str), found
        return cuda_model.cost(problem, found, decisions, device)
