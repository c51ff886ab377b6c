"""Expressions to TIR with the hardware's exponential: exp(x) = ex2(x log2 e), and what is built on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...expr import Expr, call, const
from ..lower import Leaf, lower
from .instructions import exp2_into, local, reciprocal_into

LOG2_E = math.log2(math.e)


def lower_fast(e: Expr, leaf: Leaf) -> Any:
    """``lower``, with every exp, tanh and sigmoid put into a register by ex2 first."""
    registers: list[Any] = []

    def keep(emit: Callable[[Any, Any], None], x: Any) -> Expr:
        register = local("power", 1)
        emit(register[0], x)
        registers.append(register[0])
        return Expr("register", (len(registers) - 1,))

    def answer(node: Expr, operands: tuple[Any, ...]) -> Any:
        return registers[node.args[0]] if node.op == "register" else leaf(node, operands)

    def power(x: Expr, factor: float) -> Expr:
        return keep(exp2_into, lower(call("mul", x, const(factor)), answer))

    def flatten(node: Expr) -> Expr:
        node = node.rebuild(flatten)
        if node.op == "exp":
            return power(node.args[0], LOG2_E)
        if node.op == "tanh":  # 1 - 2 / (exp(2 x) + 1), exact at both ends
            inverse = keep(reciprocal_into, lower(call("add", power(node.args[0], 2 * LOG2_E), const(1.0)), answer))
            return call("sub", const(1.0), call("mul", const(2.0), inverse))
        if node.op == "sigmoid":
            return keep(reciprocal_into, lower(call("add", power(node.args[0], -LOG2_E), const(1.0)), answer))
        return node

    return lower(flatten(e), answer)


def affine(e: Expr, x: Expr) -> tuple[float, Expr] | None:
    """e = a x + rest with a number a and a rest free of x, or None."""
    if e == x:
        return 1.0, const(0.0)
    if x not in e.walk():
        return 0.0, e
    if e.op == "neg":
        return _scaled(affine(e.args[0], x), -1.0)
    if e.op in ("add", "sub"):
        left, right = affine(e.args[0], x), affine(e.args[1], x)
        if left is None or right is None:
            return None
        return left[0] + (right[0] if e.op == "add" else -right[0]), simplified(e.op, left[1], right[1])
    if e.op in ("mul", "div"):
        numbers = [a for a in e.operands() if a.op == "const"]
        if not numbers or (e.op == "div" and e.args[1].op != "const"):
            return None
        factor, other = float(numbers[0].args[0]), e.args[1] if e.args[0] == numbers[0] else e.args[0]
        return _scaled(affine(other, x), factor if e.op == "mul" else 1.0 / factor)
    return None


def _scaled(form: tuple[float, Expr] | None, factor: float) -> tuple[float, Expr] | None:
    return None if form is None else (form[0] * factor, simplified("mul", form[1], const(factor)))


def simplified(op: str, a: Expr, b: Expr) -> Expr:
    """a op b without additions of 0 and multiplications by 0 and 1."""
    zero, one = const(0.0), const(1.0)
    if op in ("add", "sub") and b == zero:
        return a
    if a == zero and op in ("add", "mul", "div"):
        return b if op == "add" else zero
    if a == zero and op == "sub":
        return call("neg", b)
    if op == "mul" and (a == one or b in (zero, one)):
        return b if a == one or b == zero else a
    return call(op, a, b)


def linear(e: Expr, x: Expr) -> tuple[Expr, Expr] | None:
    """e = factor x + rest with both free of x, or None; a selection between such forms is one."""
    zero = const(0.0)
    if e == x:
        return const(1.0), zero
    if x not in e.walk():
        return zero, e
    if e.op == "cast":
        return linear(e.args[1], x)
    if e.op == "select" and x not in e.args[0].walk():
        forms = [linear(a, x) for a in e.args[1:]]
        if forms[0] is None or forms[1] is None:
            return None
        (fa, ra), (fb, rb) = forms[0], forms[1]
        return call("select", e.args[0], fa, fb), ra if ra == rb else call("select", e.args[0], ra, rb)
    if e.op == "neg":
        return linear(call("sub", zero, e.args[0]), x)
    if e.op in ("add", "sub", "mul", "div"):
        a, b = (linear(n, x) for n in e.operands())
        if a is None or b is None:
            return None
        if e.op in ("add", "sub"):
            return simplified(e.op, a[0], b[0]), simplified(e.op, a[1], b[1])
        if b[0] == zero:
            return simplified(e.op, a[0], b[1]), simplified(e.op, a[1], b[1])
        if e.op == "mul" and a[0] == zero:
            return simplified("mul", b[0], a[1]), simplified("mul", b[1], a[1])
    return None
