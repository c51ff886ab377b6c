"""``expr.Expr`` to TIR, for the formulae that problems bring (score modifications)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm import tirx

from ..errors import CanonicalError, explain
from ..expr import Expr

_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": tirx.floordiv,
    "mod": tirx.floormod,
    "min": tirx.min,
    "max": tirx.max,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": tirx.EQ,
    "ne": tirx.NE,
}
_REAL: Mapping[str, Callable[..., Any]] = {
    "div": lambda a, b: a / b,
    "pow": tirx.power,
    "exp": tirx.exp,
    "log": tirx.log,
    "sqrt": tirx.sqrt,
    "tanh": tirx.tanh,
    "floor": tirx.floor,
    "sigmoid": tirx.sigmoid,
}


def lower(e: Expr, leaf: Callable[[Expr, tuple[Any, ...]], Any], real: str = "float32") -> Any:
    """TIR of an expression; ``leaf(node, lowered operands)`` answers leaves and loads (not ``const``). Mixed operands become ``real``."""
    if e.op == "const":
        value = e.args[0]
        return tirx.const(value, "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else real)
    args = tuple(lower(a, leaf, real) for a in e.operands())
    if e.op == "cast":
        return args[0].astype(str(e.args[0]))
    if e.op in _ARITHMETIC:
        return _ARITHMETIC[e.op](*_alike(args, real))
    if e.op in _REAL:
        return _REAL[e.op](*(_real(a, real) for a in args))
    if e.op == "neg":
        return tirx.const(0, _dtype(args[0])) - args[0]
    if e.op == "abs":
        return tirx.max(args[0], tirx.const(0, _dtype(args[0])) - args[0])
    if e.op in ("and", "or", "xor", "not"):
        return _logic(e.op, args)
    if e.op == "select":
        return tirx.if_then_else(args[0], *_alike(args[1:], real))
    return leaf(e, args)


def _logic(op: str, args: tuple[Any, ...]) -> Any:
    if op == "not":
        return tirx.Not(args[0])
    if op == "xor":
        return tirx.any(tirx.all(args[0], tirx.Not(args[1])), tirx.all(args[1], tirx.Not(args[0])))
    return (tirx.all if op == "and" else tirx.any)(*args)


def _dtype(e: Any) -> str:
    return str(e.ty.dtype)


def _real(e: Any, real: str) -> Any:
    return e if _dtype(e).startswith(("float", "bfloat")) else e.astype(real)


def _alike(args: tuple[Any, ...], real: str) -> tuple[Any, ...]:
    kinds = {_dtype(a) for a in args}
    if len(kinds) == 1:
        return args
    if any(k.startswith(("float", "bfloat")) for k in kinds):
        return tuple(a if _dtype(a) == real else a.astype(real) for a in args)
    if "bool" in kinds:
        raise CanonicalError(explain("a truth value and a number have no common type", got=sorted(kinds)))
    return tuple(a.astype("int64") for a in args)


__all__ = ["lower"]
