"""Outputs of finished rows: single numbers straight from registers, the product through shared memory and TMA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm import tirx

from ...cascade.program import Output
from ...expr import Expr, const, result
from ..lower import lower
from .fast_math import linear, lower_fast
from .fragments import HELD, WARPGROUP, fragment, row_of
from .instructions import fence_async_proxy, let, local, named_sync, pack_into, store, tma_commit, tma_store, tma_wait, when
from .plan import Plan
from .update import Update

#: leaves of output expressions: indices and loads for one of the thread's two rows
RowPlace = Callable[[Expr, tuple[Any, ...], Any], Any]


class Epilogue:
    """Stores one warpgroup's 64 rows.

    Parameters
    ----------
    row0 : first row of the warpgroup, along the whole axis.
    warp, lane : of the thread, within its warpgroup.
    at : positions on the outer axes.
    """

    def __init__(self, plan: Plan, update: Update, buffers: Mapping[str, Any], at: Mapping[str, Any], thread: tuple[Any, Any, Any]) -> None:
        self.plan, self.laid, self.update, self.buffers, self.at = plan, plan.laid, update, buffers, at
        self.row0, self.warp, self.lane = thread

    def _leaf(self, r: int, row: Any, wide: Any = None) -> Callable[[Expr, tuple[Any, ...]], Any]:
        at = {**self.at, self.laid.shape.row.name: row}

        def answer(e: Expr, operands: tuple[Any, ...]) -> Any:
            if e.op == "index":
                return at[str(e.args[0])]
            if e.op == "load":
                return self.buffers[str(e.args[0])][operands]
            return wide if e.args[0] == self.laid.product.name else self.update.state[str(e.args[0])][r]

        return answer

    def store_narrow(self) -> None:
        """One lane of each quad stores its rows' numbers."""
        if not self.laid.narrow:
            return
        for r in range(HELD):
            row = let("out_row", self.row0 + self.warp * 16 + fragment(self.lane, 2 * r)[0])
            with when(tirx.all(tirx.EQ(self.lane % 4, 0), row < self.laid.shape.row.extent)):
                for output in self.laid.narrow:
                    self._store_number(output, self._leaf(r, row))

    def _store_number(self, output: Output, leaf: Any) -> None:
        dtype = self.laid.program.tensor(output.tensor).dtype
        value = lower_fast(output.value, leaf)
        where = [lower(a, leaf, "int32") for a in output.at]
        store(self.buffers[output.tensor], value if dtype == "float32" else tirx.Cast(dtype, value), *where)

    def store_wide(self, out: Any, words: Any, slab: Any, tma: tuple[Any, list[Any], Any], named: Any) -> None:
        """The product's output: finish it, round it, put it in this warpgroup's own slab, and let one thread send it.

        Parameters
        ----------
        words, slab : shared memory as 32-bit words, and the first word of the slab.
        tma : (tensor map, coordinates, the slab's address).
        named : (barrier number, whether this thread sends).
        """
        barrier, sender = named
        finished = self._finish(out)
        packed = local("packed", 1, "uint32")
        tile = self.plan.out_tile
        named_sync(barrier, WARPGROUP)  # all four warps are done reading what the slab held
        for i in range(0, tile.cols // 2, 2):
            row = self.warp * 16 + fragment(self.lane, i)[0]
            pack_into(packed[0], finished(i + 1), finished(i), self.laid.out.tensor.dtype)
            store(words, packed[0], slab + tile.word(row, 8 * (i // 4), self.lane % 4))
        fence_async_proxy()
        named_sync(barrier, WARPGROUP)
        with when(sender):
            tma_store(*tma)
            tma_commit()
            tma_wait(0)

    def _finish(self, out: Any) -> Callable[[int], Any]:
        """register -> its output value: factor * product + rest where the output is of that form, with both hoisted."""
        value, x = self.laid.wide.value, result(self.laid.product.name)
        form = linear(value, x)
        per_row = form is not None and not any(n.op == "index" and n.args[0] == self.laid.wide.axes[0].name for f in form for n in f.walk())
        rows = [self.row0 + self.warp * 16 + fragment(self.lane, 2 * r)[0] for r in range(HELD)]
        if form is None or not per_row:

            def element(i: int) -> Any:
                leaf = self._leaf(row_of(i), rows[row_of(i)], out[i])
                column = 8 * (i // 4) + 2 * (self.lane % 4) + i % 2
                own = self.laid.wide.axes[0].name
                bare = value.args[1] if value.op == "cast" else value
                return lower_fast(bare, lambda e, ops: column if e.op == "index" and e.args[0] == own else leaf(e, ops))

            return element
        factors = [let("factor", lower_fast(form[0], self._leaf(r, rows[r]))) for r in range(HELD)]
        if form[1] == const(0.0):
            return lambda i: out[i] * factors[row_of(i)]
        rests = [let("added", lower_fast(form[1], self._leaf(r, rows[r]))) for r in range(HELD)]
        return lambda i: out[i] * factors[row_of(i)] + rests[row_of(i)]
