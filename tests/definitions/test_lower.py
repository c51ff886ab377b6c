"""Every operator of an expression as TIR computes what NumPy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, tirx

from tvm_stof.definitions.lower import lower
from tvm_stof.errors import CanonicalError
from tvm_stof.expr import ARITY, Expr, call, const, evaluate, index

WHOLE = {"floordiv", "mod", "and", "or", "not", "xor"}
X = Expr("value")
I = index("i")
XS = np.array([-2.5, -1.0, -0.25, 0.0, 0.5, 1.0, 2.25, 3.5], np.float32)


def run(e: Expr, dtype: str = "float32") -> Any:
    x = te.placeholder((8,), "float32", "x")
    leaf = {"value": lambda i: x[i].asobject(), "index": lambda i: i}
    y = te.compute((8,), lambda i: lower(e, lambda node, operands: leaf[node.op](i)).astype(dtype), "y")
    out = tvm.runtime.tensor(np.zeros(8, dtype))
    tvm.compile(te.create_prim_func([x, y]).with_attr("global_symbol", "main"), target="llvm")(tvm.runtime.tensor(XS), out)
    return out.numpy()


def numpy(e: Expr) -> Any:
    with np.errstate(all="ignore"):
        return evaluate(e, lambda node, operands: XS if node.op == "value" else np.arange(8) if node.op == "index" else operands[0])


CASES = [
    call(
        op,
        *(
            (call("lt", I, const(3)), call("gt", I, const(1)))
            if op in ("and", "or", "xor")
            else (X, call("abs", X))
            if op != "pow"
            else (call("abs", X), X)
        ),
    )
    for op, n in ARITY.items()
    if n == 2 and op not in ("floordiv", "mod")
]
CASES += [call(op, call("abs", X) if op in ("log", "sqrt") else X) for op, n in ARITY.items() if n == 1 and op != "not"]
CASES += [
    call("floordiv", call("sub", I, const(4)), const(3)),
    call("mod", call("sub", I, const(4)), const(3)),
    call("not", call("lt", I, const(3))),
    call("select", call("lt", X, const(0.5)), I, X),
    call("mul", I, const(0.5)),
    call("add", I, X),
    call("div", I, const(4)),
    Expr("cast", ("int32", call("floor", X))),
]


@pytest.mark.parametrize("e", CASES, ids=str)
def test_same_as_numpy(e: Expr) -> None:
    np.testing.assert_allclose(run(e), np.asarray(numpy(e)).astype(np.float32), rtol=2e-6, atol=1e-6)


def test_truth_values_and_numbers_do_not_mix() -> None:
    with pytest.raises(CanonicalError, match="no common type"):
        lower(call("add", call("lt", I, const(3)), I), lambda node, operands: tirx.Var("i", "int32"))
