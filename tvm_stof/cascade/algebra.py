"""Between ``expr.Expr`` and sympy. Numbers become exact rationals; what sympy need not look into becomes one symbol."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..expr import Expr, call, const
from .facts import ANY, NEGATIVE, NONNEGATIVE, POSITIVE, result_names, sign, width

_STRUCTURAL = {"add", "sub", "mul", "div", "neg", "pow", "exp", "log", "sqrt", "tanh", "sigmoid", "abs"}
_CLOSED = {"add", "sub", "mul", "div", "neg"}


class Algebra:
    """Symbols for the atoms of one term: streamed data (x), results (d) and what is constant for a row (c).

    Parameters
    ----------
    stream : name of the streamed axis.
    signs : of results, by name.
    types : dtypes of results, and of tensors under ``Expr("load", (name,))``.
    """

    def __init__(self, stream: str, signs: Mapping[str, str], types: Mapping[Expr, str]) -> None:
        self.stream, self.signs, self.types = stream, signs, types
        self.symbols: dict[Expr, Any] = {}
        self.atoms: dict[Any, Expr] = {}

    def streamed(self, e: Expr) -> bool:
        """Whether an expression varies along the streamed axis."""
        return any(n.op in ("value", "prologue") or (n.op == "index" and n.args[0] == self.stream) for n in e.walk())

    def kind(self, symbol: Any) -> str:
        """ "x" streamed data, "d" results, "c" constant for the row."""
        atom = self.atoms[symbol]
        return "d" if result_names(atom) else "x" if self.streamed(atom) else "c"

    def of_kind(self, e: Any, kind: str) -> list[Any]:
        """The symbols of a kind in a sympy expression, in order of appearance here."""
        return [s for s in self.atoms if s in e.free_symbols and self.kind(s) == kind]

    def symbol(self, e: Expr) -> Any:
        """The symbol that stands for an atom."""
        import sympy

        if e not in self.symbols:
            known = sign(e, self.signs)
            # A zero among nonnegative values is a question of inverses, answered by the guard, not of algebra.
            facts = {POSITIVE: {"positive": True}, NONNEGATIVE: {"positive": True}, NEGATIVE: {"negative": True}, ANY: {"real": True}}[
                known
            ]
            kind = "d" if result_names(e) else "x" if self.streamed(e) else "c"
            s = sympy.Symbol(f"{kind}{len(self.symbols)}", **facts)
            self.symbols[e], self.atoms[s] = s, e
        return self.symbols[e]

    def to_sympy(self, e: Expr) -> Any:
        """The sympy form of an expression."""
        import sympy

        if e.op == "const":
            return number(e.args[0])
        names = result_names(e)
        mixed = bool(names) and self.streamed(e)
        if not names and e.op not in _CLOSED | {"pow", "exp", "sqrt"}:
            return self.symbol(e)
        if e.op in _STRUCTURAL and (mixed or e.op not in ("abs", "tanh", "sigmoid")):
            args = [self.to_sympy(a) for a in e.operands()]
            return _SYMPY[e.op](sympy, *args)
        if e.op == "cast" and names and width(e.args[1], self.types) <= width(e, self.types):
            return self.to_sympy(e.args[1])
        if not mixed:
            return self.symbol(e)
        if e.op == "select" and not result_names(e.args[0]) and all(math.isfinite(a) for a in _numbers(e)):
            holds = self.symbol(indicator(e.args[0]))
            return holds * self.to_sympy(e.args[1]) + (1 - holds) * self.to_sympy(e.args[2])
        name = f"round_to_{e.args[0]}" if e.op == "cast" else e.op
        return sympy.Function(name)(*(self.to_sympy(a) for a in e.operands()))

    def from_sympy(self, e: Any, swap: Callable[[Expr], Expr] = lambda x: x) -> Expr:
        """Back again; ``swap`` is applied to every atom."""
        if e.is_Symbol:
            return swap(self.atoms[e])
        if e.is_number:
            return const(float(e))
        if e.is_Add:
            return self._sum(e, swap)
        if e.is_Mul:
            return self._product(e, swap)
        if e.is_Pow and str(e.base) != "E":
            base = self.from_sympy(e.base, swap)
            return power(base, e.exp) if e.exp.is_number else call("pow", base, self.from_sympy(e.exp, swap))
        name = "exp" if e.is_Pow else type(e).__name__.lower()
        inner = [self.from_sympy(a, swap) for a in ([e.exp] if e.is_Pow else e.args)]
        return Expr(name, tuple(inner))

    def _sum(self, e: Any, swap: Callable[[Expr], Expr]) -> Expr:
        terms = sorted(e.args, key=lambda t: (bool(t.could_extract_minus_sign()), self._order(t)))
        out: Expr | None = None
        for t in terms:
            minus = t.could_extract_minus_sign()
            piece = self.from_sympy(-t if minus else t, swap)
            if out is None:
                out = call("neg", piece) if minus else piece
            else:
                out = call("sub" if minus else "add", out, piece)
        assert out is not None
        return out

    def linear(self, e: Any) -> Expr:
        """A sum of multiples, with a factor they share written once: (a - b) * c."""
        coefficients = {abs(t.as_coeff_Mul()[0]) for t in e.as_ordered_terms()}
        shared = coefficients.pop()
        if coefficients or shared == 1:
            return self.from_sympy(e)
        return call("mul", self.from_sympy((e / shared).expand()), const(float(shared)))

    def _product(self, e: Any, swap: Callable[[Expr], Expr]) -> Expr:
        if e.args[0] == -1:
            return call("neg", self.from_sympy(-e, swap))
        top, bottom = list[Expr](), list[Expr]()
        for f in sorted(e.args, key=self._order):
            inverse = f.is_Pow and f.exp.is_number and f.exp.is_negative and str(f.base) != "E"
            (bottom if inverse else top).append(self.from_sympy(1 / f if inverse else f, swap))
        up = _chain(top) or const(1.0)
        down = _chain(bottom)
        return up if down is None else call("div", up, down)

    def _order(self, e: Any) -> tuple[int, list[int], str]:
        """A fixed order of operands: streamed ones, row constants, results, numbers; then as their atoms first appeared."""
        place = list(self.atoms)
        rank = 3 if e.is_number else 0 if self.of_kind(e, "x") else 2 if self.of_kind(e, "d") else 1
        return rank, sorted(place.index(s) for s in e.free_symbols), str(e.func)


def indicator(condition: Expr) -> Expr:
    """1 where a condition holds, else 0."""
    return call("select", condition, const(1.0), const(0.0))


def _numbers(e: Expr) -> list[float]:
    return [float(n.args[0]) for n in e.walk() if n.op == "const"]


def _chain(of: list[Expr]) -> Expr | None:
    out = of[0] if of else None
    for f in of[1:]:
        out = call("mul", out, f) if out is not None else f
    return out


def tidy_exponents(e: Expr, algebra: Algebra) -> Expr:
    """Arguments of exponentials that need results, in one form however they were written: x - d, never -(d - x)."""
    e = e.rebuild(lambda a: tidy_exponents(a, algebra))
    if e.op != "exp" or not result_names(e):
        return e
    argument = algebra.to_sympy(e.args[0]).expand()
    return call("exp", algebra.linear(argument)) if argument.is_Add else e


def power(base: Expr, exponent: Any) -> Expr:
    """base ** exponent by the cheapest operators."""
    if exponent == 1:
        return base
    if exponent.is_negative:
        return call("div", const(1.0), power(base, -exponent))
    if exponent * 2 == 1:
        return call("sqrt", base)
    if exponent == 2:
        return call("mul", base, base)
    return call("pow", base, const(float(exponent)))


def number(value: Any) -> Any:
    """An exact sympy number."""
    import sympy

    if isinstance(value, float) and not math.isfinite(value):
        return sympy.nan if math.isnan(value) else sympy.oo if value > 0 else -sympy.oo
    return sympy.Integer(value) if isinstance(value, int) else sympy.Rational(*float(value).as_integer_ratio())


_SYMPY: Mapping[str, Callable[..., Any]] = {
    "add": lambda s, a, b: a + b,
    "sub": lambda s, a, b: a - b,
    "mul": lambda s, a, b: a * b,
    "div": lambda s, a, b: a / b,
    "neg": lambda s, a: -a,
    "pow": lambda s, a, b: a**b,
    "exp": lambda s, a: s.exp(a),
    "log": lambda s, a: s.log(a),
    "sqrt": lambda s, a: s.sqrt(a),
    "tanh": lambda s, a: s.tanh(a),
    "sigmoid": lambda s, a: s.Function("sigmoid")(a),
    "abs": lambda s, a: s.Abs(a),
}
