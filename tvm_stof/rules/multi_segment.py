"""The streamed axis cut into segments that meet in a merge (flash-decoding's shape; RedFuser's multi-segment strategy)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..cascade.program import FusedProgram
from ..problems import Problem
from . import cpu_model, cpu_space, predicates
from .base import Cost, Rule, Value


class MultiSegment(Rule):
    """for (row tile, segment): stream the segment; save the state  --then-->  for row tile: merge the states; epilogue

    For few rows and a long axis: segments fill the cores that rows alone would leave idle.
    """

    family = "multi_segment"

    def choices(self, problem: Problem, program: FusedProgram, device: Any) -> dict[str, list[Value]]:
        longest = program.stream.extent // (device.vector_bytes // 4)
        segments: list[Value] = [n for n in (2, 4, 8, 16) if n <= longest]
        if not segments:
            return {"segments": []}
        if cpu_model.layout(program) is None:
            # The output would have to be corrected by a state that is known only after the merge: it is computed again.
            return {**cpu_space.streamed(program, device, fixed=True), "output": ["recompute"], "segments": segments}
        return {"segments": []} if not predicates.testable(problem) else {**cpu_space.tiles(program, device), "segments": segments}

    def legal(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> str | None:
        return cpu_space.legal(problem, decisions, device)

    def cost(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> Cost:
        return cpu_space.cost(problem, decisions, device)
