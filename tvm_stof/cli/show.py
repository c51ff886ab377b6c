"""``tvm-stof show``"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .output import FORMAT, decided, emit_json, emit_table, milliseconds, ratio

if TYPE_CHECKING:
    from ..records import Trial


@click.command("show")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--device", help="Only records of this device.")
@click.option("--kind", help="Only problems of this kind.")
@FORMAT
def command(paths: tuple[Path, ...], device: str | None, kind: str | None, style: str) -> int:
    """The best record of every problem in PATHS.

    PATHS are files or folders; ./schedules, ./tuning_logs and the records shipped with the package by default.
    """
    from .. import records

    trials = [t for t in records.collect(list(paths) or None) if device in (None, t.device) and kind in (None, t.kind)]
    best = records.best_of_each(trials)
    tried = Counter((t.key, t.device) for t in trials)
    usable = Counter((t.key, t.device) for t in trials if t.outcome == "ok")
    chosen = sorted(best.items(), key=lambda item: (item[1].device, item[1].kind, item[0]))
    if style == "json":
        emit_json([_data(trial, tried[at], usable[at]) for at, trial in chosen])
    else:
        rows = [_row(trial, f"{usable[at]}/{tried[at]}") for at, trial in chosen]
        columns = ["device", "problem", "best", "default", "gain", "floor", "ok/trials", "decisions"]
        emit_table(columns, rows, left=(0, 1, 7))
    click.echo(f"{len(chosen)} of {len(tried)} problems have a kernel" if tried else "no records", err=True)
    return 0


def _data(trial: Trial, tried: int, usable: int) -> dict[str, Any]:
    return {"record": trial.to_data(), "seconds": trial.seconds_median, "trials": tried, "ok": usable, "tune": _tune(trial)}


def _row(trial: Trial, count: str) -> list[str]:
    best, default = trial.seconds_median, trial.default_seconds
    return [trial.device, _tune(trial).removeprefix("tvm-stof tune "), milliseconds(best), milliseconds(default),
            ratio(default, best), milliseconds(trial.floor_seconds), count, decided(trial.decisions)]  # fmt: skip


def _tune(trial: Trial) -> str:
    """The command that tunes the record's problem, which is also the shortest full description of it."""
    from .. import records
    from ..errors import RecordError

    try:
        return records.cli_text(trial.rebuild())
    except RecordError as error:
        return f"{trial.kind} {trial.key[:12]}: {error}"
