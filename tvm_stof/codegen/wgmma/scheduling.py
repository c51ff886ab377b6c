"""From a block of threads to its work item: position on the outer axes and row tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from .instructions import integer, let
from .plan import Plan


@dataclass(frozen=True)
class Place:
    """A work item: positions on the outer axes, list group, row tile, its first row."""

    at: dict[str, Any]
    group: Any
    row_tile: Any
    row0: Any


def place_of(plan: Plan, number: Any, strides: Sequence[int], order: Any) -> Place:
    """The number-th work item.

    Without a given order, row tiles of ``heads_together`` outer positions alternate, last row tile first: under a mask that grows with the
    row the longest ones start first, and neighbours share their keys in cache.
    """
    task = let("task", order[number]) if order is not None else number
    outer_positions = 1
    for axis in plan.laid.shape.outer:
        outer_positions *= axis.extent
    together = plan.heads_together
    if order is not None:
        row_tile, position = tirx.floormod(task, plan.row_tiles), tirx.floordiv(task, plan.row_tiles)
    elif together == 1 or outer_positions % together:
        row_tile, position = plan.row_tiles - 1 - tirx.floormod(task, plan.row_tiles), tirx.floordiv(task, plan.row_tiles)
    else:
        section, rest = tirx.floordiv(task, plan.row_tiles * together), tirx.floormod(task, plan.row_tiles * together)
        row_tile, position = plan.row_tiles - 1 - tirx.floordiv(rest, together), section * together + tirx.floormod(rest, together)
    row_tile, position = let("row_tile", row_tile), let("position", position)
    at: dict[str, Any] = {}
    group: Any = integer(0)
    for axis, stride in zip(reversed(plan.laid.shape.outer), reversed(strides)):
        at[axis.name] = let(axis.name, tirx.floormod(position, axis.extent))
        position = tirx.floordiv(position, axis.extent)
        group = group + at[axis.name] * stride if stride else group
    return Place(at, group, row_tile, let("row", row_tile * plan.block_q))
