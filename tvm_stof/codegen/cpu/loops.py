"""Small pieces every CPU emitter is made of: stores, vector loops over a row, reductions of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import tirx
from tvm.script import tirx as T
from tvm.tirx.script.builder import ir as B

from ..lower import number

COMBINE: dict[str, Callable[[Any, Any], Any]] = {"sum": lambda a, b: a + b, "max": tirx.max, "min": tirx.min, "prod": lambda a, b: a * b}


def parameter(name: str, shape: Sequence[int], dtype: str) -> Any:
    """A kernel argument. Only the element's own alignment is asked for: NumPy gives 16 bytes, a view 4, TVM would assume 64 and fault."""
    return B.arg(name, T.Buffer(tuple(shape), dtype, align=np.dtype(dtype).itemsize))


def store(buffer: Any, value: Any, *at: Any) -> None:
    """buffer[at] = value"""
    B.buffer_store(buffer, value, list(at))


def local(*shape: int, dtype: str = "float32") -> Any:
    """An array on the stack of the running thread (registers when all its indices are constant)."""
    return T.alloc_buffer(shape, dtype, scope="local", align=64)


def vectors(extent: int, width: int, body: Callable[[Any, Any], None]) -> None:
    """body(position, lane) for every position, ``width`` at a time.

    for c in serial(extent / width): for v in vectorized(width): body(c * width + v, v)
    """
    if extent == width:
        with B.vectorized(0, width) as v:
            body(v, v)
        return
    with B.serial(0, extent // width) as c, B.vectorized(0, width) as v:
        body(c * width + v, v)


def vectors_between(first: Any, last: Any, width: int, body: Callable[[Any, Any], None]) -> None:
    """The same from ``first`` to ``last``, both multiples of the width and known at run time only."""
    with B.serial(0, tirx.floordiv(last - first, width)) as c, B.vectorized(0, width) as v:
        body(first + c * width + v, v)


def fill(buffer: Any, shape: Sequence[int], value: float, width: int) -> None:
    """Set a local array of one or two dimensions to one number."""
    constant = number(value, "float32")
    width = width if shape[-1] % width == 0 else 1
    if len(shape) == 1:
        vectors(shape[0], width, lambda c, _: store(buffer, constant, c))
        return
    with B.serial(0, shape[0]) as r:
        vectors(shape[1], width, lambda c, _: store(buffer, constant, r, c))


def fold(lanes: Any, width: int, monoid: str) -> Any:
    """Reduce the lanes of a local vector in place, halving; the result stands in (and is returned as) lane 0.

    w[0:8] = w[0:8] (+) w[8:16]; w[0:4] = w[0:4] (+) w[4:8]; ...
    """
    half = width // 2
    while half >= 1:
        with B.vectorized(0, half) as v:
            store(lanes, COMBINE[monoid](lanes[v], lanes[v + half]), v)
        half //= 2
    return lanes[0]
