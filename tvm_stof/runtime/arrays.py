"""Arrays at call time: checked against what the kernel takes, and handed over without a copy.

One rule for all kinds of arrays: on the kernel's device, of the exact dtype and shape, C-contiguous. What does not fit is refused, not
converted: a silent copy would cost more time than the kernel saves, and an output must be the caller's own memory. Inputs may be read-only.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .. import native
from ..errors import ArgumentError, explain
from ..problems import TensorSpec

_LINE = 64


class Port:
    """One input or output of a kernel."""

    def __init__(self, spec: TensorSpec, role: str) -> None:
        self.name, self.shape, self.dtype = spec.name, spec.shape, spec.dtype
        self.nbytes = int(np.prod(spec.shape)) * np.dtype(spec.dtype).itemsize
        self._what, self._numpy_dtype, self._writes = f"{role} {spec.name!r}", np.dtype(spec.dtype), role == "output"
        self._share = native.ffi().from_dlpack

    def take(self, array: Any) -> Any:
        """The array as a ``tvm_ffi.Tensor`` on the same memory; ArgumentError when it does not fit."""
        if isinstance(array, np.ndarray):
            return self._numpy(array)
        if is_torch(array):
            return self._torch(array)
        if not hasattr(array, "__dlpack__") or not hasattr(array, "__dlpack_device__"):
            self._refuse("is not an array", type(array).__name__, "NumPy, torch or any other DLPack array")
        kind = int(array.__dlpack_device__()[0])
        if kind != 1:
            self._refuse("is on another device", f"DLPack device type {kind}", "the CPU (1)")
        tensor = self._import(array)
        self._check(str(tensor.dtype), tuple(tensor.shape), bool(tensor.is_contiguous()))
        return tensor

    def empty(self, like: Any) -> Any:
        """A new array of the kind of ``like`` (a NumPy array for other DLPack producers, see ``give_back``)."""
        if is_torch(like):
            torch = sys.modules["torch"]
            return torch.empty(self.shape, dtype=getattr(torch, self.dtype), device="cpu")
        return aligned(self.shape, self._numpy_dtype)

    def _numpy(self, array: Any) -> Any:
        flags = array.flags
        if array.dtype != self._numpy_dtype or array.shape != self.shape or not flags.c_contiguous:
            self._check(str(array.dtype), array.shape, bool(flags.c_contiguous))
        if not flags.aligned:
            where = hex(array.ctypes.data)
            self._refuse("does not lie on a multiple of its element's size", where, "aligned memory", "Pass a copy")
        if flags.writeable:
            return self._share(array)
        if self._writes:
            self._refuse("cannot be written", "a read-only array")
        memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)  # DLPack before 1.0 cannot say read-only
        return self._share(np.frombuffer(memory, array.dtype).reshape(array.shape))

    def _torch(self, array: Any) -> Any:
        return self._import(self._torch_on(array, "cpu", "Move it with .cpu()"))

    def _torch_on(self, array: Any, device: str, way_out: str) -> Any:
        """The tensor itself, once it fits."""
        if array.device.type != device:
            self._refuse("is on another device", array.device, device, way_out)
        if array.requires_grad and (self._writes or sys.modules["torch"].is_grad_enabled()):
            way_out = "Detach it" if self._writes else "Detach it, or call under torch.no_grad()"
            self._refuse("requires grad, and kernels have no backward pass", "requires_grad=True", None, way_out)
        strided = str(array.layout) == "torch.strided"
        self._check(str(array.dtype).removeprefix("torch."), tuple(array.shape), strided and array.is_contiguous())
        return array

    def _import(self, array: Any) -> Any:
        try:
            return self._share(array)
        except Exception as error:  # every producer raises what it likes
            got = f"{type(error).__name__}: {error}"[:200]
            raise ArgumentError(explain(f"{self._what} cannot be shared through DLPack", got=got)) from error

    def _check(self, dtype: str, shape: tuple[int, ...], contiguous: bool) -> None:
        if dtype != self.dtype:
            self._refuse("has the wrong dtype", dtype, self.dtype, "Convert it, or tune for its dtype")
        if shape != self.shape:
            self._refuse("has the wrong shape", list(shape), str(list(self.shape)), "Tune for its shape")
        if not contiguous:
            way_out = "Pass numpy.ascontiguousarray(x), or x.contiguous() in torch"
            self._refuse("is not C-contiguous", None, "C order without gaps", way_out)

    def _refuse(self, fault: str, got: object, accepted: object = None, way_out: str = "") -> NoReturn:
        raise ArgumentError(explain(f"{self._what} {fault}", got=got, accepted=accepted, way_out=way_out))


def aligned(shape: Sequence[int], dtype: Any) -> npt.NDArray[Any]:
    """Uninitialised memory that starts where a cache line does: NumPy's starts 16 bytes later, and every wide load then costs two lines."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    memory = np.empty(size + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    found: npt.NDArray[Any] = memory[start : start + size].view(kind).reshape(tuple(shape))
    return found


def is_torch(array: Any) -> bool:
    """Whether it is a torch tensor; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def give_back(array: Any, example: Any) -> Any:
    """An output as the example's own kind; producers that offer no way back (no array API namespace) get NumPy."""
    if isinstance(example, np.ndarray) or is_torch(example):
        return array
    ffi = native.ffi()
    if isinstance(example, ffi.Tensor):
        return ffi.from_dlpack(array)
    namespace = getattr(example, "__array_namespace__", None)
    return namespace().from_dlpack(array) if namespace is not None else array
