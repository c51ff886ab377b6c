"""The softmax oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_stof import reference, testing
from tvm_stof.problems import Softmax


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_agrees_with_loops(dtype: str) -> None:
    problem = Softmax(rows=3, cols=7, dtype=dtype)
    x = testing.inputs(problem)
    got = reference.evaluate(problem, x)["y"]
    for row, values in zip(got, x["x"]):
        total = math.fsum(math.exp(v) for v in values)
        assert row == pytest.approx([math.exp(v) / total for v in values], rel=1e-13)


def test_row_of_minus_infinity_is_nan_on_both_sides() -> None:
    problem = Softmax(rows=2, cols=3)
    x = {"x": np.array([[-np.inf] * 3, [0, -np.inf, 0]], np.float32)}
    got = reference.evaluate(problem, x)["y"]
    assert np.isnan(got[0]).all()
    assert got[1].tolist() == [0.5, 0.0, 0.5]
    assert reference.compare(problem, x, {"y": got.astype(np.float32)}).ok


@given(st.integers(1, 9), st.integers(1, 300), st.integers(0, 1000))
def test_online_float32_evaluation_is_within_budget(rows: int, cols: int, seed: int) -> None:
    problem = Softmax(rows=rows, cols=cols)
    x = testing.inputs(problem, seed)
    top, total = np.full((rows, 1), -np.inf, np.float32), np.zeros((rows, 1), np.float32)
    for start in range(0, cols, 16):
        tile = x["x"][:, start : start + 16]
        new = np.maximum(top, tile.max(axis=1, keepdims=True))
        total = total * np.exp(top - new) + np.exp(tile - new).sum(axis=1, keepdims=True)
        top = new
    y = np.exp(x["x"] - top) * (np.float32(1) / total)
    assert reference.compare(problem, x, {"y": y}).message == ""
