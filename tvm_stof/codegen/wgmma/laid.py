"""How a program lies on warpgroups: which tensors move by TMA, what is contracted, what is stored; or the reason it does not."""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...cascade.program import Axis, Contraction, FusedProgram, Output, Stage, safe
from ...expr import Expr, evaluate
from ..cpu.shape import ContractedShape, contracted_shape, mentions, strip_casts
from .instructions import PTX_TYPE
from .tensor_map import Boxed

#: columns of an accumulator: the N of wgmma
MAX_COLUMNS = 256


@dataclass(frozen=True)
class Laid:
    """A program this emitter takes.

    Attributes
    ----------
    program : with masked elements told by ``predicate``, never inside ``value``.
    lhs, key, operand, out : the tensors that move by TMA: q, k, v and o of attention.
    product : the stage that is a contraction over the stream.
    wide, narrow : the output along the product's own axis; outputs of one number a row.
    """

    program: FusedProgram
    shape: ContractedShape
    lhs: Boxed
    key: Boxed
    operand: Boxed
    out: Boxed
    product: Stage
    wide: Output
    narrow: tuple[Output, ...]

    @property
    def dtype(self) -> str:
        return self.lhs.tensor.dtype

    @property
    def depth(self) -> int:
        """Length of the prologue contraction."""
        return self.lhs.cols

    @property
    def width(self) -> int:
        """Columns of the product."""
        return self.operand.cols


def laid_out(program: FusedProgram) -> Laid | str:
    """Lay a program out, or say in one sentence why this emitter cannot."""
    program = take_predicate_out(program)
    shape = contracted_shape(program)
    if isinstance(shape, str):
        return shape
    if len(shape.products) != 1:
        return f"{len(shape.products)} product stages; this emitter takes one"
    product, prologue = shape.products[0], program.prologue
    assert prologue is not None
    if product.combine != "mul":
        return f"the product {product.name!r} is corrected by {product.combine!r}"
    wide = [o for o in program.outputs if o.axes]
    if len(wide) != 1 or wide[0].axes != product.axes:
        return f"{len(wide)} outputs along the product's axis; this emitter stores one"
    if any(s.monoid == "prod" for s in shape.scalars):
        return "a running product"
    if not minus_infinity_is_neutral(program):
        return "a masked element, as -inf, is not neutral to every stage"
    moved = _moved(program, shape, prologue, wide[0])
    if isinstance(moved, str):
        return moved
    narrow = tuple(o for o in program.outputs if not o.axes)
    return Laid(program, shape, *moved, product, wide[0], narrow)


def _moved(program: FusedProgram, shape: ContractedShape, prologue: Contraction, wide: Output) -> tuple[Boxed, Boxed, Boxed, Boxed] | str:
    """The four tensors that TMA moves."""
    own: Axis = wide.axes[0]
    loads = [
        (prologue.lhs, shape.row, prologue.over),
        (prologue.rhs, program.stream, prologue.over),
        (shape.products[0].operand, program.stream, own),
        (Expr("load", (wide.tensor, *wide.at)), shape.row, own),
    ]
    found = []
    for expr, row, col in loads:
        bare = strip_casts(expr) if expr is not None else Expr("none")
        if bare.op != "load":
            return f"not the element of a tensor: {expr}"
        tensor = program.tensor(str(bare.args[0]))
        boxed = Boxed.of(tensor, bare.args[1:], row, col)
        if isinstance(boxed, str):
            return boxed
        if tensor.dtype not in PTX_TYPE:
            return f"{tensor.name} is {tensor.dtype}; accepted: {', '.join(PTX_TYPE)}"
        if tensor.dtype != program.tensor(str(strip_casts(prologue.lhs).args[0])).dtype:
            return f"{tensor.name} is {tensor.dtype}, unlike the prologue's left side"
        if boxed.cols % 16 or boxed.cols > MAX_COLUMNS:
            return f"{tensor.name} has {boxed.cols} columns; accepted: multiples of 16 up to {MAX_COLUMNS}"
        found.append(boxed)
    lhs, key, operand, out = found
    return lhs, key, operand, out


def take_predicate_out(program: FusedProgram) -> FusedProgram:
    """value = select(condition without the prologue, x, -inf) becomes predicate = condition, value = x."""
    value = program.value
    while value.op == "select" and value.args[2] == Expr("const", (-math.inf,)) and not _streamed(value.args[0]):
        condition = value.args[0] if program.predicate is None else Expr("and", (program.predicate, value.args[0]))
        value = value.args[1]
        program = dataclasses.replace(program, predicate=condition, value=value)
    return program


def _streamed(e: Expr) -> bool:
    return any(n.op in ("prologue", "value") for n in e.walk())


def loads_of(e: Expr) -> set[str]:
    """Tensors an expression reads."""
    return {str(n.args[0]) for n in e.walk() if n.op == "load"}


def minus_infinity_is_neutral(program: FusedProgram) -> bool:
    """Whether a streamed scalar of -inf changes no stage, tried at several finite results and at neutral ones."""
    for stage in program.stages:
        term = stage.weight if stage.weight is not None else stage.term
        others = [s for s in program.stages if s.name != stage.name and not s.axes]
        for numbers in itertools.product((0.7, -1.3, None), repeat=min(len(others), 4)):
            at = {s.name: s.neutral if x is None else x for s, x in zip(others, numbers)}
            with np.errstate(all="ignore"):
                got = evaluate(safe(term, program, stage), lambda e, operands, at=at: _sample(e, operands, at))  # type: ignore[misc]
            if got != stage.neutral:
                return False
    return True


def ratio_is_finite_at_start(program: FusedProgram, stage: Stage) -> bool:
    """Whether a stage's ratio is a number while the results it is guarded by were still neutral, tried at several new values."""
    assert stage.ratio is not None
    old = {name: program.stage(name).neutral for name in stage.guarded}
    for new in (0.7, -1.3, 40.0):
        with np.errstate(all="ignore"):
            got = evaluate(stage.ratio, lambda e, _, new=new: np.float64(old.get(str(e.args[0]), 1.5) if e.op == "previous" else new))  # type: ignore[misc]
        if not np.isfinite(got):
            return False
    return True


def _sample(e: Expr, operands: tuple[Any, ...], at: dict[str, float]) -> Any:
    if e.op == "value":
        return np.float64(-math.inf)
    if e.op in ("result", "previous"):
        return np.float64(at.get(str(e.args[0]), 1.5))
    return operands[0] if e.op == "cast" else 1 if e.op == "index" else np.float64(0.6)


def row_level(e: Expr, stream: Axis) -> bool:
    """Whether an expression is one number for a whole row of a tile."""
    return not _streamed(e) and not mentions(e, stream.name)
