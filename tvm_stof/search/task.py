"""What the tuning process and its workers tell each other. Imports no TVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..problems import Problem
from ..targets import Device

Decisions: TypeAlias = "dict[str, int | str]"
#: (problem, decisions, device) -> Kernel; travels to the workers by its name.
Materialise = Callable[[Problem, Mapping[str, Any], Device], Any]


def materialise(problem: Problem, decisions: Mapping[str, Any], device: Device) -> Any:
    """``codegen.materialise``, imported when the first kernel is built."""
    from ..codegen import materialise as emit

    return emit(problem, decisions, device)


@dataclass(frozen=True)
class Task:
    """All a worker has to know.

    Attributes
    ----------
    seed : of the random inputs that candidates are checked and timed with.
    materialise : replaced by tests only.
    """

    problem: Problem
    device: Device
    seed: int = 0
    materialise: Materialise = materialise


@dataclass(frozen=True)
class Job:
    """One candidate to build and run; ``module`` is the scheduled definition as JSON, for the unfused family only."""

    id: int
    decisions: Decisions
    module: str | None = None


@dataclass(frozen=True)
class Sampling:
    """How a kernel is timed: calls are grouped until a group lasts ``group_seconds``, groups repeat until ``seconds`` are spent.

    A kernel whose first call is slower than ``slow_seconds`` is not called again: that call is its time.
    """

    seconds: float = 0.03
    group_seconds: float = 1e-3
    least: int = 3
    most: int = 10
    slow_seconds: float = 0.25


@dataclass(frozen=True)
class Reply:
    """What became of a job.

    Attributes
    ----------
    outcome : ok, invalid, build, timeout, wrong or runtime.
    seconds : of each repeat, after a run.
    error : largest error and budget, after a check.
    digest : of the generated source, once it has been generated.
    """

    outcome: str
    message: str = ""
    seconds: tuple[float, ...] = ()
    error: Mapping[str, Any] | None = None
    digest: str | None = field(default=None)

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"
