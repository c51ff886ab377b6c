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

    def __init__(self, plan: Plan, test: bool) -> None:
        row, stream = plan.laid.shape.row, plan.laid.program.stream
        self.plan, self.rows, self.extent = plan, row.extent, stream.extent
        self.bounds = Bounds.of(plan.laid.program.predicate, row, stream) if test else Bounds()
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
        far, near = last - last_full, first_full - first
        visits, tested = last - first, far + near
        if self.short:
            hidden = zero()
            visits, tested = visits + hidden, tested + hidden if self.most_tested > 1 else tested
        tested = let("tested", tested)
        simple = isinstance(first, int) and isinstance(first_full, int) and near == 0

        def tile(n: Any) -> Any:
            if simple:
                return last - 1 - n
            n = integer(n)
            at_far, at_near = last - 1 - n, first + (n - far)
            full = last_full - 1 - (n - tested)
            return tirx.Select(n < far, at_far, tirx.Select(n < tested, at_near, full))

        return Walk(let("visits", visits), tested, tile)


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
