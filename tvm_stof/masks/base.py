"""What a mask is: a frozen value that says which (query, key) pairs take part, and classifies blocks of pairs at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import MaskError, explain

EMPTY, PARTIAL, FULL, UNKNOWN = 0, 1, 2, 3


@dataclass(frozen=True)
class BlockGrid:
    """The block rows and columns of a q_len x kv_len score matrix; edge blocks are shorter, never padded.

    ``first`` and ``stop`` narrow it to some block rows, so that large matrices are worked off in bounded memory.
    """

    q_len: int
    kv_len: int
    block_q: int
    block_k: int
    first: int = 0
    stop: int | None = None

    @property
    def rows(self) -> int:
        rows = -(-self.q_len // self.block_q)
        return (rows if self.stop is None else min(rows, self.stop)) - self.first

    @property
    def cols(self) -> int:
        return -(-self.kv_len // self.block_k)

    def q_bounds(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """First and last (inclusive) query of every block row."""
        lo = np.arange(self.first, self.first + self.rows, dtype=np.int64) * self.block_q
        return lo, np.minimum(lo + self.block_q, self.q_len) - 1

    def k_bounds(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """First and last (inclusive) key of every block column."""
        lo = np.arange(self.cols, dtype=np.int64) * self.block_k
        return lo, np.minimum(lo + self.block_k, self.kv_len) - 1

    def areas(self) -> npt.NDArray[np.int64]:
        """Elements of every block [rows, cols]."""
        (q_lo, q_hi), (k_lo, k_hi) = self.q_bounds(), self.k_bounds()
        area: npt.NDArray[np.int64] = (q_hi - q_lo + 1)[:, None] * (k_hi - k_lo + 1)
        return area

    def slabs(self, blocks: int) -> Iterator[BlockGrid]:
        """The same grid in runs of block rows of about ``blocks`` blocks each."""
        step = max(1, blocks // self.cols)
        for first in range(self.first, self.first + self.rows, step):
            yield replace(self, first=first, stop=min(first + step, self.first + self.rows))


class Mask(ABC):
    """Which keys a query may attend to. True = attend. Combine with ``&``, ``|``, ``~``.

    Requirements on implementers: a frozen dataclass with ``@canonical(name)``; ``__call__`` uses only ``+ - * // %``, comparisons,
    ``& |`` and ``masks.logic`` (never ``and``/``or``/``not``), so that one text serves NumPy arrays, TIR variables and tracers;
    ``classify`` costs O(blocks) and answers UNKNOWN where it cannot decide, which ``sparsity`` then settles by looking at that
    block alone. A row without any allowed key is legal: attention defines its output as zeros.
    """

    kind: ClassVar[str]
    #: whether ``masks.parse`` knows the kind as a name
    spoken: ClassVar[bool] = True
    #: whether ``masks.parse`` takes plain numbers for the one list that the mask consists of
    gathers: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        """Whether query position ``q`` attends to key position ``k`` (of batch entry ``b``, query head ``h``). Only on a bound mask."""

    def bind(self, q_len: int, kv_len: int) -> Mask:
        """The same mask with whatever depends on the lengths (alignment, share of blocks) resolved."""
        return self

    def check(self, q_len: int, kv_len: int, batch: int, heads: int) -> None:  # noqa: B027  (most masks fit any shape)
        """Raise MaskError when the mask cannot be applied to this shape."""

    @abstractmethod
    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        """EMPTY, PARTIAL, FULL or UNKNOWN for each block, uint8 [grid.rows, grid.cols]. Only on a bound mask."""

    @property
    def arithmetic(self) -> bool:
        """Whether ``__call__`` works on symbolic positions; otherwise kernels use stored bits."""
        return True

    @property
    def relative(self) -> bool:
        """Whether positions enter only as q - k."""
        return False

    @property
    def depends_on(self) -> frozenset[str]:
        """Subset of {"b", "h"}: what the mask varies over beside positions."""
        return frozenset()

    def __and__(self, other: Mask) -> Mask:
        from .combine import And

        return And.of(self, other)

    def __or__(self, other: Mask) -> Mask:
        from .combine import Or

        return Or.of(self, other)

    def __invert__(self) -> Mask:
        from .combine import Not

        return Not.of(self)

    def __bool__(self) -> bool:
        raise MaskError(explain("a mask has no truth value", way_out="Combine masks with & | ~, not with and, or, not"))


def from_counts(counts: npt.NDArray[Any], areas: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Classes of blocks of known sizes from how many of their elements are allowed."""
    classes = np.full(np.broadcast_shapes(counts.shape, areas.shape), PARTIAL, np.uint8)
    classes[counts == 0] = EMPTY
    classes[counts == areas] = FULL
    return classes


def from_bounds(some: npt.NDArray[np.bool_], every: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """Classes of blocks from whether some and whether every element is allowed."""
    return np.where(every, FULL, np.where(some, PARTIAL, EMPTY)).astype(np.uint8)
