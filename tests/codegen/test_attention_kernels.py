"""Every mask x awkward shapes x dtypes x grouped heads, each through every family that has a kernel for it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_stof import masks, scores
from tvm_stof.masks import Mask
from tvm_stof.problems import Attention

from .running import assert_right, legal_candidates

FAMILIES = ("single_segment", "multi_segment", "block_sparse", "row_wise")


def _array(q_len: int, kv_len: int) -> Mask:
    taken = np.random.default_rng(q_len * 1000 + kv_len).random((q_len, kv_len)) < 0.3
    taken[q_len // 2] = False
    return masks.Array.of(taken)


def _masks(q_len: int, kv_len: int) -> dict[str, Mask]:
    """One of each kind, sized for the shape."""
    causal = masks.Causal(align="bottom_right")
    half = max(1, kv_len // 2)
    return {
        "dense": masks.Dense(),
        "causal": masks.Causal(),
        "causal_end": causal,
        "window": masks.SlidingWindow(7, 5),
        "causal_window": masks.parse("causal & window(16)"),
        "dilated": masks.parse("dilated(12, 3)"),
        "strided": masks.parse("causal & strided(8)"),
        "global": masks.parse("global(3)"),
        "prefix": masks.parse(f"prefix({half})"),
        "longformer": masks.parse("longformer(9, 2)"),
        "bigbird": masks.parse("bigbird(16)"),
        "random": masks.parse("random(16, 1)"),
        "none": ~masks.Dense(),
        "not_causal": ~causal,
        "array": _array(q_len, kv_len),
        "function": masks.Function.trace(lambda b, h, q, kv: (q + kv + h) % 3 == 0),
        "per_head": masks.Function.trace(lambda b, h, q, kv: kv <= q * (h + 1) + b),
    }


SHAPES = {
    "odd": {"q_len": 67, "kv_len": 67, "head_dim": 32},
    "longer_keys": {"q_len": 31, "kv_len": 113, "head_dim": 24, "value_dim": 40},
    "longer_queries": {"q_len": 101, "kv_len": 45, "head_dim": 16},
    "one_row": {"q_len": 1, "kv_len": 97, "head_dim": 64},
    "one_key": {"q_len": 19, "kv_len": 1, "head_dim": 8},
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mask", sorted(_masks(8, 8)))
def test_mask_on_awkward_shape(mask: str, shape: str, dtype: str) -> None:
    sizes = SHAPES[shape]
    chosen = _masks(sizes["q_len"], sizes["kv_len"])[mask]
    problem = Attention(batch=2, heads=4, kv_heads=2, dtype=dtype, mask=chosen, return_lse=True, **sizes)
    offered = [(f, legal_candidates(problem, f)) for f in FAMILIES]
    offered = [(f, c) for f, c in offered if c]
    assert any(f == "row_wise" for f, _ in offered)
    pick = random.Random(f"{mask} {shape} {dtype}")
    for _, candidates in pick.sample(offered, k=min(2, len(offered))):
        assert_right(problem, pick.choice(candidates), seed=pick.randrange(1 << 30))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "score",
    [
        scores.Scale(0.3),
        scores.Softcap(5.0),
        scores.ALiBi(),
        scores.RelativeBias(9),
        scores.Bias(),
        scores.Bias(batch=2, heads=4),
        scores.Sink(),
    ],
    ids=lambda s: s.kind,
)
def test_score_modification(score: scores.Score, family: str) -> None:
    problem = Attention(
        batch=2, heads=4, q_len=37, kv_len=53, head_dim=16, mask=masks.Causal(align="bottom_right"), scores=(score,), return_lse=True
    )
    pick = random.Random(score.kind + family)
    assert_right(problem, pick.choice(legal_candidates(problem, family)), seed=pick.randrange(1 << 30))


def test_all_scores_at_once() -> None:
    every = (scores.Scale(0.2), scores.Softcap(8.0), scores.ALiBi(), scores.RelativeBias(5), scores.Bias(batch=1, heads=2), scores.Sink())
    problem = Attention(
        heads=2, q_len=33, head_dim=16, mask=masks.parse("causal & window(10)"), scores=every, return_lse=True, dtype="float16"
    )
    for family in FAMILIES:
        assert_right(problem, legal_candidates(problem, family)[0])


@pytest.mark.parametrize("test", ["predicate", "bits"])
def test_rows_that_meet_nothing_first(test: str) -> None:
    """The first tiles a row visits are masked for it, so its running maximum is still -inf when they are merged."""
    band = masks.Function.trace(lambda b, h, q, kv: kv >= q + 20)
    problem = Attention(heads=1, q_len=64, head_dim=16, mask=band, return_lse=True)
    assert_right(problem, {"family": "block_sparse", "block_q": 32, "block_k": 16, "mr": 4, "nr": 1, "test": test})


def test_large_scores_do_not_overflow() -> None:
    problem = Attention(heads=2, q_len=40, kv_len=70, head_dim=32, scores=(scores.Scale(40.0),), return_lse=True)
    for family in ("single_segment", "multi_segment", "row_wise"):
        assert_right(problem, legal_candidates(problem, family)[-1], seed=3)


@settings(max_examples=25)
@given(data=st.data())
def test_random_problem(data: st.DataObject) -> None:
    """Random shapes, random combinations of masks, a random legal kernel of a random family."""
    q_len, kv_len = data.draw(st.integers(1, 90)), data.draw(st.integers(1, 90))
    known = _masks(q_len, kv_len)
    first, second = (known[data.draw(st.sampled_from(sorted(known)))] for _ in range(2))
    mask = data.draw(st.sampled_from([first, first & second, first | second, first & ~second]))
    kv_heads = data.draw(st.integers(1, 2))
    problem = Attention(
        batch=data.draw(st.integers(1, 2)), heads=kv_heads * data.draw(st.integers(1, 3)), kv_heads=kv_heads, q_len=q_len, kv_len=kv_len,
        head_dim=data.draw(st.integers(1, 40)), value_dim=data.draw(st.integers(1, 40)), mask=mask,
        dtype=data.draw(st.sampled_from(["float32", "float16"])), return_lse=data.draw(st.booleans()),
    )  # fmt: skip
    candidates = [c for f in FAMILIES for c in legal_candidates(problem, f)]
    assert_right(problem, data.draw(st.sampled_from(candidates)), seed=data.draw(st.integers(0, 99)))
