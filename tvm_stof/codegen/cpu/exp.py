"""exp on llvm as arithmetic that vectorises.

TVM lowers ``exp`` to a scalar libm call per lane. One intrinsic lowering mends it for our kernels and for stock-scheduled ones alike.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx

from ..lower import dtype_of

_LOG2E = 1.4426950408889634
#: ln 2 in two parts; the first has so few digits that its product with any exponent is exact.
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.1219444005469057e-4
#: p of e^r = 1 + r + r^2 p(r) on [-ln2/2, ln2/2], highest power first: our own Remez exchange, relative error 3.1e-9 before rounding.
_POLYNOMIAL = (1.3814540176801306e-3, 8.368745108942591e-3, 4.1668390783547914e-2, 0.1666652039904253, 0.4999999343212929)
#: below this the exponent field becomes 0 and the result exactly 0 (exp would be under 6e-39); above 88.37 it is inf.
_LOWEST, _HIGHEST = -88.1, 89.0


def _lower_exp(op: Any) -> Any:
    """e^x = 2^n e^r with n = round(x / ln 2), r = x - n ln 2; relative error 1e-7, exp(-inf) = 0, NaN stays NaN.

    The constants stand first in min and max because then a NaN is passed on.
    """
    x = op.args[0]
    dtype = dtype_of(x)
    lanes = int(dtype.split("x")[1]) if "x" in dtype else 1
    if dtype.startswith("float16"):
        return tirx.Cast(dtype, tirx.exp(tirx.Cast(dtype.replace("float16", "float32"), x)))
    if not dtype.startswith("float32"):
        return op

    def const(value: float, kind: str = "float32") -> Any:
        scalar = tirx.const(value, kind)
        return scalar if lanes == 1 else tirx.Broadcast(scalar, lanes)

    x = tirx.max(const(_LOWEST), tirx.min(const(_HIGHEST), x))
    n = tirx.nearbyint(x * const(_LOG2E))
    r = (x - n * const(_LN2_HIGH)) - n * const(_LN2_LOW)
    p = const(_POLYNOMIAL[0])
    for coefficient in _POLYNOMIAL[1:]:
        p = p * r + const(coefficient)
    bits = tirx.Cast("int32" if lanes == 1 else f"int32x{lanes}", n) + const(127, "int32")
    return (p * (r * r) + r + const(1.0)) * tirx.reinterpret(dtype, tirx.shift_left(bits, const(23, "int32")))


def register() -> None:
    """Install the lowering in this process; calling it again does nothing."""
    if not _REGISTERED:
        tirx.register_intrin_lowering("tirx.exp", target="llvm", f=_lower_exp, level=99)
        _REGISTERED.append(tvm.__version__)


_REGISTERED: list[str] = []
