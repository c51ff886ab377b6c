"""Cascades that tests share: name -> PrimFunc as a user would write it. ``FUSED`` take one pass, ``REFUSED`` do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tirx

from .building import COLS, ROWS, Rows

Build = Callable[[], Any]
FUSED: dict[str, Build] = {}
REFUSED: dict[str, tuple[Build, str]] = {}


def fused(build: Build) -> Build:
    FUSED[build.__name__] = build
    return build


def refused(reason: str) -> Callable[[Build], Build]:
    def keep(build: Build) -> Build:
        REFUSED[build.__name__] = (build, reason)
        return build

    return keep


def f32(value: float) -> Any:
    return tirx.const(value, "float32")


def pair() -> tuple[Rows, Any]:
    """Two streams in one tensor t[2, rows, cols], so that the data itself says that they share an axis."""
    r = Rows()
    return r, r.input("t", (2, ROWS, COLS))


@fused
def log_sum_exp() -> Any:
    r = Rows("x")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    s = r.reduce("sum", lambda i, l: te.exp(r["x"][i, l] - m[i]))
    return r.func(r.row(lambda i: m[i] + te.log(s[i])))


@fused
def log_sum_exp_by_min() -> Any:
    r = Rows("x")
    m = r.reduce("min", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: te.exp(m[i] - r["x"][i, l])), m)


@fused
def softmax_then_product() -> Any:
    """The normaliser inside an exponential: exp(x - (m + log s)) v."""
    r, t = pair()
    m = r.reduce("max", lambda i, l: t[0, i, l])
    s = r.reduce("sum", lambda i, l: te.exp(t[0, i, l] - m[i]))
    e = r.row(lambda i: m[i] + te.log(s[i]))
    return r.func(r.reduce("sum", lambda i, l: te.exp(t[0, i, l] - e[i]) * t[1, i, l]))


@fused
def crossing_zero() -> Any:
    """d1 = sum a, d2 = sum x d1: the first sum may pass through zero (redfuser.md 1.6)."""
    r, t = pair()
    a = r.reduce("sum", lambda i, l: t[0, i, l])
    return r.func(r.reduce("sum", lambda i, l: t[1, i, l] * a[i]))


@fused
def chain_of_sums() -> Any:
    r, t = pair()
    a = r.reduce("sum", lambda i, l: t[0, i, l])
    b = r.reduce("sum", lambda i, l: t[1, i, l] * a[i])
    return r.func(r.reduce("sum", lambda i, l: t[0, i, l] * b[i] / a[i]), b)


@fused
def absolute_maximum_scale() -> Any:
    r, t = pair()
    a = r.reduce("max", lambda i, l: te.abs(t[0, i, l]))
    return r.func(r.reduce("sum", lambda i, l: t[0, i, l] * f32(448.0) / a[i] * t[1, i, l]), a)


@fused
def scaled_two_norm() -> Any:
    r = Rows("x")
    a = r.reduce("max", lambda i, l: te.abs(r["x"][i, l]))
    s = r.reduce("sum", lambda i, l: (r["x"][i, l] / a[i]) * (r["x"][i, l] / a[i]))
    return r.func(r.row(lambda i: a[i] * te.sqrt(s[i])))


@fused
def growing_factor() -> Any:
    r = Rows("x")
    a = r.reduce("max", lambda i, l: te.abs(r["x"][i, l]))
    return r.func(r.reduce("sum", lambda i, l: r["x"][i, l] * a[i] * a[i]))


@fused
def rms_norm_product() -> Any:
    r = Rows("x")
    g, w = r.input("g", (COLS,)), r.input("w", (COLS, 5))
    q = r.reduce("sum", lambda i, l: r["x"][i, l] * r["x"][i, l])
    return r.func(r.wide(5, lambda i, n, l: r["x"][i, l] * g[l] * w[l, n] * tirx.rsqrt(q[i] / f32(COLS) + f32(1e-5))))


@fused
def rms_norm() -> Any:
    r = Rows("x")
    g = r.input("g", (COLS,))
    q = r.reduce("sum", lambda i, l: r["x"][i, l] * r["x"][i, l])
    return r.func(r.stream(lambda i, l: r["x"][i, l] * g[l] * tirx.rsqrt(q[i] / f32(COLS) + f32(1e-5))))


@fused
def signed_maximum_scale() -> Any:
    """A divisor that may be zero in mid-course although it is none at the end."""
    r, t = pair()
    a = r.reduce("max", lambda i, l: t[0, i, l])
    return r.func(r.reduce("sum", lambda i, l: t[1, i, l] * t[0, i, l] / a[i]))


@fused
def shifted_by_mean() -> Any:
    r = Rows("x")
    s = r.reduce("sum", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: te.exp(r["x"][i, l] - s[i] / f32(COLS))))


@fused
def maximum_minus_mean() -> Any:
    r = Rows("x")
    s = r.reduce("sum", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("max", lambda i, l: r["x"][i, l] - s[i]), r.reduce("min", lambda i, l: s[i] - r["x"][i, l]))


@fused
def maximum_times_positive() -> Any:
    r = Rows("x")
    s = r.reduce("sum", lambda i, l: te.exp(r["x"][i, l]))
    return r.func(r.reduce("max", lambda i, l: r["x"][i, l] / s[i]))


@fused
def weighted_mean() -> Any:
    r, t = pair()
    w = r.reduce("sum", lambda i, l: te.exp(t[0, i, l]))
    c = r.reduce("sum", lambda i, l: te.exp(t[0, i, l]) * t[1, i, l])
    return r.func(r.row(lambda i: c[i] / w[i]))


@fused
def product_and_extrema() -> Any:
    r = Rows("x")
    p = r.reduce("prod", lambda i, l: r["x"][i, l])
    return r.func(p, r.reduce("max", lambda i, l: r["x"][i, l]), r.reduce("min", lambda i, l: r["x"][i, l]))


@fused
def cross_entropy() -> Any:
    r = Rows("x")
    label = r.input("label", (ROWS,), "int32")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    s = r.reduce("sum", lambda i, l: te.exp(r["x"][i, l] - m[i]))
    picked = r.reduce("sum", lambda i, l: tirx.if_then_else(tirx.EQ(l, label[i]), r["x"][i, l], f32(0.0)))
    return r.func(r.row(lambda i: m[i] + te.log(s[i]) - picked[i]))


@fused
def partly_masked() -> Any:
    """A mask that one reduction has and the other has not."""
    r = Rows("x")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: tirx.if_then_else(l <= i, te.exp(r["x"][i, l] - m[i]), f32(0.0))))


@fused
def masked_everywhere() -> Any:
    r = Rows("x")
    x = r.stream(lambda i, l: tirx.if_then_else(l <= i * 4, r["x"][i, l], f32(float("-inf"))))
    m = r.reduce("max", lambda i, l: x[i, l])
    s = r.reduce("sum", lambda i, l: te.exp(x[i, l] - m[i]))
    return r.func(r.row(lambda i: m[i] + te.log(s[i])))


@fused
def floor_of_zero() -> Any:
    """A maximum that starts from 0, not from -inf."""
    r = Rows("x")
    axis = te.reduce_axis((0, COLS), "l")
    start = te.comm_reducer(lambda a, b: tirx.max(a, b), lambda dtype: tirx.const(0.5, dtype), name="start")
    m = te.compute((ROWS,), lambda i: start(r["x"][i, axis], axis=axis), "m")
    s = r.reduce("sum", lambda i, l: te.exp(r["x"][i, l] - m[i]))
    return r.func(r.row(lambda i: m[i] + te.log(s[i])))


@fused
def factor_along_an_own_axis() -> Any:
    """A correction that would differ along the stage's own axis waits for the end."""
    r = Rows("x")
    c, w = r.input("c", (5,)), r.input("w", (COLS, 5))
    a = r.reduce("max", lambda i, l: te.abs(r["x"][i, l]))
    return r.func(r.wide(5, lambda i, n, l: r["x"][i, l] * w[l, n] * te.exp(f32(0.0) - a[i] * c[n])))


