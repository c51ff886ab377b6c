"""Any boolean array as a mask."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..canonical import canonical
from ..errors import MaskError, explain
from . import runs
from .base import BlockGrid, Mask, from_counts
from .checks import wholes
from .logic import symbolic

MAX_CONTENT = 64 * 1024
MAX_STORED = 1 << 30
_SHAPES = "[q, kv], [heads, q, kv], [batch, heads, q, kv]"


@canonical("array")
@dataclass(frozen=True)
class Array(Mask):
    """The pairs for which a boolean array is True. Make one with ``Array.of(bits)``.

    Parameters
    ----------
    shape : [q_len, kv_len], [heads, q_len, kv_len] or [batch, heads, q_len, kv_len]; heads and batch may be 1.
    digest : SHA-256 of shape and bits.
    content : the bits as run-length text when that is at most 64 KiB; else None, and the mask can only be used where the array
        is in memory (``with_bits``).

    Examples
    --------
    >>> mask = Array.of(np.eye(4, dtype=bool))
    >>> bool(mask(2, 2)), bool(mask(2, 3)), mask.content
    (True, False, 'AAEEAQQBBAE=')
    """

    shape: tuple[int, ...]
    digest: str
    content: str | None = None
    _bits: npt.NDArray[np.bool_] | None = field(default=None, init=False, repr=False, compare=False)

    spoken: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape) if isinstance(self.shape, (tuple, list)) else self.shape)
        wholes("array shape", self.shape, 1)
        if not 2 <= len(self.shape) <= 4:
            raise MaskError(explain("an array mask has 2 to 4 axes", got=self.shape, accepted=_SHAPES))
        if not isinstance(self.digest, str) or len(self.digest) != 64:
            raise MaskError(explain("an array mask needs the SHA-256 of its bits", got=repr(self.digest)[:80]))
        if self.content is None:
            return
        if not isinstance(self.content, str) or len(self.content) > MAX_CONTENT:
            raise MaskError(explain("the content of an array mask is a short text", got=repr(self.content)[:40],
                                    accepted=f"{MAX_CONTENT} characters"))  # fmt: skip
        elements = int(np.prod([float(n) for n in self.shape]))
        if elements > MAX_STORED or int(runs.lengths(self.content).sum()) != elements:
            raise MaskError(explain("the content of an array mask does not fill its shape", got=self.shape,
                                    accepted=f"at most {MAX_STORED} elements"))  # fmt: skip

    @classmethod
    def of(cls, bits: Any) -> Array:
        """The mask of a boolean array: NumPy, or whatever ``numpy.asarray`` takes."""
        array = np.asarray(bits)
        if array.dtype != np.bool_:
            raise MaskError(explain("an array mask must be boolean", got=f"dtype {array.dtype}",
                                    way_out="Convert it with .astype(bool); True = attend"))  # fmt: skip
        if not 2 <= array.ndim <= 4:
            raise MaskError(explain("an array mask has 2 to 4 axes", got=array.shape, accepted=_SHAPES))
        array = np.array(array, order="C")
        array.setflags(write=False)
        content = runs.encode(array) if array.size <= MAX_STORED else None
        mask = cls(array.shape, _digest(array), content if content is not None and len(content) <= MAX_CONTENT else None)
        object.__setattr__(mask, "_bits", array)
        return mask

    def with_bits(self, bits: Any) -> Array:
        """The same mask with its array in memory again; another array is refused."""
        mask = Array.of(bits)
        if mask.digest != self.digest:
            raise MaskError(explain("this is another array", got=f"SHA-256 {mask.digest}", accepted=self.digest))
        return mask

    @property
    def bits(self) -> npt.NDArray[np.bool_]:
        """The array."""
        if self._bits is not None:
            return self._bits
        if self.content is None:
            raise MaskError(explain("the array of this mask is not in memory, and was too large to be stored",
                                    got=f"shape {list(self.shape)}, SHA-256 {self.digest}",
                                    way_out="Use mask.with_bits(array), or build the problem with Array.of(array)"))  # fmt: skip
        array = runs.decode(runs.lengths(self.content)).reshape(self.shape)
        if _digest(array) != self.digest:
            raise MaskError(explain("the content of an array mask is not what its SHA-256 says", got=_digest(array),
                                    accepted=self.digest))  # fmt: skip
        array.setflags(write=False)
        object.__setattr__(self, "_bits", array)
        return array

    def check(self, q_len: int, kv_len: int, batch: int, heads: int) -> None:
        full = (batch, heads, q_len, kv_len)[4 - len(self.shape) :]
        if self.shape[-2:] != full[-2:] or any(n not in (1, m) for n, m in zip(self.shape[:-2], full[:-2])):
            raise MaskError(explain("the array mask does not fit the problem", got=list(self.shape),
                                    accepted=f"{list(full)}, or 1 for heads and batch"))  # fmt: skip

    @property
    def arithmetic(self) -> bool:
        return False

    @property
    def depends_on(self) -> frozenset[str]:
        return frozenset(name for name, n in zip("bh", self._whole_shape()) if n > 1)

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        if symbolic(q, k, b, h):
            raise MaskError(explain("an array mask has no index arithmetic", got="symbolic positions",
                                    way_out="Use its bits (mask.arithmetic is False)"))  # fmt: skip
        batch, heads = self._whole_shape()[:2]
        return self.bits.reshape(self._whole_shape())[b if batch > 1 else 0, h if heads > 1 else 0, q, k]

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        batch, heads = self._whole_shape()[:2]
        (q_lo, q_hi), (k_lo, _) = grid.q_bounds(), grid.k_bounds()
        bits = self.bits.reshape(self._whole_shape())[b if batch > 1 else 0, h if heads > 1 else 0]
        counts = np.empty((grid.rows, grid.cols), np.int64)
        for n, (lo, hi) in enumerate(zip(q_lo, q_hi)):
            counts[n] = np.add.reduceat(bits[lo : hi + 1].sum(axis=0, dtype=np.int64), k_lo)
        return from_counts(counts, grid.areas())

    def _whole_shape(self) -> tuple[int, ...]:
        return (1,) * (4 - len(self.shape)) + self.shape


def _digest(bits: npt.NDArray[np.bool_]) -> str:
    digest = hashlib.sha256(f"bits {list(bits.shape)}\n".encode("ascii"))
    digest.update(np.packbits(bits.ravel()).tobytes())
    return digest.hexdigest()
