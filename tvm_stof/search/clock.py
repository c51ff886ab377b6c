"""How long a kernel takes: on a CPU calls in groups, on a GPU single calls between events, each after a flush of the second-level cache."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..targets import Device
from .task import Sampling

_FLUSH = "tvm_stof.flush_l2"


class CpuClock:
    """TVM's time evaluator."""

    def __init__(self) -> None:
        import tvm

        self.device = tvm.cpu()

    def tensor(self, array: npt.NDArray[Any]) -> Any:
        """The array on the device."""
        import tvm

        return tvm.runtime.tensor(np.ascontiguousarray(array), self.device)

    def first(self, main: Any, arguments: Sequence[Any]) -> float:
        """Seconds of the first call."""
        start = time.perf_counter()
        main(*arguments)
        self.device.sync()
        return time.perf_counter() - start

    def times(self, module: Any, arguments: Sequence[Any], first: float, sampling: Sampling) -> tuple[float, ...]:
        """Seconds of a call, of each repeat."""
        if first >= sampling.slow_seconds:
            return (first,)
        once = module.time_evaluator("main", self.device, number=1, repeat=1)(*arguments).mean
        number = max(1, int(sampling.group_seconds / once))
        repeat = min(sampling.most, max(sampling.least, int(sampling.seconds / (number * once))))
        return tuple(float(s) for s in module.time_evaluator("main", self.device, number=number, repeat=repeat)(*arguments).results)


class CudaClock(CpuClock):
    """CUDA events around each call. The flush before it also hides the time the host needs for the launch."""

    def __init__(self, device: Device) -> None:
        import tvm
        import tvm_ffi

        self.device = tvm.cuda()
        size = 2 * device.l2_bytes
        self._from, self._to = (tvm.runtime.empty((size,), "uint8", self.device) for _ in range(2))
        tvm_ffi.register_global_func(_FLUSH, self._flush, override=True)

    def _flush(self, *_: Any) -> None:
        self._from.copyto(self._to)

    def times(self, module: Any, arguments: Sequence[Any], first: float, sampling: Sampling) -> tuple[float, ...]:
        """Seconds of a call, of each repeat; the first call has compiled and loaded the kernel and says nothing."""
        once = max(1e-6, float(module.time_evaluator("main", self.device, number=1, repeat=2)(*arguments).results[-1]))
        if once >= sampling.slow_seconds:
            return (once,)
        repeat = min(3 * sampling.most, max(sampling.least, int(sampling.seconds / once)))
        timer = module.time_evaluator("main", self.device, number=1, repeat=repeat, f_preproc=_FLUSH)
        return tuple(float(s) for s in timer(*arguments).results)


def clock(device: Device) -> CpuClock:
    """The clock of a device."""
    return CudaClock(device) if device.kind == "cuda" else CpuClock()
