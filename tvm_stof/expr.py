"""A small scalar expression tree: what traced mask functions, score modifications and fused programs are made of.

It imports no TVM, compares and hashes by structure, and is plain data. ``codegen.lower`` turns it into TIR, ``reference`` into NumPy,
``cascade.algebra`` into sympy and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .errors import CanonicalError, explain

Atom: TypeAlias = "int | float | str | bool"

#: op -> number of operands; leaves: const(value), index(axis name), result(stage name), previous(stage name), value() (the streamed scalar)
ARITY: Mapping[str, int] = {
    "add": 2, "sub": 2, "mul": 2, "div": 2, "floordiv": 2, "mod": 2, "min": 2, "max": 2, "pow": 2,
    "neg": 1, "abs": 1, "exp": 1, "log": 1, "sqrt": 1, "tanh": 1, "floor": 1, "sigmoid": 1,
    "lt": 2, "le": 2, "gt": 2, "ge": 2, "eq": 2, "ne": 2, "and": 2, "or": 2, "not": 1, "xor": 2,
    "select": 3,
}  # fmt: skip
LEAVES = ("const", "index", "result", "previous", "value", "prologue")


@dataclass(frozen=True)
class Expr:
    """One node.

    ``args`` holds Expr operands; leaves hold one atom; ``load`` holds the tensor's name then index Exprs; ``cast`` a dtype then one Expr.
    """

    op: str
    args: tuple[Any, ...] = ()

    def operands(self) -> tuple[Expr, ...]:
        """The operands that are expressions."""
        return tuple(a for a in self.args if isinstance(a, Expr))

    def rebuild(self, fn: Callable[[Expr], Expr]) -> Expr:
        """The same node with ``fn`` applied to each operand."""
        return Expr(self.op, tuple(fn(a) if isinstance(a, Expr) else a for a in self.args))

    def walk(self) -> list[Expr]:
        """All nodes, operands before users."""
        return [n for a in self.operands() for n in a.walk()] + [self]

    def substitute(self, table: Mapping[Expr, Expr]) -> Expr:
        """Replace every subtree that is a key of ``table``."""
        return table[self] if self in table else self.rebuild(lambda a: a.substitute(table))

    def __str__(self) -> str:
        return text(self)


def const(value: float | bool) -> Expr:
    """A number or a truth value (infinities allowed)."""
    return Expr("const", (value,))


def index(axis: str) -> Expr:
    """The position along an axis."""
    return Expr("index", (axis,))


def result(stage: str) -> Expr:
    """The present value of a reduction."""
    return Expr("result", (stage,))


def previous(stage: str) -> Expr:
    """The value a reduction had before this tile."""
    return Expr("previous", (stage,))


def load(tensor: str, *at: Expr) -> Expr:
    """One element of a tensor."""
    return Expr("load", (tensor, *at))


def call(op: str, *operands: Expr) -> Expr:
    """A node of one of the operators in ARITY."""
    if ARITY.get(op) != len(operands):
        raise CanonicalError(explain("unknown operator or operand count", got=f"{op}/{len(operands)}", accepted=ARITY))
    return Expr(op, operands)


_SYMBOL = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
"eq": "==",
           "ne": "!=", "and": "&", "or": "|", "xor": "^", "pow": "**"}  # fmt: skip


def text(e: Expr) -> str:
    """Readable infix text."""
    if e.op in ("const", "index", "result", "prologue"):
        return str(e.args[0]) if e.args else e.op
    if e.op == "previous":
        return f"{e.args[0]}'"
    if e.op == "value":
        return "x"
    if e.op == "load":
        return f"{e.args[0]}[{', '.join(text(a) for a in e.args[1:])}]"
    if e.op == "cast":
        return f"{e.args[0]}({text(e.args[1])})"
    if e.op in _SYMBOL:
        return f"({text(e.args[0])} {_SYMBOL[e.op]} {text(e.args[1])})"
    return f"{e.op}({', '.join(text(a) for a in e.operands())})"


def to_data(e: Expr) -> list[Any]:
    """Nested lists, for JSON; infinities become text."""
    return [e.op, *(to_data(a) if isinstance(a, Expr) else str(a) if isinstance(a, float) and not np.isfinite(a) else a for a in e.args)]


def from_data(data: Any, depth: int = 0) -> Expr:
    """Rebuild from nested lists or tuples; anything malformed or deeper than 64 levels raises CanonicalError."""
    if depth > 64 or not isinstance(data, (list, tuple)) or not data or not isinstance(data[0], str):
        raise CanonicalError(explain("not an expression", got=repr(data)[:80]))
    op, rest = data[0], data[1:]
    if op in LEAVES:
        if len(rest) > 1 or any(isinstance(a, (list, tuple)) for a in rest):
            raise CanonicalError(explain("malformed leaf", got=repr(data)[:80]))
        return Expr(op, tuple(float(a) if op == "const" and isinstance(a, str) else a for a in rest))
    args = tuple(from_data(a, depth + 1) if isinstance(a, (list, tuple)) else a for a in rest)
    plain = tuple(a for a in args if not isinstance(a, Expr))
    if op in ("load", "cast"):
        if len(plain) != 1 or not isinstance(plain[0], str):
            raise CanonicalError(explain("malformed node", got=repr(data)[:80]))
        return Expr(op, args)
    if plain or ARITY.get(op) != len(args):
        raise CanonicalError(explain("unknown operator or operand count", got=repr(data)[:80], accepted=ARITY))
    return Expr(op, args)


_NUMPY: Mapping[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "floordiv": np.floor_divide, "mod": np.mod, "min":
    np.minimum,
    "max": np.maximum, "pow": np.power, "neg": np.negative, "abs": np.abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh,
    "floor": np.floor, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge":
    np.greater_equal,
    "eq": np.equal, "ne": np.not_equal, "and": np.logical_and, "or": np.logical_or, "not": np.logical_not, "xor": np.logical_xor,
    "select": np.where,
}  # fmt: skip


def evaluate(e: Expr, leaf: Callable[[Expr, tuple[Any, ...]], Any]) -> Any:
    """Evaluate on NumPy values. ``leaf(node, evaluated operands)`` answers every leaf, ``load`` and ``cast`` except ``const``."""
    if e.op == "const":
        return e.args[0]
    operands = tuple(evaluate(a, leaf) for a in e.operands())
    return _NUMPY[e.op](*operands) if e.op in _NUMPY else leaf(e, operands)
