"""PTX as Python functions: each appends one instruction, or one fixed idiom, to the kernel being built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tvm import tirx
from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from ..lower import number

PTX_TYPE = {"float16": "f16", "bfloat16": "bf16"}


def _emitter(op: Any, uint32: bool = False) -> Callable[..., None]:
    """A function that emits ``op``; with ``uint32``, plain numbers become the unsigned operands the instruction demands."""

    def operand(a: Any) -> Any:
        return T.uint32(a) if uint32 and isinstance(a, int) else a

    return lambda *args, **kwargs: T.evaluate(op(*map(operand, args), **kwargs))


mbarrier_init = _emitter(T.ptx.mbarrier.init.shared.b64, uint32=True)  # (barrier, arrivals)
mbarrier_expect = _emitter(T.ptx.mbarrier.arrive.expect_tx.shared.b64, uint32=True)  # (barrier, bytes)
mbarrier_arrive = _emitter(T.ptx.mbarrier.arrive.shared.b64, uint32=True)  # (barrier, 1, pred=)
mbarrier_wait = _emitter(T.cuda.mbarrier_wait)  # (barrier, phase)
named_sync = _emitter(T.ptx.bar.sync, uint32=True)  # (index, threads)
named_arrive = _emitter(T.ptx.bar.arrive, uint32=True)
fence_async_proxy = _emitter(T.ptx.fence.proxy.async_.shared__cta)  # ordinary shared writes, seen by TMA and wgmma
wgmma_fence = _emitter(T.ptx.wgmma.fence.sync.aligned)
wgmma_commit = _emitter(T.ptx.wgmma.commit_group.sync.aligned)
wgmma_wait = _emitter(T.ptx.wgmma.wait_group.sync.aligned)  # (groups still pending)
tma_commit = _emitter(T.ptx.cp.async_.bulk.commit_group)
tma_wait = _emitter(T.ptx.cp.async_.bulk.wait_group)  # (groups still pending)
tma_wait_read = _emitter(T.ptx.cp.async_.bulk.wait_group.read)  # until their shared memory was read
exp2_into = _emitter(T.ptx.ex2.approx.ftz.f32)  # (destination, value)
reciprocal_into = _emitter(T.ptx.rcp.approx.ftz.f32)  # (destination, value)
release_registers = _emitter(T.ptx.setmaxnreg.dec.sync.aligned.u32)  # (registers kept)
take_registers = _emitter(T.ptx.setmaxnreg.inc.sync.aligned.u32)  # (registers wanted)


def tma_load(destination: Any, tensor_map: Any, at: list[Any], barrier: Any) -> None:
    """Box at coordinates -> shared memory; rows past the end arrive as zeros, and count as bytes."""
    op = T.ptx[f"cp.async.bulk.tensor.{len(at)}d.shared::cluster.global.mbarrier::complete_tx::bytes"]
    T.evaluate(op(destination, tensor_map, *at, barrier))


def tma_store(tensor_map: Any, at: list[Any], source: Any) -> None:
    """Shared memory -> box at coordinates; rows past the end are dropped."""
    T.evaluate(T.ptx[f"cp.async.bulk.tensor.{len(at)}d.global.shared::cta.tile.bulk_group"](tensor_map, *at, source))


def pack_into(destination: Any, high: Any, low: Any, dtype: str) -> None:
    """Two float32, rounded to nearest, as one 32-bit register."""
    T.evaluate(T.ptx[f"cvt.rn.{PTX_TYPE[dtype]}x2.f32"](destination, high, low))


def named(name: str, variable: Any) -> Any:
    """Give a variable of the kernel its name."""
    IRBuilder.name(name, variable)
    return variable


def let(name: str, value: Any) -> Any:
    """Name a buffer, or bind an expression to a constant of the kernel; plain numbers stay numbers."""
    if not isinstance(value, (int, float)):
        value = value if tirx.is_buffer_var(value) else T.Bind(value)
        IRBuilder.name(name, value)
    return value


def local(name: str, size: int, dtype: str = "float32") -> Any:
    """An array in registers: every index must be a constant."""
    return let(name, T.alloc_local((size,), dtype))


def store(buffer: Any, value: Any, *at: Any) -> None:
    """buffer[at] = value"""
    T.buffer_store(buffer, value, list(at))


def hidden_zero(thread: Any) -> Any:
    """A zero that the compiler does not know, so that a short loop stays one: unrolled, its tiles would fight for registers."""
    return let("zero", T.tvm_warp_shuffle(T.uint32(0xFFFFFFFF), thread, 0, 32, 32) // 1024)


def integer(value: Any) -> Any:
    """A plain number as an int32 expression."""
    return number(value, "int32") if isinstance(value, int) else value


@contextmanager
def when(condition: Any) -> Iterator[None]:
    """``if`` in the kernel; True leaves no branch."""
    if condition is True:
        yield
    else:
        with T.If(condition), T.Then():
            yield
