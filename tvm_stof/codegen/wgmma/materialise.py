"""Problem and decisions to a kernel for Hopper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...cascade import program_of
from ...errors import UnsupportedTarget
from ...problems import Problem
from .. import visitors
from ..cpu.shape import Arrays
from ..kernel import Kernel
from .emit import Warpgroups
from .laid import laid_out

#: work items are put in order where the heaviest exceeds the mean by this factor
UNEVEN = 1.05


def kernel_of(problem: Problem, decisions: Mapping[str, Any]) -> Kernel:
    """Build the kernel of ``family`` single_segment (every tile) or block_sparse (a tile list).

    Raises
    ------
    UnsupportedTarget : the program's structure is not this emitter's (the text has the reason).
    RecordError : impossible decisions.
    """
    program = program_of(problem)
    laid = laid_out(program)
    if isinstance(laid, str):
        raise UnsupportedTarget(f"the wgmma emitter does not take this program: {laid}")
    known = {t.name for t in (*problem.inputs(), *problem.outputs())}
    parameters = [t for t in program.tensors if t.name in known]
    if decisions["family"] != "block_sparse":
        return Warpgroups(program, decisions, parameters).emit()
    shape, sizes = laid.shape, (int(decisions["block_q"]), int(decisions["block_k"]))
    place = (problem, shape.row, laid.program.stream, shape.outer)
    lists, strides = visitors.block_arrays(*place, visitors.BlockTile(*sizes), decisions.get("test") == "bits", 1)
    batch, heads = visitors.extents(shape.outer)
    work = np.diff(lists["row_ptr"]).astype(np.float64)
    lists = {**lists, **heaviest_first(visitors.per_task(work, visitors.block_lists(problem, shape.row.extent, laid.program.stream.extent,
             *sizes, batch, heads), shape.outer))}  # fmt: skip
    return Warpgroups(program, decisions, parameters, lists, strides).emit()


def heaviest_first(work: Any) -> Arrays:
    """``order`` of uneven work items, by falling work: blocks of threads start in this order, so no long one is left for the end."""
    if len(work) == 0 or work.max() <= UNEVEN * work.mean():
        return {}
    return {"order": np.argsort(-work, kind="stable").astype(np.int32)}
