"""``tvm-stof replay``"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from .output import FORMAT, emit_json, emit_table

_LEVEL = "Highest level to run: 0 schema, 1 decisions apply, 2 source digest, 3 numerics and time."


@click.command("replay")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--level", type=click.IntRange(0, 3), help=_LEVEL)
@click.option("--device", help="Only records of this device.")
@FORMAT
def command(paths: tuple[Path, ...], level: int | None, device: str | None, style: str) -> int:
    """Check every record in PATHS as far as this machine can.

    PATHS are files or folders, ./schedules and ./tuning_logs by default. Exit code 1 when a record is broken, or gives
    something else than it did, or when there is none.
    """
    from ..replay import replay

    places = list(paths) or [p for p in (Path("schedules"), Path("tuning_logs")) if p.exists()]
    verdicts = replay(places, level=level, device=device)
    if style == "json":
        emit_json([v.to_data() for v in verdicts])
    else:
        rows = [[f"{v.path}:{v.line}", v.key[:12], str(v.level), v.status, v.message] for v in verdicts]
        emit_table(["record", "problem", "level", "verdict", "note"], rows, left=(0, 1, 3, 4))
    counts = Counter(v.status for v in verdicts)
    click.echo(", ".join(f"{n} {status}" for status, n in sorted(counts.items())) or "no records", err=True)
    return 1 if counts["different"] or counts["broken"] or not verdicts else 0
