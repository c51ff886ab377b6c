"""Choosing among trials."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..problems import Problem
from .model import Trial


def best(trials: Iterable[Trial], key: str, device: str) -> Trial | None:
    """The fastest ok trial of a problem on a device.

    A candidate measured more than once counts with its last measurement: a tune times its finalists again in a quiet worker, and that is
    the final word. Among those measured so, only finalists compete.
    """
    last: dict[tuple[str, str, str], Trial] = {}
    again: set[tuple[str, str, str]] = set()
    for trial in trials:
        if trial.key == key and trial.device == device:
            if trial.identity in last and trial.outcome == "ok":
                again.add(trial.identity)
            last[trial.identity] = trial
    usable = [t for t in last.values() if t.outcome == "ok"]
    finalists = [t for t in usable if t.identity in again]
    return min(finalists or usable, key=_order, default=None)


def best_of_each(trials: Iterable[Trial]) -> dict[tuple[str, str], Trial]:
    """The best trial of every (problem key, device)."""
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.key, trial.device), []).append(trial)
    found = {at: best(group, *at) for at, group in groups.items()}
    return {at: trial for at, trial in found.items() if trial is not None}


def nearest(trials: Iterable[Trial], problem: Problem, device: str, count: int = 3) -> list[Trial]:
    """Best trials of other problems of the same kind, or of other devices: those that differ in the fewest fields first."""
    data = problem.to_data()
    found = [t for t in best_of_each(trials).values() if t.kind == problem.kind and (t.key, t.device) != (problem.key(), device)]
    return sorted(found, key=lambda t: (_differences(dict(t.problem), data) + 2 * (t.device != device), *_order(t)))[:count]


def _differences(a: dict[str, Any], b: dict[str, Any]) -> int:
    return sum(a.get(name) != b.get(name) for name in {*a, *b})


def _order(trial: Trial) -> tuple[float, str, str]:
    median = trial.seconds_median
    return (median if median is not None else float("inf"), trial.key, str(sorted(trial.decisions.items())))
