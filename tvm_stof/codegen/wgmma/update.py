"""The online update of a cascade in registers: one tile of scores, two rows a thread (RedFuser's incremental form)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm import tirx

from ...cascade.program import Stage, safe
from ...expr import Expr, const
from ..cpu.loops import COMBINE
from ..cpu.shape import mentions
from ..lower import number
from .fast_math import LOG2_E, affine, lower_fast, simplified
from .fragments import HELD, quad_reduce, registers_of, tree
from .instructions import exp2_into, let, local, store
from .laid import Laid, ratio_is_finite_at_start, row_level

VALUE, PROLOGUE = Expr("value"), Expr("prologue")
#: load(tensor, positions) and positions of register i: what an update needs to know of its place
Place = Callable[[Expr, tuple[Any, ...], int], Any]


class Update:
    """Running results of one thread's two rows, and the code that moves them on by a tile.

    The streamed scalar is ``lazy`` * scores[i]: a constant factor of the value map is never applied to scores, it joins the factor in front
    of the exponent.
    """

    def __init__(self, laid: Laid, columns: int, scores: Any) -> None:
        self.laid, self.program, self.columns, self.scores = laid, laid.program, columns, scores
        self.lazy, self.map = _split_factor(self.program.value)
        self.state = {s.name: local(s.name, HELD) for s in laid.shape.scalars}
        used = {n.args[0] for s in self.program.stages for e in (s.term, s.ratio) if e is not None for n in e.walk()
                if n.op in ("result", "previous")}  # fmt: skip
        #: results no stage asks for: each lane keeps its own part until the end
        self.private = [s for s in laid.shape.scalars if s.name not in used and s.combine == "mul"]

    @property
    def needs_columns(self) -> bool:
        """Whether the value map or a term depends on the position along the stream."""
        parts = [self.map, *(e for s in self.program.stages for e in (s.weight or s.term,))]
        return any(mentions(e, self.program.stream.name) for e in parts)

    def start(self) -> None:
        """Every result at its neutral value."""
        for s in self.laid.shape.scalars:
            for r in range(HELD):
                store(self.state[s.name], number(s.neutral, "float32"), r)

    def map_scores(self, place: Place) -> None:
        """scores[i] = the value map of scores[i], less its constant factor."""
        if self.map != PROLOGUE:
            for i in range(self.columns // 2):
                store(self.scores, lower_fast(self.map, self._leaf(i, place, {}, self.scores[i])), i)

    def mask(self, keeps: Callable[[int], Any]) -> None:
        """scores[i] = -inf where the element takes no part."""
        for i in range(self.columns // 2):
            store(self.scores, tirx.Select(keeps(i), self.scores[i], number(float("-inf"), "float32")), i)

    def run(self, tested: bool, place: Place) -> list[Any]:
        """Turn scores into weights and move every scalar stage on; the factor of the product for each row (or None)."""
        return [self._row(r, tested, place) for r in range(HELD)]

    def finish(self) -> None:
        """Make every result whole in every lane."""
        for s in self.private:
            for r in range(HELD):
                quad_reduce(COMBINE[s.monoid], self.state[s.name], r)

    def _row(self, r: int, tested: bool, place: Place) -> Any:
        mine = registers_of(r, self.columns)
        before: dict[str, Any] = {}
        ratios: dict[Expr, Any] = {}
        scalars, product = self.laid.shape.scalars, self.laid.product
        kept = bool(scalars) and scalars[-1].term == product.weight

        def guarded(e: Expr, stage: Stage) -> Expr:
            return safe(e, self.program, stage) if tested or _may_be_infinite(self.program.value) else e

        def ratio(stage: Stage) -> Any:
            assert stage.ratio is not None
            e = guarded(stage.ratio, stage)
            if e not in ratios:
                ratios[e] = let("ratio", self._settled(stage, lower_fast(e, self._leaf(mine[0], place, before, None)), before))
            return ratios[e]

        for stage in scalars:
            combine, state = COMBINE[stage.monoid], self.state[stage.name]
            if stage is scalars[-1] and kept:
                self._apply(guarded(stage.term, stage), mine, place, before)
                terms = [self.scores[i] for i in mine]
            else:
                terms = self._terms(guarded(stage.term, stage), mine, place, before)
            old = let("old", state[r])
            before[stage.name] = old
            if stage.ratio is not None and stage.emission == "running":
                old = old * ratio(stage) if stage.combine == "mul" else old + ratio(stage)
            store(state, combine(old, self._lazily(stage, tree(combine, terms))), r)
            if stage not in self.private:
                quad_reduce(combine, state, r)
        if not kept:
            assert product.weight is not None
            self._apply(guarded(product.weight, product), mine, place, before)
        return ratio(product) if product.ratio is not None and product.emission == "running" else None

    def _settled(self, stage: Stage, ratio: Any, before: Mapping[str, Any]) -> Any:
        """A ratio that is not finite while an earlier result is still neutral gives way to the operator's unit: the state is neutral."""
        if ratio_is_finite_at_start(self.program, stage):
            return ratio
        unit = number(1.0 if stage.combine == "mul" else 0.0, "float32")
        for name in stage.guarded:
            ratio = tirx.Select(tirx.EQ(before[name], number(self.program.stage(name).neutral, "float32")), unit, ratio)
        return ratio

    def _terms(self, term: Expr, mine: list[int], place: Place, before: Mapping[str, Any]) -> list[Any]:
        """A stage's term at each register; the bare scalar without its lazy factor (see ``_lazily``)."""
        if term == VALUE:
            return [self.scores[i] for i in mine]
        return [lower_fast(term, self._leaf(i, place, before, self._scalar(i))) for i in mine]

    def _lazily(self, stage: Stage, total: Any) -> Any:
        """max, min and sum of the bare scalar take the constant factor afterwards."""
        return total * number(self.lazy, "float32") if stage.term == VALUE and self.lazy != 1.0 else total

    def _scalar(self, i: int) -> Any:
        return self.scores[i] * number(self.lazy, "float32") if self.lazy != 1.0 else self.scores[i]

    def _apply(self, term: Expr, mine: list[int], place: Place, before: Mapping[str, Any]) -> None:
        """scores[i] = term. An exponential of a x + rest becomes ex2(scores[i] * (a lazy log2 e) + rest log2 e), its rest hoisted."""
        form = affine(term.args[0], VALUE) if term.op == "exp" else None
        if form is None or not row_level(form[1], self.program.stream):
            for i in mine:
                store(self.scores, lower_fast(term, self._leaf(i, place, before, self._scalar(i))), i)
            return
        factor = number(form[0] * self.lazy * LOG2_E, "float32")
        rest = let("rest", lower_fast(simplified("mul", form[1], const(LOG2_E)), self._leaf(mine[0], place, before, None)))
        for i in mine:
            exp2_into(self.scores[i], self.scores[i] * factor + rest)

    def _leaf(self, i: int, place: Place, before: Mapping[str, Any], scalar: Any) -> Callable[[Expr, tuple[Any, ...]], Any]:
        def answer(e: Expr, operands: tuple[Any, ...]) -> Any:
            if e.op == "result":
                return self.state[str(e.args[0])][i // 2 % 2]
            if e.op == "previous":
                return before[str(e.args[0])]
            return scalar if e.op in ("value", "prologue") else place(e, operands, i)

        return answer


def _split_factor(value: Expr) -> tuple[float, Expr]:
    """value = factor * rest with a positive number in front, else (1, value): max, min and sum commute with it."""
    if value.op == "mul":
        for number_, rest in (value.args, value.args[::-1]):
            if number_.op == "const" and float(number_.args[0]) > 0:
                return float(number_.args[0]), rest
    return 1.0, value


def _may_be_infinite(value: Expr) -> bool:
    """A value map that reads tensors may meet -inf in them even where no element is masked."""
    return any(n.op == "load" for n in value.walk())
