"""From a cascade to a fused program: each reduction is decomposed, then corrected while it runs or left for the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..errors import CascadeRefused
from ..expr import Expr, call, previous, result
from .algebra import Algebra, power
from .axes import uses
from .decompose import Decomposition, Refused, decompose
from .facts import NONNEGATIVE, POSITIVE, reduced_sign, result_names, sign
from .monoids import MONOIDS
from .program import FusedProgram, Stage
from .recognise import Cascade, Reduction, recognise
from .terms import Factors, neutral_prefix, split_factors, unguarded


def fuse(func: Any) -> FusedProgram:
    """The fused program of a PrimFunc (or of an IRModule with one function).

    Raises UnsupportedPrimFunc for constructs that are not read and CascadeRefused, with reduction and reason, where one pass is not enough.
    """
    return fuse_cascade(recognise(func))


def fuse_cascade(cascade: Cascade) -> FusedProgram:
    """The fused program of a recognised cascade."""
    work = _Fusion(cascade)
    for r in cascade.reductions:
        work.add(r)
    outputs = tuple(replace(o, value=o.value.substitute(work.meaning)) for o in cascade.outputs)
    return FusedProgram(
        cascade.tensors, cascade.grid, cascade.stream, cascade.prologue, cascade.value, cascade.predicate, tuple(work.stages), outputs
    )


@dataclass
class _Running:
    """What stays inside the loop: exponents and bases of H, and the earlier stages that need a guard."""

    exponents: list[Any]
    powers: list[tuple[Any, Any]]
    guarded: list[str]


class _Fusion:
    def __init__(self, cascade: Cascade) -> None:
        self.cascade = cascade
        self.stages: list[Stage] = []
        self.meaning: dict[Expr, Expr] = {}
        self.signs: dict[str, str] = {}
        self.types = {Expr("load", (t.name,)): t.dtype for t in cascade.tensors}
        self.types |= {result(r.name): r.dtype for r in cascade.reductions}

    def algebra(self) -> Algebra:
        return Algebra(self.cascade.stream.name, self.signs, self.types)

    def stage(self, name: str) -> Stage:
        return next(s for s in self.stages if s.name == name)

    def add(self, r: Reduction) -> None:
        """Decompose one reduction and append its stage."""
        term = r.term.substitute(self.meaning)
        known = sign(r.term, self.signs)
        build = self.sum if r.monoid == "sum" else self.other
        stage, factor = build(r, term)
        if factor is not None:
            self.meaning[result(r.name)] = factor
        self.signs[r.name] = reduced_sign(r.monoid, known)
        # The maximum of values >= 0 may start from 0: a prefix of zeros is then a neutral one, as the guard needs.
        if r.monoid == "max" and self.cascade.predicate is None and known in (POSITIVE, NONNEGATIVE):
            stage = replace(stage, start=0.0)
        self.stages.append(stage)

    def other(self, r: Reduction, term: Expr) -> tuple[Stage, Expr | None]:
        """Order reductions and products: H leaves the loop, for it commutes with picking an element."""
        found = self.split(r, term)
        if found.h == 1 and not result_names(term):
            return Stage(r.name, r.monoid, term, r.axes), None
        h = found.algebra.from_sympy(found.h)
        stage = Stage(r.name, r.monoid, found.algebra.from_sympy(found.g), r.axes, emission="deferred")
        return stage, call(found.operator, result(r.name), h)

    def sum(self, r: Reduction, term: Expr) -> tuple[Stage, Expr | None]:
        """Sums: factors of sums and products leave the loop; what bounds the terms (exponentials, extrema) stays and is corrected."""
        kept, moved = self.whole_factors(term)
        inside = unguarded(kept.expr(), {s.name: s.neutral for s in self.stages})
        found = self.split(r, inside)
        running, later = self.choose(r, found, inside)
        if later:
            import sympy

            h = sympy.Mul(*later)
            moved.top.append(found.algebra.from_sympy(h))
            rest = sympy.Mul(*(sympy.exp(e) for e in running.exponents), *(b**n for b, n in running.powers))
            inside = found.algebra.from_sympy(sympy.powsimp(sympy.expand(found.g) * rest, combine="exp"))
        weight, operand = _contraction(inside, [a.name for a in r.axes], found.algebra)
        ratio = self.ratio(found.algebra, running)
        emission = "deferred" if moved and ratio is None else "running"
        stage = Stage(r.name, "sum", inside, r.axes, ratio, "mul", tuple(dict.fromkeys(running.guarded)), weight, operand, emission)
        if not moved:
            return stage, None
        return stage, Factors([result(r.name), *moved.top], moved.bottom).expr()

    def split(self, r: Reduction, term: Expr) -> Decomposition:
        found = decompose(r.monoid, term, self.algebra())
        if isinstance(found, Refused):
            raise CascadeRefused(r.name, str(term), found.reason)
        return found

    def whole_factors(self, term: Expr) -> tuple[Factors, Factors]:
        """Factors as written, and those of sums and products alone, which may leave the loop whole."""
        kept, moved = Factors(), Factors()
        written = split_factors(term, self.algebra().streamed)
        for source, stay, leave in ((written.top, kept.top, moved.top), (written.bottom, kept.bottom, moved.bottom)):
            for f in source:
                (leave if self.leaves(f) else stay).append(f)
        return kept, moved

    def leaves(self, f: Expr) -> bool:
        """Whether a factor is of results only, among them a sum, and bounds nothing."""
        names = result_names(f)
        return (
            bool(names) and not self.algebra().streamed(f) and any(not MONOIDS[self.stage(n).monoid].order for n in names) and f.op != "exp"
        )

    def choose(self, r: Reduction, found: Decomposition, term: Expr) -> tuple[_Running, list[Any]]:
        """Which factors of H run along, and which are left for the end."""
        import sympy

        running, later = _Running([], [], []), []
        own = [a.name for a in r.axes]
        for factor in sympy.Mul.make_args(found.h):
            if factor.is_number:
                continue
            atoms = [found.algebra.atoms[s] for s in found.algebra.of_kind(factor, "d")]
            names = list(dict.fromkeys(n for a in atoms for n in sorted(result_names(a))))
            exponential = factor.func == sympy.exp
            guards = self.guards(factor, names, found, term, exponential)
            runs = guards is not None and not uses(found.algebra.from_sympy(factor), own)
            if not exponential and any(not MONOIDS[self.stage(n).monoid].order for n in names):
                runs = False
            if not runs:
                if any(e.func == sympy.exp for e in sympy.preorder_traversal(found.g)):
                    reason = f"{found.algebra.from_sympy(factor)} may lack an inverse in mid-course, and without it the terms may overflow"
                    raise CascadeRefused(r.name, str(term), reason)
                later.append(factor)
                continue
            running.guarded += guards or []
            if exponential:
                running.exponents.append(factor.args[0])
            else:
                running.powers.append(factor.as_base_exp())
        return running, later

    def guards(self, factor: Any, names: list[str], found: Decomposition, term: Expr, exponential: bool) -> list[str] | None:
        """Earlier stages to guard so that a factor of H has an inverse wherever it is needed; None when that cannot be proven."""
        base = factor if exponential else factor.as_base_exp()[0]
        guarded = []
        for name in names:
            stage = self.stage(name)
            finite = stage.neutral not in (float("inf"), float("-inf"))
            alone = base.is_Symbol and found.algebra.atoms[base] == result(name)
            if finite and (exponential or sign(found.algebra.from_sympy(base), self.signs) == POSITIVE):
                continue
            if not exponential and not (alone and finite and self.signs[name] in (POSITIVE, NONNEGATIVE)):
                return None
            if not neutral_prefix(stage.term, stage.neutral, term, 0.0):
                return None
            guarded.append(name)
            if not exponential:
                self.stages[self.stages.index(stage)] = replace(stage, stand_in=1.0)
        return guarded

    def ratio(self, algebra: Algebra, running: _Running) -> Expr | None:
        """H(new)/H(old), each factor as one expression."""
        factors = []
        if running.exponents:
            import sympy

            total = sympy.Add(*running.exponents)
            old = total.subs({s: algebra.symbol(_old(a)) for s, a in list(algebra.atoms.items()) if result_names(a)})
            factors.append(call("exp", algebra.from_sympy(sympy.expand(total - old))))
        for base, exponent in running.powers:
            new, before = algebra.from_sympy(base), algebra.from_sympy(base, _old)
            factors.append(power(call("div", *((new, before) if exponent.is_positive else (before, new))), abs(exponent)))
        if not factors:
            return None
        return Factors(factors).expr()


def _old(e: Expr) -> Expr:
    """The same before this tile."""
    return previous(e.args[0]) if e.op == "result" else e.rebuild(_old)


def _contraction(term: Expr, axes: list[str], algebra: Algebra) -> tuple[Expr | None, Expr | None]:
    """term = weight * operand where the operand alone varies over the stage's own axes and is loaded."""
    factors = split_factors(term, algebra.streamed)
    own = [f for f in factors.top if uses(f, axes)]
    if len(own) != 1 or any(uses(f, axes) for f in factors.bottom):
        return None, None
    if own[0].op != "load" and not (own[0].op == "cast" and own[0].args[1].op == "load"):
        return None, None
    rest = list(factors.top)
    rest.remove(own[0])
    return Factors(rest, factors.bottom).expr(), own[0]
