"""Visitors: which column tiles a row tile streams, and which of them need a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as B

from .loops import local, store

#: each(tile, untested, test, span): ``untested`` is a run-time condition, or None when ``test`` alone decides at generation time;
#: ``span`` bounds what can take part in each group of rows, None where that is everything
Each = Callable[[Any, Any, Any, Any], None]


def share(begin: Any, end: Any, part: tuple[Any, int]) -> tuple[Any, Any]:
    """The part-th of equal shares of [begin, end)."""
    number, count = part
    if count == 1:
        return begin, end
    length = end - begin
    return begin + tirx.floordiv(length * number, count), begin + tirx.floordiv(length * (number + 1), count)


@dataclass(frozen=True)
class Visitor:
    """Base: how a row tile walks the streamed axis."""

    def emit(self, group: Any, row_tile: Any, part: tuple[Any, int], each: Each) -> None:
        """Emit the loop; ``part`` = (segment, segments)."""
        raise NotImplementedError


@dataclass(frozen=True)
class EveryTile(Visitor):
    """All tiles in order; all tested, or none but a ragged last one."""

    tiles: int
    test: Any
    edge: Any

    def emit(self, group: Any, row_tile: Any, part: tuple[Any, int], each: Each) -> None:
        begin, end = share(0, self.tiles, part)
        with B.serial(begin, end) as tile:
            if self.test is not None:
                each(tile, None, self.test, None)
            elif self.edge is not None:
                each(tile, tile < self.tiles - 1, self.edge, None)
            else:
                each(tile, None, None, None)


@dataclass(frozen=True)
class BlockList(Visitor):
    """The tiles of a compressed row list.

    ``whole[n]`` is 1 where every element of the tile takes part; ``spans[span[n], g]`` are the columns that can take part in the g-th group
    of rows of a register tile.
    """

    row_tiles: int
    row_ptr: Any
    col: Any
    whole: Any
    test: Callable[[Any], Any]
    mixed: bool
    all_whole: bool
    span: Any
    spans: Any

    def emit(self, group: Any, row_tile: Any, part: tuple[Any, int], each: Each) -> None:
        row = group * self.row_tiles + row_tile
        begin, end = share(self.row_ptr[row], self.row_ptr[row + 1], part)
        bounds = local(2, dtype="int32")
        store(bounds, begin, 0)
        store(bounds, end, 1)
        with B.serial(0, bounds[1] - bounds[0]) as step:
            at = bounds[0] + step
            if self.all_whole:
                each(self.col[at], None, None, None)
            else:
                untested = tirx.EQ(self.whole[at], tirx.const(1, "uint8")) if self.mixed else None
                spans, number = self.spans, self.span[at]
                each(self.col[at], untested, self.test(at), lambda g: (spans[number, g, 0], spans[number, g, 1]))
