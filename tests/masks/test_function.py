from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_stof import canonical
from tvm_stof.errors import MaskError
from tvm_stof.masks import UNKNOWN, BlockGrid, Causal, Function, SlidingWindow

from .plain import FUNCTIONS, classes, matrix, read_back


@pytest.mark.parametrize("f", FUNCTIONS)
def test_traced_is_what_python_computes(f: Any) -> None:
    q, k = np.arange(23)[:, None], np.arange(31)
    for b, h in ((0, 0), (1, 2)):
        np.testing.assert_array_equal(matrix(Function.trace(f), 23, 31, b, h), np.broadcast_to(f(b, h, q, k), (23, 31)))


@pytest.mark.parametrize(("f", "same"), [
    (lambda b, h, q, kv: q >> 2 == kv >> 2, lambda b, h, q, kv: q // 4 == kv // 4),
    (lambda b, h, q, kv: (q & 7) < (kv << 1), lambda b, h, q, kv: q % 8 < kv * 2),
    (lambda b, h, q, kv: -q < +kv - 5, lambda b, h, q, kv: 0 - q < kv - 5),
    (lambda b, h, q, kv: (q < 3) == (kv < 3), lambda b, h, q, kv: ~((q < 3) ^ (kv < 3))),
    (lambda b, h, q, kv: (q < 3) != (kv < 3), lambda b, h, q, kv: (q < 3) ^ (kv < 3)),
    (lambda b, h, q, kv: 30 // (q + 1) > kv % 7, lambda b, h, q, kv: kv % 7 < 30 // (q + 1)),
    (lambda b, h, q, kv: Causal()(q, kv) & SlidingWindow(4)(q, kv), lambda b, h, q, kv: (kv <= q) & (q - kv <= 4)),
    (lambda b, h, q, kv: np.logical_and(np.less(q, kv), np.logical_not(np.equal(q, 2))), lambda b, h, q, kv: (q < kv) & (q != 2)),
    (lambda b, h, q, kv: (np.int64(3) * q < kv) | np.bool_(False), lambda b, h, q, kv: q * 3 < kv),
])  # fmt: skip
def test_other_ways_to_write(f: Any, same: Any) -> None:
    np.testing.assert_array_equal(matrix(Function.trace(f), 23, 31), matrix(Function.trace(same), 23, 31))


def _branch(b: Any, h: Any, q: Any, kv: Any) -> Any:
    if q < 3:
        return kv < 3
    return kv <= q


TABLE = np.arange(100)


@pytest.mark.parametrize(("f", "says"), [
    (_branch, "branches on a position"),
    (lambda b, h, q, kv: q < 3 and kv < 3, "branches on a position"),
    (lambda b, h, q, kv: not q < 3, "branches on a position"),
    (lambda b, h, q, kv: 0 <= q < 3, "branches on a position"),
    (lambda b, h, q, kv: min(q, kv) < 3, "branches on a position"),
    (lambda b, h, q, kv: q in (1, 2), "branches on a position"),
    (lambda b, h, q, kv: q * 0.5 < kv, "whole numbers only: got 0.5"),
    (lambda b, h, q, kv: q / 2 < kv, "which gives fractions"),
    (lambda b, h, q, kv: q**2 < kv, r"uses \*\*"),
    (lambda b, h, q, kv: math.sqrt(q) < kv, "turns a position into a plain number"),
    (lambda b, h, q, kv: TABLE[q] < kv, "IndexError"),
    (lambda b, h, q, kv: TABLE + q < kv, "whole numbers only"),
    (lambda b, h, q, kv: int(q) < kv, "turns a position into a plain number"),
    (lambda b, h, q, kv: np.exp(q) < kv, "calls numpy.exp"),
    (lambda b, h, q, kv: np.cumsum(q) < kv, "calls numpy.cumsum"),
    (lambda b, h, q, kv: q.item() < kv, "AttributeError"),
    (lambda b, h, q: q < 3, "TypeError"),
    (lambda b, h, q, kv: undefined < kv, "NameError"),  # type: ignore[name-defined]  # noqa: F821
    (lambda b, h, q, kv: q - kv, "must give a truth value"),
    (lambda b, h, q, kv: None, "whole numbers only: got None"),
    (lambda b, h, q, kv: (q < 3) + 1 == kv, "computes with a truth value"),
    (lambda b, h, q, kv: q & kv, "to a whole number"),
    (lambda b, h, q, kv: q // 0 == kv, "divides by zero"),
    (lambda b, h, q, kv: q << kv == 3, "shifts by an amount"),
    (lambda b, h, q, kv: np.where(q, kv < 3, q < 3), "numpy.where needs"),
])  # fmt: skip
def test_refused_while_tracing(f: Any, says: str) -> None:
    with pytest.raises(MaskError, match=says):
        Function.trace(f)


@pytest.mark.parametrize(("f", "says"), [
    (lambda b, h, q, kv: q % kv == 0, "may be zero or negative"),
    (lambda b, h, q, kv: q // (kv - 3) == 0, "may be zero or negative"),
    (lambda b, h, q, kv: q * 100000 * kv < 5, "leaves 32-bit numbers"),
    (lambda b, h, q, kv: q - 5 < -(1 << 40), "leaves 32-bit numbers"),
])  # fmt: skip
def test_refused_for_a_shape(f: Any, says: str) -> None:
    mask = Function.trace(f)
    with pytest.raises(MaskError, match=says):
        mask.check(1000, 1000, 1, 1)


def test_a_shape_small_enough() -> None:
    Function.trace(lambda b, h, q, kv: q * 100000 * kv < 5).check(100, 200, 1, 1)


def test_growing_without_bound_is_refused() -> None:
    def doubled(b: Any, h: Any, q: Any, kv: Any) -> Any:
        for _ in range(40):
            q = q + q
        return q < kv

    def deep(b: Any, h: Any, q: Any, kv: Any) -> Any:
        for _ in range(1000):
            q = q // 2 * 3
        return q < kv

    with pytest.raises(MaskError, match="more than 4096 operations"):
        Function.trace(doubled)
    with pytest.raises(MaskError, match="nested too deeply"):
        Function.trace(deep)


def test_long_chains_are_kept_flat() -> None:
    starts = list(range(0, 1000, 7))

    def listed(b: Any, h: Any, q: Any, kv: Any) -> Any:
        hit = kv < 0
        for s in starts:
            hit = hit | (kv == s)
        return hit

    mask = Function.trace(listed)
    assert read_back(mask) == mask
    np.testing.assert_array_equal(np.flatnonzero(matrix(mask, 1, 1000)[0]), starts)


def test_what_is_stored_is_the_expression_not_the_text() -> None:
    width = 3
    one, other = Function.trace(lambda b, h, q, kv: q - kv < width), Function.trace(lambda batch, head, i, j: i - j < 3)
    assert one == other
    assert canonical.key(one) == canonical.key(other)
    assert one != Function.trace(lambda b, h, q, kv: q - kv < 4)


@pytest.mark.parametrize("tree", [
    (), ("add", ("index", "q"), ("const", 1)), ("lt", ("index", "q"), ("const", 1.5)), ("lt", ("index", "z"), ("const", 1)),
    ("lt", ("load", "x", ("index", "q")), ("const", 1)), ("and", ("index", "q"), ("index", "k")), ("exp", ("index", "q")),
    ("lt", ("value",), ("const", 1)), ("eq", ("const", True), ("const", True)), "lt", ("not", ("lt", ("index", "q"))), ("const", "inf"),
    ("select", ("index", "q"), ("const", True), ("const", False)), ("select", ("const", True), ("const", True), ("const", 1)),
])  # fmt: skip
def test_malformed_tree(tree: Any) -> None:
    with pytest.raises(MaskError):
        Function(tree)


def test_relative_functions_are_classified_exactly() -> None:
    mask = Function.trace(lambda b, h, q, kv: (kv <= q) & ((q - kv) % 5 < 2) | (abs(q - kv) == 9 + h))
    assert mask.relative
    assert not Function.trace(lambda b, h, q, kv: (q + kv) % 5 < 2).relative
    assert not Function.trace(lambda b, h, q, kv: q < 5).relative
    assert Function.trace(lambda b, h, q, kv: 2 * q + 3 > 2 * kv).relative
    assert Function.trace(lambda b, h, q, kv: np.minimum(q, kv) > kv - 4).relative
    for h in (0, 3):
        np.testing.assert_array_equal(mask.classify(BlockGrid(61, 47, 8, 4), 0, h), classes(matrix(mask, 61, 47, h=h), 8, 4))


def test_intervals_decide_blocks_far_from_any_change() -> None:
    mask = Function.trace(lambda b, h, q, kv: (q // 16 == kv // 16) | (kv < 16))
    found = mask.classify(BlockGrid(256, 256, 16, 16))
    assert (found != UNKNOWN).all()


@given(st.data())
def test_intervals_are_never_wrong(data: st.DataObject) -> None:
    f = data.draw(st.sampled_from(FUNCTIONS))
    q_len, kv_len, block_q, block_k = (data.draw(st.integers(1, n)) for n in (40, 40, 12, 12))
    b, h = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))
    mask = Function.trace(f)
    found = mask.classify(BlockGrid(q_len, kv_len, block_q, block_k), b, h)
    true = classes(matrix(mask, q_len, kv_len, b, h), block_q, block_k)
    np.testing.assert_array_equal(np.where(found == UNKNOWN, true, found), true)
