"""A journal with one record, made without a search."""

from __future__ import annotations

from pathlib import Path

from tvm_stof import build, records, rules, targets
from tvm_stof.problems import Problem
from tvm_stof.records import environment
from tvm_stof.records.model import Trial


def record(folder: Path, problem: Problem, seconds: float = 1e-3, device: targets.Device | None = None) -> Trial:
    """Append an ok trial of the default decisions to the folder's journal, as a tune would."""
    machine = device or targets.current_device()
    decisions = rules.default(problem, machine)
    journal = records.Journal(folder / machine.name / f"{problem.kind}.jsonl")
    key = journal.append_environment(environment.collect(machine))
    trial = Trial(
        problem=problem.to_data(), key=problem.key(), device=machine.name, decisions=decisions, trace=None, outcome="ok", message="",
        seconds=(seconds,), error={"max_abs": 0.0, "budget": 1e-6}, default_seconds=2 * seconds, floor_seconds=seconds / 4,
        source_digest=build.source_digest(build.kernel_of(problem, decisions, None, machine)), environment=key, seed=0, trial=0,
        time="2026-12-01T12:00:00Z", tool="0.1.0",
    )  # fmt: skip
    journal.append_trial(trial)
    return trial
