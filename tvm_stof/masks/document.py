"""Several documents in one sequence."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..canonical import canonical
from ..errors import MaskError, explain
from .base import BlockGrid, from_bounds
from .checks import wholes
from .logic import constant, symbolic
from .position import Position

#: a predicate for more documents than this is slower than stored bits
_LONGEST = 4


@canonical("document")
@dataclass(frozen=True)
class Document(Position):
    """Keys of the query's own document; positions past the last document attend to nothing.

    Parameters
    ----------
    lengths : tokens of each document, in order.

    Examples
    --------
    >>> [k for k in range(7) if Document((3, 4))(4, k)]
    [3, 4, 5, 6]
    """

    lengths: tuple[int, ...]

    gathers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "lengths", tuple(self.lengths) if isinstance(self.lengths, list) else self.lengths)
        wholes("document lengths", self.lengths, 1)
        if not self.lengths:
            raise MaskError(explain("document needs lengths", got="none"))

    def check(self, q_len: int, kv_len: int, batch: int, heads: int) -> None:
        if sum(self.lengths) > max(q_len, kv_len):
            raise MaskError(explain("the documents are longer than the sequence", got=sum(self.lengths),
                                    accepted=f"at most {max(q_len, kv_len)}"))  # fmt: skip

    @property
    def arithmetic(self) -> bool:
        return len(self.lengths) <= _LONGEST

    def _ends(self) -> npt.NDArray[np.int64]:
        return np.array(list(accumulate(self.lengths)), np.int64)

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        p = q + self.offset
        if not symbolic(q, k):
            mine, theirs = self._number(np.asarray(p)), self._number(np.asarray(k))
            return (mine == theirs) & (mine >= 0) & (mine < len(self.lengths))
        allowed = constant(False, q, k)
        for end, length in zip(accumulate(self.lengths), self.lengths):
            allowed = allowed | ((p >= end - length) & (p < end) & (k >= end - length) & (k < end))
        return allowed

    def _number(self, position: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Document of a position; -1 before the first, their count past the last."""
        found = np.searchsorted(self._ends(), position, side="right")
        return np.where(position < 0, -1, found)

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        (q_lo, q_hi), (k_lo, k_hi) = grid.q_bounds(), grid.k_bounds()
        first, last = self._number(q_lo + self.offset)[:, None], self._number(q_hi + self.offset)[:, None]
        k_first, k_last = self._number(k_lo), self._number(k_hi)
        count = len(self.lengths)
        # Documents are runs without holes, so both blocks have a token of every document between their first and last.
        low, high = np.maximum(np.maximum(first, k_first), 0), np.minimum(np.minimum(last, k_last), count - 1)
        same = (first == last) & (k_first == k_last) & (first == k_first) & (first >= 0) & (first < count)
        return from_bounds(low <= high, same)
