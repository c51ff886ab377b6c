"""``tvm-stof replay``"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from .output import FORMAT, emit_json, emit_table


@click.command("replay")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--level", type=click.IntRange(0, 3), help="Highest level to run: 0 schema, 1 decisions, 2 source digest, 3 numerics and time."
)
@FORMAT
def command(paths: tuple[Path, ...], level: int | None, style: str) -> int:
    """Check every record in PATHS (files or folders; ./schedules and ./tuning_logs by default) as far as this machine can.

    Exit code 1 when a record is broken or gives something else than it did.
    """
    from .. import replay

    verdicts = replay.replay(list(paths) or [p for p in (Path("schedules"), Path("tuning_logs")) if p.exists()], level=level)
    if style == "json":
        emit_json([v.to_data() for v in verdicts])
    else:
        rows = [[f"{v.path}:{v.line}", v.key[:12], str(v.level), v.status, v.message] for v in verdicts]
        emit_table(["record", "problem", "level", "verdict", "note"], rows)
    counts = Counter(v.status for v in verdicts)
    click.echo(", ".join(f"{n} {status}" for status, n in sorted(counts.items())) or "no records", err=True)
    return 1 if counts["different"] or counts["broken"] or not verdicts else 0
