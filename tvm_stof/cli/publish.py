"""``tvm-stof publish``"""

from __future__ import annotations

from pathlib import Path

import click

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command("publish")
@click.argument("logs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--to", "schedules", type=_FOLDER, default=Path("schedules"), show_default=True, help="Folder of schedules.")
def command(logs: tuple[Path, ...], schedules: Path) -> int:
    """Write the best record of every problem in LOGS to schedules/<device>/<kind>.jsonl.

    LOGS are journals or folders of them, ./tuning_logs by default. The same journals always give the same bytes.
    """
    from ..records import publish

    written = publish.publish(list(logs) or [Path("tuning_logs")], schedules)
    for path in written:
        click.echo(path)
    if not written:
        click.echo("no record to publish", err=True)
    return 0 if written else 1
