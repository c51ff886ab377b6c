"""Masks made of masks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..canonical import canonical, dumps, to_data
from ..errors import MaskError, explain
from . import logic
from .base import EMPTY, FULL, UNKNOWN, BlockGrid, Mask
from .dense import Dense
from .position import classify_relative


def _ordered(mask: Mask) -> tuple[str, str]:
    return mask.kind, dumps(to_data(mask))


@dataclass(frozen=True)
class _Many(Mask):
    """Base of And and Or: operands of the same kind are taken in, equal ones kept once, the rest sorted."""

    masks: tuple[Mask, ...]

    spoken: ClassVar[bool] = False
    absorbing: ClassVar[int] = EMPTY
    neutral: ClassVar[int] = FULL

    def __post_init__(self) -> None:
        if not isinstance(self.masks, (tuple, list)) or any(not isinstance(m, Mask) for m in self.masks):
            raise MaskError(explain(f"{type(self).__name__} combines masks", got=repr(self.masks)[:80]))
        flat = self._flat(self.masks)
        if len(flat) < 2:
            raise MaskError(explain(f"{type(self).__name__} combines at least two different masks", got=len(flat)))
        object.__setattr__(self, "masks", flat)

    @classmethod
    def _flat(cls, masks: Any) -> tuple[Mask, ...]:
        flat = {m: None for one in masks for m in (one.masks if isinstance(one, cls) else (one,))}
        return tuple(sorted(flat, key=_ordered))

    def bind(self, q_len: int, kv_len: int) -> Mask:
        return self.of(*(m.bind(q_len, kv_len) for m in self.masks))

    @classmethod
    def of(cls, *masks: Mask) -> Mask:
        """The combination in its simplest form."""
        raise NotImplementedError

    def check(self, q_len: int, kv_len: int, batch: int, heads: int) -> None:
        for mask in self.masks:
            mask.check(q_len, kv_len, batch, heads)

    @property
    def arithmetic(self) -> bool:
        return all(m.arithmetic for m in self.masks)

    @property
    def relative(self) -> bool:
        return all(m.relative for m in self.masks)

    @property
    def depends_on(self) -> frozenset[str]:
        return frozenset().union(*(m.depends_on for m in self.masks))

    @cached_property
    def _parts(self) -> tuple[Mask, ...]:
        """The operands, those that depend on q - k alone as one."""
        near = [m for m in self.masks if m.relative]
        return (*([self.of(*near)] if near else []), *(m for m in self.masks if not m.relative))

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        if self.relative:
            return classify_relative(self, grid, b, h)
        settled = np.full((grid.rows, grid.cols), self.neutral, np.uint8)
        for part in self._parts:
            one = part.classify(grid, b, h)
            both = np.where(one == self.neutral, settled, np.where(settled == self.neutral, one, UNKNOWN))
            settled = np.where((one == self.absorbing) | (settled == self.absorbing), self.absorbing, both).astype(np.uint8)
        return settled


@canonical("and")
@dataclass(frozen=True)
class And(_Many):
    """Pairs that every mask allows; written ``a & b``.

    Examples
    --------
    >>> from tvm_stof.masks import Causal, SlidingWindow
    >>> Causal() & SlidingWindow(4) == SlidingWindow(4) & Causal() & Dense()
    True
    """

    @classmethod
    def of(cls, *masks: Mask) -> Mask:
        flat = cls._flat(masks)
        kept = tuple(m for m in flat if m != Dense())
        return cls(kept) if len(kept) > 1 else kept[0] if kept else Dense()

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        answer = self.masks[0](q, k, b, h)
        for mask in self.masks[1:]:
            answer = answer & mask(q, k, b, h)
        return answer


@canonical("or")
@dataclass(frozen=True)
class Or(_Many):
    """Pairs that any of the masks allows; written ``a | b``."""

    absorbing: ClassVar[int] = FULL
    neutral: ClassVar[int] = EMPTY

    @classmethod
    def of(cls, *masks: Mask) -> Mask:
        flat = cls._flat(masks)
        return Dense() if Dense() in flat else cls(flat) if len(flat) > 1 else flat[0]

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        answer = self.masks[0](q, k, b, h)
        for mask in self.masks[1:]:
            answer = answer | mask(q, k, b, h)
        return answer


@canonical("not")
@dataclass(frozen=True)
class Not(Mask):
    """Pairs that the mask does not allow; written ``~a``."""

    mask: Mask

    spoken: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.mask, Mask) or isinstance(self.mask, Not):
            raise MaskError(explain("Not negates a mask once", got=repr(self.mask)[:80], way_out="Write ~mask"))

    @classmethod
    def of(cls, mask: Mask) -> Mask:
        """The negation; twice gives the mask itself."""
        return mask.mask if isinstance(mask, Not) else cls(mask)

    def bind(self, q_len: int, kv_len: int) -> Mask:
        return Not.of(self.mask.bind(q_len, kv_len))

    def check(self, q_len: int, kv_len: int, batch: int, heads: int) -> None:
        self.mask.check(q_len, kv_len, batch, heads)

    @property
    def arithmetic(self) -> bool:
        # A condition that never holds would be folded away, and the definition with it.
        return self.mask.arithmetic and not isinstance(self.mask, Dense)

    @property
    def relative(self) -> bool:
        return self.mask.relative

    @property
    def depends_on(self) -> frozenset[str]:
        return self.mask.depends_on

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        return logic.negate(self.mask(q, k, b, h))

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        one = self.mask.classify(grid, b, h)
        return np.where(one == EMPTY, FULL, np.where(one == FULL, EMPTY, one)).astype(np.uint8)
