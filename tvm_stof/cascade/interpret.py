"""A fused program (or the plain cascade it came from) run in NumPy float64: what emitters and tests are held against.

Every array has one dimension per axis of the program (grid, stream, contraction, own axes), of length 1 where it does not vary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from ..expr import Expr, evaluate, previous, result
from .program import NEUTRAL, Axis, Contraction, FusedProgram, Output, Stage, safe
from .recognise import Cascade

Array = npt.NDArray[Any]
State = dict[str, Array]
#: positions of one tile; a list streams its parts one after the other; a tuple runs its parts apart and merges the results
Plan = Union[Array, "list[Plan]", "tuple[Plan, ...]"]

COMBINE: Mapping[str, Callable[[Any, Any], Any]] = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
_FOLD: Mapping[str, Callable[..., Any]] = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}


def run(program: FusedProgram, tensors: Mapping[str, Array], plan: Plan | None = None) -> dict[str, Array]:
    """The outputs after streaming and merging as ``plan`` says (None: the whole axis as one tile)."""
    at = Space(program, tensors)
    with np.errstate(all="ignore"):
        state = _follow(program, at, np.arange(program.stream.extent) if plan is None else plan, None)
        return {o.tensor: at.output(o, state) for o in program.outputs}


def plain(cascade: Cascade, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs by one pass per reduction, as the cascade was written."""
    at = Space(cascade, tensors)
    state: State = {}
    with np.errstate(all="ignore"):
        for r in cascade.reductions:
            state[r.name] = at.reduce(
                r.monoid, r.term, NEUTRAL[r.monoid], np.arange(cascade.stream.extent), {result(n): v for n, v in state.items()}
            )
        return {o.tensor: at.output(o, state) for o in cascade.outputs}


def _follow(program: FusedProgram, at: Space, plan: Plan, state: State | None) -> State:
    state = {s.name: np.full((1,) * at.rank, s.neutral) for s in program.stages} if state is None else state
    if isinstance(plan, tuple):
        for part in plan:
            state = merge(program, at, state, _follow(program, at, part, None))
        return state
    if isinstance(plan, list):
        for part in plan:
            state = _follow(program, at, part, state)
        return state
    return step(program, at, state, plan)


def step(program: FusedProgram, at: Space, state: State, positions: Array) -> State:
    """One tile: d <- d * ratio(old, new) + R over the tile of F(x, new), stage by stage."""
    new: State = {}
    for s in program.stages:
        known = {result(n): v for n, v in new.items()}
        tile = at.reduce(s.monoid, safe(s.term, program, s), s.neutral, positions, known) if len(positions) else s.neutral
        new[s.name] = COMBINE[s.monoid](corrected(program, at, s, state, new), tile)
    return new


def merge(program: FusedProgram, at: Space, a: State, b: State) -> State:
    """Two segments' results as one."""
    new: State = {}
    for s in program.stages:
        new[s.name] = COMBINE[s.monoid](corrected(program, at, s, a, new), corrected(program, at, s, b, new))
    return new


def corrected(program: FusedProgram, at: Space, stage: Stage, old: State, new: State) -> Array:
    """A stage's value re-based from the earlier results it was computed with to new ones."""
    value = old[stage.name]
    if stage.ratio is None:
        return value
    known = {**{result(n): v for n, v in new.items()}, **{previous(n): v for n, v in old.items()}}
    factor = at.value(safe(stage.ratio, program, stage), known, np.arange(0))
    for name in stage.guarded:
        factor = np.where(old[name] == program.stage(name).neutral, 1.0 if stage.combine == "mul" else 0.0, factor)
    return np.asarray(value * factor if stage.combine == "mul" else value + factor)


class Space:
    """The axes of a program, one array dimension each, and the evaluation of expressions over them."""

    def __init__(self, program: FusedProgram | Cascade, tensors: Mapping[str, Array]) -> None:
        self.tensors, self.program = tensors, program
        own: list[Axis] = [a for s in (program.stages if isinstance(program, FusedProgram) else program.reductions) for a in s.axes]
        own += [a for o in program.outputs for a in o.axes]
        inner = [program.prologue.over] if program.prologue else []
        self.axes = tuple(dict.fromkeys((*program.grid, program.stream, *inner, *own)))
        self.rank = len(self.axes)
        self.place = {a.name: n for n, a in enumerate(self.axes)}

    def along(self, axis: str, values: Array) -> Array:
        """Values laid along an axis."""
        return values.reshape([-1 if n == self.place[axis] else 1 for n in range(self.rank)])

    def value(self, e: Expr, known: Mapping[Expr, Array], positions: Array) -> Array:
        """An expression at the given positions of the streamed axis and all positions of the others."""

        def leaf(node: Expr, operands: tuple[Any, ...]) -> Any:
            if node in known:
                return known[node]
            if node.op == "index":
                axis = self.axes[self.place[node.args[0]]]
                return self.along(axis.name, positions if axis == self.program.stream else np.arange(axis.extent))
            if node.op == "load":
                found = self.tensors[node.args[0]]
                return _real(found[tuple(np.asarray(i).astype(np.int64) for i in operands)])
            if node.op == "cast":
                return (
                    np.asarray(operands[0]).astype(node.args[0]) if np.dtype(node.args[0]).kind in "iub" else _real(np.asarray(operands[0]))
                )
            if node.op == "value":
                return self.value(self.program.value, known, positions)
            assert self.program.prologue is not None, node
            return self.contraction(self.program.prologue, positions)

        return np.asarray(evaluate(e, leaf))

    def contraction(self, of: Contraction, positions: Array) -> Array:
        """The prologue at the given positions."""
        product = self.value(of.lhs, {}, positions) * self.value(of.rhs, {}, positions)
        return np.asarray(product.sum(axis=self.place[of.over.name], keepdims=True))

    def reduce(self, monoid: str, term: Expr, neutral: float, positions: Array, known: Mapping[Expr, Array]) -> Array:
        """R over the given positions of a term; elements outside the predicate count as neutral."""
        values = self.value(term, known, positions)
        if self.program.predicate is not None:
            values = np.where(self.value(self.program.predicate, known, positions), values, neutral)
        if values.ndim < self.rank or values.shape[self.place[self.program.stream.name]] != len(positions):
            values = values + 0.0 * self.along(self.program.stream.name, positions)
        return np.asarray(_FOLD[monoid](values, axis=self.place[self.program.stream.name], keepdims=True))

    def output(self, o: Output, state: State) -> Array:
        """One output as float64, in the shape of its tensor."""
        positions = np.arange(self.program.stream.extent)
        values = self.value(o.value, {result(n): v for n, v in state.items()}, positions)
        shape = next(t.shape for t in self.program.tensors if t.name == o.tensor)
        at = [self.value(i, {}, positions).astype(np.int64) for i in o.at]
        out = np.full(shape, np.nan)
        out[tuple(np.broadcast_arrays(*at))] = np.broadcast_to(values, np.broadcast_shapes(*(i.shape for i in at), values.shape))
        return out


def _real(values: Array) -> Array:
    return values.astype(np.float64) if values.dtype.kind == "f" else values


def leaves(plan: Sequence[Any] | Array) -> int:
    """How many tiles a plan streams."""
    return 1 if isinstance(plan, np.ndarray) else sum(leaves(p) for p in plan)
