"""Closed-form tile ranges of a predicate: which column tiles a row tile touches, and which it fills.

A conjunction of half-planes bounds the columns of a row by lines: j <= a i + c and j >= a i + c. Over rows first..last of a tile each
line's extremes lie at the ends, so the touched tiles are one range and the full ones another inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ...cascade.program import Axis
from ...expr import Expr


@dataclass(frozen=True)
class Line:
    """a * row + c"""

    slope: int
    offset: int

    def at(self, row: Any) -> Any:
        return row * self.slope + self.offset if self.slope else self.offset


@dataclass(frozen=True)
class TileRange:
    """Tiles [first, last) are touched; of those [first_full, last_full) need no test. Numbers or expressions."""

    first: Any
    first_full: Any
    last_full: Any
    last: Any


@dataclass(frozen=True)
class Bounds:
    """Lines above and below a row's columns; ``exact`` if the predicate is nothing more than these."""

    uppers: tuple[Line, ...] = ()
    lowers: tuple[Line, ...] = ()
    exact: bool = True

    @staticmethod
    def of(predicate: Expr | None, row: Axis, stream: Axis) -> Bounds:
        """What a predicate says of the columns of a row in closed form."""
        uppers, lowers, exact = [], [], True
        for part in conjuncts(predicate) if predicate is not None else []:
            planes = half_planes(part, row.name, stream.name)
            exact = exact and planes is not None
            for a, b, c in planes or []:
                if b == -1:
                    uppers.append(Line(a, c))
                elif b == 1:
                    lowers.append(Line(-a, -c))
                else:
                    exact = False
        return Bounds(tuple(uppers), tuple(lowers), exact)

    def tiles(self, rows: tuple[Any, Any], cols: int, extent: int) -> TileRange:
        """The tiles of ``cols`` columns for rows first..last (both included), numbers in and numbers out."""
        symbolic = bool(self.uppers + self.lowers) and not all(isinstance(r, int) for r in rows)
        least, most = (tirx.min, tirx.max) if symbolic else (min, max)
        down: Callable[[Any], Any] = (lambda x: tirx.floordiv(x, cols)) if symbolic else (lambda x: x // cols)
        up: Callable[[Any], Any] = lambda x: down(x + (cols - 1))  # noqa: E731
        begin, end, begin_full, end_full = 0, extent, 0, extent
        for line in self.uppers:
            low, high = _ends(line, rows)
            end, end_full = least(end, high + 1), least(end_full, low + 1)
        for line in self.lowers:
            low, high = _ends(line, rows)
            begin, begin_full = most(begin, low), most(begin_full, high)
        end = most(end, 0)
        first, last = down(begin), up(end)
        first = least(first, last)
        if not self.exact:
            return TileRange(first, first, first, last)
        last_full = most(least(down(end_full), last), first)
        return TileRange(first, least(most(up(begin_full), first), last_full), last_full, last)


def _ends(line: Line, rows: tuple[Any, Any]) -> tuple[Any, Any]:
    """Least and greatest value of a line over a tile's rows."""
    first, last = (line.at(r) for r in rows)
    return (first, last) if line.slope >= 0 else (last, first)


def conjuncts(e: Expr) -> list[Expr]:
    """The parts of nested ``and``."""
    return [p for a in e.operands() for p in conjuncts(a)] if e.op == "and" else [e]


def half_planes(e: Expr, row: str, stream: str) -> list[tuple[int, int, int]] | None:
    """A comparison as a * row + b * stream + c >= 0, twice for an equality; None where it is not one of whole numbers."""
    if e.op == "const" and e.args[0] is True:
        return []
    if e.op not in ("lt", "le", "gt", "ge", "eq"):
        return None
    lhs, rhs = (_linear(a, row, stream) for a in e.operands())
    if lhs is None or rhs is None:
        return None
    up = tuple(y - x for x, y in zip(lhs, rhs))  # rhs - lhs
    down = tuple(-x for x in up)
    if e.op == "eq":
        return [(up[0], up[1], up[2]), (down[0], down[1], down[2])]
    a, b, c = up if e.op in ("lt", "le") else down
    return [(a, b, c - (e.op in ("lt", "gt")))]


def _linear(e: Expr, row: str, stream: str) -> tuple[int, int, int] | None:
    if e.op == "index" and e.args[0] in (row, stream):
        return (1, 0, 0) if e.args[0] == row else (0, 1, 0)
    if e.op == "const":
        whole = float(e.args[0]) == int(e.args[0]) and not isinstance(e.args[0], bool)
        return (0, 0, int(e.args[0])) if whole else None
    parts = [_linear(a, row, stream) for a in e.operands()] if e.op in ("add", "sub", "mul", "neg") else [None]
    if any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    if e.op == "neg":
        return _combine(known[0], (0, 0, 0), -1, 0)
    if e.op == "mul":
        factor, other = sorted(known, key=lambda p: p[:2] != (0, 0))
        return _combine(other, (0, 0, 0), factor[2], 0) if factor[:2] == (0, 0) else None
    return _combine(known[0], known[1], 1, 1 if e.op == "add" else -1)


def _combine(x: tuple[int, int, int], y: tuple[int, int, int], p: int, q: int) -> tuple[int, int, int]:
    return (p * x[0] + q * y[0], p * x[1] + q * y[1], p * x[2] + q * y[2])
