"""The analytical model of the CPU emitters: vector operations of a candidate against the device's rate.

Every term is counted in vector operations (one lane-wide instruction); constants were read off the generated code and checked against
measured
times on a znver4 (``tuning_logs``). It is a prior, a feature and a pruning rule: what is kept is decided by measuring.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cascade.program import FusedProgram
from ..codegen import visitors
from ..codegen.cpu.shape import ContractedShape, contracted_shape
from ..problems import Problem
from .base import Cost, Value

#: vector operations: per score element (map, running max, exp, sum), per row and tile (folds, corrections), per task (start, epilogue)
ELEMENT, TILE_ROW, TASK = 26.0, 50.0, 2000.0
#: extra operations of an element in a tile that is tested
TESTED = 5.0
#: a gathered key costs a fold of the lanes beside its products
FOLD = 12.0
LAUNCH_SECONDS = 6e-6
#: last-level cache over main memory
CACHE_SPEEDUP = 4.0


@dataclass(frozen=True)
class Layout:
    """A contracted problem's sizes as the model uses them."""

    shape: ContractedShape
    outer: int
    rows: int
    cols: int
    depth: int
    out: int

    @property
    def bytes(self) -> float:
        """Every parameter read or written once."""
        sizes = {"float32": 4, "float16": 2, "uint8": 1}
        return float(
            sum(np.prod(t.shape, dtype=np.float64) * sizes.get(t.dtype, 4) for t in self.shape.program.tensors if t.dtype != "uint8")
        )


@functools.lru_cache(maxsize=64)
def layout(program: FusedProgram) -> Layout | None:
    """The program on row tiles, or None where it is not contracted."""
    shape = contracted_shape(program)
    if isinstance(shape, str):
        return None
    outer = int(np.prod([a.extent for a in shape.outer], dtype=np.int64))
    out = sum(v.inner.extent for v in shape.values)
    return Layout(shape, outer, shape.row.extent, program.stream.extent, shape.key.inner.extent, out)


@functools.lru_cache(maxsize=256)
def elements(problem: Problem, program: FusedProgram) -> float:
    """Score elements that take part, over all outer positions."""
    at = layout(program)
    assert at is not None
    if problem.bound_mask is None or program.predicate is None:
        return float(at.outer) * at.rows * at.cols
    batch, heads = visitors.extents(at.shape.outer)
    block = min(128, 1 << (max(at.rows, at.cols) - 1).bit_length())
    lists = visitors.block_lists(problem, at.rows, at.cols, block, block, batch, heads)
    counted: float = lists.counts().sum(dtype=np.float64)
    return float(counted) * at.outer / int(lists.groups)


def floor_seconds(problem: Problem, program: FusedProgram, device: Any) -> float:
    """Useful floating point operations at the peak rate, or every byte once: whichever takes longer."""
    at = layout(program)
    sizes = {"float32": 4, "float16": 2, "uint8": 0}
    moved = sum(float(np.prod(t.shape, dtype=np.float64)) * sizes.get(t.dtype, 4) for t in program.tensors)
    useful = 2.0 * (at.depth + at.out) * elements(problem, program) if at is not None else 0.0
    return max(useful / float(device.peak_flops), moved / bandwidth(moved, device))


def ends_floor(moved: float, device: Any) -> float:
    """Every byte of the arguments once."""
    return moved / bandwidth(moved, device)


def bandwidth(moved: float, device: Any) -> float:
    """Bytes a second: what fits in the last cache is still there at the next call."""
    return float(device.bandwidth) * (CACHE_SPEEDUP if moved < device.l3_bytes else 1.0)


def seconds_of(operations: float, device: Any) -> float:
    """Time of vector operations on all threads (a fused multiply-add is one operation and two flops a lane)."""
    lanes = device.vector_bytes // 4
    return operations * 2 * int(lanes) / float(device.peak_flops)


