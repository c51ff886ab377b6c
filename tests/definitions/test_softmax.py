"""The softmax definition, compiled without any schedule, against the float64 oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tvm

from tvm_stof import reference, testing
from tvm_stof.definitions import definition
from tvm_stof.errors import ProblemError
from tvm_stof.problems import Softmax


def run(problem: Softmax, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    y = tvm.runtime.tensor(np.full(problem.outputs()[0].shape, np.nan, problem.dtype))
    tvm.compile(definition(problem), target="llvm")(tvm.runtime.tensor(x), y)
    out: npt.NDArray[Any] = y.numpy()
    return out


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (3, 1), (1, 257), (7, 13), (64, 64)])
def test_within_budget(rows: int, cols: int, dtype: str) -> None:
    problem = Softmax(rows, cols, dtype)
    arrays = testing.inputs(problem, 0)
    verdict = reference.compare(problem, arrays, {"y": run(problem, arrays["x"])})
    assert verdict.ok, verdict.message


def test_huge_values_and_masked_elements() -> None:
    x = np.array([[1e4, 1e4, -1e4, -np.inf], [-3e38, -3e38, -3e38, -3e38], [-np.inf, -np.inf, -np.inf, -5.0]], np.float32)
    np.testing.assert_array_equal(run(Softmax(3, 4), x), [[0.5, 0.5, 0.0, 0.0], [0.25] * 4, [0.0, 0.0, 0.0, 1.0]])


def test_row_of_minus_infinity_is_nan_as_the_formula_says() -> None:
    assert np.all(np.isnan(run(Softmax(1, 4), np.full((1, 4), -np.inf, np.float32))))


def test_blocks_and_parameters_have_their_names() -> None:
    script = definition(Softmax(4, 8))["main"].script()
    assert all(f'sblock("{name}")' in script for name in ("row_max", "weight", "row_sum", "y"))
    assert [p.name for p in definition(Softmax(4, 8))["main"].params] == ["x", "y"]


def test_unknown_kind_is_an_error() -> None:
    class Unknown:
        kind = "no_such_kind"

    with pytest.raises(ProblemError, match="no_such_kind"):
        definition(Unknown())  # type: ignore[arg-type]
