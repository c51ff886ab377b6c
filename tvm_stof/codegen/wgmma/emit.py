"""The kernel of a program on warpgroups: one producer thread feeds tiles by TMA, one to three consumer warpgroups compute.

work item = (outer position, row tile of 64 rows for each consumer)
  producer: for tile in walk: wait until a stage is empty; load key tile, operand tile
  consumer: for tile in walk: scores = lhs . key; update; out = out * factor + weights . operand
            store outputs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
import tvm.script.ir_builder
from tvm import tirx
from tvm.script import tirx as T
from tvm.tirx.script.builder import ir as B

from ...cascade.program import FusedProgram, Tensor
from ...errors import RecordError, UnsupportedTarget, explain
from ...expr import Expr
from ..cpu.shape import Arrays
from ..kernel import Kernel
from ..lower import lower
from .consumer import Consumer, Thread
from .epilogue import Epilogue
from .fragments import ROWS, WARPGROUP
from .instructions import hidden_zero, integer, let, named, release_registers, take_registers, tma_load, when
from .laid import laid_out
from .lists import partial_first
from .pipeline import KEY, OPERAND, Pipeline
from .plan import Plan
from .scheduling import Place, place_of
from .tensor_map import Boxed
from .visit import EveryTile, TileList, Walk


class Warpgroups:
    """Assembles one PrimFunc.

    Parameters
    ----------
    program, decisions : what, and how (``plan.Plan`` names the decisions).
    parameters : tensors of the definition that callers pass, in order.
    lists : visitor arrays as ``codegen.visitors`` makes them (``row_ptr``, ``col``, ``whole``, ``tile``, ``tiles``, ``order``), or empty.
    strides : list group = sum of stride * position over the outer axes.
    """

    def __init__(self, program: FusedProgram, decisions: Mapping[str, Any], parameters: Sequence[Tensor], lists: Arrays | None = None,
                 strides: Sequence[int] = ()) -> None:  # fmt: skip
        laid = laid_out(program)
        if isinstance(laid, str):
            raise UnsupportedTarget(f"the wgmma emitter does not take this program: {laid}")
        self.plan = plan = Plan.of(laid, decisions)
        reason = plan.refusal() or ("stored bits without a tile list" if plan.test == "bits" and not lists else None)
        if reason is not None:
            raise RecordError(explain("impossible decisions", got=dict(decisions), accepted=reason))
        self.laid, self.parameters = laid, parameters
        self.lists = partial_first(lists) if lists else {}
        self.strides = list(strides) or [0] * len(laid.shape.outer)
        self.buffers: dict[str, Any] = {}
        self.moved: dict[str, tuple[Boxed, Any]] = {"lhs_map": (laid.lhs, plan.lhs_tile), "key_map": (laid.key, plan.key_tile),
                      "operand_map": (laid.operand, plan.operand_tile), "out_map": (laid.out, plan.out_tile)}  # fmt: skip

    @property
    def grid(self) -> int:
        """Work items: one block of threads each."""
        total = self.plan.row_tiles
        for axis in self.laid.shape.outer:
            total *= axis.extent
        return total

    def emit(self) -> Kernel:
        """Build the kernel."""
        with tvm.script.ir_builder.IRBuilder() as builder, B.prim_func():
            B.func_name("main")
            for t in self.parameters:
                self.buffers[t.name] = B.arg(t.name, T.Buffer(t.shape, t.dtype))
            for name, array in self.lists.items():
                self.buffers[name] = B.arg(name, T.Buffer(array.shape, str(array.dtype)))
            B.func_attr({"global_symbol": "main"})
            maps = {name: boxed.map(tile).encode(name, self.buffers[boxed.tensor.name]) for name, (boxed, tile) in self.moved.items()}
            T.device_entry()
            with T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1}):  # without it ptxas ignores setmaxnreg
                self._device(maps)
        return Kernel(tvm.IRModule({"main": builder.get()}), tuple(self.lists.values()))

    def _device(self, maps: Mapping[str, Any]) -> None:
        plan = self.plan
        cta, group = named("cta", T.cta_id([self.grid])), named("group", T.warpgroup_id([plan.consumers + 1]))
        thread = named("thread", T.thread_id([plan.threads]))
        shared = let("shared", T.alloc_buffer((plan.shared_bytes,), "uint8", scope="shared.dyn", align=1024))
        words = let("words", T.decl_buffer((plan.shared_bytes // 4,), "uint32", data=shared.data, scope="shared.dyn"))
        slots = let("slots", T.decl_buffer((plan.shared_bytes // 8,), "uint64", data=shared.data, scope="shared.dyn"))
        pipeline = Pipeline(plan, slots)
        place = place_of(plan, cta, self.strides, self.buffers.get("order"))
        visitor = TileList(plan, self.buffers, self.lists) if self.lists else EveryTile(plan)
        walk = visitor.walk(place.group, place.row_tile, lambda: hidden_zero(thread))
        with when(tirx.EQ(thread, 0)):
            pipeline.init()
        T.evaluate(T.cuda.cta_sync())
        producer, consumer = plan.registers
        with T.If(tirx.EQ(group, 0)):
            with T.Then():
                if plan.redistributes:
                    release_registers(producer)
                with when(tirx.EQ(thread, 0)):
                    self._produce(maps, pipeline, shared, place, walk)
            with T.Else():
                if plan.redistributes:
                    take_registers(consumer)
                self._consume(maps, pipeline, (shared, words), place, (visitor, walk), (group - 1, thread % WARPGROUP))

    def _coordinates(self, name: str, row: Any, place: Place) -> list[Any]:
        return [integer(x) for x in self.moved[name][0].at(row, lambda e: lower(e, lambda n, _: place.at[str(n.args[0])], "int32"))]

    def _produce(self, maps: Mapping[str, Any], pipeline: Pipeline, shared: Any, place: Place, walk: Walk) -> None:
        """One thread keeps the stages full."""
        plan = self.plan
        pipeline.expect(pipeline.lhs, plan.lhs_tile.bytes * plan.consumers)
        for w in range(plan.consumers):
            at = self._coordinates("lhs_map", place.row0 + w * ROWS, place)
            tma_load(shared.ptr_to([w * plan.slab]), maps["lhs_map"], at, pipeline.lhs)
        rings = (
            (KEY, "key_map", plan.key_base, plan.key_stage, plan.key_tile),
            (OPERAND, "operand_map", plan.operand_base, plan.operand_stage, plan.operand_tile),
        )
        with T.serial(0, walk.visits, unroll=False) as n:
            row = let("tile_row", walk.tile(n) * plan.block_k)
            for ring, name, base, stage, tile in rings:
                pipeline.wait_empty(ring, n)
                full = pipeline.expect(pipeline.full(ring, n), tile.bytes)
                tma_load(shared.ptr_to([base + n % plan.stages * stage]), maps[name], self._coordinates(name, row, place), full)

    def _consume(self, maps: Mapping[str, Any], pipeline: Pipeline, memory: tuple[Any, Any], place: Place, visit: tuple[Any, Walk],
                 who: tuple[Any, Any]) -> None:  # fmt: skip
        plan, (shared, words), (visitor, walk) = self.plan, memory, visit
        thread = Thread(who[0], who[1], let("warp", who[1] // 32), let("lane", who[1] % 32))
        row0 = let("row0", place.row0 + thread.consumer * ROWS)
        consumer = Consumer(plan, pipeline, shared, thread, self.buffers)
        consumer.run(walk, visitor, place.at, row0)
        consumer.update.finish()
        epilogue = Epilogue(plan, consumer.update, self.buffers, place.at, (row0, thread.warp, thread.lane))
        epilogue.store_narrow()
        slab = thread.consumer * plan.slab
        send = (maps["out_map"], self._coordinates("out_map", row0, place), shared.ptr_to([slab]))
        named = T.cast(1 + plan.consumers + thread.consumer, "uint32")
        epilogue.store_wide(consumer.out, words, thread.consumer * (plan.slab // 4), send, (named, thread.leader))


def supports(program: FusedProgram, target: Any) -> str | None:
    """None where this emitter takes the program on the target (a ``targets.Device``), else the reason in one sentence."""
    if target.kind != "cuda" or target.arch != "sm_90a":
        return f"wgmma needs sm_90a, not {target.kind} {target.arch}"
    laid = laid_out(program)
    return laid if isinstance(laid, str) else None


__all__ = ["Expr", "Warpgroups", "supports"]
