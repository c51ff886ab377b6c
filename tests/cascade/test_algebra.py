"""Expressions survive the way to sympy and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_stof.cascade.algebra import Algebra, tidy_exponents
from tvm_stof.expr import Expr, call, const, evaluate, index, load, result, text

LEAVES = [Expr("value"), result("d"), result("e"), load("w", index("l")), load("row", index("i")), const(2.0), const(0.1), const(-3.0)]
VALUES = {e: 0.3 + 0.37 * n for n, e in enumerate(LEAVES)}


def algebra() -> Algebra:
    return Algebra("l", {}, {})


def value(e: Expr) -> float:
    with np.errstate(all="ignore"):
        return float(evaluate(e, lambda node, operands: VALUES.get(node, 0.0)))


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> Expr:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(LEAVES))
    op = draw(st.sampled_from(["add", "sub", "mul", "div", "neg", "exp", "tanh", "abs"]))
    return call(op, *(draw(expressions(depth=depth - 1)) for _ in range(1 if op in ("neg", "exp", "tanh", "abs") else 2)))


@given(e=expressions())
def test_round_trip_keeps_the_value(e: Expr) -> None:
    want = value(e)
    if not math.isfinite(want) or abs(want) > 1e100 or any(not math.isfinite(value(n)) for n in e.walk()):
        return
    a = algebra()
    back = a.from_sympy(a.to_sympy(e))
    if all(math.isfinite(value(n)) for n in back.walk()):
        assert value(back) == pytest.approx(want, rel=1e-9, abs=1e-9 * max(abs(value(n)) for n in e.walk()))


def test_casts_are_kept() -> None:
    a = algebra()
    narrow = Expr("cast", ("float16", Expr("value")))
    assert a.from_sympy(a.to_sympy(call("mul", narrow, result("d")))) == call("mul", narrow, result("d"))


def test_narrowing_a_mixture_is_no_algebra() -> None:
    a = Algebra("l", {}, {Expr("value"): "float32"})
    mixed = call("sub", Expr("value"), result("d"))
    assert "round_to_float16" in str(a.to_sympy(Expr("cast", ("float16", mixed))))
    assert a.to_sympy(Expr("cast", ("float64", mixed))) == a.to_sympy(mixed)


@pytest.mark.parametrize(
    "argument",
    [
        call("sub", Expr("value"), result("d")),
        call("neg", call("sub", result("d"), Expr("value"))),
        call("mul", call("sub", result("d"), Expr("value")), const(-1.0)),
        call("add", call("neg", result("d")), Expr("value")),
    ],
    ids=text,
)
def test_exponents_take_one_form(argument: Expr) -> None:
    assert text(tidy_exponents(call("exp", argument), algebra())) == "exp((x - d))"


def test_shared_coefficient_is_written_once() -> None:
    half = call("sub", call("mul", const(0.5), Expr("value")), call("mul", result("d"), const(0.5)))
    assert text(tidy_exponents(call("exp", half), algebra())) == "exp(((x - d) * 0.5))"
