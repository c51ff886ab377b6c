"""Which cascades take one pass, as what program, and why the others do not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tvm import te, tirx

from tvm_stof import cascade
from tvm_stof.cascade.fuse import derive
from tvm_stof.errors import CascadeRefused
from tvm_stof.expr import text
from tvm_stof.problems import Attention, Softmax
from tvm_stof.scores import Sink

from . import named
from .building import COLS, Rows


def summary(func: Any) -> dict[str, str]:
    """Each stage as one line: monoid, term, ratio, guards, emission."""
    lines = {}
    for s in cascade.fuse(func).stages:
        line = f"{s.monoid} {text(s.term)}"
        line += f" * {text(s.ratio)}" if s.ratio is not None else ""
        line += f" guarded {','.join(s.guarded)}" if s.guarded else ""
        lines[s.name] = line + (" deferred" if s.emission == "deferred" else "")
    return lines


def output(func: Any, n: int = 0) -> str:
    return text(cascade.fuse(func).outputs[n].value)


def test_softmax_is_two_stages_and_a_streamed_output() -> None:
    program = cascade.program_of(Softmax(rows=4, cols=8, dtype="float16"))
    assert [a.extent for a in program.grid] == [4]
    assert program.stream.extent == 8
    assert program.prologue is None
    assert text(program.value) == "float32(x[i, j])"
    assert [(s.monoid, text(s.term)) for s in program.stages] == [("max", "x"), ("sum", "exp((x - row_max))")]
    assert [None if s.ratio is None else text(s.ratio) for s in program.stages] == [None, "exp((row_max' - row_max))"]
    assert program.stages[1].guarded == ("row_max",)
    (y,) = program.outputs
    assert (y.tensor, y.streamed, text(y.value)) == ("y", True, "float16((exp((x - row_max)) / row_sum))")


def test_attention_has_a_contraction_before_and_one_after() -> None:
    program = cascade.program_of(Attention(heads=4, kv_heads=2, q_len=5, kv_len=7, head_dim=8, value_dim=3, return_lse=True))
    assert [(a.name, a.extent) for a in program.grid] == [("b", 1), ("h", 4), ("i", 5)]
    assert program.stream.extent == 7
    assert program.prologue is not None
    assert (text(program.prologue.lhs), text(program.prologue.rhs)) == ("q[b, h, i, d]", "k[b, (h // 2), j, d]")
    _, s, o = program.stages
    assert o.weight == s.term
    assert o.operand is not None
    assert text(o.operand) == "v[b, (h // 2), j, e]"
    assert o.ratio == s.ratio
    assert [a.extent for a in o.axes] == [3]
    assert [x.tensor for x in program.outputs] == ["o", "lse"]
    assert "select((row_sum == 0.0), 0.0, (1.0 / row_sum))" in text(program.outputs[0].value)


def test_attention_sink_meets_the_results_only_after_the_loop() -> None:
    program = cascade.program_of(Attention(heads=2, q_len=5, head_dim=8, scores=(Sink(),)))
    assert all("sink" not in text(s.term) for s in program.stages)
    assert "exp((sink[h] - " in text(program.outputs[0].value)


def test_factor_of_a_sum_leaves_the_loop() -> None:
    assert summary(named.crossing_zero()) == {"d1": "sum x", "d2": "sum t[1, i, l] deferred"}
    assert output(named.crossing_zero()) == "(d2 * d1)"
    assert output(named.rms_norm_product()) == "(d2 * (1.0 / sqrt(((d1 / 16.0) + 1e-05))))"


def test_factor_hidden_in_an_exponent_leaves_the_loop() -> None:
    func = named.softmax_then_product()
    assert summary(func)["d4"] == "sum (exp((x - d1)) * t[1, i, l]) * exp((d1' - d1)) guarded d1"
    assert output(func) == "(d4 * (1.0 / d2))"


def test_extrema_keep_terms_bounded_and_are_corrected_by_one_ratio() -> None:
    assert summary(named.scaled_two_norm())["d2"] == "sum ((x / d1) * (x / d1)) * ((d1' / d1) * (d1' / d1)) guarded d1"
    program = cascade.fuse(named.scaled_two_norm())
    assert (program.stages[0].neutral, program.stages[0].stand_in) == (0.0, 1.0)


def test_divisor_that_may_be_zero_in_mid_course_waits_for_the_end() -> None:
    assert summary(named.signed_maximum_scale())["d2"] == "sum (t[1, i, l] * x) deferred"


def test_correction_is_the_same_along_a_stage_s_own_axes() -> None:
    program = cascade.fuse(named.factor_along_an_own_axis())
    assert program.stages[1].ratio is None
    assert text(program.outputs[0].value) == "(d2 * exp(neg((c[n] * d1))))"


def test_guard_of_the_author_stays_where_it_is_not_proven_idle() -> None:
    r, t = named.pair()
    a = r.reduce("max", lambda i, l: t[0, i, l])
    safe = r.row(lambda i: tirx.if_then_else(tirx.EQ(a[i], named.f32(float("-inf"))), named.f32(1.0), a[i]))
    func = r.func(r.reduce("sum", lambda i, l: t[1, i, l] / safe[i]))
    assert output(func) == "(d3 * (1.0 / select((d1 == -inf), 1.0, d1)))"


def test_order_reduction_gives_its_shift_to_the_output() -> None:
    func = named.maximum_minus_mean()
    assert summary(func) == {"d1": "sum x", "d2": "max x deferred", "d3": "min neg(x) deferred"}
    assert [output(func, n) for n in (0, 1)] == ["(d2 - d1)", "(d3 + d1)"]


def test_start_that_is_not_neutral_joins_every_reading() -> None:
    assert "exp((x - max(0.5, m)))" in summary(named.floor_of_zero())["d1"]


def test_mask_becomes_the_predicate_only_when_all_reductions_have_it() -> None:
    everywhere, partly = cascade.fuse(named.masked_everywhere()), cascade.fuse(named.partly_masked())
    assert everywhere.predicate is not None
    assert text(everywhere.predicate) == "(l <= (i * 4))"
    assert partly.predicate is None
    assert text(partly.stages[1].term) == "select((l <= i), exp((x - d1)), 0.0)"


def test_condition_on_data_is_no_predicate() -> None:
    r = Rows("x")
    func = r.func(r.reduce("sum", lambda i, l: tirx.if_then_else(r["x"][i, l] > named.f32(0.0), r["x"][i, l], named.f32(0.0))))
    assert cascade.fuse(func).predicate is None


def test_bits_of_a_uint8_tensor_are_a_predicate() -> None:
    r = Rows("x")
    bits = r.input("bits", (3, COLS), "uint8")
    func = r.func(
        r.reduce("sum", lambda i, l: tirx.if_then_else(tirx.NE(bits[i, l], tirx.const(0, "uint8")), r["x"][i, l], named.f32(0.0)))
    )
    predicate = cascade.fuse(func).predicate
    assert predicate is not None
    assert text(predicate) == "(bits[i, l] != 0)"


@pytest.mark.parametrize(
    ("written", "inverted"),
    [(lambda m, x: x - m, False), (lambda m, x: -(m - x), False), (lambda m, x: (x + named.f32(1.0)) - (m + named.f32(1.0)), False)],
)
def test_disguised_exponents_have_one_form(written: Any, inverted: bool) -> None:
    r = Rows("x")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    func = r.func(r.reduce("sum", lambda i, l: te.exp(written(m[i], r["x"][i, l]))))
    assert summary(func)["d2"] == "sum exp((x - d1)) * exp((d1' - d1)) guarded d1"


def test_absent_is_a_value_that_every_stage_ignores() -> None:
    assert cascade.absent(cascade.fuse(named.log_sum_exp())) == float("-inf")
    assert cascade.absent(cascade.fuse(named.absolute_maximum_scale())) == 0.0
    assert cascade.absent(cascade.fuse(named.product_and_extrema())) is None


@pytest.mark.parametrize("name", named.REFUSED)
def test_refusals_name_the_reduction_and_the_reason(name: str) -> None:
    build, reason = named.REFUSED[name]
    with pytest.raises(CascadeRefused) as caught:
        cascade.fuse(build())
    assert re.search(reason, caught.value.reason), caught.value.reason
    assert caught.value.reduction in ("d2", "inner")
    assert caught.value.expression
    assert "#" not in str(caught.value)


def test_derivation_says_how_each_stage_came_about() -> None:
    program, steps = derive(cascade.recognise(named.softmax_then_product()))
    assert [s.reduction for s in steps] == [s.name for s in program.stages]
    last = steps[-1]
    assert last.operator == "mul"
    assert (text(last.written), last.g and text(last.g)) == ("(exp((x - (d1 + log(d2)))) * t[1, i, l])", "(exp(x) * t[1, i, l])")
    assert last.left is not None
    assert text(last.left) == "(d4 * (1.0 / d2))"
    assert "40 digits" in last.proof
    assert steps[0].proof == "it uses no earlier result"


def test_elementwise_output_beside_a_cascade_shares_its_axes() -> None:
    r = Rows("x")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    program = cascade.fuse(r.func(m, r.stream(lambda i, l: r["x"][i, l] * named.f32(2.0))))
    assert [o.streamed for o in program.outputs] == [False, True]
    assert [text(a) for a in program.outputs[1].at] == ["i", "l"]
    assert not program.outputs[1].axes


def test_output_that_forgets_a_row_axis_is_refused() -> None:
    r = Rows("x")
    m = r.reduce("max", lambda i, l: r["x"][i, l])
    first = te.compute((1,), lambda n: m[n], "first")
    with pytest.raises(CascadeRefused, match=r"'first'.*different parts of one axis"):
        cascade.fuse(r.func(first))
