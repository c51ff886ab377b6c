"""The verdict on a kernel's outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tvm_stof import reference, testing
from tvm_stof.errors import ArgumentError, ProblemError
from tvm_stof.problems import Attention, Problem, Softmax, TensorSpec
from tvm_stof.reference import Expected
from tvm_stof.reference.compare import distance

PROBLEM = Attention(heads=1, q_len=2, head_dim=2, return_lse=True)
INF, NAN = np.inf, np.nan


def expected(lse: list[float]) -> Expected:
    values = {"o": np.zeros((1, 1, 2, 2)), "lse": np.array([[lse]])}
    return Expected(PROBLEM, values, {"o": 0.5, "lse": 0.25})


def outputs(lse: list[float], o: float = 0.0) -> dict[str, Any]:
    return {"o": np.full((1, 1, 2, 2), o, np.float32), "lse": np.array([[lse]], np.float32)}


def test_within_budget() -> None:
    got = reference.check(expected([1, 2]), outputs([1.25, 2], 0.5))
    assert (got.ok, got.max_abs, got.message) == (True, 0.5, "")


def test_output_furthest_over_its_budget_is_named_with_a_place() -> None:
    got = reference.check(expected([1, 2]), outputs([1, 4], 0.5))
    assert (got.ok, got.output, got.max_abs, got.budget) == (False, "lse", 2.0, 0.25)
    assert "lse[0, 0, 1] is 4.0 where float64 gives 2.0" in got.message
    assert "1 of 2 elements" in got.message


def test_minus_infinity_equals_minus_infinity() -> None:
    assert reference.check(expected([-INF, 2]), outputs([-INF, 2])).ok


@pytest.mark.parametrize(("want", "got"), [(1.0, NAN), (1.0, INF), (1.0, -INF), (-INF, 1.0), (-INF, INF), (-INF, NAN)])
def test_nan_or_infinity_in_the_wrong_place_is_wrong(want: float, got: float) -> None:
    result = reference.check(expected([want, 2]), outputs([got, 2]))
    assert not result.ok
    assert result.to_data() == {"max_abs": "inf", "budget": 0.25}


def test_distance_of_two_nan_is_zero() -> None:
    assert distance(np.array([NAN], np.float32), np.array([NAN])).tolist() == [0.0]


@pytest.mark.parametrize(
    "bad",
    [
        {"o": np.zeros((1, 1, 2, 2), np.float32)},
        {**outputs([1, 2]), "more": np.zeros(1)},
        {**outputs([1, 2]), "o": np.zeros((2, 2), np.float32)},
        {**outputs([1, 2]), "o": np.zeros((1, 1, 2, 2), np.float64)},
    ],
)
def test_arrays_that_do_not_fit_are_an_argument_error(bad: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=r"fit the problem: got .*; accepted: "):
        reference.check(expected([1, 2]), bad)


def test_inputs_are_checked() -> None:
    with pytest.raises(ArgumentError, match="'x' does not fit"):
        reference.evaluate(Softmax(2, 3), {"x": np.zeros((3, 2), np.float32)})


def test_kind_without_an_oracle() -> None:
    class Other(Problem):
        kind = "other"

        def inputs(self) -> tuple[TensorSpec, ...]:
            return ()

        outputs = inputs

    with pytest.raises(ProblemError, match=r"no oracle .*'other'; accepted: attention, softmax"):
        reference.evaluate(Other(), {})


def test_wrong_kernel_is_found() -> None:
    problem = Softmax(rows=4, cols=33)
    x = testing.inputs(problem)
    y = reference.evaluate(problem, x)["y"].astype(np.float32)
    assert reference.compare(problem, x, {"y": y}).ok
    assert not reference.compare(problem, x, {"y": y * np.float32(1 + 3e-6)}).ok
