"""Split a per-element function F(x, D) into G(x) and H(D), and prove the split (redfuser.md 1.3 to 1.6).

F is expanded into a sum of terms, each a product of a streamed part and a result part. The matrix of their coefficients has a rank: one
means F = G * H, which one running value can carry; more means that many running values. A factor that mixes both is named and refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..expr import Expr
from .algebra import Algebra
from .deadline import OutOfTime, deadline
from .facts import NONNEGATIVE, POSITIVE, result_names, sign
from .monoids import MONOIDS
from .proof import agrees

SECONDS = 5.0
POINTS = 16


@dataclass(frozen=True)
class Refused:
    """Why F has no G and H, as one sentence."""

    reason: str


@dataclass(frozen=True)
class Decomposition:
    """F = G <operator> H: sympy expressions over the symbols of ``algebra``; ``proof`` says how it was confirmed."""

    operator: str
    g: Any
    h: Any
    algebra: Algebra
    proof: str


def decompose(monoid: str, term: Expr, algebra: Algebra) -> Decomposition | Refused:
    """G and H of a term under the operators its monoid distributes over, or the reason there are none."""
    try:
        with deadline(SECONDS):
            return _decompose(monoid, term, algebra)
    except OutOfTime:
        return Refused(f"the symbolic proof did not end within {SECONDS:g} s")


def _decompose(monoid: str, term: Expr, algebra: Algebra) -> Decomposition | Refused:
    for n in term.walk():
        if n.op == "load" and result_names(n):
            return Refused(f"{n} is addressed by an earlier result, which is not final while elements stream by")
    f = algebra.to_sympy(term)
    if f.has(*_not_numbers()):
        return Refused("it has an infinity, a NaN or a root of a negative number in it")
    if not algebra.of_kind(f, "d"):
        return Decomposition("mul" if monoid in ("sum", "prod") else "add", f, _one(), algebra, "it uses no earlier result")
    if monoid == "prod":
        return Refused("a product over elements of an expression with earlier results also needs the number of elements, which is not kept")
    refused = []
    for operator in MONOIDS[monoid].over:
        found = separate_sum(f, algebra) if operator == "add" else separate(f, algebra, monoid)
        if isinstance(found, Refused):
            refused.append(found.reason)
            continue
        g, h = found
        if MONOIDS[monoid].order and operator == "mul" and sign(algebra.from_sympy(h), algebra.signs) not in (POSITIVE, NONNEGATIVE):
            return Refused(f"{algebra.from_sympy(h)} may be negative, and a negative factor swaps largest and smallest")
        problem = agrees(term, operator, g, h, algebra, POINTS)
        if problem:
            return Refused(problem)
        return Decomposition(operator, g, h, algebra, f"symbolic expansion, and {POINTS} random points to 40 digits")
    return Refused(refused[0] if len(refused) == 1 else f"it is neither G + H ({refused[0]}) nor G * H ({refused[1]})")


def _one() -> Any:
    import sympy

    return sympy.Integer(1)


def _not_numbers() -> tuple[Any, ...]:
    import sympy

    return sympy.zoo, sympy.nan, sympy.oo, -sympy.oo, sympy.I


def expanded(f: Any) -> Any:
    """Powers, exponentials and products written out; logarithms only where signs are known, as sympy does by itself."""
    import sympy

    f = sympy.expand(f, deep=True, power_exp=True, power_base=True, mul=True, log=True, multinomial=True)
    return f.replace(
        lambda e: e.is_Pow and e.base.is_Add and not e.exp.is_positive,
        lambda e: sympy.expand(sympy.factor(e.base) ** e.exp, power_base=True),
    )


def mixed(factor: Any, algebra: Algebra) -> str:
    """Why a factor that holds streamed data and earlier results cannot be split, in the words that fit it."""
    e = algebra.from_sympy(factor)
    for n in e.walk():
        if n.op.startswith("round_to_") or n.op == "floor":
            what = "rounded to whole numbers" if n.op == "floor" else n.op.replace("_", " ").replace("round", "rounded")
            return f"{n.args[0]} is {what} between reductions, which only a stated rounding contract could allow"
        if n.op in ("select", *_COMPARISONS):
            return f"{e} decides for each element by an earlier result, which is not final while elements stream by"
    return f"the factor {e} mixes streamed data with earlier results and cannot be split"


_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def separate_sum(f: Any, algebra: Algebra) -> tuple[Any, Any] | Refused:
    """f = G(x) + H(d)."""
    import sympy

    g, h = list[Any](), list[Any]()
    for t in sympy.Add.make_args(expanded(f)):
        x, d = algebra.of_kind(t, "x"), algebra.of_kind(t, "d")
        if x and d:
            return Refused(mixed(t, algebra))
        (h if d else g).append(t)
    return sympy.Add(*g), sympy.Add(*h)


def separate(f: Any, algebra: Algebra, monoid: str = "sum") -> tuple[Any, Any] | Refused:
    """f = G(x) * H(d), or why not; the rank of the coefficients decides."""
    import sympy

    table: dict[tuple[Any, Any], Any] = {}
    for t in sympy.Add.make_args(expanded(f)):
        coefficient, left, right = sympy.Integer(1), list[Any](), list[Any]()
        for factor in sympy.Mul.make_args(t):
            x, d = algebra.of_kind(factor, "x"), algebra.of_kind(factor, "d")
            if x and d:
                return Refused(mixed(factor, algebra))
            if factor.is_number:
                coefficient *= factor
            else:
                (right if d else left).append(factor)
        place = (sympy.Mul(*left), sympy.Mul(*right))
        table[place] = table.get(place, 0) + coefficient
    lefts, rights = list(dict.fromkeys(p[0] for p in table)), list(dict.fromkeys(p[1] for p in table))
    matrix = sympy.Matrix(len(lefts), len(rights), lambda a, b: table.get((lefts[a], rights[b]), 0))
    rank = matrix.rank()
    if rank != 1:
        parts = " + ".join(f"[{algebra.from_sympy(p)}]" for p in rights)
        carries = "" if monoid != "sum" else "; one running value carries one"
        return Refused(f"it is a sum of {rank} separable terms (in {parts}){carries}")
    column = next(b for b in range(matrix.cols) if any(matrix.col(b)))
    row = next(a for a in range(matrix.rows) if matrix[a, column] != 0)
    g = sum((matrix[a, column] / matrix[row, column] * lefts[a] for a in range(matrix.rows)), sympy.Integer(0))
    h = sum((matrix[row, b] * rights[b] for b in range(matrix.cols)), sympy.Integer(0))
    return g, h
