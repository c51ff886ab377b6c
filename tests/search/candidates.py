"""Kernels that misbehave on purpose; workers import this module by name."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from tvm_stof.codegen import Kernel, materialise


def misbehaving(problem: Any, decisions: Mapping[str, Any], device: Any) -> Kernel:
    """Crash for rows=4, hang for rows=16, compute something else for lanes of 64; otherwise the real kernel."""
    if decisions.get("rows") == 4:
        os.abort()
    if decisions.get("rows") == 16:
        time.sleep(3600)
    if decisions.get("lanes") == 64:
        return Kernel(_wrong(problem), ())
    return materialise(problem, decisions, device)


def _wrong(problem: Any) -> Any:
    import tvm
    from tvm import te

    x = te.placeholder((problem.rows, problem.cols), problem.dtype, "x")
    y = te.compute(x.shape, lambda i, j: x[i, j] * tvm.tirx.const(2.0, problem.dtype), "y")
    return tvm.IRModule({"main": te.create_prim_func([x, y]).with_attr("global_symbol", "main")})


def counted(problem: Any, decisions: Mapping[str, Any], device: Any) -> Kernel:
    """The real kernel; one more line in the file that $STOF_TEST_BUILDS names."""
    with open(os.environ["STOF_TEST_BUILDS"], "a") as file:
        file.write(repr(sorted(decisions.items())) + "\n")
    return materialise(problem, decisions, device)
