"""TMA's view of a tensor: boxes of whole rows, with every other dimension fixed by the grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from ...cascade.program import Axis, Tensor
from ...expr import Expr, call, const, index
from ..cpu.shape import mentions
from .instructions import let
from .tiles import BYTES, SharedTile

#: a tensor map has five dimensions; a box takes three (line, row, span)
MAX_LEADS = 2


@dataclass(frozen=True)
class Lead:
    """One dimension beside rows and columns: extent, stride in elements, and the grid's position in it."""

    extent: int
    stride: int
    at: Expr


@dataclass(frozen=True)
class Boxed:
    """tensor[lead..., row, lead..., col]: the last dimension is contiguous columns, one other the rows.

    Attributes
    ----------
    leads : the other dimensions, innermost first; neighbours in memory are folded into one.
    """

    tensor: Tensor
    rows: int
    cols: int
    row_stride: int
    leads: tuple[Lead, ...]

    @staticmethod
    def of(tensor: Tensor, at: Sequence[Expr], row: Axis, col: Axis) -> Boxed | str:
        """Read it off index expressions, or say why they do not have this form."""
        rows = [n for n, e in enumerate(at) if mentions(e, row.name)]
        cols = [n for n, e in enumerate(at) if mentions(e, col.name)]
        if len(rows) != 1 or at[rows[0]] != index(row.name) or cols != [len(at) - 1] or at[-1] != index(col.name):
            return f"{tensor.name} is not indexed by {row.name!r} in one dimension and {col.name!r} in the last"
        strides = [1]
        for extent in reversed(tensor.shape[1:]):
            strides.insert(0, strides[0] * extent)
        leads: list[Lead] = []
        for n in reversed(range(len(at) - 1)):
            if n == rows[0]:
                continue
            lead = Lead(tensor.shape[n], strides[n], at[n])
            if leads and leads[-1].stride * leads[-1].extent == lead.stride:
                inner = leads.pop()
                lead = Lead(lead.extent * inner.extent, inner.stride, call("add", call("mul", lead.at, const(inner.extent)), inner.at))
            leads.append(lead)
        if len(leads) > MAX_LEADS:
            return f"{tensor.name} has more than {MAX_LEADS} dimensions beside rows and columns that do not fold into one"
        return Boxed(tensor, tensor.shape[rows[0]], tensor.shape[-1], strides[rows[0]], tuple(leads))

    def map(self, tile: SharedTile) -> TensorMap:
        """The tensor map that moves tiles of this shape."""
        dims = (tile.span, self.rows, self.cols // tile.span, *(lead.extent for lead in self.leads))
        strides = (self.row_stride * BYTES, tile.line, *(lead.stride * BYTES for lead in self.leads))
        box = (tile.span, tile.rows, tile.cols // tile.span, *(1 for _ in self.leads))
        return TensorMap(self.tensor.name, self.tensor.dtype, dims, strides, box, tile.swizzle)

    def at(self, row: Any, lower: Callable[[Expr], Any]) -> list[Any]:
        """Coordinates of the box that starts at a row."""
        return [0, row, 0, *(lower(lead.at) for lead in self.leads)]


@dataclass(frozen=True)
class TensorMap:
    """Arguments of cuTensorMapEncodeTiled: dimensions innermost first, byte strides of all but the first."""

    tensor: str
    dtype: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int

    def encode(self, name: str, buffer: Any) -> Any:
        """Host code: encode the map for a buffer; its address, as the kernel takes it."""
        handle = let(name, T.tvm_stack_alloca("tensormap", 1))
        no_interleave, l2_promotion, zero_fill = 0, 2, 0
        numbers = (*self.dims, *self.strides, *self.box, *(1 for _ in self.dims), no_interleave, self.swizzle, l2_promotion, zero_fill)
        T.evaluate(T.call_packed("runtime.cuTensorMapEncodeTiled", handle, self.dtype, len(self.dims), buffer.data, *numbers))
        return T.address_of(handle)
