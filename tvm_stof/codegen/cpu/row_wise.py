"""The row-wise kernel of a contracted program: each row gathers just the streamed elements its list names.

parallel (outer, rows): for row: for chunk of row list:
  scores[c] = q . key[list[c]]          # lanes over the contracted axis
  update stages
  out = out * factor + sum over c of weight[c] * value[list[c]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
import tvm.script.ir_builder
from tvm import tirx
from tvm.tirx.script.builder import ir as B

from ...cascade.program import Stage, Tensor, safe
from ...expr import Expr
from ..kernel import Kernel
from ..lower import Leaf, lower
from .epilogue import store_outputs
from .loops import fill, fold, local, parameter, store, vectors
from .masking import keep
from .shape import Arrays, ContractedShape, Operand, place, tasks
from .stages import RowState, Tile, apply, row_leaf, scalar_stages, update_row


class RowWise:
    """Assembles one PrimFunc.

    Decisions: ``rows`` per task, ``cols`` per chunk; lists: ``row_ptr``, ``col``, optionally ``order`` of the tasks.
    """

    def __init__(self, shape: ContractedShape, decisions: Mapping[str, Any], width: int, parameters: Sequence[Tensor], lists: Arrays,
                 strides: Sequence[int]) -> None:  # fmt: skip
        self.shape, self.program, self.width = shape, shape.program, width
        self.parameters, self.lists, self.strides = parameters, lists, strides
        self.rows, self.cols = int(decisions["rows"]), int(decisions["cols"])
        self.buffers: dict[str, Any] = {}
        last = scalar_stages(self.program)[-1]
        self.kept = all(s.weight == last.term for s in shape.products)

    def emit(self) -> Kernel:
        """Build the kernel."""
        row_tiles = -(-self.shape.row.extent // self.rows)
        with tvm.script.ir_builder.IRBuilder() as builder, B.prim_func(s_tir=True):
            B.func_name("main")
            for t in self.parameters:
                self.buffers[t.name] = parameter(t.name, t.shape, t.dtype)
            for name, array in self.lists.items():
                self.buffers[name] = parameter(name, array.shape, str(array.dtype))
            B.func_attr({"global_symbol": "main", "tirx.noalias": True})
            with B.parallel(0, tasks(self.shape, self.rows)) as task:
                at = self.buffers["order"][task] if "order" in self.lists else task
                outer, group, row_tile = place(self.shape, at, row_tiles, self.strides)
                inside = tirx.min(self.rows, self.shape.row.extent - row_tile * self.rows)
                with B.serial(0, inside) as r:
                    self._row(outer, group, row_tile * self.rows + r)
        return Kernel(tvm.IRModule({"main": builder.get()}), tuple(self.lists.values()))

    def _row(self, outer: Mapping[str, Any], group: Any, row: Any) -> None:
        state = RowState()
        for s in self.shape.scalars:
            state.scalars[s.name] = local(1)
            fill(state.scalars[s.name], (1,), s.neutral, 1)
        for s, v in zip(self.shape.products, self.shape.values):
            state.products[s.name] = local(1, v.inner.extent)
            fill(state.products[s.name], (1, v.inner.extent), s.neutral, lanes_for(v.inner.extent, self.width))
            state.factor[s.name] = local(1)
        q = self._query(outer, row)
        line = group * self.shape.row.extent + row
        begin, end = local(1, dtype="int32"), local(1, dtype="int32")
        store(begin, self.buffers["row_ptr"][line], 0)
        store(end, self.buffers["row_ptr"][line + 1], 0)
        with B.serial(0, tirx.floordiv(end[0] - begin[0] + self.cols - 1, self.cols)) as chunk:
            first = begin[0] + chunk * self.cols
            count = local(1, dtype="int32")
            store(count, tirx.min(self.cols, end[0] - first), 0)
            position = local(self.cols, dtype="int32")
            vectors(self.cols, self.width, lambda c, _: store(position, self.buffers["col"][tirx.min(first + c, end[0] - 1)], c))
            self._chunk(outer, row, state, q, position, count[0])
        store_outputs(self.program, self.buffers, {**outer, self.shape.row.name: row}, state, 0, self.width)

    def _chunk(self, outer: Mapping[str, Any], row: Any, state: RowState, q: Any, position: Any, count: Any) -> None:
        scores = local(1, self.cols)
        at = {**outer, self.shape.row.name: row}
        stream = self.program.stream.name
        with B.serial(0, count) as c:
            store(scores, self._dot(outer, q, position[c]), 0, c)

        def loads(e: Expr, operands: tuple[Any, ...]) -> Any:
            return self.buffers[str(e.args[0])][operands]

        def leaf(c: Any, x: Any, old: Mapping[str, Any]) -> Leaf:
            return row_leaf(state, 0, {**at, stream: position[c]}, loads, x, old)

        def scalar(c: Any) -> Any:
            return keep([c < count], lower(self.program.value, leaf(c, scores[0, c], {})))

        def put(c: Any, x: Any) -> Any:
            store(scores, x, 0, c)
            return scores[0, c]

        update_row(
            self.program, state, 0, Tile(self.cols, self.width, None, scalar, lambda c: scores[0, c], put, put if self.kept else None, leaf)
        )
        for stage, operand in zip(self.shape.products, self.shape.values):

            def weight(c: Any, stage: Stage = stage) -> Any:
                if self.kept:
                    return scores[0, c]
                assert stage.weight is not None
                return lower(safe(stage.weight, self.program, stage), leaf(c, scores[0, c], {}))

            self._accumulate(stage, operand, outer, state, weight, position, count)

    def _query(self, outer: Mapping[str, Any], row: Any) -> Any:
        prologue = self.program.prologue
        assert prologue is not None
        q = local(prologue.over.extent)
        at = {**outer, self.shape.row.name: row}

        def element(c: Any, _: Any) -> None:
            def leaf(e: Expr, operands: tuple[Any, ...]) -> Any:
                if e.op == "index":
                    return c if e.args[0] == prologue.over.name else at[e.args[0]]
                return self.buffers[str(e.args[0])][operands]

            store(q, tirx.Cast("float32", lower(prologue.lhs, leaf)), c)

        vectors(prologue.over.extent, lanes_for(prologue.over.extent, self.width), element)
        return q

    def _element(self, operand: Operand, outer: Mapping[str, Any], streamed: Any, inner: Any) -> Any:
        lead = tuple(lower(e, lambda n, _: outer[n.args[0]], "int32") for e in operand.lead())
        value = self.buffers[operand.tensor][tuple(operand.at(lead, streamed, inner))]
        return value if self.program.tensor(operand.tensor).dtype == "float32" else tirx.Cast("float32", value)

    def _dot(self, outer: Mapping[str, Any], q: Any, streamed: Any) -> Any:
        depth = self.shape.key.inner.extent
        width = lanes_for(depth, self.width)
        lanes = local(width)
        for v in range(depth // width):
            with B.vectorized(0, width) as lane:
                term = q[v * width + lane] * self._element(self.shape.key, outer, streamed, v * width + lane)
                store(lanes, term if v == 0 else lanes[lane] + term, lane)
        return fold(lanes, width, "sum")

    def _accumulate(
        self, stage: Stage, operand: Operand, outer: Mapping[str, Any], state: RowState, weight: Any, position: Any, count: Any
    ) -> None:
        """out = out * factor + sum over c of weight(c) * operand[position[c]], the row in registers."""
        extent = operand.inner.extent
        width = lanes_for(extent, self.width)
        acc, out = local(extent), state.products[stage.name]
        for v in range(extent // width):
            with B.vectorized(0, width) as lane:
                held = out[0, v * width + lane]
                store(acc, apply(stage, held, state.factor[stage.name][0]) if stage.ratio is not None else held, v * width + lane)
        with B.serial(0, count) as c:
            for v in range(extent // width):
                with B.vectorized(0, width) as lane:
                    at = v * width + lane
                    store(acc, acc[at] + weight(c) * self._element(operand, outer, position[c], at), at)
        for v in range(extent // width):
            with B.vectorized(0, width) as lane:
                store(out, acc[v * width + lane], 0, v * width + lane)


def lanes_for(extent: int, width: int) -> int:
    """The largest power of two, at most the vector width, that divides an extent."""
    while extent % width:
        width //= 2
    return width
