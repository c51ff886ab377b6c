"""Large problems are checked on a sample of rows, and everything else must at least have been written."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_stof import reference, testing
from tvm_stof.masks import parse
from tvm_stof.problems import Attention
from tvm_stof.reference import attention as oracle

PROBLEM = Attention(batch=2, heads=3, q_len=40, kv_len=33, head_dim=8, mask=parse("causal & window(5)"), return_lse=True)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "WHOLE_SCORES", 1000)
    monkeypatch.setattr(oracle, "SAMPLED_SCORES", 2000)


def test_a_right_result_passes_and_only_sampled_rows_are_kept() -> None:
    x = testing.inputs(PROBLEM)
    expected = reference.expect(PROBLEM, x)
    assert expected.values["lse"].size < 2 * 3 * 40
    right = {n: v.astype(np.float32) for n, v in reference.evaluate(PROBLEM, x).items()}
    assert expected.compare(right).ok
    np.testing.assert_allclose(expected.values["lse"], reference.evaluate(PROBLEM, x)["lse"].ravel()[expected.places["lse"]], atol=1e-13)


def test_an_error_in_a_sampled_row_is_named_by_its_place() -> None:
    x = testing.inputs(PROBLEM)
    expected = reference.expect(PROBLEM, x)
    wrong = {n: v.astype(np.float32) for n, v in reference.evaluate(PROBLEM, x).items()}
    wrong["o"][1, 2, 39, 3] += 1  # the last row is in every sample
    found = expected.compare(wrong)
    assert not found.ok
    assert "o[1, 2, 39, 3]" in found.message


def test_an_unwritten_row_outside_the_sample_is_found() -> None:
    x = testing.inputs(PROBLEM)
    expected = reference.expect(PROBLEM, x)
    left_out = next(n for n in range(2 * 3 * 40) if n not in expected.places["lse"])
    outputs = {n: v.astype(np.float32) for n, v in reference.evaluate(PROBLEM, x).items()}
    outputs["lse"].flat[left_out] = np.nan
    found = expected.compare(outputs)
    assert not found.ok
    assert "1 elements of lse are NaN" in found.message
