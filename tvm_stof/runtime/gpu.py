"""Arrays on a GPU at call time: torch tensors go to the kernel as they are, so that it runs on torch's current stream."""

from __future__ import annotations

import sys
from typing import Any

from .. import build, native
from ..errors import ArgumentError, explain
from .arrays import Port, is_torch

_CUDA = 2
#: the tensor memory accelerator reads and writes from multiples of this
_ALIGN = 16


class GpuPort(Port):
    """One input or output of a GPU kernel."""

    def take(self, array: Any) -> Any:
        """The array as it can be passed on; ArgumentError when it does not fit."""
        if is_torch(array):
            return self._aligned(self._torch_on(array, "cuda", "Move it with .cuda()"))
        if not hasattr(array, "__dlpack__") or not hasattr(array, "__dlpack_device__"):
            self._refuse("is not an array", type(array).__name__, "a torch tensor or any other DLPack array on the GPU")
        kind = int(array.__dlpack_device__()[0])
        if kind != _CUDA:
            self._refuse("is on another device", f"DLPack device type {kind}", f"a GPU ({_CUDA})", "Move it to the GPU")
        tensor = self._import(array)
        self._check(str(tensor.dtype), tuple(tensor.shape), bool(tensor.is_contiguous()))
        return self._aligned(tensor)

    def empty(self, like: Any) -> Any:
        """A new torch tensor beside ``like``; other producers must bring ``out``."""
        if not is_torch(like):
            raise ArgumentError(explain("new arrays are made for torch tensors only", got=type(like).__name__, way_out="Pass out="))
        torch = sys.modules["torch"]
        return torch.empty(self.shape, dtype=getattr(torch, self.dtype), device=like.device)

    def _aligned(self, tensor: Any) -> Any:
        if tensor.data_ptr() % _ALIGN:
            self._refuse(f"does not lie on a multiple of {_ALIGN} bytes", hex(tensor.data_ptr()), "aligned memory", "Pass a copy")
        return tensor


class GpuMemory:
    """A kernel's prepared arrays, copied to each GPU it is called on once."""

    def __init__(self, prepared: tuple[native.Prepared, ...]) -> None:
        self._prepared = prepared
        self._there: dict[int, list[Any]] = {}

    def on(self, tensors: list[Any]) -> list[Any]:
        """The prepared arrays beside a call's tensors; ArgumentError when those are on several GPUs."""
        places = {t.device.index for t in tensors}
        if len(places) != 1:
            raise ArgumentError(explain("the arrays are on several GPUs", got=sorted(places), accepted="one"))
        [number] = places
        if number not in self._there:
            self._there[number] = [_copy(p, number) for p in self._prepared]
        return self._there[number]


def _copy(prepared: native.Prepared, number: int) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None:
        place = torch.device("cuda", number)
        if isinstance(prepared, build.Scratch):
            return torch.empty(prepared.shape, dtype=getattr(torch, prepared.dtype), device=place)
        return torch.from_numpy(prepared).to(place)
    import tvm

    if isinstance(prepared, build.Scratch):
        return tvm.runtime.empty(prepared.shape, prepared.dtype, tvm.cuda(number))
    return tvm.runtime.tensor(prepared, tvm.cuda(number))
