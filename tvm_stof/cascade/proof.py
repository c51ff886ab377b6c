"""The referee: F against G and H at random points, in 40 digits, by an evaluator that shares nothing with the symbolic side."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from ..expr import Expr
from .algebra import Algebra, indicator

DIGITS = 40
TOLERANCE = 30


def agrees(term: Expr, operator: str, g: Any, h: Any, algebra: Algebra, points: int) -> str | None:
    """None when F = G (operator) H at every point and there is a point where F is invertible; else the reason."""
    import mpmath

    generator = random.Random(20260310)
    atoms = {algebra.symbols[e]: e for e in algebra.symbols}
    invertible = 0
    with mpmath.workdps(DIGITS):
        for _ in range(points):
            at = {s: _draw(s, generator) for s in atoms}
            f = _evaluate(term, {atoms[s]: v for s, v in at.items()})
            split = [_number(part, at) for part in (g, h)]
            expected = split[0] * split[1] if operator == "mul" else split[0] + split[1]
            if f is None or not mpmath.isfinite(f) or not mpmath.isfinite(expected):
                continue
            if abs(f - expected) > mpmath.mpf(10) ** -TOLERANCE * (abs(f) + abs(expected) + 1):
                return "the split does not agree with the expression at a random point"
            invertible += operator == "add" or f != 0
    return None if invertible else "no point was found where it has an inverse, so the test for separability says nothing"


def _draw(symbol: Any, generator: random.Random) -> Any:
    import mpmath

    value = mpmath.mpf(generator.randint(1, 4000)) / generator.randint(1000, 2000)
    return -value if symbol.is_negative or (not symbol.is_positive and generator.random() < 0.5) else value


def _number(e: Any, at: Mapping[Any, Any]) -> Any:
    import mpmath

    return mpmath.mpf(str(e.subs({s: _rational(v) for s, v in at.items()}).evalf(DIGITS)))


def _rational(value: Any) -> Any:
    import sympy

    return sympy.Float(str(value), DIGITS)


def _evaluate(e: Expr, at: Mapping[Expr, Any]) -> Any:
    import mpmath

    if e in at:
        return at[e]
    if e.op == "const":
        return mpmath.mpf(float(e.args[0]))
    if e.op == "cast":
        return _evaluate(e.args[1], at)
    if e.op == "select" and indicator(e.args[0]) in at:
        holds, yes, no = at[indicator(e.args[0])], _evaluate(e.args[1], at), _evaluate(e.args[2], at)
        return None if yes is None or no is None else holds * yes + (1 - holds) * no
    args = [_evaluate(a, at) for a in e.operands()]
    if e.op not in _MP or any(a is None for a in args):
        return None
    try:
        out = _MP[e.op](mpmath, *args)
    except (ZeroDivisionError, ValueError):
        return None
    return None if isinstance(out, mpmath.mpc) else out


_MP: Mapping[str, Callable[..., Any]] = {
    "add": lambda m, a, b: a + b,
    "sub": lambda m, a, b: a - b,
    "mul": lambda m, a, b: a * b,
    "div": lambda m, a, b: a / b,
    "neg": lambda m, a: -a,
    "pow": lambda m, a, b: m.power(a, b),
    "exp": lambda m, a: m.exp(a),
    "log": lambda m, a: m.log(a),
    "sqrt": lambda m, a: m.sqrt(a),
    "tanh": lambda m, a: m.tanh(a),
    "abs": lambda m, a: abs(a),
    "max": lambda m, a, b: max(a, b),
    "min": lambda m, a, b: min(a, b),
    "sigmoid": lambda m, a: 1 / (1 + m.exp(-a)),
}
