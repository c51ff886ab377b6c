"""The decisions of the Hopper families: which values are offered, and which combinations exist."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from ..cascade import program_of
from ..cascade.program import FusedProgram
from ..codegen.wgmma.laid import Laid, laid_out
from ..codegen.wgmma.plan import Plan
from ..problems import Problem
from .base import Value

DECISIONS = frozenset({"family", "block_q", "block_k", "stages", "pingpong", "overlap", "heads_together"})
#: a block list needs its 32-bit places
MAX_TILES = 1 << 22


@functools.lru_cache(maxsize=64)
def laid(program: FusedProgram) -> Laid | str:
    """The program on warpgroups, or why it does not lie there."""
    return laid_out(program)


def tiles(program: FusedProgram) -> dict[str, list[Value]]:
    """Tile sizes, pipeline and order; no rows at all where the emitter does not take the program."""
    at = laid(program)
    if isinstance(at, str):
        return {"block_q": []}
    stream, row = program.stream.extent, at.shape.row.extent
    cols: list[Value] = [n for n in (64, 80, 96, 112, 128, 160, 176, 192) if n == 64 or n < stream + 64]
    rows: list[Value] = [n for n in (64, 128, 192) if n == 64 or n < row + 64]
    outer = 1
    for axis in at.shape.outer:
        outer *= axis.extent
    together: list[Value] = [n for n in (1, 4, 16) if n == 1 or (outer % n == 0 and row > 64)]
    return {"block_q": rows, "block_k": cols, "stages": [2, 3], "pingpong": [0, 1], "overlap": [0, 1], "heads_together": together}


def plan(problem: Problem, decisions: Mapping[str, Value]) -> Plan | str:
    """The plan of decisions, or why there is none."""
    at = laid(program_of(problem))
    if isinstance(at, str):
        return at
    expected = DECISIONS | ({"test"} if decisions.get("family") == "block_sparse" else set())
    if set(decisions) != expected:
        return f"family {decisions.get('family')} takes the decisions {', '.join(sorted(expected))}"
    numbers = {n: v for n, v in decisions.items() if n not in ("family", "test")}
    if any(isinstance(v, bool) or not isinstance(v, int) or not 0 <= v <= 1 << 16 for v in numbers.values()):
        return "sizes must be whole numbers"
    if decisions.get("test", "predicate") not in ("predicate", "bits"):
        return "test is 'predicate' or 'bits'"
    if not all(decisions[n] in (0, 1) for n in ("pingpong", "overlap")) or int(decisions["heads_together"]) < 1:
        return "pingpong and overlap are 0 or 1, heads_together at least 1"
    found = Plan.of(at, decisions)
    return found.refusal() or found
