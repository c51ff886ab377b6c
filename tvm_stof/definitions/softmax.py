"""Row softmax, three passes as the formula says."""

from __future__ import annotations

from typing import Any

from tvm import te

from ..problems.softmax import Softmax
from .reducers import maximum


def build(problem: Softmax) -> Any:
    """PrimFunc of blocks row_max, weight, row_sum and y."""
    rows, cols = problem.rows, problem.cols
    x = te.placeholder((rows, cols), problem.dtype, "x")
    j, l = te.reduce_axis((0, cols), "j"), te.reduce_axis((0, cols), "j")
    row_max = te.compute((rows,), lambda i: maximum(x[i, j].astype("float32"), axis=j), "row_max")
    weight = te.compute((rows, cols), lambda i, j: te.exp(x[i, j].astype("float32") - row_max[i]), "weight")
    row_sum = te.compute((rows,), lambda i: te.sum(weight[i, l], axis=l), "row_sum")
    y = te.compute((rows, cols), lambda i, j: (weight[i, j] / row_sum[i]).astype(problem.dtype), "y")
    return te.create_prim_func([x, y])
