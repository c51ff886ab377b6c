"""Whole tunes of a small softmax."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from tvm_stof import canonical, records, rules
from tvm_stof.errors import StorageError, UsageError
from tvm_stof.problems import Attention, Softmax
from tvm_stof.search import tune
from tvm_stof.search.task import Job, Sampling, Task
from tvm_stof.search.workers import Farm, TimeOuts
from tvm_stof.targets import current_device

from .candidates import counted, misbehaving

PROBLEM = Softmax(rows=64, cols=128)
FUSED = ["single_segment"]


def test_default_is_measured_first_and_every_trial_is_a_line(tmp_path: Path) -> None:
    found = tune(PROBLEM, trials=6, logs=tmp_path, progress=False, families=FUSED)
    assert found.journal == tmp_path / current_device().name / "softmax.jsonl"
    read = records.Journal(found.journal).read()
    assert not read.broken
    assert dict(read.trials[0].decisions) == rules.default(PROBLEM, current_device(), FUSED)
    assert len({t.identity for t in read.trials}) == 6
    assert found.best is not None
    assert found.best.outcome == "ok"
    assert found.best.error is not None
    assert found.best.error["max_abs"] <= found.best.error["budget"]
    assert found.best.environment in read.environments
    assert found.default is not None
    assert found.best.seconds_median is not None
    assert found.default.seconds_median is not None
    assert found.best.seconds_median <= found.default.seconds_median
    assert found.stopped == "trials"
    assert all(t.source_digest for t in read.trials)


def test_resume_builds_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = tmp_path / "built"
    built.touch()
    monkeypatch.setenv("STOF_TEST_BUILDS", str(built))
    first = tune(PROBLEM, trials=4, logs=tmp_path, progress=False, families=FUSED, materialise=counted)
    measured = {t.identity for t in first.trials}
    built.write_text("")
    second = tune(PROBLEM, trials=8, logs=tmp_path, progress=False, families=FUSED, materialise=counted)
    finals = {canonical.dumps(dict(t.decisions)) for t in second.trials[len(first.trials) + 4 :]}
    again = [line for line in built.read_text().splitlines() if canonical.dumps(dict(eval(line))) not in finals]
    new = {t.identity for t in second.trials} - measured
    assert len(new) == 4
    assert {canonical.dumps(dict(eval(line))) for line in again} <= {i[2] for i in new}
    before = second.journal.read_bytes()
    third = tune(PROBLEM, trials=8, logs=tmp_path, progress=False, families=FUSED, materialise=counted)
    assert third.journal.read_bytes() == before
    assert (third.best, third.default) == (second.best, second.default)
    assert third.stopped == "trials"


def test_journal_with_candidates_that_rules_no_longer_offer_is_resumed(tmp_path: Path) -> None:
    found = tune(PROBLEM, trials=1, logs=tmp_path, progress=False, families=FUSED)
    stale = dataclasses.replace(found.trials[0], decisions={**found.trials[0].decisions, "rows": 7}, trial=1)
    records.Journal(found.journal).append_trial(stale)
    again = tune(PROBLEM, trials=4, logs=tmp_path, progress=False, families=FUSED)
    assert again.stopped == "trials"
    assert len({t.identity for t in again.trials}) == 4


def test_crash_hang_and_wrong_result_are_outcomes(tmp_path: Path) -> None:
    limits = TimeOuts(build=4.0, run=4.0)
    found = tune(PROBLEM, trials=48, seconds=45, logs=tmp_path, progress=False, families=FUSED, materialise=misbehaving, time_outs=limits)
    outcomes: dict[str, set[str]] = {}
    for trial in found.trials:
        role = {4: "crash", 16: "hang"}.get(trial.decisions["rows"], "wrong" if trial.decisions["lanes"] == 64 else "fine")  # type: ignore[call-overload]
        outcomes.setdefault(role, set()).add(trial.outcome)
    assert outcomes["crash"] == {"build"}
    assert outcomes["hang"] == {"timeout"}
    assert outcomes["wrong"] == {"wrong"}
    assert outcomes["fine"] == {"ok"}
    assert found.best is not None
    assert all(t.message for t in found.trials if t.outcome != "ok")
    assert all(not t.seconds for t in found.trials if t.outcome != "ok")


def test_budget_in_seconds_ends_the_tune(tmp_path: Path) -> None:
    found = tune(PROBLEM, trials=10_000, seconds=12, logs=tmp_path, progress=False)
    assert found.stopped in ("seconds", "exhausted")
    assert found.best is not None


def test_budget_shorter_than_the_start_still_measures_the_default(tmp_path: Path) -> None:
    found = tune(PROBLEM, trials=10, seconds=0.1, logs=tmp_path, progress=False, families=FUSED)
    assert found.stopped == "seconds"
    assert [t.identity for t in found.trials] == [found.best.identity if found.best is not None else None]
    assert found.default == found.best


@pytest.mark.parametrize("bad", [{"trials": 0}, {"trials": -3}, {"seconds": 0.0}, {"workers": 0}])
def test_budget_must_be_positive(tmp_path: Path, bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be positive"):
        tune(PROBLEM, logs=tmp_path, progress=False, **bad)
    assert list(tmp_path.iterdir()) == []


def test_small_space_is_enumerated(tmp_path: Path) -> None:
    problem = Softmax(rows=1, cols=20)
    found = tune(problem, trials=500, logs=tmp_path, progress=False, families=FUSED)
    assert found.stopped == "exhausted"
    legal = list(rules.candidates(rules.rules_for(problem, current_device(), FUSED), problem, current_device()))
    assert {canonical.dumps(dict(t.decisions)) for t in found.trials} == {canonical.dumps(c) for c in legal}


def test_seed_repeats_the_candidates_until_times_decide(tmp_path: Path) -> None:
    """Up to the warm-up the order depends on the seed alone; afterwards the model learns from measured times, which differ."""
    sequences = []
    for n, seed in enumerate((3, 3, 4)):
        found = tune(PROBLEM, trials=9, seed=seed, logs=tmp_path / str(n), progress=False, families=FUSED)
        sequences.append([canonical.dumps(dict(t.decisions)) for t in found.trials[:9]])
    assert sequences[0] == sequences[1]
    assert sequences[0] != sequences[2]


def test_every_family_of_attention_is_tuned_and_correct(tmp_path: Path) -> None:
    from tvm_stof import masks

    problem = Attention(heads=2, q_len=96, head_dim=16, mask=masks.parse("causal & window(20)"), return_lse=True)
    found = tune(problem, trials=40, seconds=60, logs=tmp_path, progress=False)
    families = {str(t.decisions["family"]) for t in found.trials}
    assert {"block_sparse", "row_wise"} <= families
    assert {t.outcome for t in found.trials if t.decisions["family"] != "unfused"} == {"ok"}
    assert found.best is not None


def test_unfused_trial_replays_from_its_trace(tmp_path: Path) -> None:
    found = tune(PROBLEM, trials=4, seconds=60, logs=tmp_path, progress=False, families=["unfused"])
    assert any(t.outcome == "ok" and t.trace for t in found.trials)
    from tvm_stof.replay import replay

    assert {v.status for v in replay([tmp_path], level=2)} == {"ok"}


def test_unwritable_journal_fails_before_anything_is_measured(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(StorageError, match="cannot be written"):
        tune(PROBLEM, trials=2, logs=blocked, progress=False)


def test_unknown_family_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"accepted: .*single_segment"):
        tune(PROBLEM, trials=2, logs=tmp_path, progress=False, families=["sngle"])


def test_no_worker_is_left(tmp_path: Path) -> None:
    before = set(os.listdir("/proc"))
    tune(PROBLEM, trials=2, logs=tmp_path, progress=False, families=FUSED)
    left = [p for p in set(os.listdir("/proc")) - before if p.isdigit() and _command(p).find("tvm_stof.search.zygote") >= 0]
    assert left == []


def _command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def test_workers_that_load_tvm_themselves(tmp_path: Path) -> None:
    """As they do for a GPU."""
    farm = Farm(2, 1, tmp_path, preload=False)
    try:
        farm.start(Task(PROBLEM, current_device()))
        jobs = [Job(1, rules.default(PROBLEM, current_device(), FUSED))]
        assert farm.build(jobs, lambda: False)[1].ok
        assert farm.run(jobs[0], Sampling()).ok
    finally:
        farm.close()
