"""Softmax in NumPy: float64 for truth, float32 for the budget."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..problems import Softmax
from .compare import Arrays, fast_exp

ATTEMPTED_ROWS = 128
MAX_ATTEMPTS = 32
SMALLEST_SCALE: dict[str, float] = {}


def sample(problem: Softmax) -> None:
    """Always evaluated as a whole."""


def evaluate(problem: Softmax, inputs: Arrays, blocks: None = None) -> Arrays:
    """y in float64."""
    x = inputs["x"].astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return {"y": e / e.sum(axis=1, keepdims=True)}


def attempts(problem: Softmax, inputs: Arrays, blocks: None = None) -> Iterator[Arrays]:
    """NumPy's pairwise sums on all rows, then one-by-one sums in shuffled order on enough rows to meet bad luck."""
    x = inputs["x"].astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        shifted = x - x.max(axis=1, keepdims=True)
        e = np.exp(shifted)
        yield {"y": e / e.sum(axis=1, keepdims=True)}
        rows = np.unique(np.linspace(0, problem.rows - 1, ATTEMPTED_ROWS).astype(np.int64))
        for seed in range(min(MAX_ATTEMPTS, -(-ATTEMPTED_ROWS // len(rows)))):
            order = np.random.default_rng(seed).permutation(problem.cols)
            e = fast_exp(shifted, seed)
            total: npt.NDArray[np.float32] = np.cumsum(e[rows][:, order], axis=1, dtype=np.float32)[:, -1:]
            y = np.full(x.shape, np.nan, np.float32)
            y[rows] = e[rows] * (np.float32(1) / total)
            yield {"y": y}
