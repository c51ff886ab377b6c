"""A small kernel with every kind of argument, so that building and calling are tested without any emitter."""
# mypy: disable-error-code="valid-type,untyped-decorator"

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import IRModule
from tvm.script import tirx as T

from tvm_stof import build, targets
from tvm_stof.codegen import Kernel, Workspace
from tvm_stof.problems import Softmax
from tvm_stof.runtime import TunedModule

#: stands for the problem that the kernel solves: one input, one output of the same shape
PROBLEM = Softmax(rows=64, cols=96)
DECISIONS = {"family": "handmade", "factor": 3}
SHIFT = np.arange(96, dtype=np.float32)


@T.prim_func
def main(
    x: T.Buffer((64, 96), "float32", align=4),
    y: T.Buffer((64, 96), "float32", align=4),
    shift: T.Buffer((96,), "float32", align=4),
    work: T.Buffer((64, 96), "float32", align=4),
) -> None:
    T.func_attr({"global_symbol": "main"})
    for i in T.parallel(64):
        for j in range(96):
            work[i, j] = x[i, j] * T.float32(2.0)
    for i in T.parallel(64):
        for j in range(96):
            y[i, j] = work[i, j] + shift[j]


def kernel(*_: Any) -> Kernel:
    """y = 2 x + shift, by way of a workspace that holds 2 x."""
    return Kernel(IRModule({"main": main}), (SHIFT, Workspace((64, 96))))


def expected(x: Any) -> Any:
    return 2 * np.asarray(x) + SHIFT


def inputs(seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((PROBLEM.rows, PROBLEM.cols), dtype=np.float32)


def module(executable: build.Executable | None = None) -> TunedModule:
    device = targets.current_device()
    return TunedModule(PROBLEM, executable or build.compile(kernel(), device), device, None, "default", DECISIONS)
