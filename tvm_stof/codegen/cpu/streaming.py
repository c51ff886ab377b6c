"""Programs without a product (softmax and other statistics): rows that are streamed straight from the inputs.

parallel rows:                                     parallel (row, segment): state of the segment -> part
  for tile: update stages                          parallel (row, segment): merge parts; outputs of the segment
  outputs: scalars once, streamed ones per element
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm
import tvm.script.ir_builder
from tvm import tirx
from tvm.tirx.script.builder import ir as B

from ...cascade.program import FusedProgram, Output, Tensor
from ...expr import Expr
from ..kernel import Kernel, Workspace
from ..lower import Leaf, lower, number
from .loops import fill, local, parameter, store, vectors
from .merge import Partials
from .stages import RowState, Tile, guarded_ratio, row_leaf, scalar_stages, update_row

Refusal = str


def refuse_streaming(program: FusedProgram) -> Refusal | None:
    """Why this emitter cannot take the program, or None."""
    if program.prologue is not None:
        return "the program has a prologue contraction"
    if any(s.axes for s in program.stages):
        return "a stage has axes of its own"
    if not program.stages:
        return "the program has no reduction"
    return None


class Rows:
    """Assembles one PrimFunc.

    Decisions: ``rows`` per task, ``cols`` per tile (a tile's elements meet one correction), ``lanes`` per step, ``segments``, and
    ``output``:
    "store" keeps the last stage's term in the output row and corrects it afterwards, "recompute" evaluates the output from its formula.
    """

    def __init__(self, program: FusedProgram, decisions: Mapping[str, Any], width: int, parameters: Sequence[Tensor]) -> None:
        self.program, self.decisions, self.width, self.parameters = program, decisions, width, parameters
        self.lanes = int(decisions["lanes"])
        self.segments = int(decisions.get("segments", 1))
        self.cols = int(decisions["cols"])
        self.row_count = int(np.prod([a.extent for a in program.grid], dtype=np.int64))
        self.buffers: dict[str, Any] = {}
        self.kept = stored_output(program) if decisions["output"] == "store" else None

    def emit(self) -> Kernel:
        """Build the kernel."""
        self.partials = Partials(self.program, self.row_count, self.segments, 1, {})
        spaces = {name: Workspace(dims) for name, dims in self.partials.shapes.items()} if self.segments > 1 else {}
        with tvm.script.ir_builder.IRBuilder() as builder, B.prim_func(s_tir=True):
            B.func_name("main")
            for t in self.parameters:
                self.buffers[t.name] = parameter(t.name, t.shape, t.dtype)
            for name, space in spaces.items():
                self.buffers[name] = parameter(name, space.shape, space.dtype)
            B.func_attr({"global_symbol": "main", "tirx.noalias": True})
            if self.segments == 1:
                self._single()
            else:
                self._multi()
        return Kernel(tvm.IRModule({"main": builder.get()}), tuple(spaces.values()))

    def _single(self) -> None:
        rows = int(self.decisions["rows"])
        with B.parallel(0, -(-self.row_count // rows)) as task:
            inside = rows if self.row_count % rows == 0 else tirx.min(rows, self.row_count - task * rows)
            with B.serial(0, inside) as r:
                self._row(task * rows + r, 0, self.program.stream.extent, merge=False)

    def _multi(self) -> None:
        jobs, extent = self.row_count * self.segments, self.program.stream.extent
        share = -(-extent // self.segments)
        share = -(-share // self.lanes) * self.lanes
        for merge in (False, True):
            with B.parallel(0, jobs) as job:
                row, segment = tirx.floordiv(job, self.segments), tirx.floormod(job, self.segments)
                self._row(row, segment, share, merge)

    def _row(self, row: Any, segment: Any, share: int, merge: bool) -> None:
        at = self._grid(row)
        state = RowState()
        for s in scalar_stages(self.program):
            state.scalars[s.name] = local(1)
            fill(state.scalars[s.name], (1,), s.neutral, 1)
        if self.segments == 1:
            spans = self._spans(0, share)
            marks = self._marks(spans)
            self._statistics(at, state, spans, marks)
            self._outputs(at, state, spans, marks)
            return
        begin = segment * share
        end = tirx.min(begin + share, self.program.stream.extent)
        whole = tirx.max(tirx.floordiv(end - begin, self.lanes), 0) * self.lanes
        spans = [(begin, tirx.floordiv(whole, self.lanes), self.lanes, self.lanes), (begin + whole, tirx.max(end - begin - whole, 0), 1, 1)]
        if not merge:
            self._statistics(at, state, spans, None)
            self.partials.save(self.buffers, state, row, segment, 1)
        else:
            self.partials.merge(self.buffers, state, row, 1)
            self._outputs(at, state, spans, None, scalars_if=tirx.EQ(segment, 0))

    def _spans(self, begin: int, extent: int) -> list[tuple[Any, Any, int, int]]:
        """(start, tiles, tile columns, lanes): whole tiles, then what is left in whole vectors, then single elements."""
        spans: list[tuple[Any, Any, int, int]] = []
        for cols, lanes in ((self.cols, self.lanes), (self.lanes, self.lanes), (1, 1)):
            tiles = extent // cols
            if cols == self.lanes and spans and tiles:
                spans.append((begin, 1, tiles * cols, lanes))
            elif cols == 1 and tiles:
                spans.append((begin, 1, tiles, 1))
            elif tiles:
                spans.append((begin, tiles, cols, lanes))
            begin, extent = begin + tiles * cols, extent % cols
        return spans

    def _marks(self, spans: list[tuple[Any, Any, int, int]]) -> Any:
        """Room for the results each tile's kept terms were relative to."""
        if self.kept is None:
            return None
        return {name: local(sum(int(t) for _, t, _, _ in spans)) for name in self.kept.bases}

    def _grid(self, row: Any) -> dict[str, Any]:
        at: dict[str, Any] = {}
        rest = row
        for axis in reversed(self.program.grid):
            at[axis.name] = rest if len(self.program.grid) == 1 else tirx.floormod(rest, axis.extent)
            rest = tirx.floordiv(rest, axis.extent)
        return at

    def _loads(self, e: Expr, operands: tuple[Any, ...]) -> Any:
        return self.buffers[str(e.args[0])][operands]

    def _leaf(self, at: Mapping[str, Any], state: RowState, position: Any, x: Any, old: Mapping[str, Any]) -> Leaf:
        return row_leaf(state, 0, {**at, self.program.stream.name: position}, self._loads, x, old)

    def _statistics(self, at: Mapping[str, Any], state: RowState, spans: list[tuple[Any, Any, int, int]], marks: Any) -> None:
        done = 0
        for start, tiles, cols, lanes in spans:
            with B.serial(0, tiles) as t:
                first = start + t * cols

                def leaf(c: Any, x: Any, old: Mapping[str, Any], first: Any = first) -> Leaf:
                    return self._leaf(at, state, first + c, x, old)

                def scalar(c: Any, leaf: Any = leaf) -> Any:
                    x = lower(self.program.value, leaf(c, None, {}))
                    if self.program.predicate is not None:
                        taken = lower(self.program.predicate, leaf(c, None, {}), "int32")
                        x = tirx.Select(taken, x, number(float("-inf"), "float32"))
                    return x

                def keep(c: Any, term: Any, leaf: Any = leaf) -> Any:
                    assert self.kept is not None
                    where = [lower(a, leaf(c, None, {}), "int32") for a in self.kept.output.at]
                    store(self.buffers[self.kept.output.tensor], term, *where)
                    return self.buffers[self.kept.output.tensor][tuple(where)]

                update_row(self.program, state, 0, Tile(cols, lanes, None, scalar, scalar, None, keep if self.kept else None, leaf))
                for name, mark in (marks or {}).items():
                    store(mark, state.scalars[name][0], done + t)
            done += tiles if isinstance(tiles, int) else 0

    def _outputs(
        self, at: Mapping[str, Any], state: RowState, spans: list[tuple[Any, Any, int, int]], marks: Any, scalars_if: Any = None
    ) -> None:
        for output in self.program.outputs:
            if not output.streamed:
                self._scalar_output(output, at, state, scalars_if)
                continue
            done = 0
            for start, tiles, cols, lanes in spans:
                with B.serial(0, tiles) as t:
                    factor = self._kept_factor(state, marks, done + t) if self.kept is not None and output is self.kept.output else None

                    def element(c: Any, _: Any, first: Any = start + t * cols, factor: Any = factor, output: Output = output) -> None:
                        leaf = self._leaf(at, state, first + c, None, {})
                        x = lower(self.program.value, leaf)
                        where = [lower(a, leaf, "int32") for a in output.at]
                        target = self.buffers[output.tensor]
                        if factor is not None:
                            store(target, target[tuple(where)] * factor, *where)
                            return
                        value = lower(output.value, self._leaf(at, state, first + c, x, {}))
                        dtype = self.program.tensor(output.tensor).dtype
                        store(target, value if dtype == "float32" else tirx.Cast(dtype, value), *where)

                    vectors(cols, lanes, element)
                done += tiles if isinstance(tiles, int) else 0

    def _kept_factor(self, state: RowState, marks: Any, tile: Any) -> Any:
        """What a kept term of one tile still lacks: ratio(results at that tile -> final) * rest(final)."""
        assert self.kept is not None
        last = scalar_stages(self.program)[-1]
        old = {name: mark[tile] for name, mark in marks.items()}
        leaf = row_leaf(state, 0, {}, self._loads, None, old)
        factor = local(1)
        rest = lower(self.kept.rest, leaf)
        store(factor, rest if last.ratio is None else guarded_ratio(self.program, last, leaf, old) * rest, 0)
        return factor[0]

    def _scalar_output(self, output: Output, at: Mapping[str, Any], state: RowState, condition: Any) -> None:
        leaf = self._leaf(at, state, 0, None, {})
        value = lower(output.value, leaf)
        dtype = self.program.tensor(output.tensor).dtype
        where = [lower(a, leaf, "int32") for a in output.at]
        value = value if dtype == "float32" else tirx.Cast(dtype, value)
        if condition is None:
            store(self.buffers[output.tensor], value, *where)
            return
        with B.If(condition), B.Then():
            store(self.buffers[output.tensor], value, *where)


class KeptOutput:
    """A streamed output that is the last stage's term times ``rest`` of results only; ``bases`` are the results the term depends on."""

    def __init__(self, output: Output, rest: Expr, bases: tuple[str, ...]) -> None:
        self.output, self.rest, self.bases = output, rest, bases


def stored_output(program: FusedProgram) -> KeptOutput | None:
    """Find such an output: value = term * rest or term / rest', float32 (kept terms must not be rounded)."""
    last = scalar_stages(program)[-1]
    if last.combine != "mul":
        return None
    bases = tuple(sorted({n.args[0] for n in last.term.walk() if n.op == "result"}))
    for output in program.outputs:
        if not output.streamed or program.tensor(output.tensor).dtype != "float32" or output.value.op not in ("mul", "div"):
            continue
        a, b = output.value.operands()
        if output.value.op == "mul" and b == last.term:
            a, b = b, a
        over_results = not any(n.op in ("load", "index", "value") for n in b.walk())
        if a == last.term and over_results:
            return KeptOutput(output, b if output.value.op == "mul" else Expr("div", (Expr("const", (1.0,)), b)), bases)
    return None
