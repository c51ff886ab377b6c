"""The worker's bench: build a candidate, check it against the float64 oracle, and only then time it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import reference, testing
from ..build import lower
from ..codegen.cpu import exp
from ..codegen.kernel import Kernel, Workspace
from ..definitions import definition
from ..errors import StofError
from ..records import bridge
from .clock import CpuClock, clock
from .task import Job, Reply, Sampling, Task

#: Kernels a worker keeps at most, for the final timing.
KEPT = 256
_BUDGETS = "budgets"
_Array = npt.NDArray[Any]


def prepare(task: Task, path: str) -> None:
    """Evaluate the oracle once and leave inputs, expected outputs and budgets for every worker in one file."""
    inputs = testing.inputs(task.problem, task.seed)
    expected = reference.expect(task.problem, inputs)
    arrays = {f"in.{k}": v for k, v in inputs.items()} | {f"out.{k}": v for k, v in expected.values.items()}
    arrays |= {f"at.{k}": v for k, v in expected.places.items()}
    np.savez(path, **arrays, **{_BUDGETS: np.array(json.dumps(dict(expected.budgets)))})  # type: ignore[arg-type]


class Bench:
    """Kernels of one task between their build and their run."""

    def __init__(self, task: Task, path: str) -> None:
        exp.register()
        self.task, self._path = task, path
        self._clock = clock(task.device)
        self._built: dict[int, tuple[Any, Kernel, str]] = {}
        self._inputs: list[Any] = []
        self._expected: reference.Expected | None = None

    def build(self, job: Job) -> Reply:
        """Generate and compile; the kernel waits here for its run."""
        try:
            kernel = self._kernel(job)
        except StofError as error:
            return Reply("invalid", str(error))
        digest = bridge.source_digest(kernel.module)
        executable = lower(kernel.module, self.task.device)
        executable.mod["main"]  # the JIT runs at the first look, which must not fall into the timing
        self._built[job.id] = executable.mod, kernel, digest
        while len(self._built) > KEPT:
            del self._built[next(iter(self._built))]
        return Reply("ok", digest=digest)

    def run(self, job: Job, sampling: Sampling) -> Reply:
        """Check and time a candidate that was built here (or is built now: a restarted worker has lost its kernels)."""
        if job.id not in self._built:
            built = self.build(job)
            if not built.ok:
                return built
        module, kernel, digest = self._built[job.id]
        expected = self._load()
        comparison, seconds = rehearse(module, kernel, expected, self._inputs, self._clock, sampling)
        if not comparison.ok:
            return Reply("wrong", comparison.message, error=comparison.to_data(), digest=digest)
        return Reply("ok", "", seconds, comparison.to_data(), digest)

    def _kernel(self, job: Job) -> Kernel:
        import tvm

        if job.module is not None:
            return bridge.unfused_kernel(self.task.problem, tvm.ir.load_json(job.module))
        kernel: Kernel = self.task.materialise(self.task.problem, job.decisions, self.task.device)
        return kernel

    def _load(self) -> reference.Expected:
        if self._expected is None:
            with np.load(self._path) as data:
                self._inputs = [self._clock.tensor(data[f"in.{t.name}"]) for t in self.task.problem.inputs()]
                values = {t.name: data[f"out.{t.name}"] for t in self.task.problem.outputs()}
                places = {t.name: data[f"at.{t.name}"] for t in self.task.problem.outputs() if f"at.{t.name}" in data}
                self._expected = reference.Expected(self.task.problem, values, json.loads(str(data[_BUDGETS])), places)
        return self._expected


def rehearse(module: Any, kernel: Kernel, expected: reference.Expected, inputs: list[Any], clock: CpuClock,
             sampling: Sampling) -> tuple[reference.Comparison, tuple[float, ...]]:  # fmt: skip
    """Run a compiled kernel once on poisoned outputs and hold it to the oracle; if it is right, time it."""
    specs = expected.problem.outputs()
    outputs = [clock.tensor(_poison(t.shape, t.dtype)) for t in specs]
    prepared = [clock.tensor(np.zeros(p.shape, p.dtype) if isinstance(p, Workspace) else p) for p in kernel.prepared]
    arguments = [*inputs, *outputs, *prepared]
    first = clock.first(module["main"], arguments)
    comparison = expected.compare({t.name: o.numpy() for t, o in zip(specs, outputs)})
    return comparison, clock.times(module, arguments, first, sampling) if comparison.ok else ()


def _poison(shape: tuple[int, ...], dtype: str) -> _Array:
    kind = np.dtype(dtype)
    return np.full(shape, np.nan if kind.kind == "f" else np.iinfo(kind).min, kind)


def warm(task: Task) -> None:
    """Import and derive what every worker needs, before it is forked; a failure will come back with each candidate."""
    from ..rules import rulesets

    exp.register()
    rulesets.program(task.problem)
    definition(task.problem)
