"""The reductions a cascade may hold: how an update is recognised as one, its neutral element, and the operators it distributes over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..expr import Expr, call, const
from .program import NEUTRAL


@dataclass(frozen=True)
class Monoid:
    """A commutative combine step with a neutral element.

    Attributes
    ----------
    name : as stages name it.
    op : the expression operator that combines two values.
    over : operators it distributes over, in the order they are tried (redfuser.md 1.4); "mul" of an extremum needs a factor >= 0.
    """

    name: str
    op: str
    over: tuple[str, ...]

    @property
    def neutral(self) -> float:
        return NEUTRAL[self.name]

    @property
    def order(self) -> bool:
        """Whether it picks one of its elements."""
        return self.name in ("max", "min")


MONOIDS: Mapping[str, Monoid] = {
    m.name: m
    for m in (
        Monoid("sum", "add", ("mul",)),
        Monoid("max", "max", ("add", "mul")),
        Monoid("min", "min", ("add", "mul")),
        Monoid("prod", "mul", ()),
    )
}
_BY_OP = {m.op: m for m in MONOIDS.values()}
_ORDER = {"lt": ("max", "min"), "le": ("max", "min"), "gt": ("min", "max"), "ge": ("min", "max")}
_LOWEST = 65504.0


def split_update(update: Expr, state: Expr) -> tuple[Monoid, Expr] | None:
    """The monoid and the per-element term of ``state <- update``, or None when it is no such step."""
    if update.op == "select":
        return _select(update, state)
    if update.op == "sub":
        return split_update(call("add", update.args[0], call("neg", update.args[1])), state)
    monoid = _BY_OP.get(update.op)
    if monoid is None:
        return None
    terms = _flatten(update, monoid.op)
    if terms.count(state) != 1:
        return None
    terms.remove(state)
    term = terms[0]
    for t in terms[1:]:
        term = call(monoid.op, term, t)
    return None if state in term.walk() else (monoid, term)


def _flatten(e: Expr, op: str) -> list[Expr]:
    if e.op == op:
        return [t for a in e.operands() for t in _flatten(a, op)]
    if op == "add" and e.op == "sub":
        return [*_flatten(e.args[0], op), call("neg", e.args[1])]
    return [e]


def _select(update: Expr, state: Expr) -> tuple[Monoid, Expr] | None:
    """select(state < x, x, state) is max; select(c, state + x, state) adds x where c."""
    condition, yes, no = update.args
    if condition.op in _ORDER and set(condition.operands()) == {yes, no} and state in (yes, no):
        term = no if yes == state else yes
        name = _ORDER[condition.op][0 if condition.args == (no, yes) else 1]
        return None if state in term.walk() else (MONOIDS[name], term)
    if state in condition.walk() or state not in (yes, no):
        return None
    found = split_update(no if yes == state else yes, state)
    if found is None:
        return None
    monoid, term = found
    neutral = const(monoid.neutral)
    return monoid, call("select", condition, *((neutral, term) if yes == state else (term, neutral)))


def neutral_start(monoid: Monoid, start: Expr | None) -> bool:
    """Whether a reduction starts from its neutral element; the lowest finite number of its type counts as -inf."""
    if start is None or start.op != "const":
        return False
    value = float(start.args[0])
    if monoid.order:
        return value <= -_LOWEST if monoid.name == "max" else value >= _LOWEST
    return value == monoid.neutral
