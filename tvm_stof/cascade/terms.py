"""Products as lists of factors, and the guards authors write around results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..expr import Expr, call, const
from .facts import result_names
from .value import neutral_value


@dataclass
class Factors:
    """A product: top / bottom."""

    top: list[Expr] = field(default_factory=list)
    bottom: list[Expr] = field(default_factory=list)

    def expr(self) -> Expr:
        up, down = chain(self.top), chain(self.bottom)
        return (up or const(1.0)) if down is None else call("div", up or const(1.0), down)

    def __bool__(self) -> bool:
        return bool(self.top or self.bottom)

    def times(self, other: Factors) -> Factors:
        return Factors(self.top + other.top, self.bottom + other.bottom)

    def over(self, other: Factors) -> Factors:
        return Factors(self.top + other.bottom, self.bottom + other.top)


def chain(of: list[Expr]) -> Expr | None:
    """Their product, left to right; None of none."""
    out = of[0] if of else None
    for f in of[1:]:
        out = f if out is None else call("mul", out, f)
    return out


def take(e: Expr, leaves: Callable[[Expr], bool], streamed: Callable[[Expr], bool]) -> tuple[Expr | None, Factors]:
    """Take the factors of a product that ``leaves`` wants out of it: what stays (None: nothing), written as before, and what was taken."""
    if leaves(e):
        return None, Factors([e])
    if e.op in ("mul", "div"):
        (a, left), (b, right) = (take(x, leaves, streamed) for x in e.operands())
        taken = left.times(right) if e.op == "mul" else left.over(right)
        if b is None:
            return a, taken
        if a is None:
            return (b if e.op == "mul" else call("div", const(1.0), b)), taken
        return call(e.op, a, b), taken
    if e.op == "neg":
        inner, taken = take(e.args[0], leaves, streamed)
        return call("neg", inner or const(1.0)), taken
    if e.op == "select" and streamed(e) and not streamed(e.args[0]) and result_names(e.args[0]) and const(0.0) in e.args[1:]:
        return _take_guarded(e, leaves, streamed)
    return e, Factors()


def _take_guarded(e: Expr, leaves: Callable[[Expr], bool], streamed: Callable[[Expr], bool]) -> tuple[Expr | None, Factors]:
    """select(c, 0, streamed * results) is streamed * select(c, 0, results): nothing streamed is hidden behind the condition."""
    condition, yes, no = e.args
    first = yes == const(0.0)
    rest, mine = take(no if first else yes, lambda f: not streamed(f), streamed)
    kept = mine.expr()
    guard = call("select", condition, *((const(0.0), kept) if first else (kept, const(0.0))))
    if leaves(guard):
        return rest, Factors([guard])
    return guard if rest is None else call("mul", rest, guard), Factors()


def unguarded(e: Expr, neutrals: Mapping[str, float]) -> Expr:
    """``select(d == neutral, number, d)`` and its variants are ``d``: the number only meets neutral elements, which is proven later."""
    e = e.rebuild(lambda a: unguarded(a, neutrals))
    if e.op != "select":
        return e
    condition, yes, no = e.args
    opposite = condition.op in ("ne", "gt", "lt")
    kept, number = (yes, no) if opposite else (no, yes)
    if kept.op != "result" or number.op != "const" or condition.op not in ("eq", "ne", "gt", "lt", "ge", "le"):
        return e
    neutral = const(neutrals.get(str(kept.args[0]), float("nan")))
    return kept if set(condition.operands()) == {kept, neutral} else e


def neutral_prefix(earlier: Expr, bad: float, term: Expr, neutral: float) -> bool:
    """Whether elements whose ``earlier`` term is ``bad`` are neutral to ``term``: the condition for the cheap guard (redfuser.md 1.6)."""
    return neutral_value(term, {**_implied(earlier, bad)}) == neutral


def _implied(e: Expr, value: float) -> dict[Expr, float]:
    """What follows for the parts of an expression that has a value of 0 or of an infinity."""
    known = {e: value}
    if e.op == "cast" or (e.op == "abs" and value == 0) or (e.op == "mul" and e.args[0] == e.args[1] and value == 0):
        known |= _implied(e.operands()[0], value)
    elif e.op == "mul":
        for a, b in (e.args, e.args[::-1]):
            if b.op == "const" and float(b.args[0]) != 0:
                known |= _implied(a, 0.0 if value == 0 else value if float(b.args[0]) > 0 else -value)
    elif e.op == "div" and e.args[1].op == "const":
        known |= _implied(e.args[0], 0.0 if value == 0 else value if float(e.args[1].args[0]) > 0 else -value)
    elif e.op in ("add", "sub") and e.args[1].op in ("const", "load") and value != 0:
        known |= _implied(e.args[0], value)
    elif e.op == "neg":
        known |= _implied(e.args[0], -value)
    return known