def row_tiles(problem: Problem, program: FusedProgram, decisions: Mapping[str, Value], device: Any) -> Cost:
    """Cost of the row-tile kernels: every tile, or those of a block list."""
    at = layout(program)
    assert at is not None
    lanes = device.vector_bytes // 4
    bq, bk = int(decisions["block_q"]), int(decisions["block_k"])
    row_count = -(-at.rows // bq)
    tested = 0.0
    if decisions["family"] == "block_sparse":
        batch, heads = visitors.extents(at.shape.outer)
        lists = visitors.block_lists(problem, at.rows, at.cols, bq, bk, batch, heads)
        per_row = np.diff(lists.row_ptr).astype(np.float64)
        tiles = float(per_row.sum()) * at.outer / lists.groups
        tested = float((lists.full == 0).sum()) * at.outer / lists.groups
        longest = float(per_row.max(initial=0.0))
    else:
        longest = float(-(-at.cols // bk))
        tiles = longest * row_count * at.outer
        tested = tiles if program.predicate is not None else 0.0
    segments = int(decisions.get("segments", 1))
    tasks = at.outer * row_count * segments
    products = tiles * bq * bk * (at.depth + at.out) / lanes / register_efficiency(int(decisions["mr"]), int(decisions["nr"]))
    scalar = tiles * (bq * bk / lanes * ELEMENT + bq * TILE_ROW) + tested * bq * bk / lanes * TESTED
    merge = tasks * bq * (at.out / lanes * 3 + 20) if segments > 1 else 0.0
    per_task = tasks * (TASK + bq * (at.out + at.depth) / lanes * 4)
    pack = at.bytes / 4 / lanes * 3
    balance = _balance(tiles, longest / segments, tasks, device.threads)
    time = seconds_of(products + scalar + merge + per_task + pack, device) / balance + LAUNCH_SECONDS * (3 if segments > 1 else 2)
    flops = 2.0 * tiles * bq * bk * (at.depth + at.out)
    return Cost(time, flops, at.bytes * 2, balance, floor_seconds(problem, program, device))


def row_wise(problem: Problem, program: FusedProgram, decisions: Mapping[str, Value], device: Any) -> Cost:
    """Cost of gathering each row's keys."""
    at = layout(program)
    assert at is not None
    lanes = device.vector_bytes // 4
    count, rows, cols = elements(problem, program), float(at.rows * at.outer), int(decisions["cols"])
    chunks = count / cols + rows
    gather = count * (2.0 * (at.depth + at.out) / lanes + FOLD)
    scalar = chunks * (cols / lanes * (ELEMENT + TESTED) + TILE_ROW + at.out / lanes * 4)
    tasks = -(-at.rows // int(decisions["rows"])) * at.outer
    balance = _balance(count, count / max(rows, 1.0) * int(decisions["rows"]), tasks, device.threads)
    time = seconds_of(gather + scalar + rows * 60 + tasks * 200, device) / balance + LAUNCH_SECONDS
    return Cost(time, 2.0 * (at.depth + at.out) * count, at.bytes, balance, floor_seconds(problem, program, device))


def rows(problem: Problem, program: FusedProgram, decisions: Mapping[str, Value], device: Any) -> Cost:
    """Cost of streaming rows without a product."""
    lanes = device.vector_bytes // 4
    count = float(np.prod([a.extent for a in program.grid], dtype=np.float64))
    extent, segments = program.stream.extent, int(decisions.get("segments", 1))
    step = int(decisions["lanes"])
    tiles = max(1.0, extent / int(decisions["cols"])) if segments == 1 else float(segments)
    stages = len(program.stages)
    body = count * extent / lanes * (4 * stages + 20) + count * (extent % step) * 20
    output = count * extent / lanes * (3 if decisions["output"] == "store" else 25)
    operations = body + output + count * tiles * stages * (step / lanes * 3 + 30)
    jobs = count * segments if segments > 1 else -(-count // int(decisions["rows"]))
    balance = _balance(jobs, 1.0, int(jobs), device.threads)
    floor = floor_seconds(problem, program, device)
    row_bytes = extent * 4.0
    passes = 1.0 if row_bytes < device.l2_bytes / 2 else 2.0
    time = max(seconds_of(operations, device) / balance, floor * passes / balance) + LAUNCH_SECONDS * (2 if segments > 1 else 1)
    return Cost(time, operations * lanes, count * extent * 8.0, balance, floor)


def register_efficiency(mr: int, nr: int) -> float:
    """Share of the multiply-add rate: too few accumulators wait for each other, too many spill, and each row costs one broadcast a step."""
    accumulators = mr * nr
    waiting = min(1.0, accumulators / 8)
    spilling = 1.0 if accumulators + nr <= 30 else 0.5
    return waiting * spilling * accumulators / (accumulators + 0.5 * max(0, mr + nr - accumulators))


def _balance(work: float, longest: float, tasks: int, threads: int) -> float:
    """Mean load of a thread over the greatest one: whole tasks cannot be split."""
    if tasks <= 0 or work <= 0:
        return 1.0
    uneven = (tasks / threads) / -(-tasks // threads)
    return max(0.05, min(uneven, work / threads / max(longest, work / threads)))
