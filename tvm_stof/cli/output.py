"""How commands print: a table for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from ..errors import explain

_STYLES = click.Choice(["table", "json"])
FORMAT = click.option("--format", "style", type=_STYLES, default="table", show_default=True, help="Output format.")


class Named(click.Group):
    """A group that says which commands there are when one is unknown."""

    thing = "command"

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            ctx.fail(explain(f"unknown {self.thing}", got=repr(args[0]), accepted=known))
        return super().resolve_command(ctx, args)


def emit_json(data: Any) -> None:
    """Indented JSON on stdout."""
    click.echo(json.dumps(data, indent=2, sort_keys=True))


def emit_table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """A table on stdout, folded to the terminal's width, or as wide as its content where stdout is no terminal.

    Parameters
    ----------
    left : numbers of the columns of text; the others hold figures and stand to the right.
    """
    if not rows:
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for n, name in enumerate(columns):
        table.add_column(name, overflow="fold", justify="left" if n in left else "right")
    for row in rows:
        table.add_row(*row)
    widths = [max([len(name), *(len(row[n]) for row in rows)]) + 2 for n, name in enumerate(columns)]
    width = None if sys.stdout.isatty() else sum(widths) + 2
    Console(width=width, highlight=False, markup=False, emoji=False).print(table)


def milliseconds(seconds: float | None) -> str:
    """A time as text."""
    return "-" if seconds is None else f"{seconds * 1e3:.4g} ms"


def ratio(above: float | None, below: float | None) -> str:
    """How many times one time is the other."""
    return f"{above / below:.2f} x" if above and below else "-"


def decided(decisions: Any) -> str:
    """Decisions in one line, the family first."""
    rest = " ".join(f"{name}={value}" for name, value in sorted(decisions.items()) if name != "family")
    return f"{decisions.get('family')} {rest}".strip()