@refused("tanh")
def tanh_of_difference() -> Any:
    r = Rows("x")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: te.tanh(r["x"][i, l] - m[i])))


@refused("sigmoid")
def sigmoid_of_difference() -> Any:
    r = Rows("x")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: te.sigmoid(r["x"][i, l] - m[i])))


@refused(r"max\(")
def relu_of_difference() -> Any:
    r = Rows("x")
    m = r.reduce("sum", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: te.max(r["x"][i, l] - m[i], f32(0.0))))


@refused(r"exp\(.*mixes")
def gaussian_about_mean() -> Any:
    r = Rows("x")
    m = r.reduce("sum", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: te.exp(f32(0.0) - (r["x"][i, l] - m[i]) * (r["x"][i, l] - m[i]))))


@refused(r"abs\(")
def mean_absolute_deviation() -> Any:
    r = Rows("x")
    m = r.reduce("sum", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: te.abs(r["x"][i, l] - m[i] / f32(COLS))))


@refused("decides for each element")
def count_above_mean() -> Any:
    r = Rows("x")
    m = r.reduce("sum", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: tirx.if_then_else(r["x"][i, l] > m[i], f32(1.0), f32(0.0))))


@refused(r"exp\(.*mixes")
def learned_temperature() -> Any:
    r = Rows("x")
    b = r.reduce("sum", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: te.exp(r["x"][i, l] * b[i])))


