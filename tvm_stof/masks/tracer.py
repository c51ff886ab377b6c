"""Stand-ins for positions that record what a mask function does with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import MaskError, explain
from ..expr import Expr, call, const

MAX_SIZE = 4096
_ALLOWED = "+ - * // % abs, comparisons, & | ~, numpy.minimum, numpy.maximum, numpy.where"


def _refuse(what: str, way_out: str) -> MaskError:
    return MaskError(explain(what, accepted=_ALLOWED, way_out=way_out))


class Traced:
    """A whole number or truth value that is not known yet; ``expr`` says how it is computed."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expr: Expr, truth: bool, size: int = 1) -> None:
        self.expr, self.truth, self.size = expr, truth, size
        if size > MAX_SIZE:
            raise _refuse(f"a mask function has more than {MAX_SIZE} operations", "Give the whole mask as tvm_stof.masks.Array")

    @staticmethod
    def constant(value: bool | int) -> Traced:
        """A known value."""
        return Traced(const(value), isinstance(value, bool))

    @staticmethod
    def of(value: Any) -> Traced:
        """The value itself, or a constant; anything but whole numbers and truth values is refused."""
        if isinstance(value, Traced):
            return value
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if isinstance(value, (bool, np.bool_)):
            return Traced.constant(bool(value))
        if isinstance(value, (int, np.integer)):
            return Traced.constant(int(value))
        raise _refuse(f"a mask function may use whole numbers only: got {value!r:.60}",
                      "Keep arrays out of it, or give the whole mask as tvm_stof.masks.Array")  # fmt: skip

    def __bool__(self) -> bool:
        raise _refuse("a mask function branches on a position", "Write & | ~ for and, or, not, (a < b) & (b < c) for a < b < c, "
                      "numpy.minimum for min, numpy.where for if")  # fmt: skip

    def _number(self, *_: Any) -> Any:
        raise _refuse("a mask function turns a position into a plain number", "Stay with whole-number arithmetic on b, h, q, kv")

    __int__ = __index__ = __float__ = __len__ = __iter__ = __getitem__ = __round__ = __floor__ = __ceil__ = __trunc__ = _number

    def __truediv__(self, other: Any) -> Any:
        raise _refuse("a mask function uses /, which gives fractions", "Write // for whole-number division")

    __rtruediv__ = __truediv__

    def __pow__(self, other: Any) -> Any:
        raise _refuse("a mask function uses **", "Write x * x")

    __rpow__ = __pow__

    def __neg__(self) -> Traced:
        return _numeric("neg", self)

    def __pos__(self) -> Traced:
        return self

    def __abs__(self) -> Traced:
        return _numeric("abs", self)

    def __invert__(self) -> Traced:
        return _logical("not", self)

    def __lshift__(self, other: Any) -> Traced:
        return self * (1 << _shift(other))

    def __rshift__(self, other: Any) -> Traced:
        return self // (1 << _shift(other))

    def __and__(self, other: Any) -> Traced:
        bits = other if isinstance(other, (int, np.integer)) and not isinstance(other, bool) else None
        if bits is not None and not self.truth and bits > 0 and not bits & (bits + 1):
            return self % (int(bits) + 1)
        return _logical("and", self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Traced:
        return _logical("or", self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Traced:
        return _logical("xor", self, other)

    __rxor__ = __xor__

    def __add__(self, other: Any) -> Traced:
        return _numeric("add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Traced:
        return _numeric("sub", self, other)

    def __rsub__(self, other: Any) -> Traced:
        return _numeric("sub", other, self)

    def __mul__(self, other: Any) -> Traced:
        return _numeric("mul", self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Traced:
        return _numeric("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Traced:
        return _numeric("floordiv", other, self)

    def __mod__(self, other: Any) -> Traced:
        return _numeric("mod", self, other)

    def __rmod__(self, other: Any) -> Traced:
        return _numeric("mod", other, self)

    def __lt__(self, other: Any) -> Traced:
        return _numeric("lt", self, other)

    def __le__(self, other: Any) -> Traced:
        return _numeric("le", self, other)

    def __gt__(self, other: Any) -> Traced:
        return _numeric("gt", self, other)

    def __ge__(self, other: Any) -> Traced:
        return _numeric("ge", self, other)

    def __eq__(self, other: object) -> Traced:  # type: ignore[override]
        return _same("eq", self, other)

    def __ne__(self, other: object) -> Traced:  # type: ignore[override]
        return _same("ne", self, other)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Traced:
        if method != "__call__" or kwargs or ufunc not in _UFUNCS:
            raise _refuse(f"a mask function calls numpy.{ufunc.__name__}", "Use index arithmetic only")
        return _UFUNCS[ufunc](*inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Traced:
        if func is not np.where or len(args) != 3 or kwargs:
            raise _refuse(f"a mask function calls numpy.{func.__name__}", "Use index arithmetic only")
        return _choose(*args)


_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def _numeric(op: str, *values: Any) -> Traced:
    operands = [Traced.of(v) for v in values]
    if any(o.truth for o in operands):
        raise _refuse(f"a mask function computes with a truth value ({op})", "Write & | ~ for truth values, numpy.where to count")
    if op in ("floordiv", "mod") and operands[1].expr == const(0):
        raise _refuse("a mask function divides by zero", "Divide by a positive number")
    return _node(op, operands, op in _COMPARISONS)


def _logical(op: str, *values: Any) -> Traced:
    operands = [Traced.of(v) for v in values]
    if not all(o.truth for o in operands):
        raise _refuse(f"a mask function applies {op} to a whole number", "Compare first: & | ~ ^ combine truth values")
    return _node(op, operands, True)


def _node(op: str, operands: list[Traced], truth: bool) -> Traced:
    # A value used twice counts twice: the expression is a tree.
    return Traced(call(op, *(o.expr for o in operands)), truth, 1 + sum(o.size for o in operands))


def _same(op: str, a: Any, b: Any) -> Traced:
    if Traced.of(a).truth and Traced.of(b).truth:
        differ = _logical("xor", a, b)
        return differ if op == "ne" else ~differ
    return _numeric(op, a, b)


def _choose(condition: Any, a: Any, b: Any) -> Traced:
    c, x, y = Traced.of(condition), Traced.of(a), Traced.of(b)
    if not c.truth or x.truth != y.truth:
        raise _refuse("numpy.where needs a truth value and two values of one kind", "Compare first")
    return _node("select", [c, x, y], x.truth)


def _shift(bits: Any) -> int:
    if isinstance(bits, (int, np.integer)) and not isinstance(bits, bool) and 0 <= bits < 31:
        return int(bits)
    raise _refuse("a mask function shifts by an amount that is not a number from 0 to 30", "Multiply or divide with * and //")


_UFUNCS: dict[Any, Callable[..., Traced]] = {
    np.add: lambda a, b: _numeric("add", a, b), np.subtract: lambda a, b: _numeric("sub", a, b),
    np.multiply: lambda a, b: _numeric("mul", a, b), np.floor_divide: lambda a, b: _numeric("floordiv", a, b),
    np.remainder: lambda a, b: _numeric("mod", a, b), np.negative: lambda a: _numeric("neg", a),
    np.absolute: lambda a: _numeric("abs", a), np.minimum: lambda a, b: _numeric("min", a, b),
    np.maximum: lambda a, b: _numeric("max", a, b), np.less: lambda a, b: _numeric("lt", a, b),
    np.less_equal: lambda a, b: _numeric("le", a, b), np.greater: lambda a, b: _numeric("gt", a, b),
    np.greater_equal: lambda a, b: _numeric("ge", a, b), np.equal: lambda a, b: _same("eq", a, b),
    np.not_equal: lambda a, b: _same("ne", a, b), np.logical_and: lambda a, b: _logical("and", a, b),
    np.logical_or: lambda a, b: _logical("or", a, b), np.logical_xor: lambda a, b: _logical("xor", a, b),
    np.logical_not: lambda a: _logical("not", a), np.bitwise_and: lambda a, b: Traced.of(a) & b,
    np.bitwise_or: lambda a, b: _logical("or", a, b), np.bitwise_xor: lambda a, b: _logical("xor", a, b),
    np.invert: lambda a: _logical("not", a),
}  # fmt: skip
