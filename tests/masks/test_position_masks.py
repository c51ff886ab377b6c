"""Masks of positions against their rules in plain Python, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tvm_stof.errors import MaskError
from tvm_stof.masks import Causal, Dilated, Global, Longformer, Mask, PrefixLM, SlidingWindow, Strided

from .plain import from_rule, matrix

RULES: list[tuple[Callable[..., Mask], Callable[[int, int], bool]]] = [
    (lambda **a: Causal(**a), lambda p, k: k <= p),
    (lambda **a: SlidingWindow(4, **a), lambda p, k: abs(p - k) <= 4),
    (lambda **a: SlidingWindow(4, ahead=0, **a), lambda p, k: 0 <= p - k <= 4),
    (lambda **a: SlidingWindow(3, ahead=7, **a), lambda p, k: -7 <= p - k <= 3),
    (lambda **a: Dilated(9, 4, **a), lambda p, k: k in range(p - 8, p + 9, 4)),
    (lambda **a: Strided(5, **a), lambda p, k: abs(p - k) < 5 or (p - k) % 5 == 0),
    (lambda **a: Strided(5, local=1, **a), lambda p, k: abs(p - k) <= 1 or (p - k) % 5 == 0),
    (lambda **a: Global(3, **a), lambda p, k: p < 3 or k < 3),
    (lambda **a: PrefixLM(6, **a), lambda p, k: k < 6 or k <= p),
    (lambda **a: Longformer(2, tokens=3, **a), lambda p, k: p < 3 or k < 3 or abs(p - k) <= 2),
]


@pytest.mark.parametrize(("q_len", "kv_len"), [(17, 17), (11, 29), (29, 11), (1, 13), (13, 1)])
@pytest.mark.parametrize("n", range(len(RULES)))
def test_rule(n: int, q_len: int, kv_len: int) -> None:
    make, rule = RULES[n]
    for align, offset in (("top_left", 0), ("bottom_right", kv_len - q_len), (7, 7), (-7, -7)):
        expected = from_rule(q_len, kv_len, lambda q, k, offset=offset: rule(q + offset, k))  # type: ignore[misc]
        np.testing.assert_array_equal(matrix(make(align=align), q_len, kv_len), expected)


def test_bottom_right_has_to_be_bound() -> None:
    mask = Causal(align="bottom_right")
    with pytest.raises(MaskError, match=r"not bound.*bind\(q_len, kv_len\)"):
        mask(0, 0)
    assert mask.bind(4, 10) == Causal(align=6)
    assert mask.bind(4, 4) == Causal()


def test_equal_masks_are_written_alike() -> None:
    assert SlidingWindow(3, ahead=3) == SlidingWindow(3)
    assert Strided(4, local=3) == Strided(4)
    assert Causal(align=0) == Causal()


@pytest.mark.parametrize("make", [
    lambda: SlidingWindow(-1), lambda: SlidingWindow(True), lambda: SlidingWindow(1, ahead=-2), lambda: SlidingWindow(1 << 40),
    lambda: SlidingWindow(2.0), lambda: Global("3"), lambda: PrefixLM(None), lambda: Causal(align=None),  # type: ignore[arg-type]
    lambda: Dilated(3, 0), lambda: Strided(0), lambda: Longformer(1, tokens=-1), lambda: Causal(align="left"),
    lambda: Causal(align=1 << 40),
])  # fmt: skip
def test_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(MaskError, match=r"got .*accepted: "):
        make()
