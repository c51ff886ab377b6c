"""What is known about the sign and the type of an expression from how it is computed."""

from __future__ import annotations

from collections.abc import Mapping

from ..expr import Expr

#: a number known to be > 0, >= 0, < 0 or nothing
POSITIVE, NONNEGATIVE, NEGATIVE, ANY = "positive", "nonnegative", "negative", "any"
_EVEN = 2


def sign(e: Expr, known: Mapping[str, str]) -> str:
    """Sign of a finite value of ``e``; ``known`` has that of results by name."""
    if e.op == "const":
        value = float(e.args[0])
        return POSITIVE if value > 0 else NEGATIVE if value < 0 else NONNEGATIVE if value == 0 else ANY
    if e.op in ("result", "previous"):
        return known.get(str(e.args[0]), ANY)
    if e.op in ("exp", "sigmoid"):
        return POSITIVE
    if e.op in ("abs", "sqrt", "index"):
        return POSITIVE if e.op == "sqrt" and sign(e.args[0], known) == POSITIVE else NONNEGATIVE
    if e.op == "cast":
        return sign(e.args[1], known)
    args = [sign(a, known) for a in e.operands()]
    if e.op in ("mul", "div"):
        if e.op == "mul" and e.args[0] == e.args[1]:
            return POSITIVE if args[0] in (POSITIVE, NEGATIVE) else NONNEGATIVE
        return _product(args)
    if e.op == "neg":
        return NEGATIVE if args[0] == POSITIVE else POSITIVE if args[0] == NEGATIVE else ANY
    if e.op == "pow":
        whole = e.args[1].op == "const" and float(e.args[1].args[0]) % _EVEN == 0
        return POSITIVE if args[0] == POSITIVE else NONNEGATIVE if args[0] == NONNEGATIVE or whole else ANY
    if e.op == "add":
        return _sum(args)
    if e.op in ("max", "min", "select"):
        return _either(e.op, args[-2:])
    return ANY


def _product(args: list[str]) -> str:
    if ANY in args:
        return ANY
    negative = args.count(NEGATIVE) % 2
    if NONNEGATIVE in args:
        return ANY if negative else NONNEGATIVE
    return NEGATIVE if negative else POSITIVE


def _sum(args: list[str]) -> str:
    if set(args) <= {POSITIVE, NONNEGATIVE}:
        return POSITIVE if POSITIVE in args else NONNEGATIVE
    return NEGATIVE if set(args) == {NEGATIVE} else ANY


def _either(op: str, args: list[str]) -> str:
    if len(set(args)) == 1:
        return args[0]
    if op == "max" and (POSITIVE in args or NONNEGATIVE in args):
        return POSITIVE if POSITIVE in args else NONNEGATIVE
    return NONNEGATIVE if set(args) == {POSITIVE, NONNEGATIVE} else ANY


def reduced_sign(monoid: str, term: str, whole: bool) -> str:
    """Sign of a reduction whose terms have that sign; ``whole``: every element takes part, so there is at least one."""
    if not whole:
        return ANY if monoid in ("max", "min") or term == NEGATIVE else NONNEGATIVE if term == POSITIVE and monoid == "sum" else term
    if monoid in ("sum", "max", "min") or (monoid == "prod" and term != NEGATIVE):
        return term
    return ANY


_WIDTH = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}


def width(e: Expr, types: Mapping[Expr, str]) -> int:
    """Bits of the floating type an expression is computed in; 0 where it is a literal or no floating number."""
    if e in types:
        return _WIDTH.get(types[e], 8)
    if e.op == "cast":
        return _WIDTH.get(str(e.args[0]), 8)
    if e.op == "load":
        return _WIDTH.get(types.get(Expr("load", (e.args[0],)), "float32"), 8)
    if e.op in ("const", "index"):
        return 0
    return max([width(a, types) for a in e.operands()], default=32)


def result_names(e: Expr) -> frozenset[str]:
    """The reductions an expression needs."""
    return frozenset(str(n.args[0]) for n in e.walk() if n.op in ("result", "previous"))
