"""The register-tiled product: the inner loop of every contraction on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tvm import tirx
from tvm.tirx.script.builder import ir as B

from .loops import local, store

#: row group -> (first, one after the last)
Span: TypeAlias = "Callable[[Any], tuple[Any, Any]]"


@dataclass(frozen=True)
class RegisterTile:
    """``rows`` x (``vectors`` * ``width``) accumulators kept in registers."""

    rows: int
    vectors: int
    width: int

    @property
    def cols(self) -> int:
        return self.vectors * self.width

    @property
    def step(self) -> int:
        """Lanes of one statement: a whole row where LLVM splits it cleanly (a power of two), which is less for it to read."""
        return self.cols if self.vectors & (self.vectors - 1) == 0 else self.width


def product(
    rows: int,
    cols: int,
    depth: int,
    tile: RegisterTile,
    *,
    lhs: Callable[[Any, Any], Any],
    rhs: Callable[[Any, Any], Any],
    init: Callable[[Any, Any], Any],
    done: Callable[[Any, Any, Any], None],
    cols_of: Span | None = None,
    depth_of: Span | None = None,
) -> None:
    """done(i, j, init(i, j) + sum over l < depth of lhs(i, l) * rhs(l, j)) for i < rows, j < cols.

    for jo: for io:                          # the panel of rhs stays in L1 while rows pass by
      acc[tile] = init
      for l: acc[r, v] += lhs[io + r, l] * rhs[l, jo + v]
      done(acc)

    ``cols_of`` and ``depth_of`` give, for each group of ``tile.rows`` rows, the columns to compute (whole register tiles around them are)
    and
    the steps to sum: what lies outside is known to be masked.
    """
    if rows % tile.rows or cols % tile.cols:
        raise ValueError(f"a {rows} x {cols} product does not divide into {tile.rows} x {tile.cols} register tiles")

    def block(io: Any, jo: Any) -> None:
        acc = local(tile.rows * tile.cols)

        def each(body: Callable[[Any, Any, Any], None], io: Any = io, jo: Any = jo) -> None:
            for r in range(tile.rows):
                for first in range(0, tile.cols, tile.step):
                    with B.vectorized(0, tile.step) as lane:
                        body(io * tile.rows + r, jo * tile.cols + first + lane, r * tile.cols + first + lane)

        each(lambda i, j, at: store(acc, init(i, j), at))
        first, last = depth_of(io) if depth_of is not None else (0, depth)
        with B.serial(0, last - first) as counted:
            step = first + counted
            each(lambda i, j, at: store(acc, acc[at] + lhs(i, step) * rhs(step, j), at))
        each(lambda i, j, at: done(i, j, acc[at]))

    if cols_of is None:
        with B.serial(0, cols // tile.cols) as jo, B.serial(0, rows // tile.rows) as io:
            block(io, jo)
        return
    with B.serial(0, rows // tile.rows) as io:
        first, last = cols_of(io)
        start = tirx.floordiv(first, tile.cols)
        with B.serial(0, tirx.floordiv(last + tile.cols - 1, tile.cols) - start) as counted:
            block(io, start + counted)
