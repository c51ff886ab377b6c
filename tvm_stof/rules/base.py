"""What a rule is: one family of kernels, the decisions it leaves open, which of them are legal, and what each is expected to cost."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from ..cascade.program import FusedProgram
from ..problems import Problem

Value: TypeAlias = "int | str"
Decisions: TypeAlias = "dict[str, Value]"


@dataclass(frozen=True)
class Cost:
    """What the analytical model expects of a candidate.

    Attributes
    ----------
    seconds : expected time of one call.
    work : floating point operations done, wasted ones included.
    bytes : memory traffic.
    balance : mean load of a thread over the greatest load, at most 1.
    floor_seconds : time no kernel for this problem on this device can beat.
    """

    seconds: float
    work: float
    bytes: float
    balance: float
    floor_seconds: float


class Rule(ABC):
    """A family of kernels for a fused program.

    A rule holds no state: MetaSchedule calls it from several threads.
    """

    family: ClassVar[str]

    @abstractmethod
    def choices(self, problem: Problem, program: FusedProgram, device: Any) -> dict[str, list[Value]]:
        """The values each decision may take; an empty list for any of them says that the family has no kernel for this problem."""

    @abstractmethod
    def legal(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> str | None:
        """None, or the reason why no kernel with these decisions exists."""

    @abstractmethod
    def cost(self, problem: Problem, decisions: Mapping[str, Value], device: Any) -> Cost:
        """The analytical model's expectation for legal decisions."""


def combinations(family: str, choices: Mapping[str, list[Value]]) -> Iterator[Decisions]:
    """Every setting of the decisions, legal or not, in the order of the choices."""
    names = list(choices)
    for values in itertools.product(*choices.values()):
        yield {"family": family, **dict(zip(names, values))}
