"""The online update of a cascade over one tile of streamed scalars, row by row (RedFuser's incremental form, one correction a tile)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as B

from ...cascade.program import FusedProgram, Stage, safe
from ...expr import Expr
from ..lower import lower, number
from .loops import COMBINE, fold, local, store, vectors


@dataclass
class RowState:
    """Where the running results of a row tile live: scalar stages as [rows], products as [rows, cols]; ``factor`` holds the products' pending corrections."""

    scalars: dict[str, Any] = field(default_factory=dict)
    products: dict[str, Any] = field(default_factory=dict)
    factor: dict[str, Any] = field(default_factory=dict)


Loads = Callable[[Expr, tuple[Any, ...]], Any]


class TileUpdate:
    """Updates the scalar stages of a program from a tile ``scores`` [rows, cols] of prologue values and leaves the products' weights in ``weights``."""

    def __init__(self, program: FusedProgram, rows: int, cols: int, width: int, index: Mapping[str, Any], loads: Loads, value: Expr) -> None:
        self.program, self.rows, self.cols, self.width, self.index, self.loads = program, rows, cols, width, index, loads
        self.value = value
        self.scalars = [s for s in program.stages if not s.axes]
        self.products = [s for s in program.stages if s.axes]
        self.stored = self._stored()

    def _stored(self) -> dict[str, str]:
        """Product stage -> scalar stage whose term, once evaluated, is the product's weight: evaluated once, kept in place of the score."""
        found = {}
        for p in self.products:
            twin = next((s.name for s in self.scalars if s.term == p.weight), None)
            if twin is not None and self.scalars[-1].name == twin:
                found[p.name] = twin
        return found

    def weight(self, product: Stage, scores: Any, r: Any, c: Any, leaf: Callable[..., Any]) -> Any:
        """The product's weight at (r, c): read back when it was stored, evaluated otherwise."""
        if product.name in self.stored:
            return scores[r, c]
        assert product.weight is not None
        return lower(safe(product.weight, self.program, product), leaf)

    def leaf(self, state: RowState, row: Any, value: Any, extra: Mapping[str, Any], before: Mapping[str, Any]) -> Callable[..., Any]:
        """Answer leaves for one row: results from the state, previous ones from ``before``."""

        def answer(e: Expr, operands: tuple[Any, ...]) -> Any:
            if e.op == "index":
                return extra[e.args[0]] if e.args[0] in extra else self.index[e.args[0]]
            if e.op == "load":
                return self.loads(e, operands)
            if e.op == "result":
                return state.scalars[e.args[0]][row]
            if e.op == "previous":
                return before[e.args[0]]
            return value

        return answer

    def emit(self, state: RowState, scores: Any, row0: Any, col0: Any, test: Callable[[Any, Any, Any], Any] | None, row: str) -> None:
        """for r: x = map(scores[r]); for stage: d' = d; d = d * ratio(d') + R over the tile of F(x, d); products get the ratio as a pending factor.

        ``test(r, c, x)`` gives the masked scalar, None where every element of the tile takes part.
        """
        with B.serial(0, self.rows) as r:
            before: dict[str, Any] = {}
            for n, stage in enumerate(self.scalars):
                lanes = local(self.width)
                with B.vectorized(0, self.width) as v:
                    store(lanes, number(stage.neutral, "float32"), v)

                def element(c: Any, lane: Any, n: int = n, stage: Stage = stage, lanes: Any = lanes, r: Any = r) -> None:
                    extra = {row: row0 + r, self.program.stream.name: col0 + c}
                    x = scores[r, c]
                    if n == 0:
                        x = lower(self.value, self.leaf(state, r, x, extra, before))
                        if test is not None:
                            x = test(r, c, x)
                        if self._scored():
                            store(scores, x, r, c)
                    term = lower(safe(stage.term, self.program, stage), self.leaf(state, r, x, extra, before))
                    if stage.name in self.stored.values():
                        store(scores, term, r, c)
                        term = scores[r, c]
                    store(lanes, COMBINE[stage.monoid](lanes[lane], term), lane)

                vectors(self.cols, self.width, element)
                total = fold(lanes, self.width, stage.monoid)
                kept = local(1)
                store(kept, state.scalars[stage.name][r], 0)
                before[stage.name] = kept[0]
                held = self.corrected(stage, kept[0], state, r, before)
                store(state.scalars[stage.name], COMBINE[stage.monoid](held, total), r)
            for product in self.products:
                if product.ratio is not None:
                    store(state.factor[product.name], self.ratio(product, state, r, before), r)

    def _scored(self) -> bool:
        """Whether a stage after the first one still reads the mapped scalar."""
        return len(self.scalars) > 1 or any(p.name not in self.stored for p in self.products)

    def ratio(self, stage: Stage, state: RowState, r: Any, before: Mapping[str, Any]) -> Any:
        """H(new) / H(old) of one row, 1 while a guarded result was still neutral (the state is neutral then)."""
        assert stage.ratio is not None
        value = lower(safe(stage.ratio, self.program, stage), self.leaf(state, r, None, {}, before))
        unit = number(1.0 if stage.combine == "mul" else 0.0, "float32")
        for name in stage.guarded:
            neutral = number(self.program.stage(name).neutral, "float32")
            value = tirx.Select(tirx.EQ(before[name], neutral), unit, value)
        return value

    def corrected(self, stage: Stage, held: Any, state: RowState, r: Any, before: Mapping[str, Any]) -> Any:
        """The running value re-based on the new earlier results."""
        if stage.ratio is None or stage.emission == "deferred":
            return held
        factor = self.ratio(stage, state, r, before)
        return held * factor if stage.combine == "mul" else held + factor
