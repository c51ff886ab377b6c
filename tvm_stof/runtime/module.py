"""A loaded kernel as a callable."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import build, native, targets
from ..errors import ArgumentError, explain
from ..problems import Problem
from .arrays import Port, aligned, give_back
from .gpu import GpuMemory, GpuPort

if TYPE_CHECKING:
    from ..records import Trial

_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)


class TunedModule:
    """A kernel for one problem, callable on torch or any other DLPack arrays on its device, NumPy ones on the CPU.

    Attributes
    ----------
    problem : what it computes.
    record : the record it was built from; None for an untuned default.
    origin : "tuned", "default" or "nearest: ..." (which record was borrowed).
    decisions : the decisions it was generated from.

    Examples
    --------
    >>> import numpy as np
    >>> from tvm_stof.problems import Softmax
    >>> from tvm_stof.runtime import load
    >>> module = load(Softmax(rows=4, cols=8), fallback="default")  # doctest: +SKIP
    >>> module(np.ones((4, 8), "float32"))  # doctest: +SKIP
    """

    def __init__(self, problem: Problem, executable: build.Executable, device: targets.Device, record: Trial | None, origin: str,
                 decisions: Mapping[str, Any]) -> None:  # fmt: skip
        self.problem, self.record, self.origin, self.decisions = problem, record, origin, dict(decisions)
        self._device, self._executable = device, executable
        kind = Port if device.kind == "cpu" else GpuPort
        self._inputs = [kind(t, "input") for t in problem.inputs()]
        self._outputs = [kind(t, "output") for t in problem.outputs()]
        self._share = native.ffi().from_dlpack
        self._gpu = None if device.kind == "cpu" else GpuMemory(executable.prepared)
        kept = () if self._gpu is not None else executable.prepared
        self._fixed = [None if isinstance(p, build.Scratch) else self._share(_aligned_copy(p)) for p in kept]
        self._idle: list[list[Any]] = []

    @property
    def source(self) -> str:
        """The kernel as TVMScript: generated again from the decisions, which imports TVM."""
        trace = self.record.trace if self.record is not None else None
        return build.source_text(build.kernel_of(self.problem, self.decisions, trace, self._device))

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """Run the kernel. Safe to call from several threads at once. On a GPU it is queued on torch's current stream and can be captured in
        a CUDA graph (give ``out`` then).

        Parameters
        ----------
        inputs : arrays in the order of ``problem.inputs()``: on the device, of exactly that dtype and shape, C-contiguous; never copied.
        out : array, or tuple of arrays in the order of ``problem.outputs()``, to fill; must not overlap any other array of the call.

        Returns
        -------
        The output array, or the tuple of them where the problem has several: ``out``, or new arrays of the kind of the first input.

        Raises
        ------
        ArgumentError : an array that does not fit; the text names it and says what is accepted.
        """
        if len(inputs) != len(self._inputs):
            names = ", ".join(p.name for p in self._inputs)
            raise ArgumentError(explain("wrong number of arrays", got=len(inputs), accepted=f"{len(self._inputs)}: {names}"))
        tensors = [port.take(array) for port, array in zip(self._inputs, inputs)]
        filled = [p.empty(inputs[0]) for p in self._outputs] if out is None else self._given(out)
        tensors += [port.take(array) for port, array in zip(self._outputs, filled)]
        if out is not None:
            self._check_apart(tensors)
        if self._gpu is not None:
            self._executable.main(*tensors, *self._gpu.on(tensors))
        else:
            self._on_cpu(tensors)
        given = filled if out is not None else [give_back(array, inputs[0]) for array in filled]
        return given[0] if len(given) == 1 else tuple(given)

    def _on_cpu(self, tensors: Sequence[Any]) -> None:
        try:
            fixed = self._idle.pop()
        except IndexError:  # every set of scratch memory is in use by another call
            fixed = self._prepare()
        try:
            self._run(*tensors, *fixed)
        finally:
            self._idle.append(fixed)

    def _run(self, *arguments: Any) -> None:
        if not _forked:
            self._executable.main(*arguments)
            return
        # A fork keeps TVM's pool of this thread without its workers: a call would wait for them forever. A new thread has a new pool.
        failed: list[BaseException] = []
        thread = threading.Thread(target=_catch, args=(self._executable.main, arguments, failed))
        thread.start()
        thread.join()
        if failed:
            raise failed[0]

    def _given(self, out: Any) -> list[Any]:
        given = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(given) != len(self._outputs):
            names = ", ".join(p.name for p in self._outputs)
            raise ArgumentError(explain("wrong number of arrays in out", got=len(given), accepted=f"{len(self._outputs)}: {names}"))
        return given

    def _check_apart(self, tensors: Sequence[Any]) -> None:
        """ArgumentError when an output shares memory with any other array: the kernel would read what it has just written."""
        ports = [*self._inputs, *self._outputs]
        spans = [(t.data_ptr(), t.data_ptr() + p.nbytes, p.name) for t, p in zip(tensors, ports)]
        for n in range(len(self._inputs), len(spans)):
            start, end, name = spans[n]
            for first, last, other in spans[:n]:
                if start < last and first < end:
                    raise ArgumentError(explain(f"output {name!r} overlaps {other!r} in memory", accepted="memory of its own"))

    def _prepare(self) -> list[Any]:
        """The kernel's own arguments for one call at a time: shared visitor arrays, scratch memory of its own."""
        items = zip(self._fixed, self._executable.prepared)
        return [self._share(aligned(p.shape, p.dtype)) if fixed is None else fixed for fixed, p in items]

    def __repr__(self) -> str:
        return f"TunedModule({self.problem.kind} {self.problem.key()[:12]}, origin={self.origin!r}, decisions={self.decisions})"


def _aligned_copy(array: Any) -> Any:
    copy = aligned(array.shape, array.dtype)
    copy[...] = array
    return copy


def _catch(call: Any, arguments: Sequence[Any], failed: list[BaseException]) -> None:
    try:
        call(*arguments)
    except BaseException as error:
        failed.append(error)
