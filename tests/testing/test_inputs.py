"""Inputs are what a problem asks for, the same for the same seed."""

from __future__ import annotations

import numpy as np

from tvm_stof import testing
from tvm_stof.problems import Attention

PROBLEM = Attention(heads=2, q_len=64, head_dim=32, dtype="float16")


def test_shapes_and_dtypes_are_the_problem_s() -> None:
    got = testing.inputs(PROBLEM)
    assert [(name, a.shape, str(a.dtype)) for name, a in got.items()] == [(s.name, s.shape, s.dtype) for s in PROBLEM.inputs()]


def test_seed_decides() -> None:
    one, same, other = (testing.inputs(PROBLEM, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert not any(np.array_equal(one[name], other[name]) for name in one)
    assert not np.array_equal(one["q"], one["k"])


def test_values_are_standard_normal() -> None:
    q = testing.inputs(PROBLEM)["q"].astype(np.float64)
    assert abs(q.mean()) < 0.05
    assert abs(q.std() - 1) < 0.05
