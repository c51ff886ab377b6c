"""Trials for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tvm_stof import canonical
from tvm_stof.problems import Problem, Softmax
from tvm_stof.records import Journal, Trial
from tvm_stof.records.model import dump_line
from tvm_stof.targets import device

ENVIRONMENT: dict[str, Any] = {"tool": "0.1.0", "device": device("cpu-znver3").to_data()}
PROBLEM = Softmax(rows=8, cols=64)


def trial(problem: Problem = PROBLEM, seconds: float | None = 1e-3, at: int = 0, **changes: Any) -> Trial:
    """An ok trial (a wrong one for ``seconds=None``) of the given second of a day."""
    made = Trial(
        problem=problem.to_data(), key=problem.key(), device="cpu-znver3", decisions={"family": "single_segment", "rows": 4}, trace=None,
        outcome="wrong" if seconds is None else "ok", message="", seconds=() if seconds is None else (seconds, 2 * seconds, seconds),
        error={"max_abs": 1e-7, "budget": 2e-7}, default_seconds=None, floor_seconds=1e-4, source_digest=None,
        environment=canonical.key(ENVIRONMENT), seed=0, trial=at, time=f"2026-12-01T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z",
        tool="0.1.0",
    )  # fmt: skip
    return replace(made, **changes)


def decided(rows: int, seconds: float | None, at: int, **changes: Any) -> Trial:
    """A trial of a candidate that differs from others in one decision."""
    return trial(seconds=seconds, at=at, decisions={"family": "single_segment", "rows": rows}, **changes)


def journal(path: Path, *trials: Trial, environment: Mapping[str, Any] | None = ENVIRONMENT) -> Journal:
    """A journal with these trials and their environment."""
    made = Journal(path)
    if environment is not None:
        made.append_environment(environment)
    for t in trials:
        made.append_trial(t)
    return made


def line(data: Any) -> bytes:
    """A line of data that the package itself would not write."""
    return json.dumps(data).encode() + b"\n"


__all__ = ["ENVIRONMENT", "PROBLEM", "decided", "dump_line", "journal", "line", "trial"]
