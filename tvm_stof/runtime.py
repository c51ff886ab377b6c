"""What inference code uses: ``load`` a tuned kernel, call it on its arrays."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import arrays, build, canonical, targets
from .errors import ArgumentError, ProblemError, RecordNotFound, UsageError, explain
from .problems import Problem

if TYPE_CHECKING:
    from .records import Trial

FALLBACKS = ("none", "default", "nearest")


class TunedModule:
    """A kernel for one problem, callable on NumPy, torch or any DLPack arrays on the CPU.

    Attributes
    ----------
    problem : what it computes.
    record : the record it was built from; None for an untuned default.
    origin : "tuned", "default" or "nearest: ..." (which record was borrowed).
    decisions : the decisions it was generated from.

    Examples
    --------
    >>> module = load(Softmax(rows=4, cols=8), fallback="default")  # doctest: +SKIP
    >>> module(numpy.ones((4, 8), "float32"))  # doctest: +SKIP
    """

    def __init__(self, problem: Problem, executable: build.Executable, device: targets.Device, record: Trial | None, origin: str,
                 decisions: dict[str, Any]) -> None:  # fmt: skip
        self.problem, self.record, self.origin, self.decisions = problem, record, origin, decisions
        self._device, self._executable = device, executable
        self._inputs, self._outputs = problem.inputs(), problem.outputs()
        self._fixed = [arrays.pass_in(p) if isinstance(p, np.ndarray) else None for p in executable.prepared]
        self._idle: list[list[Any]] = []
        self._lock = threading.Lock()

    @property
    def source(self) -> str:
        """The kernel as TVMScript (generated again, which loads TVM)."""
        trace = self.record.trace if self.record is not None else None
        return build.source_text(build.kernel_of(self.problem, self.decisions, trace, self._device))

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """Run the kernel.

        Parameters
        ----------
        inputs : arrays in the order of ``problem.inputs()``, C-contiguous, on the CPU.
        out : array, or tuple of arrays in the order of ``problem.outputs()``, to fill; new ones of the inputs' kind otherwise.

        Returns
        -------
        The output array, or the tuple of them where the problem has several. Safe to call from several threads.
        """
        if len(inputs) != len(self._inputs):
            names = [s.name for s in self._inputs]
            raise ArgumentError(explain("wrong number of arrays", got=len(inputs), accepted=f"{len(names)}: {', '.join(names)}"))
        for array, spec in zip(inputs, self._inputs):
            arrays.check(array, spec, "input")
        filled = self._targets(inputs, out)
        workspace = self._take()
        try:
            self._executable.main(*map(arrays.pass_in, inputs), *map(arrays.pass_in, filled), *workspace)
        finally:
            with self._lock:
                self._idle.append(workspace)
        given = [array if out is not None else arrays.give_back(array, inputs[0]) for array in filled]
        return given[0] if len(given) == 1 else tuple(given)

    def _targets(self, inputs: Sequence[Any], out: Any) -> list[Any]:
        if out is None:
            return [arrays.empty_like(spec, inputs[0]) for spec in self._outputs]
        given = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(given) != len(self._outputs):
            names = [s.name for s in self._outputs]
            raise ArgumentError(explain("wrong number of arrays in out", got=len(given), accepted=f"{len(names)}: {', '.join(names)}"))
        for array, spec in zip(given, self._outputs):
            arrays.check(array, spec, "output")
            if not arrays.writable(array):
                got = "a read-only array or one that requires grad"
                raise ArgumentError(explain(f"output {spec.name!r} cannot be written", got=got))
        taken = [(s.name, arrays.span(a)) for s, a in zip(self._inputs, inputs)]
        for spec, array in zip(self._outputs, given):
            start, end = arrays.span(array)
            for name, (first, last) in taken:
                if start < last and first < end:
                    raise ArgumentError(explain(f"output {spec.name!r} overlaps {name!r} in memory", accepted="separate memory"))
            taken.append((spec.name, (start, end)))
        return given

    def _take(self) -> list[Any]:
        """Prepared arguments of one call; a second call at the same time gets workspaces of its own."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        made = []
        for fixed, item in zip(self._fixed, self._executable.prepared):
            shape, dtype = (item.shape, item.dtype) if hasattr(item, "shape") else item
            made.append(fixed if fixed is not None else arrays.pass_in(np.empty(shape, dtype)))
        return made

    def __repr__(self) -> str:
        return f"TunedModule({canonical.dumps(self.problem.to_data())}, origin={self.origin!r}, decisions={self.decisions})"


