"""Rules as design spaces: what is annotated, what mutates, what is turned away."""

from __future__ import annotations

from typing import Any

import pytest

from tvm_stof.search.space import Family  # isort: skip  (first: it keeps TVM from a slow import)

import tvm
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.space_generator import PostOrderApply

from tvm_stof import masks
from tvm_stof.definitions import definition
from tvm_stof.problems import Attention, Problem, Softmax
from tvm_stof.records import bridge
from tvm_stof.rules import rulesets, unfused
from tvm_stof.rules.annotate import Annotate
from tvm_stof.rules.limits import Limits
from tvm_stof.rules.mutator import MutateDecision
from tvm_stof.search.evolution import Evolution
from tvm_stof.search.space import Spaces
from tvm_stof.targets import current_device

HERE = current_device()
SOFTMAX = Softmax(rows=16, cols=64)
WITH_LSE = Attention(heads=2, q_len=32, head_dim=16, mask=masks.parse("causal & window(9)"), return_lse=True)
CHOICES: dict[str, list[int | str]] = {"rows": [1, 4, 16], "output": ["store", "recompute"]}


def context(module: Any) -> Any:
    return ms.TuneContext(module, target=tvm.target.Target(HERE.target_json()), num_threads=1)


@pytest.mark.parametrize("problem", [SOFTMAX, WITH_LSE], ids=["softmax", "two outputs"])
def test_stock_generator_makes_one_annotated_space_of_a_family(problem: Problem) -> None:
    module = definition(problem)
    before = module.script()
    generator = PostOrderApply(sch_rules=[Annotate("some_family", CHOICES)], postprocs=[], mutator_probs={})
    generator._initialize_with_tune_context(context(module))
    [space] = generator.generate_design_space(module)
    found = bridge.decisions(space.mod)
    assert found.pop("family") == "some_family"
    assert {name: found[name] in values for name, values in CHOICES.items()} == {"rows": True, "output": True}
    assert set(found) == set(CHOICES)
    assert module.script() == before


def test_every_setting_of_a_family_can_be_made_and_read_back() -> None:
    module = definition(WITH_LSE)
    for rule in rulesets.rules_for(WITH_LSE, HERE):
        if rulesets.is_unfused(rule):
            continue
        family = Family(rule, rulesets.choices(rule, WITH_LSE, HERE), module)
        for wanted in list(rulesets.candidates([rule], WITH_LSE, HERE))[::37]:
            schedule = family.setting(wanted, module)
            assert bridge.decisions(schedule.mod) == wanted
            stored = bridge.to_trace(schedule.trace, module, [1.0], HERE.target_json())
            assert bridge.decisions(bridge.replay(WITH_LSE, wanted, stored).mod) == wanted


def test_a_family_knows_its_points() -> None:
    rule = rulesets.rules_for(SOFTMAX, HERE, ["single_segment"])[0]
    family = Family(rule, CHOICES, definition(SOFTMAX))
    assert family.offers({"family": "single_segment", "rows": 4, "output": "store"})
    assert not family.offers({"family": "single_segment", "rows": 5, "output": "store"})
    assert not family.offers({"family": "single_segment", "rows": 4})
    assert not family.offers({"family": "single_segment", "rows": 4, "output": "store", "more": 1})


def test_mutation_moves_one_decision_and_repeats_with_its_seed() -> None:
    module = definition(SOFTMAX)
    rule = rulesets.rules_for(SOFTMAX, HERE, ["single_segment"])[0]
    family = Family(rule, CHOICES, module)
    start: dict[str, int | str] = {"family": "single_segment", "rows": 4, "output": "store"}
    trace = family.setting(start, module).trace
    reached = set()
    for seed in range(40):
        found = []
        for _ in range(2):
            schedule = tvm.s_tir.Schedule(module)
            MutateDecision()._inst.apply(trace, seed).apply_to_schedule(schedule, remove_postproc=False)
            found.append(bridge.decisions(schedule.mod))
        assert found[0] == found[1]
        assert sum(found[0][name] != start[name] for name in start) == 1
        reached.add((found[0]["rows"], found[0]["output"]))
    assert reached == {(1, "store"), (16, "store"), (4, "recompute")}


def test_mutation_of_a_trace_without_choices_is_none() -> None:
    assert MutateDecision()._inst.apply(tvm.s_tir.Schedule(definition(SOFTMAX)).trace, 1) is None


def test_limits_turn_illegal_decisions_away_and_survive_an_exception() -> None:
    module = definition(SOFTMAX)

    def legal(decisions: Any) -> str | None:
        if decisions["rows"] == 3:
            raise RuntimeError("a rule with a fault")
        return "too many" if decisions["rows"] > 8 else None

    limits = Limits(legal)
    results = [limits.apply(bridge.annotate(module, {"family": "x", "rows": rows})) for rows in (4, 16, 3)]
    assert [bool(r) for r in results] == [True, False, False]
    assert bool(limits.apply(tvm.s_tir.Schedule(module))) is True


def test_stock_spaces_leave_out_the_rule_that_miscomputes() -> None:
    module = definition(WITH_LSE)
    spaces = unfused.spaces(module, context(module), "cpu")
    assert spaces
    assert all(i.kind.name != "SampleComputeLocation" for s in spaces for i in s.trace.insts)
    assert all("ComputeLocation" not in type(m).__name__ for m in unfused.mutators("cpu"))


def test_stock_rules_that_raise_cost_only_the_unfused_family(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    class Raises:
        """As MultiLevelTiling does on an output that is normalised last."""

        def __init__(self, **_: Any) -> None:
            pass

        def _initialize_with_tune_context(self, context: Any) -> None:
            pass

        def generate_design_space(self, mod: Any) -> Any:
            raise RuntimeError("ScheduleError: no")

    monkeypatch.setattr(unfused, "PostOrderApply", Raises)
    module = definition(SOFTMAX)
    rule = rulesets.rules_for(SOFTMAX, HERE, ["single_segment"])[0]
    generator = Spaces([Family(rule, CHOICES, module)], lambda _: None, "cpu")
    found = generator._inst.generate_design_space(module)
    assert [bridge.decisions(s.mod)["family"] for s in found] == ["single_segment"]
    assert "unfused family is left out" in caplog.text


def test_fused_families_have_equal_shares_beside_stock_spaces() -> None:
    search = Evolution(WITH_LSE, HERE, ["single_segment", "row_wise", "unfused"], seed=0)
    generator = Spaces(search.families, lambda _: None, "cpu")
    generator._initialize_with_tune_context(context(search.module))
    names = [bridge.decisions(s.mod).get("family", "unfused") for s in generator._inst.generate_design_space(search.module)]
    assert names.count("single_segment") == names.count("row_wise") >= names.count("unfused") > 0


@pytest.mark.parametrize(("mask", "tested"), [("causal & window(9)", {"predicate", "bits"}), ("bigbird(8)", {"bits"})])
def test_a_long_predicate_is_never_inlined(mask: str, tested: set[str]) -> None:
    problem = Attention(heads=2, q_len=512, head_dim=16, mask=masks.parse(mask))
    offered = list(rulesets.candidates(rulesets.rules_for(problem, HERE), problem, HERE))
    assert {d["test"] for d in offered if d["family"] == "block_sparse"} == tested
    assert ("single_segment" in {d["family"] for d in offered}) == ("predicate" in tested)
