"""The kernel of a contracted program on row tiles: every tile (single_segment, multi_segment) or a block list (block_sparse)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
import tvm.script.ir_builder
from tvm import tirx
from tvm.tirx.script.builder import ir as B

from ...cascade.program import Tensor
from ..kernel import Kernel, Prepared, Workspace
from .contracted import ContractedTile
from .loops import parameter
from .masking import bits_test, edge_test, predicate_test
from .merge import Partials
from .shape import Arrays, ContractedShape, place, tasks
from .visit import BlockList, EveryTile, Visitor


class RowTiles:
    """Assembles one PrimFunc.

    Parameters
    ----------
    parameters : tensors of the definition that callers pass, in order.
    lists : visitor arrays (``row_ptr``, ``col``, ``whole``, ``tile``, ``tiles``, ``order``), absent for families that visit every tile.
    strides : group = sum of stride * position over the outer axes (0 where the lists do not vary).
    """

    def __init__(self, shape: ContractedShape, decisions: Mapping[str, Any], width: int, parameters: Sequence[Tensor], lists: Arrays,
                 strides: Sequence[int]) -> None:  # fmt: skip
        self.shape, self.decisions, self.width, self.parameters = shape, decisions, width, parameters
        self.lists, self.strides = lists, strides
        self.segments = int(decisions.get("segments", 1))
        self.buffers: dict[str, Any] = {}
        self.tile = ContractedTile(shape, decisions, width, self.buffers)
        self.tasks = tasks(shape, self.tile.rows)
        self.partials = Partials(
            shape.program, self.tasks, self.segments, self.tile.rows, {n: p.inner for n, p in self.tile.values.items()}
        )

    def emit(self) -> Kernel:
        """Build the kernel."""
        workspaces = {name: p.workspace for name, p in self.tile.packs().items()}
        if self.segments > 1:
            workspaces.update({name: Workspace(dims) for name, dims in self.partials.shapes.items()})
        prepared: list[Prepared] = [*self.lists.values(), *(w for w in workspaces.values() if w is not None)]
        with tvm.script.ir_builder.IRBuilder() as builder, B.prim_func(s_tir=True):
            B.func_name("main")
            for t in self.parameters:
                self.buffers[t.name] = parameter(t.name, t.shape, t.dtype)
            for name, array in self.lists.items():
                self.buffers[name] = parameter(name, array.shape, str(array.dtype))
            for name, space in workspaces.items():
                if space is not None:
                    self.buffers[name] = parameter(name, space.shape, space.dtype)
            B.func_attr({"global_symbol": "main", "tirx.noalias": True})
            self._body()
        return Kernel(tvm.IRModule({"main": builder.get()}), tuple(prepared))

    def _body(self) -> None:
        self.tile.emit_packs()
        visitor = self._visitor()
        with B.parallel(0, self.tasks * self.segments) as job:
            task, segment = (job, 0) if self.segments == 1 else (tirx.floordiv(job, self.segments), tirx.floormod(job, self.segments))
            outer, group, row_tile = self._place(task)
            state = self.tile.state()
            self.tile.emit(outer, row_tile, visitor, group, state, (segment, self.segments))
            if self.segments == 1:
                self.tile.epilogue(outer, row_tile, state)
            else:
                self.partials.save(self.buffers, state, task, segment, self.width)
        if self.segments > 1:
            with B.parallel(0, self.tasks) as task:
                outer, _, row_tile = self._place(task)
                state = self.tile.state()
                self.partials.merge(self.buffers, state, task, self.width)
                self.tile.epilogue(outer, row_tile, state)

    def _place(self, task: Any) -> tuple[dict[str, Any], Any, Any]:
        at = self.buffers["order"][task] if "order" in self.lists else task
        return place(self.shape, at, self.tile.row_tiles, self.strides)

    def _visitor(self) -> Visitor:
        program, cols = self.shape.program, self.tile.cols
        edge = edge_test(self.shape, cols)
        if "row_ptr" not in self.lists:
            test = predicate_test(self.shape, program.predicate, cols) if program.predicate is not None else None
            return EveryTile(-(-program.stream.extent // cols), test, edge)
        whole = self.lists["whole"]

        def test_at(at: Any) -> Any:
            if self.decisions["test"] == "bits":
                return bits_test(self.buffers["tiles"], self.buffers["tile"][at])
            return predicate_test(self.shape, program.predicate, cols) if program.predicate is not None else edge

        return BlockList(self.tile.row_tiles, self.buffers["row_ptr"], self.buffers["col"], self.buffers["whole"], test_at,
                         mixed=bool(whole.any()) and not bool(whole.all()), all_whole=bool(whole.all()),
                         span=self.buffers.get("span"), spans=self.buffers.get("spans"))  # fmt: skip
