"""Where the elements of a wgmma accumulator live, and reductions over a row of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.script import tirx as T

from .instructions import store

#: rows of one consumer warpgroup, the M of wgmma; each of its four warps owns 16 of them
ROWS = 64
WARPGROUP = 128
#: a thread holds elements of this many rows
HELD = 2

Combine = Callable[[Any, Any], Any]


def row_of(i: int) -> int:
    """Which of a thread's two rows register i of an accumulator belongs to."""
    return i // 2 % 2


def column_offset(i: int) -> int:
    """Columns from a thread's first one to that of register i."""
    return 8 * (i // 4) + i % 2


def fragment(lane: Any, i: int) -> tuple[Any, Any]:
    """(row, column) of accumulator register i among its warp's 16 rows."""
    return lane // 4 + 8 * row_of(i), 2 * (lane % 4) + column_offset(i)


def registers_of(row: int, columns: int) -> list[int]:
    """Registers of a 64 x columns accumulator that belong to one of a thread's two rows."""
    return [i for i in range(columns // 2) if row_of(i) == row]


def tree(combine: Combine, values: Sequence[Any]) -> Any:
    """Reduce pairwise: short dependency chains."""
    while len(values) > 1:
        values = [combine(*values[i : i + 2]) if i + 1 < len(values) else values[i] for i in range(0, len(values), 2)]
    return values[0]


def quad_reduce(combine: Combine, buffer: Any, index: int) -> None:
    """All-reduce over the four lanes that share a row."""
    for distance in (1, 2):
        other = T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), buffer[index], distance, 32, 32)
        store(buffer, combine(buffer[index], other), index)
