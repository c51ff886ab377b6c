"""The worker's bench: build a candidate, check it against the float64 oracle, and only then time it."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import reference, testing
from ..codegen.cpu import exp
from ..codegen.kernel import Kernel, Workspace
from ..definitions import definition
from ..errors import StofError
from ..records import bridge
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
    np.savez(path, **arrays, **{_BUDGETS: np.array(json.dumps(dict(expected.budgets)))})  # type: ignore[arg-type]


class Bench:
    """Kernels of one task between their build and their run."""

    def __init__(self, task: Task, path: str) -> None:
        import tvm

        exp.register()
        self.task, self._path = task, path
        self._target = tvm.target.Target(task.device.target_json())
        self._device = tvm.cpu() if task.device.kind == "cpu" else tvm.cuda()
        self._built: dict[int, tuple[Any, Kernel, str]] = {}
        self._inputs: list[Any] = []
        self._expected: reference.Expected | None = None

    def build(self, job: Job) -> Reply:
        """Generate and compile; the kernel waits here for its run."""
        import tvm

        try:
            kernel = self._kernel(job)
        except StofError as error:
            return Reply("invalid", str(error))
        digest = bridge.source_digest(kernel.module)
        executable = tvm.compile(kernel.module, target=self._target)
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
        outputs = [self._tensor(_poison(t.shape, t.dtype)) for t in self.task.problem.outputs()]
        prepared = [self._tensor(np.zeros(p.shape, p.dtype) if isinstance(p, Workspace) else p) for p in kernel.prepared]
        expected = self._load()
        arguments = [*self._inputs, *outputs, *prepared]
        main = module["main"]
        start = time.perf_counter()
        main(*arguments)
        first = time.perf_counter() - start
        names = [t.name for t in self.task.problem.outputs()]
        comparison = reference.check(expected, {n: o.numpy() for n, o in zip(names, outputs)})
        if not comparison.ok:
            return Reply("wrong", comparison.message, error=comparison.to_data(), digest=digest)
        return Reply("ok", "", self._time(module, arguments, first, sampling), comparison.to_data(), digest)

    def _kernel(self, job: Job) -> Kernel:
        import tvm

        if job.module is not None:
            return bridge.unfused_kernel(self.task.problem, tvm.ir.load_json(job.module))
        kernel: Kernel = self.task.materialise(self.task.problem, job.decisions, self.task.device)
        return kernel

    def _time(self, module: Any, arguments: list[Any], first: float, sampling: Sampling) -> tuple[float, ...]:
        if first >= sampling.slow_seconds:
            return (first,)
        once = module.time_evaluator("main", self._device, number=1, repeat=1)(*arguments).mean
        number = max(1, int(sampling.group_seconds / once))
        repeat = min(sampling.most, max(sampling.least, int(sampling.seconds / (number * once))))
        return tuple(float(s) for s in module.time_evaluator("main", self._device, number=number, repeat=repeat)(*arguments).results)

    def _load(self) -> reference.Expected:
        if self._expected is None:
            with np.load(self._path) as data:
                self._inputs = [self._tensor(data[f"in.{t.name}"]) for t in self.task.problem.inputs()]
                values = {t.name: data[f"out.{t.name}"] for t in self.task.problem.outputs()}
                self._expected = reference.Expected(self.task.problem, values, json.loads(str(data[_BUDGETS])))
        return self._expected

    def _tensor(self, array: _Array) -> Any:
        import tvm

        return tvm.runtime.tensor(np.ascontiguousarray(array), self._device)


def _poison(shape: tuple[int, ...], dtype: str) -> _Array:
    kind = np.dtype(dtype)
    return np.full(shape, np.nan if kind.kind == "f" else np.iinfo(kind).min, kind)


def warm(task: Task) -> None:
    """Import and derive what every worker needs, before it is forked; a failure will come back with each candidate."""
    from ..rules import rulesets

    exp.register()
    rulesets.program(task.problem)
    definition(task.problem)
