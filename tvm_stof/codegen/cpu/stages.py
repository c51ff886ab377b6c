"""The online update of a cascade over one tile of streamed scalars (RedFuser's incremental form, one correction a tile)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as B

from ...cascade.program import FusedProgram, Stage, safe
from ...expr import Expr
from ..lower import Leaf, lower, number
from .loops import COMBINE, fold, local, store, vectors, vectors_between


@dataclass
class RowState:
    """Where running results live: scalar stages as [rows], products as [rows, cols]; ``factor`` holds the products' pending corrections."""

    scalars: dict[str, Any] = field(default_factory=dict)
    products: dict[str, Any] = field(default_factory=dict)
    factor: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Tile:
    """One row's tile as the update sees it.

    Attributes
    ----------
    cols, width : elements, and lanes per step (width divides cols).
    between : (first, one after the last) element that may take part, multiples of ``width``; None for all.
    scalar : c -> x[c] as the first stage computes it (map and mask applied).
    again : c -> x[c] for later stages: read back, or computed once more.
    keep : stores x[c] for ``again``, or None.
    keep_term : stores the last scalar stage's term at c and returns it read back, or None.
    leaf : (c, x, before) -> leaf function for expressions at that element.
    """

    cols: int
    width: int
    between: tuple[Any, Any] | None
    scalar: Callable[[Any], Any]
    again: Callable[[Any], Any]
    keep: Callable[[Any, Any], None] | None
    keep_term: Callable[[Any, Any], Any] | None
    leaf: Callable[[Any, Any, Mapping[str, Any]], Leaf]


def scalar_stages(program: FusedProgram) -> list[Stage]:
    """Stages without axes of their own."""
    return [s for s in program.stages if not s.axes]


def update_row(program: FusedProgram, state: RowState, row: Any, tile: Tile) -> None:
    """for stage: d' = d; d = d * ratio(d', d) + R over the tile of F(x, d); a product gets its ratio as a pending factor."""
    before: dict[str, Any] = {}
    stages = scalar_stages(program)
    for n, stage in enumerate(stages):
        lanes = local(tile.width)
        with B.vectorized(0, tile.width) as v:
            store(lanes, number(stage.neutral, "float32"), v)

        def element(c: Any, lane: Any, n: int = n, stage: Stage = stage, lanes: Any = lanes) -> None:
            x = tile.scalar(c) if n == 0 else tile.again(c)
            if n == 0 and tile.keep is not None:
                tile.keep(c, x)
                x = tile.again(c)  # the expression of x may read what it was just stored over
            term = lower(safe(stage.term, program, stage), tile.leaf(c, x, before))
            if n == len(stages) - 1 and tile.keep_term is not None:
                term = tile.keep_term(c, term)
            store(lanes, COMBINE[stage.monoid](lanes[lane], term), lane)

        if tile.between is None:
            vectors(tile.cols, tile.width, element)
        else:
            vectors_between(*tile.between, tile.width, element)
        total = fold(lanes, tile.width, stage.monoid)
        held = local(1)
        store(held, state.scalars[stage.name][row], 0)
        before[stage.name] = held[0]
        value = held[0]
        if stage.ratio is not None and stage.emission == "running":
            value = apply(stage, value, guarded_ratio(program, stage, tile.leaf(0, None, before), before))
        store(state.scalars[stage.name], COMBINE[stage.monoid](value, total), row)
    for product in program.stages:
        if product.axes and product.ratio is not None and product.emission == "running":
            store(state.factor[product.name], guarded_ratio(program, product, tile.leaf(0, None, before), before), row)


def guarded_ratio(program: FusedProgram, stage: Stage, leaf: Leaf, old: Mapping[str, Any]) -> Any:
    """H(new) / H(old), the operator's unit while a guarded result was still neutral (the state is neutral then)."""
    assert stage.ratio is not None
    value = lower(safe(stage.ratio, program, stage), leaf)
    unit = number(1.0 if stage.combine == "mul" else 0.0, "float32")
    for name in stage.guarded:
        neutral = number(program.stage(name).neutral, "float32")
        value = tirx.Select(tirx.EQ(old[name], neutral), unit, value)
    return value


def apply(stage: Stage, value: Any, factor: Any) -> Any:
    """A running value re-based by a ratio."""
    return value * factor if stage.combine == "mul" else value + factor


def row_leaf(
    state: RowState, row: Any, at: Mapping[str, Any], loads: Callable[[Expr, tuple[Any, ...]], Any], x: Any, old: Mapping[str, Any]
) -> Leaf:
    """Leaves at one element of a row: positions ``at``, results of ``state``, earlier results ``old``, the streamed scalar ``x``."""

    def answer(e: Expr, operands: tuple[Any, ...]) -> Any:
        if e.op == "index":
            return at[e.args[0]]
        if e.op == "load":
            return loads(e, operands)
        if e.op == "result":
            return state.scalars[e.args[0]][row]
        if e.op == "previous":
            return old[e.args[0]]
        return x

    return answer
