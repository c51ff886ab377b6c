"""Folding of terms, facts about signs, and the neutral-prefix condition."""

from __future__ import annotations

import math

import pytest

from tvm_stof.cascade.facts import ANY, NEGATIVE, NONNEGATIVE, POSITIVE, reduced_sign, sign
from tvm_stof.cascade.monoids import MONOIDS, neutral_start, split_update
from tvm_stof.cascade.terms import neutral_prefix, take, unguarded
from tvm_stof.cascade.value import neutral_value
from tvm_stof.expr import Expr, call, const, load, result, text

X, M = Expr("value"), result("m")
INF = math.inf
W = load("w", Expr("index", ("l",)))
GUARDED = call("select", call("eq", M, const(-INF)), const(0.0), M)


@pytest.mark.parametrize(
    ("x", "term", "folded"),
    [
        (-INF, X, -INF),
        (-INF, call("exp", call("sub", X, M)), 0.0),
        (-INF, call("exp", call("sub", X, GUARDED)), 0.0),
        (-INF, call("mul", call("exp", call("sub", X, M)), W), 0.0),
        (0.0, call("div", call("mul", X, const(448.0)), M), 0.0),
        (0.0, call("exp", X), 1.0),
        (-INF, call("abs", X), INF),
        (-INF, call("min", X, W), -INF),
        (0.0, call("select", call("lt", X, const(1.0)), const(5.0), const(7.0)), 5.0),
    ],
)
def test_folding(x: float, term: Expr, folded: float) -> None:
    assert neutral_value(term, {X: x}) == folded


@pytest.mark.parametrize(
    ("x", "term"), [(-INF, call("mul", X, W)), (-INF, call("max", X, W)), (0.0, call("add", X, W)), (0.0, call("div", W, X))]
)
def test_open_outcomes_do_not_fold(x: float, term: Expr) -> None:
    assert math.isnan(neutral_value(term, {X: x}))


def test_neutral_prefix() -> None:
    weight = call("exp", call("sub", X, M))
    assert neutral_prefix(X, -INF, call("mul", weight, W), 0.0)
    assert neutral_prefix(call("mul", X, const(-2.0)), -INF, call("exp", call("sub", M, X)), 0.0)
    assert neutral_prefix(call("abs", X), 0.0, call("mul", call("div", X, M), W), 0.0)
    assert neutral_prefix(call("mul", X, X), 0.0, call("mul", X, M), 0.0)
    assert not neutral_prefix(X, 0.0, call("mul", W, M), 0.0)
    assert not neutral_prefix(W, -INF, weight, 0.0)


@pytest.mark.parametrize(
    "written",
    [
        GUARDED,
        call("select", call("ne", M, const(-INF)), M, const(0.0)),
        call("select", call("gt", M, const(-INF)), M, const(1.0)),
        call("select", call("le", M, const(-INF)), const(0.0), M),
    ],
    ids=text,
)
def test_guards_of_authors_are_seen_through(written: Expr) -> None:
    assert unguarded(call("exp", call("sub", X, written)), {"m": -INF}) == call("exp", call("sub", X, M))
    assert unguarded(written, {"m": 0.0}) == written


def test_taking_factors_leaves_the_rest_as_written() -> None:
    def leaves(e: Expr) -> bool:
        return e == M

    def streamed(e: Expr) -> bool:
        return X in e.walk()

    rest, taken = take(call("div", call("mul", call("div", X, W), M), call("neg", M)), leaves, streamed)
    assert rest is not None
    assert text(rest) == "((x / w[l]) / neg(1.0))"
    assert (taken.top, taken.bottom) == ([M], [M])
    kept, taken = take(call("select", call("eq", M, const(0.0)), const(0.0), call("div", X, M)), lambda e: not streamed(e), streamed)
    assert kept == X
    assert text(taken.expr()) == "select((m == 0.0), 0.0, (1.0 / m))"


@pytest.mark.parametrize(
    ("e", "known"),
    [
        (call("exp", X), POSITIVE),
        (call("abs", X), NONNEGATIVE),
        (call("mul", X, X), NONNEGATIVE),
        (call("neg", call("exp", X)), NEGATIVE),
        (call("add", call("mul", X, X), const(1e-5)), POSITIVE),
        (call("sqrt", call("add", call("abs", X), const(1.0))), POSITIVE),
        (call("max", X, const(0.5)), POSITIVE),
        (call("sub", call("exp", X), call("exp", W)), ANY),
        (call("div", call("abs", X), call("exp", X)), NONNEGATIVE),
        (call("pow", X, const(4.0)), NONNEGATIVE),
        (call("mul", call("abs", X), const(-1.0)), ANY),
    ],
    ids=lambda v: text(v) if isinstance(v, Expr) else v,
)
def test_signs(e: Expr, known: str) -> None:
    assert sign(e, {}) == known


def test_signs_of_reductions_know_about_masks() -> None:
    assert reduced_sign("sum", POSITIVE, whole=True) == POSITIVE
    assert reduced_sign("sum", POSITIVE, whole=False) == NONNEGATIVE
    assert reduced_sign("max", POSITIVE, whole=False) == ANY
    assert reduced_sign("prod", NEGATIVE, whole=True) == ANY


STATE = load("s", Expr("index", ("i",)))


@pytest.mark.parametrize(
    ("update", "monoid", "term"),
    [
        (call("add", STATE, X), "sum", "x"),
        (call("sub", STATE, X), "sum", "neg(x)"),
        (call("mul", X, STATE), "prod", "x"),
        (call("max", STATE, X), "max", "x"),
        (call("select", call("lt", STATE, X), X, STATE), "max", "x"),
        (call("select", call("ge", STATE, X), STATE, X), "max", "x"),
        (call("select", call("gt", STATE, X), X, STATE), "min", "x"),
        (call("select", call("lt", X, const(1.0)), call("add", STATE, X), STATE), "sum", "select((x < 1.0), x, 0.0)"),
    ],
    ids=lambda v: text(v) if isinstance(v, Expr) else v,
)
def test_updates(update: Expr, monoid: str, term: str) -> None:
    found = split_update(update, STATE)
    assert found is not None
    assert (found[0].name, text(found[1])) == (monoid, term)


@pytest.mark.parametrize(
    "update", [call("sub", X, STATE), call("div", STATE, X), call("add", STATE, STATE), call("exp", STATE), X], ids=text
)
def test_other_updates_are_no_reduction(update: Expr) -> None:
    assert split_update(update, STATE) is None


def test_lowest_number_counts_as_neutral() -> None:
    assert neutral_start(MONOIDS["max"], const(-3.4028234663852886e38))
    assert neutral_start(MONOIDS["max"], const(-65504.0))
    assert not neutral_start(MONOIDS["max"], const(-1e4))
    assert not neutral_start(MONOIDS["sum"], const(1.0))
    assert neutral_start(MONOIDS["prod"], const(1.0))
