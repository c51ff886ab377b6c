"""Attention: scores, mask, softmax and the product with v, each its own block over the whole score matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tirx
from tvm.runtime import convert
from tvm.sym import Analyzer

from ..expr import Expr
from ..problems.attention import Attention
from ..scores import Sink
from .lower import lower
from .reducers import maximum

F32 = "float32"
NEG_INF = float("-inf")


def build(problem: Attention) -> Any:
    """PrimFunc of blocks score, masked, row_max, shift, weight, row_sum, scale, prob and o (and lse).

    prob = weight * scale is normalised before the product with v: a division after it stops MetaSchedule's tiling rule.
    """
    p = problem
    inputs = {t.name: te.placeholder(t.shape, t.dtype, t.name) for t in p.inputs()}
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    rows, square = (p.batch, p.heads, p.q_len), (p.batch, p.heads, p.q_len, p.kv_len)
    d = te.reduce_axis((0, p.head_dim), "d")
    j_max, j_sum, j_out = (te.reduce_axis((0, p.kv_len), "j") for _ in range(3))

    def dot(b: Any, h: Any, i: Any, j: Any) -> Any:
        return te.sum(q[b, h, i, d].astype(F32) * k[b, _kv_head(p, h), j, d].astype(F32), axis=d)

    allowed, bits = _mask(p)
    score = te.compute(square, dot, "score")
    modified = _modified(p, score, inputs)
    masked = te.compute(square, lambda b, h, i, j: _where(allowed(b, h, i, j), modified(b, h, i, j)), "masked")
    row_max = te.compute(rows, lambda b, h, i: maximum(masked[b, h, i, j_max], axis=j_max), "row_max")
    empty = tirx.const(NEG_INF, F32)
    zero = tirx.const(0.0, F32)
    shift = te.compute(rows, lambda b, h, i: tirx.if_then_else(tirx.EQ(row_max[b, h, i], empty), zero, row_max[b, h, i]), "shift")
    weight = te.compute(square, lambda b, h, i, j: te.exp(masked[b, h, i, j] - shift[b, h, i]), "weight")
    row_sum = te.compute(rows, lambda b, h, i: te.sum(weight[b, h, i, j_sum], axis=j_sum), "row_sum")
    sink = inputs["sink"] if any(isinstance(s, Sink) for s in p.scores) else None

    def inverse(b: Any, h: Any, i: Any) -> Any:
        total = row_sum[b, h, i] if sink is None else row_sum[b, h, i] + te.exp(sink[h] - shift[b, h, i])
        return tirx.if_then_else(tirx.EQ(row_sum[b, h, i], zero), zero, tirx.const(1.0, F32) / total)

    scale = te.compute(rows, inverse, "scale")
    prob = te.compute(square, lambda b, h, i, j: weight[b, h, i, j] * scale[b, h, i], "prob")
    shape = (*rows, p.value_dim)
    wide = te.compute(shape, lambda b, h, i, e: te.sum(prob[b, h, i, j_out] * v[b, _kv_head(p, h), j_out, e].astype(F32), axis=j_out),
                      "o" if p.dtype == F32 else "product")  # fmt: skip
    outputs = [wide if p.dtype == F32 else te.compute(shape, lambda b, h, i, e: wide[b, h, i, e].astype(p.dtype), "o")]
    if p.return_lse:
        outputs.append(te.compute(rows, lambda b, h, i: _lse(shift[b, h, i], row_sum[b, h, i], None if sink is None else sink[h]), "lse"))
    return te.create_prim_func([*inputs.values(), *bits, *outputs])


def _kv_head(p: Attention, h: Any) -> Any:
    return h if p.group == 1 else tirx.floordiv(h, p.group)


def _mask(p: Attention) -> tuple[Callable[..., Any], list[Any]]:
    """The condition as TIR of (b, h, i, j), and the placeholder of stored bits if it needs one."""
    mask = p.bound_mask
    if mask.arithmetic:
        return lambda b, h, i, j: mask(i, j, b, h), []
    per_b, per_h = "b" in mask.depends_on, "h" in mask.depends_on
    groups = (p.batch if per_b else 1) * (p.heads if per_h else 1)
    bits = te.placeholder((groups, p.q_len, p.kv_len), "uint8", "mask_bits")

    def stored(b: Any, h: Any, i: Any, j: Any) -> Any:
        group = (b * p.heads + h if per_h else b) if per_b else h if per_h else 0
        return tirx.NE(bits[group, i, j], tirx.const(0, "uint8"))

    return stored, [bits]


def _where(condition: Any, score: Any) -> Any:
    """The score where the condition holds; nothing is left of a condition that always holds."""
    condition = Analyzer().simplify(convert(condition))
    if isinstance(condition, tirx.IntImm) and int(condition):
        return score
    return tirx.if_then_else(condition, score, tirx.const(NEG_INF, F32))


def _modified(p: Attention, score: Any, inputs: dict[str, Any]) -> Callable[..., Any]:
    """The score after all modifications, as TIR of (b, h, i, j)."""
    e = Expr("prologue")
    for s in p.scores:
        e = s.expr(e, p)

    def at(b: Any, h: Any, i: Any, j: Any) -> Any:
        axes = {"b": b, "h": h, "i": i, "j": j}

        def leaf(node: Expr, operands: tuple[Any, ...]) -> Any:
            if node.op == "prologue":
                return score[b, h, i, j].asobject()
            if node.op == "index":
                return axes[str(node.args[0])]
            return inputs[str(node.args[0])][operands].asobject().astype(F32)

        return lower(e, leaf, F32)

    return at


def _lse(shift: Any, total: Any, sink: Any) -> Any:
    """shift + log(total), with the sink added inside the logarithm; the larger of the two is factored out, so nothing overflows."""
    plain = shift + te.log(total)
    if sink is None:
        return plain
    top = tirx.max(tirx.max(plain, sink), tirx.const(-3.4e38, F32))
    return top + te.log(te.exp(plain - top) + te.exp(sink - top))


__all__ = ["build"]
