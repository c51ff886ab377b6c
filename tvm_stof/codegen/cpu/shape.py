"""How a contracted program lies on row tiles: which grid axis becomes rows, which operands are packed and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from tvm import tirx

from ...cascade.program import Axis, FusedProgram, Stage
from ...expr import Expr, index

Refusal = str


def strip_casts(e: Expr) -> Expr:
    """The expression under any casts."""
    return strip_casts(e.args[1]) if e.op == "cast" else e


def mentions(e: Expr, axis: str) -> bool:
    """Whether the expression depends on a position along that axis."""
    return any(n.op == "index" and n.args[0] == axis for n in e.walk())


@dataclass(frozen=True)
class Operand:
    """A right-hand tensor streamed tile by tile: of its dimensions one is the stream, one ``inner``, the others are fixed by the grid."""

    expr: Expr
    stream_dim: int
    inner_dim: int
    inner: Axis

    @staticmethod
    def of(expr: Expr | None, stream: Axis, inner: Axis) -> Operand | None:
        """Read it off an expression, or None when it does not have this form."""
        bare = strip_casts(expr) if expr is not None else Expr("none")
        if expr is None or bare.op != "load":
            return None
        at = bare.args[1:]
        stream_dims = [n for n, a in enumerate(at) if mentions(a, stream.name)]
        inner_dims = [n for n, a in enumerate(at) if mentions(a, inner.name)]
        if (
            len(stream_dims) != 1
            or len(inner_dims) != 1
            or at[stream_dims[0]] != index(stream.name)
            or at[inner_dims[0]] != index(inner.name)
        ):
            return None
        return Operand(expr, stream_dims[0], inner_dims[0], inner)

    @property
    def tensor(self) -> str:
        return str(strip_casts(self.expr).args[0])

    def lead(self) -> tuple[Expr, ...]:
        """Index expressions of the dimensions that are neither streamed nor inner."""
        at = strip_casts(self.expr).args[1:]
        return tuple(a for n, a in enumerate(at) if n not in (self.stream_dim, self.inner_dim))

    def at(self, lead: tuple[Any, ...], stream: Any, inner: Any) -> list[Any]:
        """Full index list of the tensor."""
        rest = list(lead)
        for n, a in sorted(((self.stream_dim, stream), (self.inner_dim, inner))):
            rest.insert(n, a)
        return rest


@dataclass(frozen=True)
class ContractedShape:
    """A laid-out program with a prologue contraction and contraction stages; ``row`` is the grid axis that becomes the tile's rows."""

    program: FusedProgram
    row: Axis
    outer: tuple[Axis, ...]
    key: Operand
    scalars: tuple[Stage, ...]
    products: tuple[Stage, ...]
    values: tuple[Operand, ...]


def contracted_shape(program: FusedProgram) -> ContractedShape | Refusal:
    """Lay a program out, or say in one sentence why this emitter cannot."""
    if program.prologue is None:
        return "the program has no prologue contraction"
    key = Operand.of(program.prologue.rhs, program.stream, program.prologue.over)
    if key is None:
        return (
            f"the right side of the prologue is not one tensor indexed by the streamed axis and the contracted axis: {program.prologue.rhs}"
        )
    free = [a for a in program.grid if not mentions(program.prologue.rhs, a.name)]
    if not free:
        return "every grid axis is used by the streamed operand, so no rows share a tile"
    row = free[-1]
    scalars = tuple(s for s in program.stages if not s.axes)
    products = tuple(s for s in program.stages if s.axes)
    values = []
    for stage in products:
        operand = Operand.of(stage.operand, program.stream, stage.axes[0]) if len(stage.axes) == 1 else None
        if operand is None or stage.weight is None or stage.monoid != "sum":
            return f"stage {stage.name!r} is not a product with one tensor over one axis of its own: {stage.term}"
        if mentions(stage.operand or stage.term, row.name):
            return f"the operand of stage {stage.name!r} differs for each row"
        values.append(operand)
    if program.stages[: len(scalars)] != scalars:
        return "a scalar stage comes after a product"
    if any(o.streamed for o in program.outputs):
        return "an output is written for each streamed element"
    outer = tuple(a for a in program.grid if a is not row)
    return ContractedShape(program, row, outer, key, scalars, products, tuple(values))


Arrays = Mapping[str, npt.NDArray[Any]]


def tasks(shape: ContractedShape, rows: int) -> int:
    """Row tiles of all outer positions."""
    total = -(-shape.row.extent // rows)
    for axis in shape.outer:
        total *= axis.extent
    return total


def place(shape: ContractedShape, task: Any, row_tiles: int, strides: Sequence[int]) -> tuple[dict[str, Any], Any, Any]:
    """Task number -> positions on the outer axes, list group (sum of stride * position), row tile."""
    row_tile, rest = tirx.floormod(task, row_tiles), tirx.floordiv(task, row_tiles)
    outer: dict[str, Any] = {}
    group: Any = 0
    for axis, stride in zip(reversed(shape.outer), reversed(strides)):
        outer[axis.name] = tirx.floormod(rest, axis.extent)
        rest = tirx.floordiv(rest, axis.extent)
        group = group + outer[axis.name] * stride
    return outer, group, row_tile
