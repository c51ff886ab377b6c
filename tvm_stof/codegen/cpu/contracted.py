"""Programs with a prologue contraction and product stages (attention and its kin), on row tiles that stream column tiles.

parallel task -> (outer, row tile[, segment]):
  q = pack(lhs); state = neutral
  for n in visitor(row tile):                 # every tile, or a block list
    scores = q . key[tile]                    # register-tiled product
    update stages row by row                  # codegen.cpu.stages
    out = out * factor + weights . value[tile]
  epilogue, or store the partial state and merge
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as B

from ...cascade.program import Stage, safe
from ...expr import Expr
from ..lower import Leaf, lower, number
from .epilogue import store_outputs
from .loops import fill, local, store, vectors
from .pack import Packed, ceil
from .product import RegisterTile, Span, product
from .shape import ContractedShape
from .stages import RowState, Tile, apply, row_leaf, scalar_stages, update_row
from .visit import Visitor


class ContractedTile:
    """Emits the work of one row tile of a laid-out program."""

    def __init__(self, shape: ContractedShape, decisions: Mapping[str, Any], width: int, buffers: Mapping[str, Any]) -> None:
        self.shape, self.program, self.width, self.buffers = shape, shape.program, width, buffers
        self.rows, self.cols = int(decisions["block_q"]), int(decisions["block_k"])
        mr, nr = int(decisions["mr"]), int(decisions["nr"])
        self.score_tile = RegisterTile(mr, _fitting(self.cols, nr, width), width)
        program = shape.program
        assert program.prologue is not None
        self.depth = program.prologue.over.extent
        self.key = Packed(shape.key, program.tensor(shape.key.tensor), self.cols, width, transpose=True)
        self.values = {
            s.name: Packed(v, program.tensor(v.tensor), self.cols, width, transpose=False) for s, v in zip(shape.products, shape.values)
        }
        self.out_tile = {n: RegisterTile(mr, _fitting(p.inner, nr, width), width) for n, p in self.values.items()}
        self.row_tiles = ceil(shape.row.extent, self.rows)
        self.scale, self.value = _split_scale(program.value)
        last = scalar_stages(program)[-1]
        #: products whose weight is the last scalar stage's term; all or none, since the term takes the score's place
        self.kept = {s.name for s in shape.products if s.weight == last.term}
        if len(self.kept) < len(shape.products):
            self.kept = set()

    def packs(self) -> dict[str, Packed]:
        """Operands that need a workspace, by the argument name of that workspace."""
        named = {"key_tiles": self.key, **{f"value_tiles_{n}": p for n, p in self.values.items()}}
        return {name: p for name, p in named.items() if not p.in_place}

    def emit_packs(self) -> None:
        """Pack the streamed operands, before any row tile starts."""
        for name, packed in self.packs().items():
            packed.emit(self.buffers[packed.operand.tensor], self.buffers[name])

    def state(self) -> RowState:
        """Local arrays for the running results, set to neutral."""
        state = RowState()
        for s in self.shape.scalars:
            state.scalars[s.name] = local(self.rows)
            fill(state.scalars[s.name], (self.rows,), s.neutral, self.width)
        for s in self.shape.products:
            cols = self.values[s.name].inner
            state.products[s.name] = local(self.rows, cols)
            fill(state.products[s.name], (self.rows, cols), s.neutral, self.width)
            state.factor[s.name] = local(self.rows)
        return state

    def loads(self, bounded: bool) -> Any:
        """Loads of maps (biases, tables). In an edge tile positions past the end read the last element; what they give is masked."""

        def answer(e: Expr, operands: tuple[Any, ...]) -> Any:
            name = str(e.args[0])
            extents = self.program.tensor(name).shape
            at = [_clamp(a, n) if bounded else a for a, n in zip(operands, extents)]
            return self.buffers[name][tuple(at)]

        return answer

    def emit(
        self, outer: Mapping[str, Any], row_tile: Any, visitor: Visitor, task_group: Any, state: RowState, part: tuple[Any, int]
    ) -> None:
        """Stream the visitor's tiles of one row tile (its ``part`` = (number, count) share) into ``state``."""
        program, shape = self.program, self.shape
        assert program.prologue is not None
        row0 = row_tile * self.rows
        q = local(self.rows, self.depth)
        self._pack_rows(q, outer, row0)
        scores = local(self.rows, self.cols)
        edge_rows = shape.row.extent % self.rows != 0

        def each(tile: Any, untested: Any, test: Any, span: Span | None) -> None:
            lead = self._lead(self.key, outer)
            keys = self.buffers.get("key_tiles")
            product(self.rows, self.cols, self.depth, self.score_tile,
                    lhs=lambda i, l: q[i, l],
                    rhs=lambda l, j: self.key.read(self.buffers[shape.key.tensor], keys, lead, tile, j, l),
                    init=lambda i, j: number(0.0, "float32"), done=lambda i, j, x: store(scores, x, i, j), cols_of=span)  # fmt: skip
            col0 = tile * self.cols

            def update(tested: bool) -> None:
                with B.serial(0, self.rows) as r:
                    between = span(tirx.floordiv(r, self.score_tile.rows)) if span is not None and tested else None
                    applied = test if tested else None
                    row = self._tile(state, outer, scores, row0, r, col0, applied, tested or edge_rows, between)
                    update_row(program, state, r, row)

            if untested is None:
                update(test is not None)
            else:
                with B.If(untested):
                    with B.Then():
                        update(False)
                    with B.Else():
                        update(True)
            for stage in shape.products:
                self._multiply(stage, state, outer, scores, row0, col0, tile, span)

        visitor.emit(task_group, row_tile, part, each)

    def _tile(self, state: RowState, outer: Mapping[str, Any], scores: Any, row0: Any, r: Any, col0: Any, test: Any, bounded: bool,
              between: tuple[Any, Any] | None) -> Tile:  # fmt: skip
        """Row ``r`` of the score tile. A weight that is the last scalar stage's term is evaluated once and kept in place of the score."""
        program, loads = self.program, self.loads(bounded)

        def leaf(c: Any, x: Any, old: Mapping[str, Any]) -> Leaf:
            at = {**outer, self.shape.row.name: row0 + r, program.stream.name: col0 + c}
            return row_leaf(state, r, at, loads, x, old)

        def scalar(c: Any) -> Any:
            x = lower(self.value, leaf(c, scores[r, c], {}))
            return x if test is None else test(outer, row0, r, col0, c, x)

        def put(c: Any, x: Any) -> Any:
            store(scores, x, r, c)
            return scores[r, c]

        return Tile(self.cols, self.width, between, scalar, lambda c: scores[r, c], put, put if self.kept else None, leaf)

    def _multiply(self, stage: Stage, state: RowState, outer: Mapping[str, Any], scores: Any, row0: Any, col0: Any, tile: Any,
                  span: Span | None) -> None:  # fmt: skip
        """out = out * factor + weights . values[tile]"""
        packed, out = self.values[stage.name], state.products[stage.name]
        lead, tiles = self._lead(packed, outer), self.buffers.get(f"value_tiles_{stage.name}")
        source = self.buffers[packed.operand.tensor]
        loads = self.loads(bounded=True)

        def weight(i: Any, l: Any) -> Any:
            if stage.name in self.kept:
                return scores[i, l]
            at = {**outer, self.shape.row.name: row0 + i, self.program.stream.name: col0 + l}
            assert stage.weight is not None
            return lower(safe(stage.weight, self.program, stage), row_leaf(state, i, at, loads, scores[i, l], {}))

        def start(i: Any, j: Any) -> Any:
            return apply(stage, out[i, j], state.factor[stage.name][i]) if stage.ratio is not None else out[i, j]

        def value(l: Any, j: Any) -> Any:
            return packed.read(source, tiles, lead, tile, l, j)

        register_tile = self.out_tile[stage.name]
        def done(i: Any, j: Any, x: Any) -> None:
            store(out, x, i, j)

        product(self.rows, packed.inner, self.cols, register_tile, lhs=weight, rhs=value, init=start, done=done, depth_of=span)

    def _lead(self, packed: Packed, outer: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(lower(e, lambda n, _: outer[n.args[0]], "int32") for e in packed.operand.lead())

    def _pack_rows(self, q: Any, outer: Mapping[str, Any], row0: Any) -> None:
        """q[r, l] = float32(lhs) * scale, 0 past the last row."""
        program, row = self.program, self.shape.row
        assert program.prologue is not None
        over = program.prologue.over.name

        def element(r: Any, l: Any) -> Any:
            def leaf(e: Expr, operands: tuple[Any, ...]) -> Any:
                if e.op == "index":
                    return {**outer, row.name: row0 + r, over: l}[e.args[0]]
                return self.buffers[str(e.args[0])][operands]

            assert program.prologue is not None
            value = tirx.Cast("float32", lower(program.prologue.lhs, leaf))
            value = value * number(self.scale, "float32") if self.scale != 1.0 else value
            inside = row0 + r < row.extent
            return tirx.if_then_else(inside, value, number(0.0, "float32")) if row.extent % self.rows else value

        with B.serial(0, self.rows) as r:
            vectors(self.depth, self.width if self.depth % self.width == 0 else 1, lambda l, _: store(q, element(r, l), r, l))

    def epilogue(self, outer: Mapping[str, Any], row_tile: Any, state: RowState) -> None:
        """Store every output of the rows that exist."""
        row0 = row_tile * self.rows
        extent = self.shape.row.extent
        rows = self.rows if extent % self.rows == 0 else tirx.min(self.rows, extent - row0)
        with B.serial(0, rows) as r:
            store_outputs(self.program, self.buffers, {**outer, self.shape.row.name: row0 + r}, state, r, self.width)


def _fitting(cols: int, vectors_wanted: int, width: int) -> int:
    """The largest number of vectors, at most the one wanted, that divides the columns."""
    return next(n for n in range(min(vectors_wanted, cols // width), 0, -1) if (cols // width) % n == 0)


def _clamp(at: Any, extent: int) -> Any:
    return tirx.min(at, extent - 1)


def _split_scale(value: Expr) -> tuple[float, Expr]:
    """A constant factor of the prologue moves to the packed rows: value(c * prologue) -> c, value(prologue)."""
    bare = Expr("prologue")
    scaled = [n for n in value.walk() if n.op == "mul" and bare in n.args and any(a.op == "const" for a in n.operands())]
    if len({*scaled}) == 1 and sum(n == bare for n in value.walk()) == len(scaled):
        factor = next(a for a in scaled[0].operands() if a.op == "const")
        return float(factor.args[0]), value.substitute({scaled[0]: bare})
    return 1.0, value
