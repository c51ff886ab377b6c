"""What a mask is across machines and versions: its JSON, its key, its draw of random blocks; and the same answers from TIR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_stof import canonical
from tvm_stof.masks import Mask, RandomBlocks
from tvm_stof.masks.hashing import P, mix

from .plain import LENGTHS, any_mask, examples, matrix, read_back

Q_LEN, KV_LEN = 37, 53


def test_keys_stay_the_same(golden: Callable[[str, str], None]) -> None:
    """A key that changes orphans every record made under it."""
    golden("masks/keys.txt", "".join(f"{name} {canonical.key(mask)}\n" for name, mask in examples().items()))


def test_draws_stay_the_same() -> None:
    assert mix(7, np.arange(-1, 3), np.arange(4)).tolist() == [4590, 19196, 10730, 6512]
    cells = matrix(RandomBlocks(1, 3, seed=7), 4, 64)
    assert [np.flatnonzero(row).tolist() for row in cells] == [[0, 23, 63], [3, 33, 59], [4, 38, 50], [13, 34, 47]]


def test_mix_never_leaves_32_bits() -> None:
    row, turn = np.meshgrid(np.arange(-3, 200_000, 997), np.arange(0, 1 << 18, 4099))
    wide, narrow = mix((1 << 30) - 1, row, turn), mix((1 << 30) - 1, row.astype(np.int32), turn.astype(np.int32))
    assert narrow.dtype == np.int32
    np.testing.assert_array_equal(wide, narrow)
    assert wide.min() >= 0
    assert wide.max() < P


@pytest.mark.parametrize("name", examples())
def test_json_round_trip(name: str) -> None:
    mask = examples()[name]
    back = read_back(mask)
    assert back == mask
    assert hash(back) == hash(mask)
    np.testing.assert_array_equal(matrix(back, Q_LEN, KV_LEN, h=1), matrix(mask, Q_LEN, KV_LEN, h=1))


@given(st.data())
def test_json_round_trip_of_combinations(data: st.DataObject) -> None:
    q_len, kv_len = data.draw(st.sampled_from(LENGTHS)), data.draw(st.sampled_from(LENGTHS))
    mask = data.draw(any_mask(q_len, kv_len))
    back = read_back(mask)
    assert back == mask
    assert canonical.key(back) == canonical.key(mask)


def _computed(mask: Mask, q_len: int, kv_len: int, b: int, h: int) -> Any:
    import tvm
    from tvm import te, tirx

    at = tirx.const(b, "int32"), tirx.const(h, "int32")
    bits = te.compute((q_len, kv_len), lambda q, k: tirx.Cast("uint8", mask(q, k, *at)), name="bits")
    kernel = tvm.compile(te.create_prim_func([bits]), target="llvm")
    out = tvm.runtime.empty((q_len, kv_len), "uint8")
    kernel["main"](out)
    return out.numpy().astype(bool)


@pytest.mark.parametrize("name", [name for name, mask in examples().items() if mask.arithmetic])
def test_tir_gives_the_same(name: str) -> None:
    mask = examples()[name].bind(Q_LEN, KV_LEN)
    for b, h in ((0, 0), (1, 3)):
        np.testing.assert_array_equal(_computed(mask, Q_LEN, KV_LEN, b, h), matrix(mask, Q_LEN, KV_LEN, b, h))


@pytest.mark.parametrize("n", range(6))
def test_tir_of_functions(n: int) -> None:
    from tvm_stof.masks import Function

    from .plain import FUNCTIONS

    mask = Function.trace(FUNCTIONS[n])
    np.testing.assert_array_equal(_computed(mask, 19, 23, 1, 2), matrix(mask, 19, 23, 1, 2))


def test_a_tir_mask_is_an_expression() -> None:
    """Not one of TVM's deferred comparisons, which a definition cannot store."""
    from tvm import ir, tirx

    q, k = tirx.Var("q", "int32"), tirx.Var("k", "int32")
    for name, mask in examples().items():
        if mask.arithmetic:
            value = mask.bind(Q_LEN, KV_LEN)(q, k, tirx.const(0, "int32"), tirx.const(0, "int32"))
            assert isinstance(value, ir.Expr), name
            assert str(value.ty.dtype) == "bool", name
