"""Programs and kernels that these tests share."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tvm_stof.cascade.program import Axis, Contraction, FusedProgram, Output, Stage, Tensor
from tvm_stof.codegen.wgmma import Warpgroups
from tvm_stof.codegen.wgmma.cubin import cuda_text
from tvm_stof.expr import Expr, call, const, index, load, previous, result

B, H, I, J, D, E = (index(n) for n in "bhijde")
CAUSAL = call("le", J, I)


def window(width: int) -> Expr:
    """Causal, and no farther back than ``width``."""
    return call("and", CAUSAL, call("lt", call("sub", I, J), const(width)))


def softmax_program(q_len: int = 1000, kv_len: int = 0, heads: int = 4, kv_heads: int = 4, depth: int = 128, width: int = 0,
                    dtype: str = "float16", predicate: Expr | None = None, batch: int = 2,
                    factor: float = 0.125) -> FusedProgram:  # fmt: skip
    """Online softmax with a product, its log-sum-exp as a second output."""
    kv_len, width, group = kv_len or q_len, width or depth, heads // kv_heads
    head = H if group == 1 else call("floordiv", H, const(group))

    def wide(e: Expr) -> Expr:
        return Expr("cast", ("float32", e))

    weight = call("exp", call("sub", Expr("value"), result("m")))
    ratio = call("exp", call("sub", previous("m"), result("m")))
    empty = call("eq", result("s"), const(0.0))
    operand = wide(load("v", B, head, J, E))
    tensors = (Tensor("q", (batch, heads, q_len, depth), dtype), Tensor("k", (batch, kv_heads, kv_len, depth), dtype),
               Tensor("v", (batch, kv_heads, kv_len, width), dtype), Tensor("o", (batch, heads, q_len, width), dtype, True),
               Tensor("lse", (batch, heads, q_len), "float32", True))  # fmt: skip
    stages = (Stage("m", "max", Expr("value")), Stage("s", "sum", weight, ratio=ratio, guarded=("m",)),
              Stage("p", "sum", call("mul", weight, operand), (Axis("e", width),), ratio, guarded=("m",), weight=weight,
                    operand=operand))  # fmt: skip
    mean = call("select", empty, const(0.0), call("div", result("p"), result("s")))
    lse = call("select", empty, const(float("-inf")), call("add", result("m"), call("log", result("s"))))
    outputs = (Output("o", (B, H, I, E), Expr("cast", (dtype, mean)), (Axis("e", width),)), Output("lse", (B, H, I), lse))
    grid = (Axis("b", batch), Axis("h", heads), Axis("i", q_len))
    prologue = Contraction(Axis("d", depth), wide(load("q", B, H, I, D)), wide(load("k", B, head, J, D)))
    value = call("mul", Expr("prologue"), const(factor))
    return FusedProgram(tensors, grid, Axis("j", kv_len), prologue, value, predicate, stages, outputs)


def with_value(program: FusedProgram, value: Expr) -> FusedProgram:
    """The same with another value map."""
    return dataclasses.replace(program, value=value)


def lists_of(keep: Any, block_q: int, block_k: int, bits: bool) -> dict[str, Any]:
    """Visitor arrays of one group as ``codegen.visitors`` lays them out, from a whole boolean mask."""
    rows, cols = -(-keep.shape[0] // block_q), -(-keep.shape[1] // block_k)
    padded = np.zeros((rows * block_q, cols * block_k), bool)
    padded[: keep.shape[0], : keep.shape[1]] = keep
    row_ptr, col, whole, tiles = [0], [], [], []
    for r in range(rows):
        for c in range(cols):
            part = padded[r * block_q : (r + 1) * block_q, c * block_k : (c + 1) * block_k]
            if part.any():
                col.append(c)
                whole.append(part[: keep.shape[0] - r * block_q].all())
                tiles.append(part)
        row_ptr.append(len(col))
    arrays: dict[str, Any] = {"row_ptr": np.array(row_ptr, np.int32), "col": np.array(col, np.int32), "whole": np.array(whole, np.uint8)}
    return {**arrays, "tile": np.arange(len(col), dtype=np.int32), "tiles": np.array(tiles, np.uint8)} if bits else arrays


def text_of(program: FusedProgram, decisions: dict[str, Any], lists: dict[str, Any] | None = None) -> str:
    """CUDA text of a kernel."""
    strides = [0] * (len(program.grid) - 1)
    return cuda_text(Warpgroups(program, decisions, program.tensors, lists or {}, strides).emit().module)
