"""The unfused family: the definition as stock MetaSchedule schedules it, without the rule that miscomputes cascades."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from tvm.ir import IRModule
from tvm.s_tir import SBlock
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.space_generator import PostOrderApply
from tvm_ffi.structural import structural_walk

from ..cascade.program import FusedProgram
from ..definitions import definition
from ..problems import Problem
from .base import Cost, Rule, Value

#: RandomComputeLocation puts one reduction of a cascade under another's loop, where its initial value is lost (7 of 32 attention
#: kernels wrong); its mutator likewise.
MISCOMPUTES = ("RandomComputeLocation", "MutateComputeLocation")
_STOCK = {"cpu": "llvm", "cuda": "cuda"}
log = logging.getLogger(__name__)


class Unfused(Rule):
    """Every reduction of the definition in a loop of its own, tiled by stock rules; its decisions are in the trace alone."""

    family = "unfused"

    def choices(self, problem: Problem, program: FusedProgram, device: Any) -> dict[str, list[Value]]:
        return {}

    def legal(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> str | None:
        return None

    def cost(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> Cost:
        """Arguments once, every intermediate written and read; and every loop nest at a tenth of the peak rate, as stock schedules run."""
        ends = sum(math.prod(t.shape) * 4 for t in (*problem.inputs(), *problem.outputs()))
        module = definition(problem)
        total = float(ends + 2 * intermediate_bytes(module))
        work = 2.0 * iterations(module)
        seconds = max(total / device.bandwidth, 10.0 * work / device.peak_flops)
        return Cost(seconds, work, total, 1.0, floor(problem, device))


def intermediate_bytes(module: IRModule) -> int:
    """Bytes of the buffers a definition allocates."""
    sizes: list[int] = []

    def visit(block: Any) -> None:
        sizes.extend(math.prod(int(n) for n in b.shape) * 4 for b in block.alloc_buffers)

    structural_walk(module["main"].body, (SBlock, visit))
    return sum(sizes)


def iterations(module: IRModule) -> float:
    """Points of all blocks' iteration domains together."""
    points: list[float] = []

    def visit(block: Any) -> None:
        points.append(float(math.prod(int(v.dom.extent) for v in block.iter_vars)))

    structural_walk(module["main"].body, (SBlock, visit))
    return sum(points)


def floor(problem: Problem, device: Any) -> float:
    """The floor of the fused program where there is one, else that of the traffic."""
    from . import cpu_model
    from .rulesets import program

    fused = program(problem)
    if fused is not None:
        return cpu_model.floor_seconds(problem, fused, device)
    ends = sum(math.prod(t.shape) * 4 for t in (*problem.inputs(), *problem.outputs()))
    return cpu_model.ends_floor(ends, device)


def spaces(module: IRModule, context: Any, kind: str) -> list[Any]:
    """Stock design spaces of a definition; none, with a note in the log, where stock rules cannot schedule it."""
    rules = [r for r in ms.ScheduleRule.create(_STOCK[kind]) if type(r).__name__ not in MISCOMPUTES]
    generator = PostOrderApply(sch_rules=rules, postprocs=[], mutator_probs={})
    try:
        generator._initialize_with_tune_context(context)
        return list(generator.generate_design_space(module))
    except Exception as error:  # stock rules raise on some cascades, and would take the other families with them
        log.warning("stock rules cannot schedule this definition, so the unfused family is left out: %s", _brief(error))
        return []


def postprocs(kind: str) -> list[Any]:
    """What stock schedules need before they can be built."""
    return list(ms.Postproc.create(_STOCK[kind]))


def mutators(kind: str) -> dict[Any, float]:
    """Stock mutators with their weights."""
    return {m: float(p) for m, p in ms.Mutator.create(_STOCK[kind]).items() if type(m).__name__ not in MISCOMPUTES}


def _brief(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
