from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_stof import canonical
from tvm_stof.errors import MaskError
from tvm_stof.masks import Array, Causal
from tvm_stof.masks.tracer import Traced

from .plain import matrix, read_back

NOISE = np.random.default_rng(0).random((1000, 900)) < 0.5


def test_array_of_each_number_of_axes() -> None:
    bits = np.random.default_rng(1).random((2, 3, 5, 7)) < 0.5
    np.testing.assert_array_equal(matrix(Array.of(bits[0, 0]), 5, 7, b=1, h=2), bits[0, 0])
    np.testing.assert_array_equal(matrix(Array.of(bits[0]), 5, 7, b=1, h=2), bits[0, 2])
    np.testing.assert_array_equal(matrix(Array.of(bits), 5, 7, b=1, h=2), bits[1, 2])
    np.testing.assert_array_equal(matrix(Array.of(bits[:, :1]), 5, 7, b=1, h=2), bits[1, 0])
    assert [sorted(Array.of(x).depends_on) for x in (bits[0, 0], bits[0], bits, bits[:, :1])] == [[], ["h"], ["b", "h"], ["b"]]


def test_array_is_taken_over_as_it_is_now() -> None:
    bits = np.eye(4, dtype=bool)
    mask = Array.of(bits)
    bits[:] = True
    assert not mask(0, 1)


def test_small_array_survives_json() -> None:
    bits = np.tril(np.ones((200, 200), bool))
    mask = Array.of(bits)
    back = read_back(mask)
    assert back == mask
    assert canonical.key(back) == canonical.key(mask)
    np.testing.assert_array_equal(matrix(back, 200, 200), bits)


def test_large_array_has_to_be_in_memory() -> None:
    mask = Array.of(NOISE)
    assert mask.content is None
    back = read_back(mask)
    assert back == mask
    assert isinstance(back, Array)
    with pytest.raises(MaskError, match=r"not in memory.*\[1000, 900\].*with_bits"):
        back(0, 0)
    np.testing.assert_array_equal(matrix(back.with_bits(NOISE), 1000, 900), NOISE)
    with pytest.raises(MaskError, match="another array"):
        back.with_bits(~NOISE)


def test_content_that_was_changed() -> None:
    data = canonical.to_data(Array.of(np.eye(4, dtype=bool)))
    other = canonical.to_data(Array.of(~np.eye(4, dtype=bool)))
    swapped = canonical.from_data({**data, "content": other["content"]}, Array)
    with pytest.raises(MaskError, match="not what its SHA-256 says"):
        swapped(0, 0)
    for content in ("AAEEAQQBBAE", "AAEE", "gA==", "....", "é", "//////////8B", 7, "A" * 70000):
        with pytest.raises(MaskError, match="content"):
            canonical.from_data({**data, "content": content}, Array)


def test_huge_shape_is_refused_without_allocating() -> None:
    with pytest.raises(MaskError, match="does not fill its shape"):
        Array((1 << 20, 1 << 20), hashlib.sha256(b"").hexdigest(), "gICAgICAgAI=")


@given(st.lists(st.booleans(), min_size=1, max_size=400), st.integers(1, 9))
def test_content_round_trip(flat: list[bool], repeat: int) -> None:
    bits = np.repeat(np.array(flat, bool), 3**repeat)[None, :]
    mask = Array.of(bits)
    assert mask.content is not None
    np.testing.assert_array_equal(Array(mask.shape, mask.digest, mask.content).bits, bits)


def test_array_must_fit_the_problem() -> None:
    mask = Array.of(np.ones((3, 5, 7), bool))
    mask.check(5, 7, 2, 3)
    Array.of(np.ones((1, 1, 5, 7), bool)).check(5, 7, 2, 3)
    for q_len, kv_len, heads in ((6, 7, 3), (5, 8, 3), (5, 7, 4)):
        with pytest.raises(MaskError, match=r"does not fit the problem: got \[3, 5, 7\]"):
            mask.check(q_len, kv_len, 2, heads)


def test_array_has_no_arithmetic() -> None:
    mask = Array.of(np.eye(4, dtype=bool))
    assert not mask.arithmetic
    assert not (mask & Causal()).arithmetic
    with pytest.raises(MaskError, match="no index arithmetic"):
        mask(Traced.constant(1), 0)


@pytest.mark.parametrize("make", [
    lambda: Array.of(np.ones((3, 4))), lambda: Array.of(np.ones(3, bool)), lambda: Array.of(np.ones((1, 1, 1, 1, 1), bool)),
    lambda: Array.of(np.ones((0, 4), bool)), lambda: Array.of("x"), lambda: Array((3,), "0" * 64), lambda: Array((3, 3), "0"),
])  # fmt: skip
def test_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(MaskError, match="got "):
        make()