@refused("neither G . H .*mixes.* nor G . H .*3 separable terms")
def largest_square_about_mean() -> Any:
    r = Rows("x")
    m = r.reduce("sum", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("max", lambda i, l: (r["x"][i, l] - m[i]) * (r["x"][i, l] - m[i])))


@refused("may be negative")
def maximum_times_unknown_sign() -> Any:
    r = Rows("x")
    m = r.reduce("sum", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("max", lambda i, l: r["x"][i, l] * m[i]))


@refused("number of elements")
def product_with_result() -> Any:
    r = Rows("x")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("prod", lambda i, l: r["x"][i, l] * m[i]))


@refused("sum of 2 separable terms")
def sum_minus_result() -> Any:
    r = Rows("x")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: r["x"][i, l] - m[i]))


@refused("sum of 3 separable terms")
def variance() -> Any:
    r = Rows("x")
    m = r.reduce("sum", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: (r["x"][i, l] - m[i] / f32(COLS)) * (r["x"][i, l] - m[i] / f32(COLS))))


@refused("sum of 2 separable terms")
def zero_at_the_origin() -> Any:
    """x d (x + d + 1): a fixed-point test at (0, 0) accepts it."""
    r = Rows("x")
    d = r.reduce("max", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: r["x"][i, l] * d[i] * (r["x"][i, l] + d[i] + f32(1.0))))


@refused("rounding contract")
def rounded_between() -> Any:
    r = Rows("x")
    a = r.reduce("max", lambda i, l: te.abs(r["x"][i, l]))
    return r.func(r.reduce("sum", lambda i, l: te.floor(r["x"][i, l] * f32(127.0) / a[i])))


@refused("rounding contract")
def narrowed_between() -> Any:
    r = Rows("x")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: te.exp(r["x"][i, l] - m[i]).astype("float16").astype("float32")))


@refused("no data says that these are one axis")
def equal_length_is_not_the_same_axis() -> Any:
    r = Rows("x", "y")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: te.exp(r["y"][i, l] - m[i])))


@refused("addressed by an earlier result")
def gather_at_result() -> Any:
    r = Rows("x")
    table = r.input("table", (COLS, COLS))
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: table[l, m[i].astype("int32")] * r["x"][i, l]))


@refused("not read at the row it belongs to")
def result_of_another_row() -> Any:
    r = Rows("x")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    return r.func(r.reduce("sum", lambda i, l: te.exp(r["x"][i, l] - m[(i + 1) % ROWS])))


@refused("lack an inverse")
def unrelated_reference() -> Any:
    """exp(x - m) where m is the maximum of something else, which may be -inf while x is not."""
    r, t = pair()
    m = r.reduce("max", lambda i, l: t[0, i, l])
    return r.func(r.reduce("sum", lambda i, l: te.exp(t[1, i, l] - m[i])))


@refused("is needed for each streamed element and is no contraction")
def nested_maximum() -> Any:
    r = Rows()
    t = r.input("t", (ROWS, COLS, 8))
    k = te.reduce_axis((0, 8), "k")
    inner = te.compute((ROWS, COLS), lambda i, l: te.max(t[i, l, k], axis=k), "inner")
    m = r.reduce("max", lambda i, l: inner[i, l])
    return r.func(r.reduce("sum", lambda i, l: te.exp(inner[i, l] - m[i])))
