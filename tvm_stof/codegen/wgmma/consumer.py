"""One consumer warpgroup: 64 rows of scores, weights and product in registers."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.script import tirx as T

from ...expr import Expr
from ..lower import lower, number
from .fragments import HELD, ROWS, WARPGROUP, column_offset, fragment, row_of
from .instructions import integer, let, local, named_arrive, named_sync, pack_into, store, wgmma_wait, when
from .pipeline import KEY, OPERAND, Pipeline
from .plan import Plan
from .products import advance, along_columns, along_rows, issue_product, issue_scores
from .ranges import Bounds
from .update import Update
from .visit import TileList, Walk


@dataclass(frozen=True)
class Thread:
    """Who runs: consumer number, thread within its warpgroup, warp and lane."""

    consumer: Any
    thread: Any
    warp: Any
    lane: Any

    @property
    def leader(self) -> Any:
        return tirx.EQ(self.thread, 0)


class Consumer:
    """Emits the loop over a walk's tiles: for each, scores = lhs . key; update; out = out * factor + weights . operand."""

    def __init__(self, plan: Plan, pipeline: Pipeline, shared: Any, thread: Thread, buffers: Mapping[str, Any]) -> None:
        self.plan, self.laid, self.pipeline, self.thread, self.buffers = plan, plan.laid, pipeline, thread, buffers
        self.dtype = plan.laid.dtype
        self.scores, self.out = local("scores", plan.block_k // 2), local("out", plan.laid.width // 2)
        self.weights = local("weights", plan.block_k // 4, "uint32")  # packed pairs of scores are wgmma's A fragment in place
        self.lhs = along_columns("lhs_desc", shared.ptr_to([thread.consumer * plan.slab]), plan.lhs_tile)
        self.key = along_columns("key_desc", shared.ptr_to([plan.key_base]), plan.key_tile)
        self.operand = along_rows("operand_desc", shared.ptr_to([plan.operand_base]), plan.operand_tile)
        self.update = Update(plan.laid, plan.block_k, self.scores)
        # Held in registers on purpose: as expressions they would be worked out anew for every element.
        self.rows, self.column = local("rows", HELD, "int32"), local("column", 1, "int32")

    def run(self, walk: Walk, visitor: Any, at: Mapping[str, Any], row0: Any) -> None:
        """All tiles of one row tile; ``row0`` is the warpgroup's first row."""
        plan = self.plan
        self.visitor, self.walk, self.at, self.row0 = visitor, walk, at, row0
        self.update.start()
        for r in range(HELD):
            store(self.rows, row0 + self.thread.warp * 16 + fragment(self.thread.lane, 2 * r)[0], r)
        for i in range(self.laid.width // 2):
            store(self.out, number(0.0, "float32"), i)
        if plan.pingpong:  # the last consumer gives the first its turn
            with when(tirx.EQ(self.thread.consumer, plan.consumers - 1)):
                named_arrive(1, 2 * WARPGROUP)
        self.pipeline.wait_lhs()
        with when(walk.visits > 0 if visitor.may_be_empty else True):
            self._visit(0, tested=visitor.most_tested > 0)
            if visitor.most_tested > 1:
                with T.serial(1, walk.tested, unroll=False) as n:
                    self._visit(n, tested=True)
            if visitor.any_untested:
                begin = 1 if visitor.most_tested <= 1 else tirx.max(integer(walk.tested), 1)
                with T.serial(begin, walk.visits, unroll=False) as n:
                    self._visit(n, tested=False)
            if plan.overlap:
                last = walk.visits - 1
                self.pipeline.wait_full(OPERAND, last)
                self._issue_product(last)
                wgmma_wait(0)

    def _visit(self, n: Any, tested: bool) -> None:
        (self._overlapped if self.plan.overlap else self._in_turn)(n, tested)

    def _overlapped(self, n: Any, tested: bool) -> None:
        """lhs . key[n] and weights . operand[n - 1] are in flight together; the update of tile n runs beside the second."""
        first, pipeline = isinstance(n, int), self.pipeline
        tile = self._tile(n)
        pipeline.wait_full(KEY, n)
        if not first:
            self._take_turn()
        self._issue_scores(n)
        if not first:
            pipeline.wait_full(OPERAND, n - 1)
            self._issue_product(n - 1)
            self._give_turn()
        wgmma_wait(0 if first else 1)
        pipeline.release(KEY, n, self.thread.leader)
        factors = self._update(n, tile, tested)
        if not first:
            wgmma_wait(0)
            pipeline.release(OPERAND, n - 1, self.thread.leader)
            self._rescale(factors)
        self._pack()

    def _in_turn(self, n: Any, tested: bool) -> None:
        """lhs . key[n], update, weights . operand[n]: fewer registers at once; overlap comes from the other consumers alone."""
        first, pipeline = isinstance(n, int), self.pipeline
        tile = self._tile(n)
        pipeline.wait_full(KEY, n)
        if not first:
            self._take_turn()
        self._issue_scores(n)
        wgmma_wait(0)
        if not first:
            self._give_turn()
        pipeline.release(KEY, n, self.thread.leader)
        factors = self._update(n, tile, tested)
        if not first:
            self._rescale(factors)
        self._pack()
        pipeline.wait_full(OPERAND, n)
        self._issue_product(n)
        wgmma_wait(0)
        pipeline.release(OPERAND, n, self.thread.leader)

    def _take_turn(self) -> None:
        if self.plan.pingpong:
            named_sync(T.cast(1 + self.thread.consumer, "uint32"), 2 * WARPGROUP)

    def _give_turn(self) -> None:
        if self.plan.pingpong:
            named_arrive(T.cast(1 + (self.thread.consumer + 1) % self.plan.consumers, "uint32"), 2 * WARPGROUP)

    def _issue_scores(self, n: Any) -> None:
        key = advance(self.key, n % self.plan.stages * self.plan.key_stage)
        issue_scores(self.scores, self.dtype, (self.lhs, self.plan.lhs_tile), (key, self.plan.key_tile))

    def _issue_product(self, n: Any) -> None:
        operand = advance(self.operand, n % self.plan.stages * self.plan.operand_stage)
        issue_product(self.out, self.dtype, self.weights, (operand, self.plan.operand_tile))

    def _rescale(self, factors: list[Any]) -> None:
        for i in range(self.laid.width // 2):
            factor = factors[row_of(i)]
            if factor is not None:
                store(self.out, self.out[i] * factor, i)

    def _pack(self) -> None:
        for i in range(self.plan.block_k // 4):
            pack_into(self.weights[i], self.scores[2 * i + 1], self.scores[2 * i], self.dtype)

    def _tile(self, n: Any) -> Any:
        """The n-th tile's number, bound to a name; None where nothing asks for it."""
        wanted = self.visitor.most_tested > 0 or self.update.needs_columns
        return let("tile", self.walk.tile(n)) if wanted else None

    def _update(self, n: Any, tile: Any, tested: bool) -> list[Any]:
        if tile is not None:
            store(self.column, tile * self.plan.block_k + 2 * (self.thread.lane % 4), 0)

        def place(e: Expr, operands: tuple[Any, ...], i: int) -> Any:
            if e.op == "load":
                return self.buffers[str(e.args[0])][self._inside(e, operands)]
            name = str(e.args[0])
            if name == self.laid.program.stream.name:
                return self.column[0] + column_offset(i)
            return self.rows[row_of(i)] if name == self.laid.shape.row.name else self.at[name]

        self.update.map_scores(place)
        if tested:
            with when(self.walk.tested > 0 if isinstance(n, int) and not self.visitor.always_tested else True):
                self.update.mask(self._keeps(n, place))
        return self.update.run(tested, place)

    def _inside(self, e: Expr, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Positions past the end read the last element; what they give is masked or never stored."""
        shape = self.laid.program.tensor(str(e.args[0])).shape
        return tuple(tirx.min(a, extent - 1) for a, extent in zip(operands, shape))

    def _keeps(self, n: Any, place: Any) -> Any:
        """register -> whether its element takes part: stored bits, or the predicate and the end of the stream."""
        program = self.laid.program
        if self.plan.test == "bits":
            return self._bits(n)
        bounds = Bounds.of(program.predicate, self.laid.shape.row, program.stream)
        if bounds.exact:
            return self._between(bounds)

        def keeps(i: int) -> Any:
            conditions = [] if program.predicate is None else [lower(program.predicate, lambda e, operands: place(e, operands, i), "int32")]
            if self.plan.ragged:
                conditions.append(place(Expr("index", (program.stream.name,)), (), i) < program.stream.extent)
            return tirx.all(*conditions)

        return keeps

    def _between(self, bounds: Bounds) -> Any:
        """A row's columns between its lowest and highest, both counted from this thread's first column."""
        last = [self.laid.program.stream.extent - 1] if self.plan.ragged or not bounds.uppers else []
        highest, lowest = local("highest", HELD, "int32"), local("lowest", HELD, "int32")
        for r in range(HELD):
            ends = [*(line.at(self.rows[r]) for line in bounds.uppers), *last]
            store(highest, functools.reduce(tirx.min, ends) - self.column[0], r)
            if bounds.lowers:
                store(lowest, functools.reduce(tirx.max, [line.at(self.rows[r]) for line in bounds.lowers]) - self.column[0], r)

        def keeps(i: int) -> Any:
            above = [] if not bounds.lowers else [lowest[row_of(i)] <= column_offset(i)]
            return tirx.all(highest[row_of(i)] >= column_offset(i), *above)

        return keeps

    def _bits(self, n: Any) -> Any:
        """Bits of a stored tile, one word for each row, lane of a quad and 32 of that lane's columns."""
        assert isinstance(self.visitor, TileList)
        words = -(-self.plan.block_k // 128)
        held = local("bits", HELD * words, "uint32")
        stored = let("stored_tile", self.buffers["tile"][self.visitor.place(n)])
        for r in range(HELD):
            row = self.thread.consumer * ROWS + self.thread.warp * 16 + fragment(self.thread.lane, 2 * r)[0]
            for w in range(words):
                store(held, self.buffers["bits"][stored, row, self.thread.lane % 4, w], r * words + w)

        def keeps(i: int) -> Any:
            word, bit = divmod(i // 4 * 2 + i % 2, 32)
            return tirx.NE(T.bitwise_and(held[row_of(i) * words + word], T.uint32(1 << bit)), T.uint32(0))

        return keeps
