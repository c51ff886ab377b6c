"""Tiles of 16-bit elements in shared memory: the form that one TMA box delivers and wgmma reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BYTES = 2


@dataclass(frozen=True)
class SharedTile:
    """rows x cols, stored as [cols / span][rows][span], 16-byte chunks permuted within each group of 8 lines of ``span`` elements."""

    rows: int
    cols: int

    @property
    def span(self) -> int:
        """Columns of one line: 128, 64 or 32 bytes, the widest swizzle that divides the columns."""
        return next(s for s in (64, 32, 16) if self.cols % s == 0)

    @property
    def line(self) -> int:
        """Bytes of one line."""
        return self.span * BYTES

    @property
    def swizzle(self) -> int:
        """CUtensorMapSwizzle; TVM's encoder of wgmma descriptors takes the same number."""
        return {64: 3, 32: 2, 16: 1}[self.span]

    @property
    def bytes(self) -> int:
        return self.rows * self.cols * BYTES

    @property
    def slab(self) -> int:
        """Bytes from one span of columns to the next."""
        return self.rows * self.line

    def word(self, row: Any, col: int, pair: Any) -> Any:
        """32-bit word of elements (row, col + 2 * pair) and the next; ``col`` is a multiple of 8, ``pair`` below 4.

        The hardware's permutation: the chunk's number within its line is xor-ed with address bits 7 and up.
        """
        span, inner = divmod(col, self.span)
        chunks = self.line // 16
        phase = row // (128 // self.line) % chunks
        return span * (self.slab // 4) + row * (self.line // 4) + (phase ^ inner // 8) * 4 + pair
