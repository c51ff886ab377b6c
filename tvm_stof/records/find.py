"""The record that answers a problem, and what to say when there is none."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import RecordNotFound, explain
from ..problems import Problem
from .command import cli_text
from .journal import Journal, journals
from .model import Trial
from .select import best, nearest

log = logging.getLogger(__name__)


def default_places() -> list[Path]:
    """./schedules and ./tuning_logs where they are, and the records shipped with the package."""
    places = [p for p in (Path("schedules"), Path("tuning_logs")) if p.is_dir()]
    spec = importlib.util.find_spec("tvm_stof.schedules")
    shipped = [Path(p) for p in (spec.submodule_search_locations or [])] if spec is not None else []
    return [*places, *(p for p in shipped if p.is_dir() and p.resolve() not in [q.resolve() for q in places])]


def collect(paths: Sequence[str | Path] | None, key: str | None = None) -> list[Trial]:
    """All trials of files or folders (the default places otherwise), or of one problem; broken lines are named in the log and skipped."""
    found: list[Trial] = []
    for path in journals([Path(p) for p in paths] if paths is not None else default_places()):
        content = Journal(path).read(key)
        for line in content.broken:
            log.warning("%s:%d skipped: %s", path, line.line, line.reason)
        found += content.trials
    return found


def find(problem: Problem, device: str, paths: Sequence[str | Path] | None = None) -> Trial:
    """The best trial of exactly this problem on exactly this device.

    Raises
    ------
    RecordNotFound : names the nearest records and the command that tunes.
    """
    found = best(collect(paths, problem.key()), problem.key(), device)
    if found is not None:
        return found
    near = [f"{t.device}: {brief(dict(t.problem))}" for t in nearest(collect(paths), problem, device)]
    what = f"no record of this {problem.kind} problem on {device}"
    way_out = f'Tune it: {cli_text(problem)}; or load(..., fallback="default")'
    raise RecordNotFound(explain(what, got=brief(problem.to_data()), accepted=near or "none of this kind is recorded", way_out=way_out))


def brief(data: dict[str, Any]) -> str:
    """The fields of a problem as one short line."""
    return ", ".join(f"{k}={_short(v)}" for k, v in sorted(data.items()) if k not in ("kind", "scores"))


def _short(value: Any) -> str:
    if isinstance(value, dict):
        rest = ", ".join(f"{k}={_short(v)}" for k, v in sorted(value.items()) if k != "kind")
        return f"{value.get('kind')}({rest})"[:120]
    return str(value)[:60]
