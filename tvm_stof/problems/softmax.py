"""Row softmax: the smallest cascade (max, then the sum that needs it, then an output that needs both)."""

from __future__ import annotations

from dataclasses import dataclass

from ..canonical import canonical
from .base import TensorSpec, known_dtype, positive
from .cascaded import CascadedReduction


@canonical("softmax")
@dataclass(frozen=True)
class Softmax(CascadedReduction):
    """y[i, j] = exp(x[i, j] - max_j x[i, j]) / sum_j exp(x[i, j] - max_j x[i, j]).

    x, y: [rows, cols] in ``dtype``; statistics are kept in float32. A row of all -inf gives NaN, as the formula says.

    Examples
    --------
    >>> Softmax(rows=8, cols=16).outputs()[0].shape
    (8, 16)
    """

    rows: int
    cols: int
    dtype: str = "float32"

    def __post_init__(self) -> None:
        positive(rows=self.rows, cols=self.cols)
        known_dtype(self.dtype)

    def inputs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec("x", (self.rows, self.cols), self.dtype),)

    def outputs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec("y", (self.rows, self.cols), self.dtype),)
