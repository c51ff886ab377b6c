"""What can be said of a traced expression without looking at each position: ranges of values, and how it moves along the diagonal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import MaskError, explain
from ..expr import Expr

#: lowest and highest value, as numbers or arrays; truth values are 0 and 1
Interval = tuple[Any, Any]


def interval(e: Expr, at: Mapping[str, Interval]) -> Interval:
    """A range that holds every value of ``e`` for indices within ``at``."""
    if e.op == "const":
        return int(e.args[0]), int(e.args[0])
    if e.op == "index":
        return at[e.args[0]]
    low, high = _OPERATORS[e.op](*(interval(a, at) for a in e.operands()))
    return low, high


def check_range(e: Expr, at: Mapping[str, Interval]) -> Interval:
    """Raise MaskError unless every intermediate value fits int32 and every divisor is positive."""
    operands = [check_range(a, at) for a in e.operands()]
    if e.op in ("floordiv", "mod") and operands[1][0] < 1:
        raise MaskError(explain("a mask function divides by a number that may be zero or negative", got=str(e)[:200],
                                way_out="Write numpy.maximum(divisor, 1)"))  # fmt: skip
    low, high = interval(e, at) if not operands else _OPERATORS[e.op](*operands)
    if low < -(1 << 31) or high >= 1 << 31:
        raise MaskError(explain("a mask function leaves 32-bit numbers", got=f"{str(e)[:200]} between {low} and {high}",
                                accepted="values from -2**31 to 2**31 - 1"))  # fmt: skip
    return low, high


def slope(e: Expr) -> int | None:
    """How much ``e`` grows when query and key both move by one; 0 = depends on q - k alone, None = no constant."""
    if e.op == "const":
        return 0
    if e.op == "index":
        return 1 if e.args[0] in ("q", "k") else 0
    parts = [slope(a) for a in e.operands()]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return None
    if e.op in ("add", "sub", "neg"):
        return known[0] + known[1] if e.op == "add" else known[0] - known[1] if e.op == "sub" else -known[0]
    if e.op in ("lt", "le", "gt", "ge", "eq", "ne"):
        return 0 if known[0] == known[1] else None
    if e.op in ("min", "max") and known[0] == known[1]:
        return known[0]
    if e.op == "select" and known[0] == 0 and known[1] == known[2]:
        return known[1]
    if e.op == "mul":
        scaled = [e.operands()[n].args[0] * known[1 - n] for n in (0, 1) if e.operands()[n].op == "const"]
        if scaled:
            return int(scaled[0])
    return None if any(known) else 0


def _corners(op: Any, a: Interval, b: Interval) -> Interval:
    values = [op(x, y) for x in a for y in b]
    return _least(*values), _most(*values)


def _least(first: Any, *others: Any) -> Any:
    for other in others:
        first = np.minimum(first, other)
    return first


def _most(first: Any, *others: Any) -> Any:
    for other in others:
        first = np.maximum(first, other)
    return first


def _floordiv(a: Interval, b: Interval) -> Interval:
    return _corners(lambda x, y: x // np.maximum(y, 1), a, b)


def _mod(a: Interval, b: Interval) -> Interval:
    low, high = np.maximum(b[0], 1), np.maximum(b[1], 1)
    one_turn = (low == high) & (a[0] // low == a[1] // low)
    top = np.where(np.asarray(a[0]) >= 0, np.minimum(a[1], high - 1), high - 1)
    return np.where(one_turn, a[0] % low, 0), np.where(one_turn, a[1] % low, top)


def _abs(a: Interval) -> Interval:
    spans = (np.asarray(a[0]) <= 0) & (np.asarray(a[1]) >= 0)
    return np.where(spans, 0, np.minimum(np.abs(a[0]), np.abs(a[1]))), np.maximum(np.abs(a[0]), np.abs(a[1]))


def _one(low: Any, high: Any) -> Interval:
    return np.asarray(low).astype(np.int64), np.asarray(high).astype(np.int64)


def _equal(a: Interval, b: Interval) -> Interval:
    sure = (np.asarray(a[0]) == a[1]) & (np.asarray(b[0]) == b[1]) & (np.asarray(a[0]) == b[0])
    return _one(sure, (np.asarray(a[0]) <= b[1]) & (np.asarray(b[0]) <= a[1]))


def _not(a: Interval) -> Interval:
    return 1 - a[1], 1 - a[0]


def _less(a: Interval, b: Interval) -> Interval:
    return _one(np.less(a[1], b[0]), np.less(a[0], b[1]))


def _at_most(a: Interval, b: Interval) -> Interval:
    return _one(np.less_equal(a[1], b[0]), np.less_equal(a[0], b[1]))


def _select(c: Interval, a: Interval, b: Interval) -> Interval:
    low = np.where(np.asarray(c[0]) == 1, a[0], np.where(np.asarray(c[1]) == 0, b[0], np.minimum(a[0], b[0])))
    high = np.where(np.asarray(c[0]) == 1, a[1], np.where(np.asarray(c[1]) == 0, b[1], np.maximum(a[1], b[1])))
    return low, high


_OPERATORS: Mapping[str, Any] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]), "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": lambda a, b: _corners(lambda x, y: x * y, a, b), "floordiv": _floordiv, "mod": _mod, "abs": _abs,
    "neg": lambda a: (-a[1], -a[0]), "select": _select, "not": _not, "eq": _equal, "ne": lambda a, b: _not(_equal(a, b)),
    "min": lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    "max": lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
    "lt": _less, "le": _at_most, "gt": lambda a, b: _less(b, a), "ge": lambda a, b: _at_most(b, a),
    "and": lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    "or": lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])), "xor": lambda a, b: _not(_equal(a, b)),
}  # fmt: skip
#: operators a mask function may contain
OPERATORS = frozenset(_OPERATORS)
