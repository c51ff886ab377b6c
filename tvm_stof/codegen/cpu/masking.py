"""Tests of single elements in tiles that are not whole: the definition's predicate, stored bits, or just the end of the axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm import tirx

from ...expr import Expr
from ..lower import lower, number
from .shape import ContractedShape

#: test(outer, row0, r, col0, c, x) -> x or -inf
Test = Callable[[Mapping[str, Any], Any, Any, Any, Any, Any], Any]


def keep(conditions: list[Any], x: Any) -> Any:
    """x where all conditions hold, else -inf (which is neutral to every stage of a program with a predicate)."""
    return tirx.Select(tirx.all(*conditions), x, number(float("-inf"), "float32")) if conditions else x


def edge_test(shape: ContractedShape, cols: int) -> Test | None:
    """Only elements before the end of the streamed axis; None when the tiles divide it."""
    extent = shape.program.stream.extent
    if extent % cols == 0:
        return None
    return lambda outer, row0, r, col0, c, x: keep([col0 + c < extent], x)


def predicate_test(shape: ContractedShape, predicate: Expr, cols: int) -> Test:
    """The definition's own predicate, and the end of the axis."""
    extent = shape.program.stream.extent

    def test(outer: Mapping[str, Any], row0: Any, r: Any, col0: Any, c: Any, x: Any) -> Any:
        at = {**outer, shape.row.name: row0 + r, shape.program.stream.name: col0 + c}
        condition = lower(predicate, lambda e, _: at[e.args[0]], "int32")
        return keep([condition] + ([col0 + c < extent] if extent % cols else []), x)

    return test


def bits_test(tiles: Any, tile_index: Any) -> Test:
    """Stored bits: tiles[tile_index] holds 0 for masked elements and past both ends."""
    return lambda outer, row0, r, col0, c, x: keep([tirx.NE(tiles[tile_index, r, c], tirx.const(0, "uint8"))], x)
