"""What a score modification is: a frozen value that maps a score to another, from positions, head and the tensors it brings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from ..expr import Expr

if TYPE_CHECKING:
    from ..problems.attention import Attention
    from ..problems.base import TensorSpec


class Score(ABC):
    """One step applied to q·k before the softmax, in the order given. Registered with ``@canonical(name)``."""

    kind: ClassVar[str]

    @abstractmethod
    def expr(self, score: Expr, problem: Attention) -> Expr:
        """The new score from ``score``, ``index`` of "b", "h", "i" (query) and "j" (key), and ``load(tensor, ...)``."""

    def tensors(self, problem: Any) -> tuple[TensorSpec, ...]:
        """Arrays the caller must give beside q, k and v."""
        return ()
