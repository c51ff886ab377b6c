"""``tvm-stof show``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import FORMAT, emit_json, emit_table, milliseconds

if TYPE_CHECKING:
    from ..records import Trial


@click.command("show")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--device", help="Only this device.")
@click.option("--kind", help="Only this kind of problem.")
@click.option("--trials", is_flag=True, help="Every trial instead of the best of each problem.")
@FORMAT
def command(paths: tuple[Path, ...], device: str | None, kind: str | None, trials: bool, style: str) -> int:
    """The best record of every problem in PATHS (files or folders; ./schedules, ./tuning_logs and the shipped records by default)."""
    from .. import records

    found = records.collect(list(paths) or None)
    chosen = found if trials else list(records.best_of_each(found).values())
    chosen = [t for t in chosen if (device is None or t.device == device) and (kind is None or t.kind == kind)]
    if style == "json":
        emit_json([{**t.to_data(), "seconds_median": t.seconds_median} for t in chosen])
    else:
        emit_table(["problem", "device", "family", "time", "default", "floor", "outcome", "decisions"], [_row(t) for t in chosen])
    if not chosen:
        click.echo("no records; tvm-stof tune makes them", err=True)
    return 0


def _row(trial: Trial) -> list[str]:
    from ..records.find import brief

    decisions = " ".join(f"{k}={v}" for k, v in sorted(trial.decisions.items()) if k != "family")
    times = milliseconds(trial.seconds_median), milliseconds(trial.default_seconds), milliseconds(trial.floor_seconds)
    return [f"{trial.kind} {brief(dict(trial.problem))}", trial.device, str(trial.decisions["family"]), *times, trial.outcome, decisions]
