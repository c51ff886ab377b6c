"""Masks made of positions: where a query stands among the keys, and exact classes for those that depend on q - k alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import MaskError, explain
from .base import BlockGrid, Mask, from_counts
from .checks import LIMIT, whole

ALIGNMENTS = ("top_left", "bottom_right")
Self = TypeVar("Self", bound="Position")


@dataclass(frozen=True)
class Position(Mask):
    """Base of masks in which query i stands at key i + offset.

    Parameters
    ----------
    align : "top_left" (offset 0), "bottom_right" (offset kv_len - q_len: the last query stands at the last key), or the
        offset itself. ``bind`` turns "bottom_right" into an offset.
    """

    align: str | int = field(default="top_left", kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.align, int):
            whole("align", self.align, -LIMIT)
            if self.align == 0:
                object.__setattr__(self, "align", "top_left")
        elif self.align not in ALIGNMENTS:
            raise MaskError(explain("unknown align", got=repr(self.align)[:80], accepted=(*ALIGNMENTS, "a whole number")))

    @property
    def offset(self) -> int:
        """Key position minus query position of the same token."""
        if self.align == "bottom_right":
            raise MaskError(explain("the mask is not bound", got=repr(self), way_out="Call mask.bind(q_len, kv_len) first"))
        return self.align if isinstance(self.align, int) else 0

    def bind(self: Self, q_len: int, kv_len: int) -> Self:
        return replace(self, align=kv_len - q_len) if self.align == "bottom_right" else self


@dataclass(frozen=True)
class Relative(Position):
    """Base of position masks that depend on q - k alone."""

    @property
    def relative(self) -> bool:
        return True

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        return classify_relative(self, grid, b, h)


@lru_cache(maxsize=32)
def allowed_distances(mask: Mask, q_len: int, kv_len: int, b: int = 0, h: int = 0) -> npt.NDArray[np.bool_]:
    """Whether each distance q - k from 1 - kv_len to q_len - 1 is allowed; only for masks with ``relative``."""
    d = np.arange(1 - kv_len, q_len, dtype=np.int64)
    allowed = np.array(np.broadcast_to(np.asarray(mask(d, np.int64(0), b, h), bool), d.shape))
    allowed.setflags(write=False)
    return allowed


@lru_cache(maxsize=32)
def _counted(mask: Mask, q_len: int, kv_len: int, b: int, h: int) -> npt.NDArray[np.int64]:
    counted: npt.NDArray[np.int64] = np.concatenate(([0], np.cumsum(allowed_distances(mask, q_len, kv_len, b, h), dtype=np.int64)))
    return counted


def classify_relative(mask: Mask, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
    """Exact classes: a block meets every distance of one contiguous range, so two prefix sums count the allowed ones."""
    counted = _counted(mask, grid.q_len, grid.kv_len, b, h)
    (q_lo, q_hi), (k_lo, k_hi) = grid.q_bounds(), grid.k_bounds()
    low = q_lo[:, None] - k_hi + (grid.kv_len - 1)
    high = q_hi[:, None] - k_lo + grid.kv_len
    return from_counts(counted[high] - counted[low], high - low)
