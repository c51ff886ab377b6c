"""exp on llvm as arithmetic that vectorises.

TVM lowers ``exp`` to a scalar libm call per lane. One intrinsic lowering mends it for our kernels and for stock-scheduled ones alike.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx

from ..lower import dtype_of

_LOG2E = 1.4426950408889634
#: 2^r on [-1/2, 1/2], minimax by Remez exchange: relative error 2e-7 with float32 Horner evaluation.
_POLYNOMIAL = (1.3333558e-3, 9.6181291e-3, 5.5504109e-2, 2.4022651e-1, 6.9314718e-1, 1.0)


def _lower_exp(op: Any) -> Any:
    """2^(x log2 e): clamp, split off the integer, polynomial, put the integer into the exponent bits.

    The clamp at -127 makes the exponent field 0, so exp(-inf) and anything below 2^-126.5 is exactly 0. The constants stand
    first in min and max because then a NaN is passed on.
    """
    x = op.args[0]
    dtype = dtype_of(x)
    lanes = int(dtype.split("x")[1]) if "x" in dtype else 1
    if not dtype.startswith("float32"):
        wide = tirx.exp(tirx.Cast("float32" + dtype[7:], x)) if dtype.startswith("float16") else None
        return tirx.Cast(dtype, wide) if wide is not None else op

    def const(value: float, kind: str = "float32") -> Any:
        scalar = tirx.const(value, kind)
        return scalar if lanes == 1 else tirx.Broadcast(scalar, lanes)

    y = tirx.max(const(-127.0), tirx.min(const(128.0), x * const(_LOG2E)))
    whole = tirx.floor(y + const(0.5))
    rest = y - whole
    power = const(_POLYNOMIAL[0])
    for coefficient in _POLYNOMIAL[1:]:
        power = power * rest + const(coefficient)
    bits = tirx.Cast("int32" if lanes == 1 else f"int32x{lanes}", whole) + const(127, "int32")
    return power * tirx.reinterpret(dtype, tirx.shift_left(bits, const(23, "int32")))


def register() -> None:
    """Install the lowering in this process; calling it again does nothing."""
    if not _REGISTERED:
        tirx.register_intrin_lowering("tirx.exp", target="llvm", f=_lower_exp, level=99)
        _REGISTERED.append(tvm.__version__)


_REGISTERED: list[str] = []
