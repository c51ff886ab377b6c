"""Small cascades over rows, written with te as a user would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import te, tirx

ROWS, COLS = 3, 16


def _reducer(op: Callable[[Any, Any], Any], neutral: float) -> Any:
    return te.comm_reducer(op, lambda dtype: tirx.const(neutral, dtype), name="r")


REDUCERS = {
    "sum": _reducer(lambda a, b: a + b, 0.0),
    "max": _reducer(lambda a, b: tirx.max(a, b), float("-inf")),
    "min": _reducer(lambda a, b: tirx.min(a, b), float("inf")),
    "prod": _reducer(lambda a, b: a * b, 1.0),
}


class Rows:
    """A PrimFunc over [rows, cols] inputs under construction: ``reduce`` gives a result per row, ``stream`` a value per element."""

    def __init__(self, *inputs: str, rows: int = ROWS, cols: int = COLS, dtype: str = "float32") -> None:
        self.rows, self.cols, self.dtype = rows, cols, dtype
        self.inputs = {name: te.placeholder((rows, cols), dtype, name) for name in inputs}
        self.outputs: list[Any] = []
        self.steps = 0

    def __getitem__(self, name: str) -> Any:
        return self.inputs[name]

    def input(self, name: str, shape: tuple[int, ...], dtype: str = "float32") -> Any:
        """One more input, of any shape."""
        self.inputs[name] = te.placeholder(shape, dtype, name)
        return self.inputs[name]

    def reduce(self, monoid: str, term: Callable[[Any, Any], Any], name: str = "") -> Any:
        """d[i] = R over l of term(i, l)."""
        self.steps += 1
        axis = te.reduce_axis((0, self.cols), "l")
        return te.compute((self.rows,), lambda i: REDUCERS[monoid](term(i, axis), axis=axis), name or f"d{self.steps}")

    def wide(self, width: int, term: Callable[[Any, Any, Any], Any], name: str = "") -> Any:
        """d[i, n] = sum over l of term(i, n, l)."""
        self.steps += 1
        axis = te.reduce_axis((0, self.cols), "l")
        return te.compute((self.rows, width), lambda i, n: te.sum(term(i, n, axis), axis=axis), name or f"d{self.steps}")

    def row(self, value: Callable[[Any], Any], name: str = "") -> Any:
        """A value per row, not reduced."""
        self.steps += 1
        return te.compute((self.rows,), value, name or f"r{self.steps}")

    def stream(self, value: Callable[[Any, Any], Any], name: str = "") -> Any:
        """A value per element."""
        self.steps += 1
        return te.compute((self.rows, self.cols), value, name or f"e{self.steps}")

    def func(self, *outputs: Any) -> Any:
        """The PrimFunc that returns these."""
        return te.create_prim_func([*self.inputs.values(), *outputs])


def data(func: Any, seed: int = 0, scale: float = 1.0) -> dict[str, npt.NDArray[Any]]:
    """Normal random float64 data for the inputs of a PrimFunc."""
    from tvm_stof.cascade.blocks import read

    generator = np.random.default_rng(seed)
    tensors = read(func).tensors
    return {t.name: generator.normal(size=t.shape) * scale for t in tensors if not t.output}
