"""The decisions of the CPU families: which values are offered, which combinations exist, and what the model says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..cascade import program_of
from ..cascade.program import FusedProgram
from ..codegen.cpu.streaming import stored_output
from ..problems import Problem
from . import cpu_model, predicates
from .base import Cost, Value

#: block lists of more tiles than this are not worth building on a CPU
MAX_TILES = 1 << 21
_NAMES: Mapping[str, frozenset[str]] = {
    "tiles": frozenset({"family", "block_q", "block_k", "mr", "nr"}),
    "streamed": frozenset({"family", "rows", "cols", "lanes", "output"}),
    "row_wise": frozenset({"family", "rows", "cols"}),
}


def program(problem: Problem) -> FusedProgram:
    """The problem's fused program."""
    return program_of(problem)


def tiles(program: FusedProgram, device: Any) -> dict[str, list[Value]]:
    """Row tiles and column tiles, and the accumulators kept in registers."""
    at = cpu_model.layout(program)
    assert at is not None
    lanes = device.vector_bytes // 4
    rows: list[Value] = [n for n in (4, 8, 16, 32, 64, 128) if n == 4 or n < 2 * at.rows]
    cols: list[Value] = [n for n in (16, 32, 64, 128, 256) if n % lanes == 0 and (n == lanes or n < 2 * at.cols)] or [lanes]
    return {"block_q": rows, "block_k": cols, "mr": [2, 4, 6, 8], "nr": [1, 2, 3, 4]}


def streamed(program: FusedProgram, device: Any, fixed: bool = False) -> dict[str, list[Value]]:
    """Rows a task, columns a tile, lanes a step, and how streamed outputs are made."""
    lanes = device.vector_bytes // 4
    count = 1
    for axis in program.grid:
        count *= axis.extent
    extent = program.stream.extent
    cols: list[Value] = [c for c in (128, 256, 512, 1024, 2048, 4096, 8192) if c < extent]
    whole = -(-extent // lanes) * lanes
    outputs: list[Value] = ["store", "recompute"] if stored_output(program) is not None else ["recompute"]
    rows: list[Value] = [1] if fixed else [n for n in (1, 4, 16, 64) if n == 1 or n <= count]
    return {"rows": rows, "cols": [whole] if fixed else [*cols, whole], "lanes": [lanes, 2 * lanes, 4 * lanes], "output": outputs}


def legal(problem: Problem, decisions: Mapping[str, Value], device: Any) -> str | None:
    """None, or why the CPU emitters have no kernel with these decisions."""
    fused = program(problem)
    at = cpu_model.layout(fused)
    family = decisions.get("family")
    kind = "row_wise" if family == "row_wise" else "streamed" if at is None else "tiles"
    expected = _NAMES[kind] | {n for f, n in (("multi_segment", "segments"), ("block_sparse", "test")) if f == family}
    if set(decisions) != expected:
        return f"family {family} takes the decisions {', '.join(sorted(expected))}"
    numbers = {n: v for n, v in decisions.items() if n not in ("family", "test", "output")}
    if any(isinstance(v, bool) or not isinstance(v, int) or not 1 <= v <= 1 << 24 for v in numbers.values()):
        return f"sizes must be whole numbers from 1 to {1 << 24}"
    lanes = device.vector_bytes // 4
    if kind == "streamed":
        return _legal_rows(fused, decisions, lanes)
    if kind == "row_wise":
        return (
            None
            if int(decisions["cols"]) % lanes == 0 and int(decisions["cols"]) <= 4096
            else f"cols must be a multiple of {lanes} up to 4096"
        )
    assert at is not None
    return _legal_tiles(problem, at, decisions, device)


def _legal_rows(fused: FusedProgram, decisions: Mapping[str, Value], lanes: int) -> str | None:
    cols, step = int(decisions["cols"]), int(decisions["lanes"])
    if step % lanes or step > 8 * lanes:
        return f"lanes must be a multiple of {lanes} up to {8 * lanes}"
    if cols % step:
        return "cols must be a multiple of lanes"
    if decisions["output"] not in ("store", "recompute"):
        return "output must be store or recompute"
    if decisions["output"] == "store" and (stored_output(fused) is None or int(decisions.get("segments", 1)) > 1):
        return "no output holds the last stage's term"
    return None


def _legal_tiles(problem: Problem, at: cpu_model.Layout, decisions: Mapping[str, Value], device: Any) -> str | None:
    lanes = device.vector_bytes // 4
    bq, bk, mr, nr = (int(decisions[n]) for n in ("block_q", "block_k", "mr", "nr"))
    if bq % mr:
        return "block_q must be a multiple of mr"
    if bk % lanes or (bk // lanes) % nr:
        return "block_k must be a multiple of nr vectors"
    registers = 32 if device.vector_bytes == 64 else 16
    if mr * nr + nr >= registers:
        return f"{mr} x {nr} accumulators do not fit {registers} vector registers"
    padded = -(-at.out // lanes) * lanes
    if 4 * bq * (at.depth + bk + 2 * padded) > 1 << 20:
        return "the tile's scores, rows and results exceed 1 MiB of stack"
    if decisions["family"] == "block_sparse":
        mask = problem.bound_mask
        if decisions["test"] not in ("predicate", "bits") or mask is None:
            return "test must be predicate or bits, on a problem with a mask"
        if decisions["test"] not in predicates.tests(problem):
            return "this mask has no predicate, or too long a one: use bits"
        if -(-at.rows // bq) * -(-at.cols // bk) > MAX_TILES:
            return f"the block grid would have over {MAX_TILES} tiles"
    elif not predicates.testable(problem):
        return "this mask has no predicate, or too long a one: use a list family"
    return None


def cost(problem: Problem, decisions: Mapping[str, Value], device: Any) -> Cost:
    """The model of the emitter that these decisions go to."""
    fused = program(problem)
    if cpu_model.layout(fused) is None:
        return cpu_model.rows(problem, fused, decisions, device)
    model = cpu_model.row_wise if decisions["family"] == "row_wise" else cpu_model.row_tiles
    return model(problem, fused, decisions, device)
