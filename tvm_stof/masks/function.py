"""A Python function of positions as a mask, kept as the expression it computes."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import expr
from ..canonical import canonical
from ..errors import CanonicalError, MaskError, explain
from ..expr import Expr, index
from . import logic
from .base import EMPTY, FULL, UNKNOWN, BlockGrid, Mask
from .intervals import OPERATORS, check_range, interval, slope
from .position import classify_relative
from .tracer import Traced

INDICES = ("b", "h", "q", "k")
MAX_DEPTH = 48
_LOGICAL = ("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "xor")


@canonical("function")
@dataclass(frozen=True)
class Function(Mask):
    """The pairs for which a function of (batch entry, query head, query, key) holds. Make one with ``Function.trace(f)``.

    Parameters
    ----------
    tree : the traced expression as nested lists (``tvm_stof.expr.to_data``). It, not the function's text, is what is stored
        and hashed.

    Examples
    --------
    >>> mask = Function.trace(lambda b, h, q, kv: (kv <= q) & (q - kv < 4 * (h + 1)))
    >>> bool(mask(9, 3, h=0)), bool(mask(9, 3, h=1)), sorted(mask.depends_on)
    (False, True, ['h'])
    """

    tree: tuple[Any, ...]

    spoken: ClassVar[bool] = False

    def __post_init__(self) -> None:
        try:
            e = expr.from_data(self.tree)
        except CanonicalError as error:
            raise MaskError(f"the tree of a mask function is malformed: {error}") from error
        if not _truth(e):
            raise MaskError(explain("a mask function must give a truth value", got=str(e)[:200]))
        object.__setattr__(self, "tree", _tuples(expr.to_data(e)))

    @classmethod
    def trace(cls, f: Callable[[Any, Any, Any, Any], Any]) -> Function:
        """Call ``f(b, h, q, kv)`` once on stand-ins and keep what it does with them.

        Whole-number arithmetic (``+ - * // % abs``, comparisons, ``& | ~``, ``numpy.minimum/maximum/where``) is understood.
        Branches on positions, fractions, arrays and other calls raise MaskError.
        """
        try:
            answer = Traced.of(f(*(Traced(index(name), False) for name in INDICES)))
        except MaskError:
            raise
        except Exception as error:
            way_out = "Use index arithmetic on b, h, q, kv only, or give the whole mask as tvm_stof.masks.Array"
            got = f"{type(error).__name__}: {error}"
            raise MaskError(explain("the mask function failed on symbolic positions", got=got, way_out=way_out)) from error
        if not answer.truth:
            raise MaskError(explain("a mask function must give a truth value", got=str(answer.expr)[:200], way_out="Compare: x == 0"))
        try:
            e = _balanced(answer.expr)
            depth = _depth(e)
        except RecursionError:
            depth = sys.getrecursionlimit()
        if depth > MAX_DEPTH:
            raise MaskError(explain("the mask function is nested too deeply", got=f"{depth} levels", accepted=f"at most {MAX_DEPTH}",
                                    way_out="Give the whole mask as tvm_stof.masks.Array"))  # fmt: skip
        return cls(_tuples(expr.to_data(e)))

    @cached_property
    def expr(self) -> Expr:
        """The expression, over ``index("b")``, ``index("h")``, ``index("q")`` and ``index("k")``."""
        return expr.from_data(self.tree)

    def check(self, q_len: int, kv_len: int, batch: int, heads: int) -> None:
        check_range(self.expr, {"b": (0, batch - 1), "h": (0, heads - 1), "q": (0, q_len - 1), "k": (0, kv_len - 1)})

    @property
    def arithmetic(self) -> bool:
        # See Not.arithmetic.
        return any(e.op == "index" for e in self.expr.walk())

    @property
    def relative(self) -> bool:
        return slope(self.expr) == 0

    @property
    def depends_on(self) -> frozenset[str]:
        return frozenset(e.args[0] for e in self.expr.walk() if e.op == "index" and e.args[0] in ("b", "h"))

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        value = _compute(self.expr, {"q": q, "k": k, "b": b, "h": h})
        return logic.constant(value, q, k) if isinstance(value, bool) else value

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        if self.relative:
            return classify_relative(self, grid, b, h)
        (q_lo, q_hi), k = grid.q_bounds(), grid.k_bounds()
        low, high = interval(self.expr, {"b": (b, b), "h": (h, h), "q": (q_lo[:, None], q_hi[:, None]), "k": k})
        classes = np.where(np.asarray(high) < 1, EMPTY, np.where(np.asarray(low) > 0, FULL, UNKNOWN)).astype(np.uint8)
        return np.array(np.broadcast_to(classes, (grid.rows, grid.cols)))


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "neg": lambda a: 0 - a, "abs": lambda a: logic.maximum(a, 0 - a), "min": logic.minimum, "max": logic.maximum, "select": logic.select,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": logic.equal, "ne": lambda a, b: logic.negate(logic.equal(a, b)),
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": logic.negate,
}  # fmt: skip


def _compute(e: Expr, at: Mapping[str, Any]) -> Any:
    if e.op in ("const", "index"):
        return at[e.args[0]] if e.op == "index" else e.args[0]
    return _OPERATIONS[e.op](*(_compute(a, at) for a in e.operands()))


def _truth(e: Expr) -> bool:
    """Whether ``e`` is a truth value; anything that no mask function can be raises MaskError."""
    if e.op == "const" and len(e.args) == 1 and isinstance(e.args[0], (bool, int)):
        return isinstance(e.args[0], bool)
    if e.op == "index" and len(e.args) == 1 and e.args[0] in INDICES:
        return False
    kinds = [_truth(a) for a in e.operands()] if e.op in OPERATORS else []
    if e.op == "select":
        fits = kinds[0] and kinds[1] == kinds[2]
    else:
        fits = all(kinds) if e.op in ("and", "or", "xor", "not") else not any(kinds)
    if not kinds or not fits:
        raise MaskError(explain("not part of a mask function", got=str(e)[:80] if kinds else e.op, accepted=sorted(OPERATORS)))
    return e.op in _LOGICAL or (e.op == "select" and kinds[1])


def _balanced(e: Expr) -> Expr:
    """Long chains of one of & | + as a tree of little depth."""
    if e.op not in ("and", "or", "add"):
        return e.rebuild(_balanced)
    terms: list[Expr] = []
    stack = [e]
    while stack:
        one = stack.pop()
        if one.op == e.op:
            stack.extend(reversed(one.operands()))
        else:
            terms.append(_balanced(one))
    while len(terms) > 1:
        terms = [Expr(e.op, tuple(terms[n : n + 2])) if n + 1 < len(terms) else terms[n] for n in range(0, len(terms), 2)]
    return terms[0]


def _depth(e: Expr) -> int:
    return 1 + max((_depth(a) for a in e.operands()), default=0)


def _tuples(data: Any) -> Any:
    return tuple(_tuples(d) for d in data) if isinstance(data, list) else data
