"""The Hopper families: choices, limits, the model's order, and kernels from problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.codegen.wgmma.test_supports import HOPPER
from tvm_stof.cascade import program_of
from tvm_stof.codegen.wgmma import kernel_of
from tvm_stof.codegen.wgmma.cubin import cuda_text, parameters
from tvm_stof.codegen.wgmma.materialise import heaviest_first
from tvm_stof.errors import UnsupportedTarget
from tvm_stof.masks.causal import Causal
from tvm_stof.problems.attention import Attention
from tvm_stof.rules.base import Rule, combinations
from tvm_stof.rules.cuda_block_sparse import CudaBlockSparse
from tvm_stof.rules.cuda_single_segment import CudaSingleSegment

SINGLE, SPARSE = CudaSingleSegment(), CudaBlockSparse()


def problem(**given: Any) -> Attention:
    return Attention(**{"heads": 4, "q_len": 1000, "head_dim": 64, "dtype": "float16", "mask": Causal(), **given})


def legal(rule: Rule, p: Attention) -> list[dict[str, Any]]:
    offered = rule.choices(p, program_of(p), HOPPER)
    assert all(offered.values())
    return [d for d in combinations(rule.family, offered) if rule.legal(p, d, HOPPER) is None]


@pytest.mark.parametrize("rule", [SINGLE, SPARSE], ids=lambda r: r.family)
@pytest.mark.parametrize("head_dim", [64, 96, 128, 256])
def test_every_head_size_has_candidates(rule: Rule, head_dim: int) -> None:
    found = legal(rule, problem(head_dim=head_dim))
    assert len(found) >= 8
    costs = [rule.cost(problem(head_dim=head_dim), d, HOPPER) for d in found]
    assert all(0 < c.floor_seconds <= c.seconds < 1 and 0 < c.balance <= 1 for c in costs)


def test_float32_and_dense_lists_have_no_kernel() -> None:
    p = problem(dtype="float32")
    assert not all(SINGLE.choices(p, program_of(p), HOPPER).values())
    dense = Attention(heads=4, q_len=1000, head_dim=64, dtype="float16")
    assert not all(SPARSE.choices(dense, program_of(dense), HOPPER).values())
    with pytest.raises(UnsupportedTarget, match="float32"):
        kernel_of(p, {"family": "single_segment", "block_q": 128, "block_k": 128})


def test_decisions_are_named_and_bounded() -> None:
    good = legal(SINGLE, problem())[0]
    assert "takes the decisions" in str(SINGLE.legal(problem(), {**good, "segments": 2}, HOPPER))
    assert "takes the decisions" in str(SINGLE.legal(problem(), {k: v for k, v in good.items() if k != "stages"}, HOPPER))
    assert "0 or 1" in str(SINGLE.legal(problem(), {**good, "pingpong": 7}, HOPPER))
    assert "whole numbers" in str(SINGLE.legal(problem(), {**good, "block_k": "128"}, HOPPER))
    assert "shared memory" in str(SINGLE.legal(problem(head_dim=256), {**good, "block_q": 128, "block_k": 192}, HOPPER))


def test_a_causal_range_costs_about_half() -> None:
    decisions: dict[str, int | str] = {"family": "single_segment", "block_q": 128, "block_k": 128, "stages": 2, "pingpong": 1,
                                        "overlap": 1, "heads_together": 1}  # fmt: skip
    dense = Attention(heads=16, batch=4, q_len=8192, head_dim=128, dtype="float16")
    causal = Attention(heads=16, batch=4, q_len=8192, head_dim=128, dtype="float16", mask=Causal())
    ratio = SINGLE.cost(causal, decisions, HOPPER).seconds / SINGLE.cost(dense, decisions, HOPPER).seconds
    assert 0.45 < ratio < 0.65


def test_kernels_of_a_problem_take_inputs_outputs_and_lists() -> None:
    p = problem(return_lse=True)
    base = {"block_q": 128, "block_k": 128}
    ranged = kernel_of(p, {"family": "single_segment", **base})
    assert ranged.prepared == ()
    listed = kernel_of(p, {"family": "block_sparse", **base, "test": "bits"})
    names = parameters(cuda_text(listed.module))[1]
    assert {"bits_ptr", "order_ptr", "row_ptr_ptr", "tested_ptr", "tile_ptr"} <= set(names)
    assert [v.name for v in listed.module["main"].params][:3] == [v.name for v in ranged.module["main"].params][:3]
    assert len(listed.module["main"].params) == len(ranged.module["main"].params) + len(listed.prepared)


def test_uneven_work_starts_with_the_heaviest() -> None:
    assert heaviest_first(np.array([3.0, 3.0, 3.0])) == {}
    assert heaviest_first(np.array([1.0, 9.0, 4.0, 9.0]))["order"].tolist() == [1, 3, 2, 0]
