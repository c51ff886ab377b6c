"""Streamed in random tiles and merged in random trees, a fused program gives what the plain definition gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te

from tvm_stof import cascade, reference, testing
from tvm_stof.cascade import interpret
from tvm_stof.problems import Attention, Softmax
from tvm_stof.scores import Sink

from . import named
from .building import COLS, ROWS, Rows, data
from .plans import plans

TOLERANCE = 1e-12


def assert_close(got: dict[str, npt.NDArray[Any]], want: dict[str, npt.NDArray[Any]]) -> None:
    for name in want:
        unit = 1.0 + np.max(np.abs(want[name]), initial=0.0, where=np.isfinite(want[name]))
        np.testing.assert_allclose(got[name], want[name], rtol=TOLERANCE, atol=TOLERANCE * unit, err_msg=name)


def inputs(func: Any, seed: int, scale: float = 1.0) -> dict[str, npt.NDArray[Any]]:
    arrays = data(func, seed, scale)
    if "label" in arrays:
        arrays["label"] = np.arange(ROWS) * 5
    return arrays


@pytest.mark.parametrize("name", named.FUSED)
@given(data=st.data())
@settings(max_examples=12)
def test_any_tiles_and_any_tree_give_the_plain_result(name: str, data: st.DataObject) -> None:
    func = named.FUSED[name]()
    program, plain = cascade.fuse(func), cascade.recognise(func)
    arrays = inputs(func, data.draw(st.integers(0, 99)))
    got = interpret.run(program, arrays, data.draw(plans(COLS)))
    assert_close(got, interpret.plain(plain, arrays))


@given(data=st.data())
@settings(max_examples=25)
def test_softmax_against_the_oracle(data: st.DataObject) -> None:
    problem = Softmax(rows=3, cols=data.draw(st.integers(1, 40)))
    arrays = testing.inputs(problem, data.draw(st.integers(0, 99)))
    got = interpret.run(cascade.program_of(problem), arrays, data.draw(plans(problem.cols)))
    assert_close(got, reference.evaluate(problem, arrays))


@given(data=st.data(), sink=st.booleans())
@settings(max_examples=25)
def test_attention_against_the_oracle(data: st.DataObject, sink: bool) -> None:
    problem = Attention(
        heads=4, kv_heads=2, q_len=3, kv_len=11, head_dim=4, value_dim=5, batch=2, return_lse=True, scores=(Sink(),) if sink else ()
    )
    arrays = testing.inputs(problem, data.draw(st.integers(0, 99)))
    got = interpret.run(cascade.program_of(problem), arrays, data.draw(plans(11)))
    assert_close(got, reference.evaluate(problem, arrays))


def test_crossing_zero_is_12_and_not_6() -> None:
    """redfuser.md 1.6: guarded cheaply, one element at a time, the answer would be 6."""
    program = cascade.fuse(_three(named.f32(1.0)))
    t = np.array([[[1.0, -1.0, 2.0]], [[1.0, 2.0, 3.0]]])
    one_by_one: interpret.Plan = [np.array([0]), np.array([1]), np.array([2])]
    assert interpret.run(program, {"t": t}, one_by_one)["d2"] == [12.0]
    assert interpret.run(program, {"t": t[:, :, [0, 1, 2]] * [[[1.0, 1.0, 0.0]], [[1.0, 1.0, 1.0]]]}, one_by_one)["d2"] == [0.0]


def _three(one: Any) -> Any:
    r = Rows(rows=1, cols=3)
    t = r.input("t", (2, 1, 3))
    a = r.reduce("sum", lambda i, l: t[0, i, l])
    return r.func(r.reduce("sum", lambda i, l: t[1, i, l] * a[i] * one))


def test_zero_prefix_of_an_absolute_maximum_is_harmless() -> None:
    func = named.absolute_maximum_scale()
    program, plain = cascade.fuse(func), cascade.recognise(func)
    arrays = inputs(func, 0)
    arrays["t"][0, :, :7] = 0.0
    tiles: interpret.Plan = [np.arange(0, 3), np.arange(3, 7), np.arange(7, COLS)]
    assert_close(interpret.run(program, arrays, tiles), interpret.plain(plain, arrays))
    arrays["t"][0] = 0.0
    assert np.all(interpret.run(program, arrays, tiles)["d2"] == 0.0)


@pytest.mark.parametrize("scale", [1e4, 1e150])
def test_huge_values_do_not_overflow(scale: float) -> None:
    for name in ("log_sum_exp", "softmax_then_product", "scaled_two_norm"):
        func = named.FUSED[name]()
        arrays = inputs(func, 3, scale)
        got = interpret.run(cascade.fuse(func), arrays, tuple(np.array([n]) for n in range(COLS)))
        want = interpret.plain(cascade.recognise(func), arrays)
        for output in want:
            assert np.all(np.isfinite(want[output]))
            np.testing.assert_allclose(got[output], want[output], rtol=1e-12)


def test_masked_prefix_and_wholly_masked_rows() -> None:
    r = Rows("x")
    x = r.stream(lambda i, l: named.tirx.if_then_else(l >= i * 8, r["x"][i, l], named.f32(float("-inf"))))
    m = r.reduce("max", lambda i, l: x[i, l])
    s = r.reduce(
        "sum", lambda i, l: te.exp(x[i, l] - named.tirx.if_then_else(named.tirx.EQ(m[i], named.f32(float("-inf"))), named.f32(0.0), m[i]))
    )
    program = cascade.fuse(r.func(m, s))
    arrays = {"x": np.random.default_rng(0).normal(size=(ROWS, COLS)) - 1000.0}
    out = interpret.run(program, arrays, [np.array([n]) for n in range(COLS)])
    for row in range(ROWS):
        kept = arrays["x"][row, row * 8 :]
        want = np.sum(np.exp(kept - np.max(kept))) if len(kept) else 0.0
        np.testing.assert_allclose(out["d3"][row], want, rtol=1e-12)
    assert out["d2"][2] == -np.inf


TERMS = ("linear", "exponential", "scaled", "weighted")


@st.composite
def random_cascades(draw: st.DrawFn) -> Any:
    """Two to five reductions over two streams of one tensor; each may use any earlier results in a separable way."""
    r = Rows(rows=2, cols=9)
    t = r.input("t", (2, 2, 9))
    top = r.reduce("max", lambda i, l: t[0, i, l])
    size = r.reduce("max", lambda i, l: te.abs(t[1, i, l]))
    results = [top, size]
    sums: list[Any] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(TERMS))
        by = draw(st.sampled_from(sums)) if sums and draw(st.booleans()) else None

        def term(i: Any, l: Any, kind: str = kind, by: Any = by) -> Any:
            weight = te.exp(t[0, i, l] - top[i]) if kind in ("exponential", "weighted") else t[1, i, l]
            weight = weight * (t[1, i, l] / size[i]) if kind in ("scaled", "weighted") else weight
            return weight if by is None else weight / (by[i] * by[i] + named.f32(1.0))

        found = r.reduce("sum", term)
        results.append(found)
        sums.append(found)
    return r.func(*results)


@given(data=st.data())
@settings(max_examples=40)
def test_random_cascades(data: st.DataObject) -> None:
    func = data.draw(random_cascades())
    arrays = {"t": np.random.default_rng(data.draw(st.integers(0, 999))).normal(size=(2, 2, 9))}
    got = interpret.run(cascade.fuse(func), arrays, data.draw(plans(9)))
    assert_close(got, interpret.plain(cascade.recognise(func), arrays))
