"""From a cascade to a fused program: each reduction is decomposed, then corrected while it runs or left for the end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import CascadeRefused
from ..expr import Expr, call, const, previous, result
from .algebra import Algebra, power, tidy_exponents
from .axes import uses
from .decompose import Decomposition, Refused, decompose
from .facts import NONNEGATIVE, POSITIVE, reduced_sign, result_names, sign
from .monoids import MONOIDS
from .program import FusedProgram, Stage
from .recognise import Cascade, Reduction, recognise
from .terms import Factors, neutral_prefix, take, unguarded


def fuse(func: Any) -> FusedProgram:
    """The fused program of a PrimFunc (or of an IRModule with one function).

    Raises UnsupportedPrimFunc for constructs that are not read and CascadeRefused, with reduction and reason, where one pass is not enough.
    """
    return fuse_cascade(recognise(func))


def fuse_cascade(cascade: Cascade) -> FusedProgram:
    """The fused program of a recognised cascade."""
    return derive(cascade)[0]


@dataclass(frozen=True)
class Step:
    """How one reduction was fused, for people: as it was written, F = G <operator> H, what of H was left for the end, and the proof."""

    reduction: str
    monoid: str
    written: Expr
    operator: str | None
    g: Expr | None
    h: Expr | None
    left: Expr | None
    proof: str


def derive(cascade: Cascade) -> tuple[FusedProgram, tuple[Step, ...]]:
    """The fused program of a recognised cascade, and how each of its stages came about."""
    work = _Fusion(cascade)
    for r in cascade.reductions:
        work.add(r)
    outputs = tuple(replace(o, value=o.value.substitute(work.meaning)) for o in cascade.outputs)
    program = FusedProgram(
        cascade.tensors, cascade.grid, cascade.stream, cascade.prologue, cascade.value, cascade.predicate, ordered(work.stages), outputs
    )
    return program, tuple(work.steps)


def ordered(stages: list[Stage]) -> tuple[Stage, ...]:
    """Stages after those they need, the ones without axes of their own first: one order, whichever way they were written."""
    done: list[Stage] = []
    left = sorted(stages, key=lambda s: bool(s.axes))
    while left:
        names = {s.name for s in done}
        done.append(next(s for s in left if result_names(s.term) <= names))
        left.remove(done[-1])
    return tuple(done)


@dataclass
class _Running:
    """What stays inside the loop: exponents and bases of H, and the earlier stages that need a guard."""

    exponents: list[Any] = field(default_factory=list)
    powers: list[tuple[Any, Any]] = field(default_factory=list)
    guarded: list[str] = field(default_factory=list)


class _Fusion:
    def __init__(self, cascade: Cascade) -> None:
        self.cascade = cascade
        self.stages: list[Stage] = []
        self.meaning: dict[Expr, Expr] = {}
        self.signs: dict[str, str] = {}
        self.types = cascade.types()
        self.steps: list[Step] = []

    def algebra(self) -> Algebra:
        return Algebra(self.cascade.stream.name, self.signs, self.types)

    def stage(self, name: str) -> Stage:
        return next(s for s in self.stages if s.name == name)

    def add(self, r: Reduction) -> None:
        """Decompose one reduction and append its stage."""
        self.found: Decomposition | None = None
        term = r.term.substitute(self.meaning)
        known = sign(r.term, self.signs)
        if not result_names(term):
            stage, factor = self.staged(r, term, _Running(), self.algebra()), None
        else:
            stage, factor = self.sum(r, term) if r.monoid == "sum" else self.other(r, term)
        if factor is not None:
            self.meaning[result(r.name)] = factor
        whole = self.cascade.predicate is None
        self.signs[r.name] = reduced_sign(r.monoid, known, whole)
        # The maximum of values >= 0 may start from 0: a prefix of zeros is then a neutral one, as the guard needs.
        if r.monoid == "max" and whole and known in (POSITIVE, NONNEGATIVE):
            stage = replace(stage, start=0.0)
        self.stages.append(stage)
        self.steps.append(self.step(r, factor))

    def other(self, r: Reduction, term: Expr) -> tuple[Stage, Expr]:
        """Order reductions: H leaves the loop, for it commutes with picking an element."""
        conditions = []
        while term.op == "select" and not result_names(term.args[0]) and const(MONOIDS[r.monoid].neutral) in term.args[1:]:
            conditions.append(term)
            term = next(a for a in term.args[1:] if a != const(MONOIDS[r.monoid].neutral))
        found = self.split(r, term)
        g = found.algebra.from_sympy(found.g)
        for c in reversed(conditions):
            g = Expr("select", tuple(a if a in (c.args[0], const(MONOIDS[r.monoid].neutral)) else g for a in c.args))
        stage = replace(self.staged(r, g, _Running(), found.algebra), emission="deferred")
        minus = found.operator == "add" and found.h.could_extract_minus_sign()
        h = found.algebra.from_sympy(-found.h if minus else found.h)
        return stage, call("sub" if minus else found.operator, result(r.name), h)

    def sum(self, r: Reduction, term: Expr) -> tuple[Stage, Expr | None]:
        """Sums: factors of sums and products leave the loop; what bounds the terms (exponentials, extrema) stays and is corrected."""
        kept, moved = take(term, self.leaves, self.algebra().streamed)
        written = kept or const(1.0)
        inside = unguarded(written, {s.name: s.neutral for s in self.stages})
        found = self.split(r, inside)
        running, later = self.choose(r, found, inside)
        if inside != written and not result_names(inside) <= set(running.guarded):
            inside = written
            found = self.split(r, inside)
            running, later = self.choose(r, found, inside)
        if later:
            import sympy

            h = sympy.Mul(*later)
            moved.top.append(found.algebra.from_sympy(h))
            rest = sympy.Mul(*(sympy.exp(e) for e in running.exponents), *(b**n for b, n in running.powers))
            inside = found.algebra.from_sympy(sympy.powsimp(sympy.expand(found.g) * rest, combine="exp"))
        stage = self.staged(r, tidy_exponents(inside, found.algebra), running, found.algebra)
        if not moved:
            return stage, None
        return replace(stage, emission="running" if stage.ratio else "deferred"), Factors([result(r.name), *moved.top], moved.bottom).expr()

    def staged(self, r: Reduction, term: Expr, running: _Running, algebra: Algebra) -> Stage:
        """The stage of a reduction whose term is in its final form."""
        weight, operand = _contraction(term, [a.name for a in r.axes], algebra) if r.monoid == "sum" else (None, None)
        guarded = tuple(dict.fromkeys(running.guarded))
        return Stage(r.name, r.monoid, term, r.axes, self.ratio(algebra, running), "mul", guarded, weight, operand)

    def split(self, r: Reduction, term: Expr) -> Decomposition:
        found = decompose(r.monoid, term, self.algebra())
        if isinstance(found, Refused):
            raise CascadeRefused(r.name, str(term), found.reason)
        self.found = found
        return found

    def step(self, r: Reduction, left: Expr | None) -> Step:
        """The record of the reduction that was added last."""
        f = self.found
        if f is None:
            return Step(r.name, r.monoid, r.term, None, None, None, left, "it uses no earlier result")
        return Step(r.name, r.monoid, r.term, f.operator, f.algebra.from_sympy(f.g), f.algebra.from_sympy(f.h), left, f.proof)

    def leaves(self, f: Expr) -> bool:
        """Whether a factor is of results only, among them a sum, and bounds nothing."""
        names = result_names(f)
        return (
            bool(names) and not self.algebra().streamed(f) and any(not MONOIDS[self.stage(n).monoid].order for n in names) and f.op != "exp"
        )

    def choose(self, r: Reduction, found: Decomposition, term: Expr) -> tuple[_Running, list[Any]]:
        """Which factors of H run along, and which are left for the end."""
        import sympy

        running, later = _Running(), list[Any]()
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
                if exponential and any(e.func == sympy.exp for e in sympy.preorder_traversal(found.g)):
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
            factors.append(call("exp", algebra.linear(sympy.expand(total - old))))
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
    weight, found = take(term, lambda f: uses(f, axes) and f.op not in ("mul", "div", "neg", "select"), algebra.streamed)
    if len(found.top) != 1 or found.bottom:
        return None, None
    operand = found.top[0]
    if operand.op != "load" and not (operand.op == "cast" and operand.args[1].op == "load"):
        return None, None
    return weight or const(1.0), operand
