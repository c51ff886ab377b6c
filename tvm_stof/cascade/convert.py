"""TIR scalar expressions to ``expr.Expr``: casts are kept, unknown constructs are refused by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import UnsupportedPrimFunc, explain
from ..expr import Expr, call, const, load

_BINARY = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "FloorDiv": "floordiv",
    "FloorMod": "mod",
    "Min": "min",
    "Max": "max",
    "EQ": "eq",
    "NE": "ne",
    "LT": "lt",
    "LE": "le",
    "GT": "gt",
    "GE": "ge",
    "And": "and",
    "Or": "or",
}
_TRUTH = {"BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor"}
_UNARY = {
    "tirx.exp": "exp",
    "tirx.log": "log",
    "tirx.sqrt": "sqrt",
    "tirx.tanh": "tanh",
    "tirx.floor": "floor",
    "prim.floor": "floor",
    "tirx.fabs": "abs",
    "tirx.sigmoid": "sigmoid",
}
_CALLS: Mapping[str, Callable[..., Expr]] = {
    **{name: (lambda x, op=op: call(op, x)) for name, op in _UNARY.items()},
    "tirx.pow": lambda x, y: call("pow", x, y),
    "tirx.exp2": lambda x: call("exp", call("mul", x, const(math.log(2.0)))),
    "tirx.exp10": lambda x: call("exp", call("mul", x, const(math.log(10.0)))),
    "prim.log2": lambda x: call("div", call("log", x), const(math.log(2.0))),
    "tirx.log2": lambda x: call("div", call("log", x), const(math.log(2.0))),
    "tirx.log10": lambda x: call("div", call("log", x), const(math.log(10.0))),
    "tirx.rsqrt": lambda x: call("div", const(1.0), call("sqrt", x)),
    "tirx.isnan": lambda x: call("ne", x, x),
    "prim.ceil": lambda x: call("neg", call("floor", call("neg", x))),
    "tirx.ceil": lambda x: call("neg", call("floor", call("neg", x))),
    "prim.if_then_else": lambda c, a, b: call("select", c, a, b),
    "prim.likely": lambda x: x,
}


class Converter:
    """Reads the expressions of one block.

    Parameters
    ----------
    block : its name, for messages.
    variables : what each TIR variable in scope stands for.
    buffer_name : the unique name of a buffer.
    """

    def __init__(self, block: str, variables: Mapping[Any, Expr], buffer_name: Callable[[Any], str]) -> None:
        self.block, self.buffer_name = block, buffer_name
        self.variables: dict[Any, Expr] = dict(variables)

    def refuse(self, construct: str) -> UnsupportedPrimFunc:
        """The error for a construct of this block."""
        return UnsupportedPrimFunc(explain(f"block {self.block!r} has a construct that is not read", got=construct))

    def __call__(self, e: Any) -> Expr:
        kind = type(e).__name__
        if kind in ("IntImm", "FloatImm"):
            return const(bool(e.value) if dtype_of(e) == "bool" else e.value)
        if kind == "Var":
            if e not in self.variables:
                raise self.refuse(f"variable {e.name} that is no axis of the block")
            return self.variables[e]
        if kind in ("TensorLoad", "BufferLoad"):
            return self.load(e.source if kind == "TensorLoad" else e.buffer, e.indices)
        if kind == "Cast":
            return self.cast(e)
        if kind == "Select":
            return call("select", self(e.condition), self(e.true_value), self(e.false_value))
        if kind == "Not" or (kind == "BitwiseNot" and dtype_of(e) == "bool"):
            return call("not", self(e.a))
        if kind == "Call":
            return self.call(e)
        if kind == "Let":
            self.variables[e.var] = self(e.value)
            return self(e.body)
        if kind in _BINARY:
            return call(_BINARY[kind], self(e.a), self(e.b))
        if kind in _TRUTH and dtype_of(e) == "bool":
            return call(_TRUTH[kind], self(e.a), self(e.b))
        if kind == "Div" and dtype_of(e).startswith(("float", "bfloat")):
            return call("div", self(e.a), self(e.b))
        raise self.refuse(f"{kind} of {dtype_of(e)}: {e}")

    def load(self, buffer: Any, indices: Any) -> Expr:
        """One element of a buffer."""
        return load(self.buffer_name(buffer), *(self(i) for i in indices))

    def cast(self, e: Any) -> Expr:
        """A conversion; of a literal it is the literal."""
        inner, dtype = self(e.value), dtype_of(e)
        if inner.op == "const" and dtype.startswith("float"):
            return const(float(inner.args[0]))
        return inner if dtype_of(e.value) == dtype else Expr("cast", (dtype, inner))

    def call(self, e: Any) -> Expr:
        """An intrinsic."""
        name = str(getattr(e.op, "name", e.op))
        if name not in _CALLS:
            raise self.refuse(f"call of {name}: {e}")
        return _CALLS[name](*(self(a) for a in e.args))


def dtype_of(e: Any) -> str:
    """The scalar type of a TIR expression, as text."""
    return str(e.ty.dtype)