def load(problem: Problem | str, *, device: str | None = None, records: str | Path | Sequence[str | Path] | None = None, fallback: str = "none",
         **shape: Any) -> TunedModule:  # fmt: skip
    """Load the best kernel recorded for a problem on this machine.

    Parameters
    ----------
    problem : a Problem, or a kind's name with its fields as ``shape`` (a mask may be text: ``mask="causal & window(256)"``).
    device : slug of the device; this machine's by default.
    records : files or folders to look in; otherwise ``./schedules``, ``./tuning_logs`` and the records shipped with the package.
    fallback : what to do without a record. "none" raises; "default" takes the analytical model's untuned choice; "nearest" borrows
        the decisions of the nearest record. What was done stands in ``.origin``.

    Raises
    ------
    RecordNotFound : no record; the text names the nearest ones and the command that tunes.

    Examples
    --------
    >>> attend = load("attention", heads=8, q_len=2048, head_dim=64, mask="causal & window(256)")  # doctest: +SKIP
    >>> o = attend(q, k, v)  # doctest: +SKIP
    """
    if fallback not in FALLBACKS:
        raise UsageError(explain("unknown fallback", got=repr(fallback), accepted=FALLBACKS))
    wanted = problem_from(problem, shape)
    machine = targets.current_device() if device is None else targets.device(device)
    targets.check_runs_here(machine)
    from . import records as store

    paths = None if records is None else [records] if isinstance(records, (str, Path)) else list(records)
    try:
        record = store.find(wanted, machine.name, paths)
        origin, decisions, trace = "tuned", dict(record.decisions), record.trace
    except RecordNotFound:
        if fallback == "none":
            raise
        record, origin, decisions, trace = _borrow(wanted, machine, paths, fallback)
    executable = build.cached(wanted, decisions, trace, machine)
    return TunedModule(wanted, executable, machine, record, origin, decisions)


def problem_from(problem: Problem | str, shape: dict[str, Any]) -> Problem:
    """A problem as it is, or of a kind's name and fields."""
    if isinstance(problem, Problem):
        if shape:
            raise UsageError(explain("sizes belong to the problem when one is given", got=", ".join(shape)))
        return problem
    kinds = canonical.kinds(Problem)
    if problem not in kinds:
        raise ProblemError(explain("unknown kind of problem", got=repr(problem), accepted=kinds))
    if isinstance(shape.get("mask"), str):
        from . import masks

        shape = {**shape, "mask": masks.parse(shape["mask"])}
    try:
        return kinds[problem](**shape)  # type: ignore[no-any-return]
    except TypeError as error:
        raise ProblemError(explain(f"fields do not fit {problem!r}", got=error)) from error


def _borrow(problem: Problem, device: targets.Device, paths: Any, fallback: str) -> tuple[Any, str, dict[str, Any], Any]:
    """(record, origin, decisions, trace) for a problem without a record of its own."""
    from . import rules

    if fallback == "nearest":
        from . import records as store

        for record in store.nearest(store.collect(paths), problem, device.name):
            decisions = dict(record.decisions)
            if decisions.get("family") != "unfused" and rules.legal(problem, decisions, device) is None:
                return record, f"nearest: {record.device} {canonical.dumps(record.problem)}", decisions, None
        got, way_out = canonical.dumps(problem.to_data()), 'fallback="default" needs none'
        raise RecordNotFound(explain("no record is near enough to borrow from", got=got, way_out=way_out))
    return None, "default", dict(rules.default(problem, device)), None
