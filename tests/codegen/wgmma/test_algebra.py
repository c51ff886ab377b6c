"""Forms that the emitter folds into one multiply-add."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_stof.codegen.wgmma.fast_math import affine, linear
from tvm_stof.expr import Expr, call, const, evaluate, result

X, M, S = Expr("value"), result("m"), result("s")
EXPRESSIONS = [X, call("sub", X, M), call("neg", call("sub", M, call("mul", const(3.0), X))), call("div", call("add", X, M), const(4.0)),
               call("sub", call("mul", X, const(0.5)), call("mul", X, const(0.25)))]  # fmt: skip


def at(e: Expr, x: float) -> float:
    values = {"value": x, "m": 0.7, "s": 1.9}
    return float(evaluate(e, lambda n, _: np.float64(values[n.args[0] if n.args else n.op])))


@pytest.mark.parametrize("e", EXPRESSIONS)
def test_affine_is_the_same_function(e: Expr) -> None:
    form = affine(e, X)
    assert form is not None
    factor, rest = form
    assert X not in rest.walk()
    for x in (-2.0, 0.3, 5.0):
        assert at(e, x) == pytest.approx(factor * x + at(rest, x))


@pytest.mark.parametrize("e", [call("mul", X, X), call("exp", X), call("mul", X, M), call("div", const(1.0), X)])
def test_what_is_not_affine_is_refused(e: Expr) -> None:
    assert affine(e, X) is None


@pytest.mark.parametrize("e", [
    *EXPRESSIONS, call("div", X, S), call("mul", S, call("sub", X, M)),
    call("select", call("eq", S, const(0.0)), const(0.0), call("div", X, S)),
    call("select", call("gt", S, const(0.0)), call("add", X, M), call("sub", X, M))])  # fmt: skip
def test_linear_is_the_same_function(e: Expr) -> None:
    form = linear(e, X)
    assert form is not None
    factor, rest = form
    assert X not in (*factor.walk(), *rest.walk())
    for x in (-2.0, 0.3, 5.0):
        assert at(e, x) == pytest.approx(at(factor, x) * x + at(rest, x))


def test_a_normalised_product_has_no_rest() -> None:
    form = linear(call("select", call("eq", S, const(0.0)), const(0.0), call("div", X, S)), X)
    assert form is not None
    assert form[1] == const(0.0)
