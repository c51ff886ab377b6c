"""Streaming kernels without a product."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_stof.codegen import materialise
from tvm_stof.problems import Softmax
from tvm_stof.targets import current_device

from .running import assert_right, legal_candidates, run


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("family", ["single_segment", "multi_segment"])
@pytest.mark.parametrize(("rows", "cols"), [(1, 65537), (7, 13), (5, 1027), (33, 256), (2, 4096)])
def test_shapes(rows: int, cols: int, family: str, dtype: str) -> None:
    problem = Softmax(rows=rows, cols=cols, dtype=dtype)
    candidates = legal_candidates(problem, family)
    if not candidates:
        assert family == "multi_segment"
        assert cols < 64
        return
    pick = random.Random(f"{rows} {cols} {family} {dtype}")
    for decisions in pick.sample(candidates, k=2):
        assert_right(problem, decisions, seed=pick.randrange(1 << 30))


@settings(max_examples=20)
@given(rows=st.integers(1, 40), cols=st.integers(1, 700), seed=st.integers(0, 99), pick=st.randoms(use_true_random=False))
def test_random_shape(rows: int, cols: int, seed: int, pick: random.Random) -> None:
    problem = Softmax(rows=rows, cols=cols)
    assert_right(problem, pick.choice([c for f in ("single_segment", "multi_segment") for c in legal_candidates(problem, f)]), seed)


def test_spread_of_1e30_and_infinities() -> None:
    """Huge spread, -inf elements, a row of +inf or of -inf only (NaN, as the formula gives), constant rows."""
    problem = Softmax(rows=6, cols=50)
    x = np.random.default_rng(0).standard_normal((6, 50)).astype(np.float32)
    x[0] *= 1e30
    x[1, ::2] = -np.inf
    x[2] = 3.0
    x[3] = -np.inf
    x[4, 7] = np.nan
    x[5, :40] = -np.inf
    with np.errstate(invalid="ignore"):
        e = np.exp(x.astype(np.float64) - x.astype(np.float64).max(1, keepdims=True))
        expected = e / e.sum(1, keepdims=True)
    device = current_device()
    for family in ("single_segment", "multi_segment"):
        for decisions in legal_candidates(problem, family)[:6]:
            got = run(problem, materialise(problem, decisions, device), {"x": x}, device)["y"]
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-30, err_msg=str(decisions))
