"""Calling a kernel with torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import handmade
from tvm_stof.errors import ArgumentError
from tvm_stof.runtime import TunedModule

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def module() -> TunedModule:
    return handmade.module()


@pytest.fixture
def x() -> Any:
    return torch.from_numpy(handmade.inputs())


def test_tensor_in_tensor_out(module: TunedModule, x: Any) -> None:
    y = module(x)
    assert isinstance(y, torch.Tensor)
    assert y.dtype == torch.float32
    np.testing.assert_array_equal(y.numpy(), handmade.expected(x))


def test_out_is_the_callers_memory(module: TunedModule, x: Any) -> None:
    whole = torch.full((3, 64, 96), torch.nan)
    assert module(x, out=whole[1]).data_ptr() == whole[1].data_ptr()
    np.testing.assert_array_equal(whole[1].numpy(), handmade.expected(x))
    assert torch.isnan(whole[[0, 2]]).all()


def test_input_is_read_where_it_lies(module: TunedModule, x: Any) -> None:
    whole = torch.stack([x, -x])
    np.testing.assert_array_equal(module(whole[1]).numpy(), handmade.expected(-x))


def test_kinds_mix(module: TunedModule, x: Any) -> None:
    y = np.zeros((64, 96), np.float32)
    assert module(x, out=y) is y
    np.testing.assert_array_equal(y, handmade.expected(x))


def test_default_device_does_not_matter(module: TunedModule, x: Any) -> None:
    with torch.device("meta"):
        assert module(x).device.type == "cpu"


def test_gradients_are_refused_but_for_no_grad(module: TunedModule, x: Any) -> None:
    x.requires_grad_()
    with pytest.raises(ArgumentError, match=r"input 'x' requires grad.*torch.no_grad"):
        module(x)
    with torch.no_grad():
        np.testing.assert_array_equal(module(x).numpy(), handmade.expected(x.detach()))
        with pytest.raises(ArgumentError, match="output 'y' requires grad"):
            module(x, out=torch.zeros(64, 96, requires_grad=True))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda x: x.double(), "has the wrong dtype: got float64"),
        (lambda x: x.bfloat16(), "has the wrong dtype: got bfloat16"),
        (lambda x: x[None], "has the wrong shape"),
        (lambda x: x.T.contiguous().T, r"is not C-contiguous.*x.contiguous\(\)"),
        (lambda x: x[:1].expand(64, 96), "is not C-contiguous"),
        (lambda x: x.to_sparse(), "is not C-contiguous"),
        (lambda x: x.to("meta"), r"is on another device: got meta; accepted: cpu"),
    ],
)
def test_what_does_not_fit_is_named(module: TunedModule, x: Any, change: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        module(change(x))
