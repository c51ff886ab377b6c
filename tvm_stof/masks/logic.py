"""The few operations that masks need beside operators, for NumPy values, tracers and TIR expressions alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from .tracer import Traced


def _tir(*values: Any) -> Any:
    """TVM's tirx when one of the values is a TVM expression, in which case it has been imported before."""
    if any(type(v).__module__.partition(".")[0] == "tvm" for v in values):
        from tvm import tirx

        return tirx
    return None


def symbolic(*values: Any) -> bool:
    """Whether any of the values is no number or array but a tracer or a TIR expression."""
    return any(isinstance(v, Traced) for v in values) or _tir(*values) is not None


def negate(x: Any) -> Any:
    """Logical not (``~True`` would be -2)."""
    tir = _tir(x)
    return tir.Not(x) if tir else np.logical_not(x)


def equal(a: Any, b: Any) -> Any:
    """a == b as an expression (TVM's own ``==`` is a deferred object)."""
    tir = _tir(a, b)
    return tir.EQ(a, b) if tir else np.equal(a, b)


def minimum(a: Any, b: Any) -> Any:
    """The smaller one."""
    tir = _tir(a, b)
    return tir.min(a, b) if tir else np.minimum(a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger one."""
    tir = _tir(a, b)
    return tir.max(a, b) if tir else np.maximum(a, b)


def select(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b."""
    tir = _tir(condition, a, b)
    return tir.Select(condition, a, b) if tir else np.where(condition, a, b)


def constant(value: bool, q: Any, k: Any) -> Any:
    """The same answer for all positions, in the shape that q and k span."""
    tir = _tir(q, k)
    if tir:
        return tir.const(value, "bool")
    if symbolic(q, k):
        return Traced.constant(value)
    return np.full(np.broadcast_shapes(np.shape(q), np.shape(k)), value)[()]
