"""The attention oracle against the formula written out with loops."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_stof import reference, testing
from tvm_stof.expr import Expr, call, const, index, load
from tvm_stof.masks import BlockGrid, Dense, Mask
from tvm_stof.problems import Attention, TensorSpec
from tvm_stof.reference import attention as oracle
from tvm_stof.scores import Score, Sink


@dataclass(frozen=True)
class ByHead(Mask):
    """A band whose place depends on batch entry and head; some of its rows are empty."""

    depends_on = frozenset({"b", "h"})
    width: int

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        return (k >= q - b - 2 * h) & (k < q - b - 2 * h + self.width)

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        raise NotImplementedError


@dataclass(frozen=True)
class Slope(Score):
    """Position bias, head factor and a tensor in one, with a cast."""

    def expr(self, score: Expr, problem: Attention) -> Expr:
        distance = Expr("cast", ("float32", call("sub", index("j"), index("i"))))
        biased = call("add", score, call("mul", distance, load("slope", index("h"))))
        return call("mul", const(3.0), call("tanh", call("div", biased, const(3.0))))

    def tensors(self, problem: Any) -> tuple[TensorSpec, ...]:
        return (TensorSpec("slope", (problem.heads,), "float32"),)


def by_loops(p: Attention, x: dict[str, Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    o = np.zeros((p.batch, p.heads, p.q_len, p.value_dim))
    lse = np.full((p.batch, p.heads, p.q_len), -np.inf)
    for b, h, i in np.ndindex(lse.shape):
        keys = [j for j in range(p.kv_len) if p.bound_mask(i, j, b, h)]
        key_head = h // (p.heads // p.kv_heads)
        weights = []
        for j in keys:
            s = math.fsum(float(u) * float(w) for u, w in zip(x["q"][b, h, i], x["k"][b, key_head, j])) / math.sqrt(p.head_dim)
            if "slope" in x:
                s = 3 * math.tanh((s + (j - i) * float(x["slope"][h])) / 3)
            weights.append(math.exp(s))
        total = math.fsum(weights) + (math.exp(x["sink"][h]) if "sink" in x else 0)
        if total:
            lse[b, h, i] = math.log(total)
            rows = [w / total * x["v"][b, key_head, j].astype(np.float64) for w, j in zip(weights, keys)]
            o[b, h, i] = sum(rows, np.zeros(p.value_dim))
    return o, lse


SHAPES = {
    "plain": Attention(heads=2, q_len=5, head_dim=4, return_lse=True),
    "unequal": Attention(heads=4, kv_heads=2, q_len=3, kv_len=7, head_dim=4, value_dim=3, batch=2, return_lse=True),
    "by head": Attention(heads=4, kv_heads=1, q_len=9, kv_len=8, head_dim=2, batch=2, mask=ByHead(3), return_lse=True),
    "empty rows": Attention(heads=1, q_len=9, kv_len=2, head_dim=2, mask=ByHead(1), return_lse=True),
    "scores": Attention(heads=3, q_len=4, kv_len=6, head_dim=2, scores=(Slope(),), return_lse=True),
    "sink": Attention(heads=2, q_len=6, kv_len=3, head_dim=2, mask=ByHead(2), scores=(Sink(),), return_lse=True),
    "half": Attention(heads=2, q_len=4, head_dim=4, dtype="float16", return_lse=True),
}


@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("rows_at_once", [1, 2, 100])
def test_agrees_with_loops(case: str, rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = SHAPES[case]
    monkeypatch.setattr(oracle, "SCORES_AT_ONCE", rows_at_once * problem.kv_len)
    x = testing.inputs(problem, seed=3)
    got = reference.evaluate(problem, x)
    o, lse = by_loops(problem, x)
    np.testing.assert_allclose(got["o"], o, rtol=0, atol=1e-13)
    np.testing.assert_allclose(got["lse"], lse, rtol=0, atol=1e-13)
    assert got["o"].dtype == got["lse"].dtype == np.float64


def test_row_without_keys_is_zero_and_minus_infinity() -> None:
    problem = SHAPES["empty rows"]
    got = reference.evaluate(problem, testing.inputs(problem))
    assert np.isneginf(got["lse"][0, 0, 2:]).all()
    assert np.isfinite(got["lse"][0, 0, :2]).all()
    assert not got["o"][0, 0, 2:].any()


def test_lse_only_when_asked() -> None:
    problem = Attention(heads=1, q_len=2, head_dim=2)
    assert set(reference.evaluate(problem, testing.inputs(problem))) == {"o"}


def test_large_scores_do_not_overflow() -> None:
    problem = Attention(heads=1, q_len=2, head_dim=1, return_lse=True)
    x = {name: np.full((1, 1, 2, 1), 3e3, np.float32) for name in "qkv"}
    got = reference.evaluate(problem, x)
    assert got["o"].ravel().tolist() == [3e3, 3e3]
    assert got["lse"].ravel() == pytest.approx(9e6 + math.log(2))


def test_long_sequence_needs_little_memory() -> None:
    problem = Attention(heads=1, q_len=4096, head_dim=8, mask=ByHead(100))
    x = testing.inputs(problem)
    tracemalloc.start()
    reference.evaluate(problem, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4096 * 4096 * 8


@pytest.mark.parametrize("case", SHAPES)
def test_own_float32_is_within_half_the_budget(case: str) -> None:
    problem = SHAPES[case]
    x = testing.inputs(problem, seed=5)
    expected = reference.expect(problem, x)
    for attempt in oracle.attempts(problem, x):
        whole = {s.name: attempt[s.name].astype(s.dtype) for s in problem.outputs()}
        if not any(np.isnan(a).any() for a in whole.values()):
            result = expected.compare(whole)
            assert result.ok
            assert result.max_abs <= result.budget / 2


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 64), st.integers(0, 1000))
def test_another_float32_evaluation_is_within_budget(q_len: int, kv_len: int, head_dim: int, seed: int) -> None:
    problem = Attention(heads=1, q_len=q_len, kv_len=kv_len, head_dim=head_dim, return_lse=True)
    x = testing.inputs(problem, seed)
    scale = np.float32(1 / math.sqrt(head_dim) * math.log2(math.e))
    s = np.einsum("id,jd->ij", x["q"][0, 0] * scale, x["k"][0, 0])
    top = s.max(axis=1, keepdims=True)
    p = np.exp2(s - top)
    total = p[:, ::-1].sum(axis=1, keepdims=True, dtype=np.float32)
    outputs = {"o": (p / total @ x["v"][0, 0])[None, None], "lse": ((np.log2(total) + top) * np.float32(math.log(2)))[None, None, :, 0]}
    assert reference.compare(problem, x, outputs).message == ""


def test_budget_is_tight() -> None:
    problem = Attention(heads=2, q_len=64, kv_len=100, head_dim=64, mask=Dense())
    x = testing.inputs(problem)
    budget = reference.budget(problem, x)["o"]
    scale = np.abs(reference.evaluate(problem, x)["o"]).max()
    assert 2e-7 * scale < budget < 1e-5 * scale
    half = dataclasses.replace(problem, dtype="float16")
    assert 1e-3 * scale < reference.budget(half, testing.inputs(half))["o"] < 1e-2 * scale
