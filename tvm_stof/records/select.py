"""Choosing among trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ..problems import Problem
from .model import Trial


def best(trials: Iterable[Trial], key: str, device: str) -> Trial | None:
    """The fastest ok trial of a problem on a device.

    A candidate measured more than once counts with its last measurement: a tune times its finalists again in a quiet worker, and that is
    the final word. Among those measured so, only finalists compete. Order in the file does not matter, so journals merge as sets of lines.
    """
    last: dict[tuple[str, str, str], Trial] = {}
    again: set[tuple[str, str, str]] = set()
    for trial in sorted((t for t in trials if t.key == key and t.device == device), key=_moment):
        before = last.get(trial.identity)
        if before is not None and trial.outcome == "ok" and _moment(before) != _moment(trial):
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
    """Best trials of other problems of the same kind, or of other devices: the least different first."""
    data = problem.to_data()
    found = [t for t in best_of_each(trials).values() if t.kind == problem.kind and (t.key, t.device) != (problem.key(), device)]
    return sorted(found, key=lambda t: (_distance(t.problem, data) + 2 * (t.device != device), *_order(t)))[:count]


def _distance(a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
    """Sizes are as far apart as their ratio in powers of two (at most 4), whatever else differs counts 1."""
    return sum(_apart(a.get(name), b.get(name)) for name in sorted({*a, *b}))


def _apart(a: Any, b: Any) -> float:
    sizes = all(isinstance(v, int) and not isinstance(v, bool) and v > 0 for v in (a, b))
    return min(4.0, abs(math.log2(a / b))) if sizes else float(a != b)


def _moment(trial: Trial) -> tuple[str, int, tuple[float, ...]]:
    return trial.time, trial.trial, trial.seconds


def _order(trial: Trial) -> tuple[float, str, str, str]:
    median = trial.seconds_median
    return (median if median is not None else math.inf, trial.key, trial.device, trial.identity[2])
