"""The blocks of a PrimFunc as plain data: who writes what, over which iteration variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import UnsupportedPrimFunc, explain
from ..expr import Expr, index
from .convert import Converter
from .program import Tensor


@dataclass(frozen=True)
class Iter:
    """An iteration variable of one block; ``name`` is unique in the function, ``label`` is what the author called it."""

    name: str
    label: str
    extent: int
    reduce: bool


@dataclass(frozen=True)
class Block:
    """One block: buffer[at] = value, after buffer[at] = init at the first step of its reduction."""

    name: str
    iters: tuple[Iter, ...]
    buffer: str
    at: tuple[Expr, ...]
    value: Expr
    init: Expr | None = None

    @property
    def reduces(self) -> bool:
        return any(i.reduce for i in self.iters)


@dataclass(frozen=True)
class Function:
    """What a PrimFunc says: parameters in order, intermediate buffers (shape, dtype), blocks in order."""

    tensors: tuple[Tensor, ...]
    buffers: dict[str, Tensor]
    blocks: tuple[Block, ...]


def read(func: Any) -> Function:
    """Read the blocks of an s_tir PrimFunc (or of the only function of an IRModule)."""
    if hasattr(func, "functions"):
        func = next(iter(func.functions.values())) if len(func.functions) == 1 else func["main"]
    return _Reader(func).function()


class _Reader:
    def __init__(self, func: Any) -> None:
        self.func, self.names, self.labels = func, {}, {}  # type: Any, dict[Any, str], dict[str, int]
        self.tensors: dict[str, Tensor] = {}
        self.iters = 0

    def function(self) -> Function:
        root = self.func.body
        if type(root).__name__ != "SBlockRealize":
            raise UnsupportedPrimFunc(
                explain("the function has no root block", got=type(root).__name__, way_out="Build it with te or @T.prim_func(s_tir=True)")
            )
        params = tuple(self.declare(p) for p in self.func.params)
        for buffer in root.block.alloc_buffers:
            self.declare(buffer)
        blocks = tuple(self.statement(root.block.body, {}))
        if not blocks:
            raise UnsupportedPrimFunc(explain("the function has no blocks", way_out="Write it with T.sblock or te.compute"))
        written = {b.buffer for b in blocks}
        tensors = tuple(Tensor(t.name, t.shape, t.dtype, t.name in written) for t in params)
        return Function(tensors, dict(self.tensors), blocks)

    def declare(self, buffer: Any) -> Tensor:
        if type(buffer.ty).__name__ != "BufferType":
            raise UnsupportedPrimFunc(explain("a parameter is not a buffer", got=f"{buffer.name}: {buffer.ty}"))
        if any(type(n).__name__ != "IntImm" for n in buffer.shape):
            raise UnsupportedPrimFunc(
                explain("a buffer has a symbolic shape", got=f"{buffer.name}{tuple(map(str, buffer.shape))}", accepted="constant extents")
            )
        name = self.unique(str(buffer.name))
        self.names[buffer] = name
        self.tensors[name] = Tensor(name, tuple(int(n) for n in buffer.shape), str(buffer.dtype))
        return self.tensors[name]

    def unique(self, name: str) -> str:
        self.labels[name] = self.labels.get(name, 0) + 1
        return name if self.labels[name] == 1 else self.unique(f"{name}_{self.labels[name]}")

    def buffer_name(self, buffer: Any) -> str:
        if buffer not in self.names:
            raise UnsupportedPrimFunc(explain("a buffer is neither a parameter nor allocated in the root block", got=str(buffer)))
        return self.names[buffer]

    def statement(self, stmt: Any, loops: dict[Any, int]) -> Iterator[Block]:
        kind = type(stmt).__name__
        if kind == "SeqStmt":
            for s in stmt.seq:
                yield from self.statement(s, loops)
        elif kind == "For":
            if type(stmt.extent).__name__ != "IntImm" or type(stmt.min).__name__ != "IntImm" or int(stmt.min) != 0:
                raise UnsupportedPrimFunc(
                    explain(f"loop {stmt.loop_var.name!r} has bounds that are not constant", got=f"{stmt.min} .. {stmt.extent}")
                )
            yield from self.statement(stmt.body, {**loops, stmt.loop_var: int(stmt.extent)})
        elif kind == "SBlockRealize":
            yield self.block(stmt, loops)
        else:
            raise UnsupportedPrimFunc(
                explain("a statement outside any block is not read", got=f"{kind}: {str(stmt)[:120]}", accepted="loops and blocks")
            )

    def block(self, realize: Any, loops: dict[Any, int]) -> Block:
        block = realize.block
        name = str(block.name_hint)
        variables: dict[Any, Expr] = {}
        iters = []
        for v in block.iter_vars:
            if type(v.dom.extent).__name__ != "IntImm" or int(v.dom.min) != 0:
                raise UnsupportedPrimFunc(explain(f"block {name!r} has an axis without constant bounds", got=f"{v.var.name}: {v.dom}"))
            if int(v.iter_type) not in (0, 2):
                raise UnsupportedPrimFunc(explain(f"block {name!r} has an axis that is neither spatial nor a reduction", got=v.var.name))
            self.iters += 1
            label = str(v.var.name)
            iters.append(Iter(f"{label}#{self.iters}", label.removeprefix("v_"), int(v.dom.extent), int(v.iter_type) == 2))
            variables[v.var] = index(iters[-1].name)
        convert = Converter(name, variables, self.buffer_name)
        if not _covers(realize, loops):
            raise convert.refuse(
                f"axes bound to {', '.join(map(str, realize.iter_values))} where {realize.predicate}, which does not visit each point once"
            )
        if len(block.match_buffers):
            raise convert.refuse("match_buffer")
        buffer, at, value = self.store(block.body, convert)
        init = None
        if block.init is not None:
            init_buffer, init_at, init = self.store(block.init, convert)
            if (init_buffer, init_at) != (buffer, at):
                raise convert.refuse(f"init of {init_buffer} beside an update of {buffer}")
        return Block(name, tuple(iters), buffer, at, value, init)

    def store(self, stmt: Any, convert: Converter) -> tuple[str, tuple[Expr, ...], Expr]:
        kind = type(stmt).__name__
        if kind == "SeqStmt" and len(stmt.seq) == 1:
            return self.store(stmt.seq[0], convert)
        if kind != "BufferStore":
            raise convert.refuse(f"{kind} in its body ({str(stmt)[:120]}); one store to one buffer is read")
        return self.buffer_name(stmt.buffer), tuple(convert(i) for i in stmt.indices), convert(stmt.value)


def _covers(realize: Any, loops: dict[Any, int]) -> bool:
    """Whether the loops around a block visit each of its points exactly once."""
    extents = [int(v.dom.extent) for v in realize.block.iter_vars]
    bound = [v for v, n in zip(realize.iter_values, extents) if not (type(v).__name__ == "IntImm" and int(v) == 0 and n == 1)]
    predicate = realize.predicate
    always = type(predicate).__name__ == "IntImm" and bool(int(predicate))
    used = [loops.get(v) for v in bound] if all(type(v).__name__ == "Var" for v in bound) else None
    if always and used is not None and len({*bound}) == len(bound):
        idle = [n for v, n in loops.items() if v not in bound and n != 1]
        return used == [n for v, n in zip(realize.iter_values, extents) if v in bound] and not idle
    from tvm import ir, sym

    ranges = {v: ir.Range(0, n) for v, n in loops.items()}
    found = sym.detect_iter_map(list(realize.iter_values), ranges, predicate, check_level=sym.iter_affine_map.IterMapLevel.Bijective)
    return not len(found.errors) and [_span(e) for e in found.indices] == extents


def _span(e: Any) -> int:
    """How many values an iteration map expression takes, when they start from 0; else -1."""
    parts = [(e.extent, e.scale)] if type(e).__name__ == "IterSplitExpr" else [(a.extent, a.scale) for a in e.args]
    numbers = [n for p in parts for n in p] + [getattr(e, "base", 0)]
    if any(type(n).__name__ != "IntImm" for n in numbers if not isinstance(n, int)) or int(numbers[-1]) != 0:
        return -1
    return 1 + sum((int(n) - 1) * int(s) for n, s in parts)


__all__ = ["Block", "Function", "Iter", "read"]
