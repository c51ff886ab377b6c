"""Problem and decisions to kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..cascade import program_of
from ..errors import RecordError, UnsupportedTarget, explain
from ..problems import Problem
from . import visitors
from .kernel import Kernel


def materialise(problem: Problem, decisions: Mapping[str, Any], device: Any) -> Kernel:
    """Build the kernel of a fused family.

    Parameters
    ----------
    decisions : flat, with "family" among single_segment, multi_segment, block_sparse, row_wise (see ``rules``).
    device : ``targets.Device``; a CPU's vector width and thread count, a GPU's architecture shape the code.

    Raises
    ------
    UnsupportedTarget : no emitter for this kind of device, or none that takes the program's structure (the text has the reason).
    RecordError : decisions that are incomplete or impossible.
    """
    if device.kind == "cuda" and device.arch == "sm_90a":
        from . import wgmma

        return wgmma.kernel_of(problem, decisions)
    if device.kind != "cpu":
        raise UnsupportedTarget(explain("no emitter for this device", got=f"{device.kind} {device.arch}", accepted=["cpu", "cuda sm_90a"]))
    from .cpu import exp
    from .cpu.row_tiles import RowTiles
    from .cpu.row_wise import RowWise
    from .cpu.shape import contracted_shape
    from .cpu.streaming import Rows, refuse_streaming

    exp.register()
    program = program_of(problem)
    known = {t.name for t in (*problem.inputs(), *problem.outputs())}
    parameters = [t for t in program.tensors if t.name in known]
    width = device.vector_bytes // 4
    try:
        if refuse_streaming(program) is None:
            return Rows(program, decisions, width, parameters).emit()
        shape = contracted_shape(program)
        if isinstance(shape, str):
            raise UnsupportedTarget(f"no CPU emitter takes this program: {shape}; {refuse_streaming(program)}")
        place = (problem, shape.row, program.stream, shape.outer)
        if decisions["family"] == "row_wise":
            lists, strides = visitors.row_arrays(*place, int(decisions["rows"]), device.threads)
            return RowWise(shape, decisions, width, parameters, lists, strides).emit()
        lists, strides = {}, [0] * len(shape.outer)
        if decisions["family"] == "block_sparse":
            tile = visitors.BlockTile(int(decisions["block_q"]), int(decisions["block_k"]), int(decisions["mr"]), width)
            lists, strides = visitors.block_arrays(*place, tile, decisions["test"] == "bits", device.threads)
        return RowTiles(shape, decisions, width, parameters, lists, strides).emit()
    except KeyError as missing:
        raise RecordError(explain("a decision is missing", got=dict(decisions), accepted=f"one named {missing}")) from missing
