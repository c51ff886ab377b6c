"""What a problem is: pure data with named inputs and outputs, canonical JSON and a key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import canonical
from ..errors import ProblemError, explain
from ..masks import Mask

DTYPES = ("float32", "float16")


@dataclass(frozen=True)
class TensorSpec:
    """Name, shape and dtype of one array a kernel takes or fills (C-contiguous)."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class Problem(ABC):
    """A computation to tune, as a frozen dataclass registered with ``@canonical(kind)``.

    A kind has four parts elsewhere under the same name: ``definitions/<kind>.py`` (TensorIR), ``reference/<kind>.py`` (float64 oracle),
    ``cli/problems/<kind>.py`` (options) and a line in ``testing/inputs.py`` when random normal data is not what its inputs mean.
    """

    kind: ClassVar[str]

    @abstractmethod
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Arrays the caller gives, in call order."""

    @abstractmethod
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Arrays the kernel fills, in return order."""

    @property
    def bound_mask(self) -> Mask | None:
        """The mask over (row, streamed) positions with its alignment resolved, or None where every position takes part."""
        return None

    def to_data(self) -> dict[str, Any]:
        """Canonical plain data (see ``tvm_stof.canonical``)."""
        data: dict[str, Any] = canonical.to_data(self)
        return data

    def key(self) -> str:
        """SHA-256 of the canonical JSON: the identity used by journals, schedules and caches."""
        return canonical.key(self)


def positive(**sizes: int) -> None:
    """Raise ProblemError unless every size is an int of at least 1."""
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ProblemError(explain(f"{name} must be a positive whole number", got=repr(value)))


def known_dtype(dtype: str) -> None:
    """Raise ProblemError unless the dtype is one that kernels are generated for."""
    if dtype not in DTYPES:
        raise ProblemError(explain("unknown dtype", got=repr(dtype), accepted=DTYPES))
