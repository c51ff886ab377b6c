"""Expr to TIR: the one place where expression nodes become TVM expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tvm import tirx

from ..expr import Expr

Leaf = Callable[[Expr, tuple[Any, ...]], Any]

_OPERATORS: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "floordiv": tirx.floordiv, "mod": tirx.floormod, "min": tirx.min, "max": tirx.max, "pow": tirx.power,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "eq": tirx.EQ, "ne": tirx.NE,
    "and": tirx.And, "or": tirx.Or, "not": tirx.Not, "xor": tirx.NE, "select": tirx.Select,
    "neg": lambda a: -a, "abs": tirx.abs, "exp": tirx.exp, "log": tirx.log, "sqrt": tirx.sqrt, "floor": tirx.floor,
    "tanh": lambda a: number(1.0, dtype_of(a)) - number(2.0, dtype_of(a)) / (tirx.exp(a * number(2.0, dtype_of(a))) + number(1.0,
    dtype_of(a))),
    "sigmoid": lambda a: number(1.0, dtype_of(a)) / (number(1.0, dtype_of(a)) + tirx.exp(-a)),
}  # fmt: skip


def dtype_of(value: Any) -> str:
    """The dtype of a TIR expression, as text."""
    return str(value.ty.dtype)


def number(value: float | bool, dtype: str) -> Any:
    """A constant of that dtype; an infinity in an integer dtype is its extreme."""
    if isinstance(value, float) and math.isinf(value) and "float" not in dtype:
        return tirx.max_value(dtype) if value > 0 else tirx.min_value(dtype)
    return tirx.const(value, dtype)


def lower(e: Expr, leaf: Leaf, dtype: str = "float32") -> Any:
    """Lower an expression.

    Parameters
    ----------
    leaf : answers ``load``, ``index``, ``result``, ``previous``, ``value`` and ``prologue`` nodes, given the node and its lowered operands.
    dtype : of constants that stand beside no typed operand.
    """
    if e.op == "const":
        return number(e.args[0], "bool" if isinstance(e.args[0], bool) else dtype)
    if e.op == "cast":
        return tirx.Cast(e.args[0], lower(e.args[1], leaf, dtype))
    operands = e.operands()
    if e.op == "load":
        return leaf(e, tuple(lower(a, leaf, "int32") for a in operands))
    if e.op not in _OPERATORS:
        return leaf(e, ())
    return _OPERATORS[e.op](*_typed(e.op, operands, leaf, dtype))


def _typed(op: str, operands: tuple[Expr, ...], leaf: Leaf, dtype: str) -> list[Any]:
    """Lower operands; constants take the dtype of the operands they stand beside (a select's condition aside)."""
    first = 1 if op == "select" else 0
    typed = {n: lower(a, leaf, dtype) for n, a in enumerate(operands) if a.op != "const"}
    beside = next((dtype_of(v) for n, v in typed.items() if n >= first), dtype)
    return [typed[n] if n in typed else lower(a, leaf, beside) for n, a in enumerate(operands)]
