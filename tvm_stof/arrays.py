"""Arrays at call time: what NumPy, torch and other DLPack producers hand over, checked against a TensorSpec and passed without a copy."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from .errors import ArgumentError, explain
from .problems import TensorSpec

_DLPACK_CPU = 1


def is_torch(array: Any) -> bool:
    """Whether it is a torch tensor; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def check(array: Any, spec: TensorSpec, role: str) -> None:
    """Raise ArgumentError unless the array is on the CPU, C-contiguous, and of the spec's dtype and shape."""
    what = f"{role} {spec.name!r}"
    if not (isinstance(array, np.ndarray) or is_torch(array) or hasattr(array, "__dlpack__")):
        raise ArgumentError(explain(f"{what} is not an array", got=type(array).__name__, accepted="NumPy, torch or any other DLPack array"))
    if is_torch(array):
        if array.device.type != "cpu":
            raise ArgumentError(explain(f"{what} is on another device", got=array.device, accepted="cpu", way_out="Move it with .cpu()"))
        contiguous, way_out = array.is_contiguous(), "Call .contiguous() on it"
    elif isinstance(array, np.ndarray):
        contiguous, way_out = array.flags.c_contiguous, "Pass numpy.ascontiguousarray of it"
    else:
        device = array.__dlpack_device__()
        if int(device[0]) != _DLPACK_CPU:
            got = f"DLPack device type {int(device[0])}"
            raise ArgumentError(explain(f"{what} is on another device", got=got, accepted="cpu (1)"))
        contiguous, way_out = True, ""  # a DLPack producer is looked at once its array is imported
    dtype = dtype_of(array)
    if dtype != spec.dtype:
        raise ArgumentError(explain(f"{what} has the wrong dtype", got=dtype, accepted=spec.dtype, way_out="Convert it, or tune for its dtype"))
    if tuple(array.shape) != spec.shape:
        raise ArgumentError(explain(f"{what} has the wrong shape", got=list(array.shape), accepted=str(list(spec.shape))))
    if not contiguous:
        raise ArgumentError(explain(f"{what} is not C-contiguous", accepted="C order without gaps", way_out=way_out))


def dtype_of(array: Any) -> str:
    """The dtype's plain name ("float32")."""
    return str(array.dtype).rsplit(".", 1)[-1]


def pass_in(array: Any) -> Any:
    """An array as TVM takes it; shares memory. A read-only NumPy array is passed on as it is: kernels do not write inputs."""
    import tvm_ffi

    if is_torch(array):
        return tvm_ffi.from_dlpack(array.detach())
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
        array = np.frombuffer(memory, array.dtype).reshape(array.shape)
    view = tvm_ffi.from_dlpack(array)
    return view


def writable(array: Any) -> bool:
    """Whether a kernel may fill it."""
    return bool(array.flags.writeable) if isinstance(array, np.ndarray) else not (is_torch(array) and array.requires_grad)


def span(array: Any) -> tuple[int, int]:
    """First byte and the one after the last; (0, 0) where the producer does not say."""
    if isinstance(array, np.ndarray):
        return array.ctypes.data, array.ctypes.data + array.nbytes
    if is_torch(array):
        start = int(array.data_ptr())
        return start, start + int(array.numel()) * int(array.element_size())
    return 0, 0


def empty_like(spec: TensorSpec, example: Any) -> Any:
    """A new array of the example's kind (NumPy for other DLPack producers)."""
    if is_torch(example):
        torch = sys.modules["torch"]
        return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype))
    return np.empty(spec.shape, spec.dtype)


def give_back(array: Any, example: Any) -> Any:
    """An output as the example's own kind, through its array namespace where it has one."""
    if is_torch(example) or isinstance(example, np.ndarray):
        return array
    namespace = getattr(example, "__array_namespace__", None)
    return namespace().from_dlpack(array) if namespace is not None else array
