"""FusedProgram: the one middle language between definitions and emitters.

A tile-level loop over one streamed axis: an optional prologue contraction, a scalar map, stages in order with their corrections, an
epilogue. It names tensors,
axes and expressions, never algorithms; attention, softmax and a user's own cascade are all one of these. Target-independent and free of
TVM.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..expr import Expr, const, result


@dataclass(frozen=True)
class Axis:
    """A loop of the definition: name and extent."""

    name: str
    extent: int


@dataclass(frozen=True)
class Tensor:
    """A parameter of the definition, in its order: name, shape, dtype, and whether the kernel fills it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    output: bool = False


@dataclass(frozen=True)
class Contraction:
    """sum over ``over`` of lhs * rhs, for each (grid, stream) point; lhs does not depend on the stream, rhs does."""

    over: Axis
    lhs: Expr
    rhs: Expr


@dataclass(frozen=True)
class Stage:
    """One reduction d over the streamed axis (RedFuser section 1.2: d = R over l of F(x[l], D)).

    Attributes
    ----------
    name : its symbol; other expressions refer to it as ``result(name)``.
    monoid : "sum", "max", "min" or "prod".
    term : F, over value(), loads, indices and ``result`` of earlier stages.
    axes : own extra axes (value dim of attention); the correction is broadcast along them.
    ratio : H(new)/H(old) under the stage's operator as one expression of ``result`` (new) and ``previous`` (old); None without earlier
        results.
    combine : operator the ratio is applied with, "mul" or "add".
    guarded : earlier stages whose neutral value makes H non-invertible; legal because the neutral-prefix condition was proven.
        While one of them is neutral the ratio counts as the operator's unit, for this stage is neutral then, too.
    weight, operand : term = weight * operand where the operand is a load that varies over ``axes`` (a contraction over the stream); None
        otherwise.
    emission : "running" (corrected each tile) or "deferred" (no correction inside the loop).
    start : neutral element where it is tighter than the monoid's (the maximum of values >= 0 starts from 0); read ``neutral``.
    stand_in : the number that takes this stage's place in other stages' terms while it is neutral and they are guarded; see ``safe``.
    """

    name: str
    monoid: str
    term: Expr
    axes: tuple[Axis, ...] = ()
    ratio: Expr | None = None
    combine: str = "mul"
    guarded: tuple[str, ...] = ()
    weight: Expr | None = None
    operand: Expr | None = None
    emission: str = "running"
    start: float | None = None
    stand_in: float = 0.0

    @property
    def neutral(self) -> float:
        """The value before the first element."""
        return NEUTRAL[self.monoid] if self.start is None else self.start


@dataclass(frozen=True)
class Output:
    """One stored tensor: tensor[at] = value, for the grid axes and ``axes``; streamed outputs also have the streamed axis among ``at``."""

    tensor: str
    at: tuple[Expr, ...]
    value: Expr
    axes: tuple[Axis, ...] = ()
    streamed: bool = False


NEUTRAL = {"sum": 0.0, "max": float("-inf"), "min": float("inf"), "prod": 1.0}


@dataclass(frozen=True)
class FusedProgram:
    """The fused loop.

    Attributes
    ----------
    tensors : parameters in call order.
    grid : parallel axes, outermost first.
    stream : the shared reduction axis.
    prologue : contraction giving ``Expr("prologue")`` per (grid, stream) point, or None.
    value : x[l], the streamed scalar, over Expr("prologue"), loads, indices; stages see it as ``Expr("value")``.
    predicate : condition on indices (and on bits that a uint8 tensor holds) under which an element takes part (None: all do). Where false
        the element is neutral to every stage, so a tile where it is false everywhere may be skipped and one where it is true everywhere
        needs no test.
    stages, outputs : in order.
    """

    tensors: tuple[Tensor, ...]
    grid: tuple[Axis, ...]
    stream: Axis
    prologue: Contraction | None
    value: Expr
    predicate: Expr | None
    stages: tuple[Stage, ...]
    outputs: tuple[Output, ...]

    def stage(self, name: str) -> Stage:
        """The stage of that name."""
        return next(s for s in self.stages if s.name == name)

    def tensor(self, name: str) -> Tensor:
        """The parameter of that name."""
        return next(t for t in self.tensors if t.name == name)


def safe(e: Expr, program: FusedProgram, stage: Stage) -> Expr:
    """``e`` with guarded results replaced by their stand-ins while they are neutral: F and H where they are finite (redfuser.md 1.6)."""
    table = {}
    for name in stage.guarded:
        d, guard = result(name), program.stage(name)
        table[d] = Expr("select", (Expr("eq", (d, const(guard.neutral))), const(guard.stand_in), d))
    return e.substitute(table)


__all__ = ["NEUTRAL", "Axis", "Contraction", "FusedProgram", "Output", "Stage", "Tensor", "safe"]
