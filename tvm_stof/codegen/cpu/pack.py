"""Packing of streamed operands: float32 tiles, zero-padded, in the order the register tile reads them."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as B

from ...cascade.program import Tensor
from ..kernel import Workspace
from ..lower import number
from .loops import store, vectors
from .shape import Operand


def ceil(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)


class Packed:
    """A streamed operand as [lead..., tile, depth, cols].

    ``transpose`` puts the streamed axis last (keys of a score product), otherwise the inner axis is last (values).
    """

    def __init__(self, operand: Operand, tensor: Tensor, tile: int, width: int, transpose: bool) -> None:
        self.operand, self.tensor, self.tile, self.transpose = operand, tensor, tile, transpose
        self.length, inner = tensor.shape[operand.stream_dim], tensor.shape[operand.inner_dim]
        self.tiles = ceil(self.length, tile)
        self.inner = inner if transpose else ceil(inner, width) * width
        self.width = width
        self.lead_shape = tuple(n for d, n in enumerate(tensor.shape) if d not in (operand.stream_dim, operand.inner_dim))
        matrix = (self.inner, tile) if transpose else (tile, self.inner)
        #: read in place when nothing would change
        self.in_place = not transpose and tensor.dtype == "float32" and self.length % tile == 0 and inner % width == 0
        self.workspace = None if self.in_place else Workspace((*self.lead_shape, self.tiles, *matrix))

    def read(self, source: Any, packed: Any, lead: tuple[Any, ...], tile: Any, streamed: Any, inner: Any) -> Any:
        """The element at position ``streamed`` of a tile."""
        if self.in_place:
            return source[tuple(self.operand.at(lead, tile * self.tile + streamed, inner))]
        return packed[(*lead, tile, inner, streamed) if self.transpose else (*lead, tile, streamed, inner)]

    def emit(self, source: Any, packed: Any) -> None:
        """parallel (lead, tile): packed[...] = float32(source[...]), 0 outside"""
        if self.in_place:
            return
        total = self.tiles
        for n in self.lead_shape:
            total *= n
        real_inner = self.tensor.shape[self.operand.inner_dim]
        with B.parallel(0, total) as task:
            tile, rest = task % self.tiles, task // self.tiles
            lead: list[Any] = []
            for n in reversed(self.lead_shape):
                lead.insert(0, rest % n)
                rest = rest // n

            def element(streamed: Any, inner: Any) -> Any:
                at = tile * self.tile + streamed
                inside = [at < self.length] if self.length % self.tile else []
                if not self.transpose and real_inner != self.inner:
                    inside.append(inner < real_inner)
                value = source[tuple(self.operand.at(tuple(lead), at, inner))]
                value = value if self.tensor.dtype == "float32" else tirx.Cast("float32", value)
                return tirx.if_then_else(tirx.all(*inside), value, number(0.0, "float32")) if inside else value

            if self.transpose:
                with B.serial(0, self.inner) as inner:
                    vectors(self.tile, self.width, lambda c, _: store(packed, element(c, inner), *lead, tile, inner, c))
            else:
                with B.serial(0, self.tile) as streamed:
                    vectors(self.inner, self.width, lambda c, _: store(packed, element(streamed, c), *lead, tile, streamed, c))
