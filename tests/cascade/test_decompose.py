"""G and H of one term: what is found, what proves it, and that false splits are caught."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

from tvm_stof.cascade import proof
from tvm_stof.cascade.algebra import Algebra
from tvm_stof.cascade.deadline import OutOfTime, deadline
from tvm_stof.cascade.decompose import Decomposition, Refused, decompose
from tvm_stof.cascade.facts import ANY, POSITIVE
from tvm_stof.expr import Expr, call, const, load, result, text

X, D = Expr("value"), result("d")
Y = load("y", Expr("index", ("l",)))


def algebra(sign: str = ANY) -> Algebra:
    return Algebra("l", {"d": sign}, {result("d"): "float32"})


def add(a: Expr, b: Expr) -> Expr:
    return call("add", a, b)


def sub(a: Expr, b: Expr) -> Expr:
    return call("sub", a, b)


def mul(a: Expr, b: Expr) -> Expr:
    return call("mul", a, b)


SPLIT = {
    "exponential": ("sum", call("exp", sub(X, D)), "mul", "exp(x)", "exp(neg(d))"),
    "quotient": ("sum", call("div", mul(mul(X, const(448.0)), Y), D), "mul", "(x * y[l])", "(448.0 / d)"),
    "two sums": ("sum", mul(add(X, const(1.0)), add(D, const(1.0))), "mul", "(x + 1.0)", "(d + 1.0)"),
    "distributed": ("sum", add(mul(X, D), mul(Y, D)), "mul", "(x + y[l])", "d"),
    "common denominator": ("sum", call("div", X, add(mul(D, D), D)), "mul", "x", None),
    "shift": ("max", sub(X, D), "add", "x", "neg(d)"),
}


@pytest.mark.parametrize("name", SPLIT)
def test_splits(name: str) -> None:
    monoid, term, operator, g, h = SPLIT[name]
    a = algebra()
    found = decompose(monoid, term, a)
    assert isinstance(found, Decomposition), found
    assert (found.operator, text(a.from_sympy(found.g))) == (operator, g)
    assert h is None or text(a.from_sympy(found.h)) == h


def test_positive_factor_of_a_maximum_needs_the_fact() -> None:
    assert isinstance(decompose("max", mul(X, D), algebra()), Refused)
    found = decompose("max", mul(X, D), algebra(POSITIVE))
    assert isinstance(found, Decomposition)
    assert found.operator == "mul"


RANKS = {
    2: [mul(call("exp", sub(X, D)), sub(X, D)), sub(X, D), mul(mul(X, D), add(add(X, D), const(1.0)))],
    3: [mul(sub(X, D), sub(X, D)), call("pow", sub(X, D), const(2.0))],
    4: [call("pow", sub(X, D), const(3.0))],
    5: [call("pow", sub(X, D), const(4.0))],
}


@pytest.mark.parametrize(("rank", "term"), [(r, t) for r, terms in RANKS.items() for t in terms])
def test_ranks(rank: int, term: Expr) -> None:
    found = decompose("sum", term, algebra())
    assert isinstance(found, Refused)
    assert f"a sum of {rank} separable terms" in found.reason


MIXED = [
    call("log", add(X, D)),
    call("div", const(1.0), add(X, D)),
    call("pow", X, D),
    call("sqrt", add(mul(X, X), mul(D, D))),
    call("max", X, D),
]


@pytest.mark.parametrize("term", MIXED, ids=text)
def test_factors_that_mix_are_named(term: Expr) -> None:
    found = decompose("sum", term, algebra())
    assert isinstance(found, Refused)
    assert "mixes" in found.reason


def test_referee_rejects_a_wrong_split() -> None:
    a = algebra()
    term = call("exp", sub(X, D))
    x, d = a.to_sympy(X), a.to_sympy(D)
    assert proof.agrees(term, "mul", sympy.exp(x), sympy.exp(-d), a, 8) is None
    wrong = proof.agrees(term, "mul", sympy.exp(x), sympy.exp(-d) * (1 + sympy.Rational(1, 10**20)), a, 8)
    assert wrong is not None
    assert "random point" in wrong


def test_referee_wants_a_point_with_an_inverse() -> None:
    """At (0, 0) the fixed-point identity of x d (x + d + 1) holds although it is not separable; without an inverse nothing is shown."""
    a = algebra()
    a.to_sympy(X), a.to_sympy(D)
    nothing = proof.agrees(mul(X, const(0.0)), "mul", sympy.Integer(0), sympy.Integer(1), a, 4)
    assert nothing is not None
    assert "inverse" in nothing


def test_symbolic_work_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_stof.cascade import decompose as module

    monkeypatch.setattr(module, "SECONDS", 0.0)
    found = decompose("sum", call("pow", sub(X, D), const(40.0)), algebra())
    assert isinstance(found, Refused)
    assert "did not end" in found.reason


def test_deadline_stops_python_and_restores_the_hook() -> None:
    import sys

    def turn() -> int:
        return 1

    before = sys.getprofile()

    def spin() -> None:
        while turn():
            pass

    with pytest.raises(OutOfTime), deadline(0.05):
        spin()
    assert sys.getprofile() is before


def test_numbers_are_exact() -> None:
    a = algebra()
    third: Any = a.to_sympy(const(0.1))
    assert third == sympy.Rational(*(0.1).as_integer_ratio())
    assert a.from_sympy(third) == const(0.1)
