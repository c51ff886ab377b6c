"""``tvm-stof publish``"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("publish")
@click.argument("logs", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--to",
    "schedules",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("schedules"),
    show_default=True,
    help="Folder of schedules.",
)
def command(logs: tuple[Path, ...], schedules: Path) -> int:
    """Write the best record of every problem in LOGS (journals or folders; ./tuning_logs by default) to schedules/<device>/<kind>.jsonl.

    The same journals always give the same bytes.
    """
    from ..records import publish

    for path in publish.publish(list(logs) or [Path("tuning_logs")], schedules):
        click.echo(path)
    return 0
