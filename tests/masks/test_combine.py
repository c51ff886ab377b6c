from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tvm_stof import canonical
from tvm_stof.errors import CanonicalError, MaskError
from tvm_stof.masks import And, Causal, Dense, Dilated, Function, Global, Not, SlidingWindow

from .plain import from_json, matrix

A, B, C = Causal(), SlidingWindow(4), Global(2)


def test_truth_tables() -> None:
    a, b = matrix(A, 9, 11), matrix(B, 9, 11)
    np.testing.assert_array_equal(matrix(A & B, 9, 11), a & b)
    np.testing.assert_array_equal(matrix(A | B, 9, 11), a | b)
    np.testing.assert_array_equal(matrix(~A, 9, 11), ~a)
    np.testing.assert_array_equal(matrix(~(A & ~B) | C, 9, 11), ~(a & ~b) | matrix(C, 9, 11))


def test_order_and_brackets_do_not_matter() -> None:
    assert A & B & C == C & (B & A) == B & C & A & B
    assert canonical.key(A | (B | C)) == canonical.key((C | A) | B)
    assert canonical.key(A & B) != canonical.key(A | B)


def test_simplest_form() -> None:
    assert A & A == A
    assert A | A == A
    assert A & Dense() == A
    assert A | Dense() == Dense()
    assert ~~A == A
    assert isinstance(~A, Not)
    assert And.of(Dense(), Dense()) == Dense()


def test_json_in_any_order_gives_the_same_mask() -> None:
    data = canonical.to_data(A & B)
    data["masks"].reverse()
    assert from_json(json.dumps(data)) == A & B


@pytest.mark.parametrize("data", [
    {"kind": "and", "masks": []}, {"kind": "or", "masks": [{"kind": "dense"}]}, {"kind": "and", "masks": 5},
    {"kind": "and", "masks": [5, 6]},
    {"kind": "not", "mask": 5}, {"kind": "not", "mask": {"kind": "not", "mask": {"kind": "dense"}}},
    {"kind": "and", "masks": [{"kind": "scale", "value": 1.0}, {"kind": "dense"}]},
])  # fmt: skip
def test_malformed(data: Any) -> None:
    with pytest.raises((MaskError, CanonicalError)):
        from_json(json.dumps(data))


def test_parts_are_bound_and_checked() -> None:
    both = Causal(align="bottom_right") & SlidingWindow(2, align="bottom_right") | ~Global(1, align="bottom_right")
    assert both.bind(4, 9) == Causal(align=5) & SlidingWindow(2, align=5) | ~Global(1, align=5)
    fractional = Function.trace(lambda b, h, q, kv: q % kv == 0)
    for mask in (A & fractional, A | fractional, ~fractional):
        with pytest.raises(MaskError, match="zero or negative"):
            mask.check(4, 4, 1, 1)


def test_what_parts_have_in_common() -> None:
    headed = Function.trace(lambda b, h, q, kv: (q + b) % 3 <= kv + h)
    assert (A & headed).depends_on == {"b", "h"}
    assert (~headed | A).depends_on == {"b", "h"}
    assert (A & ~Dilated(4, 2) | B).relative
    assert not (A & C).relative


def test_no_truth_value() -> None:
    with pytest.raises(MaskError, match="no truth value"):
        bool(A)


def test_negation_of_python_numbers() -> None:
    """~True is -2: a mask called with plain numbers must not say yes to everything."""
    assert not (~A)(3, 1)
    assert (~A)(1, 3)
