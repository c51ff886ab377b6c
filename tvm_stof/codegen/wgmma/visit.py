"""Visitors: which column tiles a row tile streams. Tiles that need a test come first, so that the others pay for none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from .instructions import integer, let
from .plan import Plan
from .ranges import Bounds, TileRange

#: loops of fewer tiles than this hide their length from the compiler
SHORT = 4


@dataclass(frozen=True)
class Walk:
    """One row tile's walk inside a kernel: its n-th tile, how many there are, and how many of the first ones need a test."""

    visits: Any
    tested: Any
    tile: Any


class EveryTile:
    """Tiles inside the closed-form range of a predicate; all of them where there is none.

    Order: the partial tiles at the far end (last first), those at the near end, then the full ones, last first.
    """

    def __init__(self, plan: Plan) -> None:
        row, stream = plan.laid.shape.row, plan.laid.program.stream
        self.plan, self.rows, self.extent = plan, row.extent, stream.extent
        self.bounds = Bounds.of(plan.laid.program.predicate, row, stream)
        self.counts = counts = [self._range(t * plan.block_q, min) for t in range(plan.row_tiles)]
        self.most_tested = max(r.last - r.first - (r.last_full - r.first_full) for r in counts)
        self.always_tested = all(r.last - r.first > r.last_full - r.first_full for r in counts)
        self.any_untested = any(r.last_full > r.first_full for r in counts)
        self.may_be_empty = any(r.last <= r.first for r in counts)
        self.short = max(r.last - r.first for r in counts) < SHORT

    def _range(self, first_row: Any, least: Any) -> TileRange:
        last_row = least(first_row + (self.plan.block_q - 1), self.rows - 1)
        return self.bounds.tiles((first_row, last_row), self.plan.block_k, self.extent)

    def walk(self, group: Any, row_tile: Any, zero: Any) -> Walk:
        """Emit what a walk needs before its first tile."""
        r = self._range(row_tile * self.plan.block_q, tirx.min)
        first, last = let("first_tile", r.first), let("last_tile", r.last)
        first_full, last_full = let("first_full", r.first_full), let("last_full", r.last_full)
        visits, tested = last - first, (last - last_full) + (first_full - first)
        if self.short:
            hidden = zero()
            visits, tested = visits + hidden, tested + hidden if self.most_tested > 1 else tested
        tested = let("tested", tested)
        bound = TileRange(first, first_full, last_full, last)
        return Walk(let("visits", visits), tested, lambda n: nth_tile(bound, n))


def nth_tile(r: TileRange, n: Any) -> Any:
    """The n-th tile of a range, a number for numbers: far partial ones, near partial ones, full ones."""
    if isinstance(r.first, int) and isinstance(r.first_full, int) and r.first == r.first_full:
        return r.last - 1 - n
    far = r.last - r.last_full
    tested = far + (r.first_full - r.first)
    return _either(n < far, r.last - 1 - n, _either(n < tested, r.first + (n - far), r.last_full - 1 - (n - tested)))


def _either(condition: Any, one: Any, other: Any) -> Any:
    if isinstance(condition, bool):
        return one if condition else other
    return tirx.Select(condition, integer(one), integer(other))


class TileList:
    """The tiles of a compressed list, ``tested[row]`` partial ones first in each row.

    entry = group * row tiles + row tile; row_ptr[entry] .. row_ptr[entry + 1] are its places in ``col``.
    """

    def __init__(self, plan: Plan, buffers: Any, lists: Any) -> None:
        self.plan, self.buffers = plan, buffers
        tested, visits = lists["tested"], lists["row_ptr"][1:] - lists["row_ptr"][:-1]
        self.most_tested = int(tested.max())
        self.always_tested = bool(tested.min() > 0)
        self.any_untested = bool((visits > tested).any())
        self.may_be_empty = bool(visits.min() == 0)
        self.place: Any = None

    def walk(self, group: Any, row_tile: Any, zero: Any) -> Walk:
        entry = let("entry", group * self.plan.row_tiles + row_tile)
        first = let("first_place", self.buffers["row_ptr"][entry])
        self.place = lambda n: first + n
        visits = let("visits", self.buffers["row_ptr"][entry + 1] - first)
        tested = let("tested", self.buffers["tested"][entry]) if self.most_tested else 0
        return Walk(visits, tested, lambda n: self.buffers["col"][first + n])
