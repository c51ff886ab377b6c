"""How commands print: a table for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

FORMAT = click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format.")


def emit_json(data: Any) -> None:
    """Indented JSON on stdout."""
    click.echo(json.dumps(data, indent=2, sort_keys=True))


def emit_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on stdout; as wide as its content where stdout is no terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for n, name in enumerate(columns):
        table.add_column(name, overflow="fold", justify="left" if n == 0 else "right")
    for row in rows:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else 10 + sum(max([len(c), *(len(r[n]) for r in rows)]) + 2 for n, c in enumerate(columns))
    Console(width=width, highlight=False, markup=False, soft_wrap=width is not None).print(table)


def milliseconds(seconds: float | None) -> str:
    """A time as text."""
    return "-" if seconds is None else f"{seconds * 1e3:.4g} ms"
