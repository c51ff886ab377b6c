"""Which families are tried, and what the analytical model makes of them."""

from __future__ import annotations

import dataclasses

import pytest

from tvm_stof import masks, rules
from tvm_stof.errors import RecordError, UnsupportedTarget, UsageError
from tvm_stof.problems import Attention, Softmax
from tvm_stof.rules import rulesets
from tvm_stof.targets import current_device

HERE = current_device()
SOFTMAX = Softmax(rows=64, cols=128)
SPARSE = Attention(heads=2, q_len=64, head_dim=16, mask=masks.parse("causal & window(9)"))
LARGE = Attention(heads=8, q_len=4096, head_dim=64, mask=masks.parse("causal & window(64)"))


def names(problem: Attention | Softmax, families: list[str] | None = None) -> list[str]:
    return [r.family for r in rules.rules_for(problem, HERE, families)]


def test_families_that_have_no_kernel_for_a_problem_are_left_out() -> None:
    assert "block_sparse" in names(SPARSE)
    assert "block_sparse" not in names(SOFTMAX)
    assert names(SPARSE, ["row_wise"]) == ["row_wise"]


def test_unfused_family_is_left_out_where_hopeless_unless_asked_for() -> None:
    assert "unfused" in names(SOFTMAX)
    assert "unfused" not in names(LARGE)
    assert names(LARGE, ["block_sparse", "unfused"]) == ["block_sparse", "unfused"]


def test_unknown_family_and_device_say_what_is_known() -> None:
    with pytest.raises(UsageError, match=r"fused_twice; accepted: .*single_segment"):
        rules.rules_for(SOFTMAX, HERE, ["fused_twice"])
    with pytest.raises(UnsupportedTarget, match=r"abacus; accepted: .*cpu"):
        rules.rules_for(SOFTMAX, dataclasses.replace(HERE, kind="abacus"))
    with pytest.raises(RecordError, match="unknown family"):
        rules.cost(SOFTMAX, {"family": "fused_twice"}, HERE)


@pytest.mark.parametrize("problem", [SOFTMAX, SPARSE], ids=["softmax", "attention"])
def test_default_is_the_cheapest_legal_candidate(problem: Attention | Softmax) -> None:
    chosen = rules.default(problem, HERE)
    assert rules.legal(problem, chosen, HERE) is None
    ranked = rulesets.ranked(rules.rules_for(problem, HERE), problem, HERE)
    costs = [rules.cost(problem, c, HERE).seconds for c in ranked]
    assert costs == sorted(costs)
    assert rules.cost(problem, chosen, HERE).seconds == costs[0]
    assert len({str(sorted(c.items())) for c in ranked}) == len(ranked)


def test_default_of_the_unfused_family_alone_is_the_plain_definition() -> None:
    assert rules.default(SOFTMAX, HERE, ["unfused"]) == {"family": "unfused"}


@pytest.mark.parametrize("problem", [SOFTMAX, SPARSE], ids=["softmax", "attention"])
def test_no_candidate_is_expected_below_the_floor(problem: Attention | Softmax) -> None:
    unfused: rules.Decisions = {"family": "unfused"}
    for chosen in [*rules.candidates(rules.rules_for(problem, HERE), problem, HERE), unfused]:
        cost = rules.cost(problem, chosen, HERE)
        assert cost.seconds >= cost.floor_seconds > 0
        assert 0 < cost.balance <= 1
