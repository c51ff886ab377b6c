"""From a problem to its best recorded kernel on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import build, canonical, targets
from .. import records as store
from ..errors import ProblemError, RecordNotFound, UsageError, explain
from ..problems import Problem
from .module import TunedModule

if TYPE_CHECKING:
    from ..records import Trial

FALLBACKS = ("none", "default", "nearest")


def load(problem: Problem | str, *, device: str | None = None, records: str | Path | Sequence[str | Path] | None = None,
         fallback: str = "none", **shape: Any) -> TunedModule:  # fmt: skip
    """Load the best kernel recorded for a problem on this machine.

    Parameters
    ----------
    problem : a Problem, or a kind's name with its fields as ``shape`` (a mask may be text: ``mask="causal & window(256)"``).
    device : slug of the device; this machine's by default.
    records : files or folders to look in; otherwise ``./schedules``, ``./tuning_logs`` and the records shipped with the package.
    fallback : what to do without a record. "none" raises; "default" takes the analytical model's untuned choice; "nearest" borrows
        the decisions of the nearest record that apply. What was done stands in ``.origin``.

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
    paths = None if records is None else [records] if isinstance(records, (str, Path)) else list(records)
    record, origin, decisions = _choose(wanted, machine, paths, fallback)
    trace = record.trace if record is not None else None
    return TunedModule(wanted, build.cached(wanted, decisions, trace, machine), machine, record, origin, decisions)


def problem_from(problem: Problem | str, shape: Mapping[str, Any]) -> Problem:
    """A problem as it is, or made of a kind's name and fields."""
    if isinstance(problem, Problem):
        if shape:
            raise UsageError(explain("sizes belong to the problem when one is given", got=", ".join(shape)))
        return problem
    kinds = canonical.kinds(Problem)
    if problem not in kinds:
        raise ProblemError(explain("unknown kind of problem", got=repr(problem), accepted=kinds))
    fields = dict(shape)
    if isinstance(fields.get("mask"), str):
        from .. import masks

        fields["mask"] = masks.parse(fields["mask"])
    try:
        return kinds[problem](**fields)  # type: ignore[no-any-return]
    except TypeError as error:
        raise ProblemError(explain(f"fields do not fit {problem!r}", got=error)) from error


def _choose(problem: Problem, device: targets.Device, paths: Sequence[str | Path] | None,
            fallback: str) -> tuple[Trial | None, str, dict[str, Any]]:  # fmt: skip
    """(record, origin, decisions)"""
    try:
        record = store.find(problem, device.name, paths)
    except RecordNotFound:
        if fallback == "none":
            raise
    else:
        return record, "tuned", dict(record.decisions)
    from .. import rules

    if fallback == "default":
        return None, "default", dict(rules.default(problem, device))
    for near in store.nearest(store.collect(paths), problem, device.name):
        if near.decisions.get("family") != "unfused" and rules.legal(problem, near.decisions, device) is None:
            return near, f"nearest: {near.device} {canonical.dumps(dict(near.problem))}", dict(near.decisions)
    got, way_out = canonical.dumps(problem.to_data())[:200], 'fallback="default" needs no record'
    raise RecordNotFound(explain("no record is near enough to borrow from", got=got, way_out=way_out))
