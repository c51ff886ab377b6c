"""Calling a kernel: kinds of arrays, what is refused and how, memory, threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from tests import handmade
from tvm_stof.errors import ArgumentError
from tvm_stof.runtime import TunedModule


@pytest.fixture(scope="module")
def module() -> TunedModule:
    return handmade.module()


class Foreign:
    """A DLPack array that is nothing else; its namespace is made of such arrays."""

    def __init__(self, array: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class WithNamespace(Foreign):
    def __array_namespace__(self) -> Any:
        return WithNamespace

    @staticmethod
    def from_dlpack(array: Any) -> WithNamespace:
        return WithNamespace(array)


def misplaced(array: Any) -> Any:
    """The same numbers, a byte beside their element's size."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    view = memory[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def read_only(array: Any) -> Any:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def test_numpy_in_numpy_out(module: TunedModule) -> None:
    x = handmade.inputs()
    y = module(x)
    assert type(y) is np.ndarray
    np.testing.assert_array_equal(y, handmade.expected(x))


def test_new_outputs_are_new_memory_on_a_cache_line(module: TunedModule) -> None:
    first, second = module(handmade.inputs(1)), module(handmade.inputs(2))
    np.testing.assert_array_equal(first, handmade.expected(handmade.inputs(1)))
    assert {first.ctypes.data % 64, second.ctypes.data % 64} == {0}


@pytest.mark.parametrize("wrap", [lambda y: y, lambda y: (y,), lambda y: [y]])
def test_out_is_filled_and_returned(module: TunedModule, wrap: Any) -> None:
    x, y = handmade.inputs(), np.full((64, 96), np.nan, np.float32)
    assert module(x, out=wrap(y)) is y
    np.testing.assert_array_equal(y, handmade.expected(x))


def test_read_only_input_is_fine(module: TunedModule) -> None:
    x = read_only(handmade.inputs())
    np.testing.assert_array_equal(module(x), handmade.expected(x))


def test_any_dlpack_array_is_taken_and_its_kind_given_back(module: TunedModule) -> None:
    x = handmade.inputs()
    y = module(WithNamespace(x))
    assert isinstance(y, WithNamespace)
    np.testing.assert_array_equal(y.array, handmade.expected(x))
    assert isinstance(module(Foreign(x)), np.ndarray)
    assert isinstance(module(tvm_ffi.from_dlpack(x)), tvm_ffi.Tensor)


X, Y = handmade.inputs(), np.zeros((64, 96), np.float32)
BOTH = np.zeros((65, 96), np.float32)
REFUSED: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "no array": ((), None, "wrong number of arrays: got 0; accepted: 1: x"),
    "two arrays": ((X, X), None, "wrong number of arrays: got 2"),
    "a list": ((X.tolist(),), None, "input 'x' is not an array: got list"),
    "float64": ((X.astype(np.float64),), None, "input 'x' has the wrong dtype: got float64; accepted: float32"),
    "byte order": ((X.astype(">f4"),), None, "input 'x' has the wrong dtype"),
    "shape": ((X[:32].copy(),), None, r"input 'x' has the wrong shape: got \[32, 96\]; accepted: \[64, 96\]"),
    "rank": ((X.reshape(1, 64, 96),), None, "input 'x' has the wrong shape"),
    "transposed": ((np.asfortranarray(X),), None, "input 'x' is not C-contiguous.*numpy.ascontiguousarray"),
    "misplaced": ((misplaced(X),), None, "input 'x' does not lie on a multiple of its element's size"),
    "device": ((Foreign(X, (2, 0)),), None, "input 'x' is on another device: got DLPack device type 2"),
    "foreign dtype": ((Foreign(X.astype(np.float64)),), None, "input 'x' has the wrong dtype: got float64"),
    "foreign shape": ((Foreign(X[:32]),), None, "input 'x' has the wrong shape"),
    "foreign layout": ((Foreign(np.asfortranarray(X)),), None, "input 'x' is not C-contiguous"),
    "foreign that fails": ((Foreign(object()),), None, "input 'x' cannot be shared through DLPack: got AttributeError"),
    "out dtype": ((X,), Y.astype(np.float16), "output 'y' has the wrong dtype: got float16"),
    "out shape": ((X,), Y[:32].copy(), "output 'y' has the wrong shape"),
    "out layout": ((X,), np.asfortranarray(Y), "output 'y' is not C-contiguous"),
    "out read-only": ((X,), read_only(Y), "output 'y' cannot be written: got a read-only array"),
    "out count": ((X,), (Y, Y), "wrong number of arrays in out: got 2; accepted: 1: y"),
    "in place": ((Y,), Y, "output 'y' overlaps 'x' in memory"),
    "shifted by a row": ((BOTH[1:],), BOTH[:-1], "output 'y' overlaps 'x' in memory"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_named(module: TunedModule, case: str) -> None:
    arrays, out, text = REFUSED[case]
    with pytest.raises(ArgumentError, match=text):
        module(*arrays, out=out)


def test_neighbours_in_memory_are_no_overlap(module: TunedModule) -> None:
    both = np.zeros((128, 96), np.float32)
    both[:64] = X
    np.testing.assert_array_equal(module(both[:64], out=both[64:]), handmade.expected(X))


def test_refused_call_leaves_the_module_usable(module: TunedModule) -> None:
    with pytest.raises(ArgumentError):
        module(X[:1])
    np.testing.assert_array_equal(module(X), handmade.expected(X))


def test_threads_do_not_share_scratch_memory(module: TunedModule) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = handmade.inputs(seed)
        want = handmade.expected(x)
        for _ in range(100):
            if not np.array_equal(module(x), want):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_repr_is_short(module: TunedModule) -> None:
    assert repr(module).startswith(f"TunedModule(softmax {handmade.PROBLEM.key()[:12]}, origin='default'")
