"""Sweep files: many problems and one budget for each, in TOML.

[tune] has the settings of ``tvm-stof tune`` by their option names; every [[problem]] has ``kind`` and that kind's options. A list as
a value stands for one problem with each of its members; several lists, for every combination.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import StorageError, UsageError, explain
from . import problems

if TYPE_CHECKING:
    from ..problems import Problem

MOST = 10_000
_LOGS = click.Path(path_type=Path)
SETTINGS = [
    click.Option(["--trials"], type=click.IntRange(1), default=64, show_default=True, help="Candidates to measure at most."),
    click.Option(["--seconds"], type=click.FloatRange(0, min_open=True), help="Time budget."),
    click.Option(["--seed"], type=int, default=0, show_default=True),
    click.Option(["--device"], help="Device slug; this machine by default."),
    click.Option(["--logs"], type=_LOGS, default=Path("tuning_logs"), show_default=True, help="Folder of journals."),
    click.Option(["--families"], help="Only these families, comma-separated."),
]


def read(path: Path) -> tuple[dict[str, Any], list[Problem]]:
    """Settings and problems of a sweep file."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(explain(f"{path} cannot be read", got=error.strerror)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(explain(f"{path} is not TOML", got=error)) from error
    budget, tables = data.pop("tune", {}), data.pop("problem", [])
    if data or not isinstance(budget, dict) or not _are_tables(tables):
        got = ", ".join(sorted(data)) or "none"
        raise UsageError(explain(f"{path} is not a sweep", got=got, accepted="[tune] and at least one [[problem]]"))
    settings = _options(f"{path}: [tune]", SETTINGS, budget)
    wanted: list[Problem] = []
    for number, table in enumerate(tables, 1):
        where = f"{path}: problem {number}"
        kind = table.pop("kind", None)
        if kind not in problems.kinds():
            raise UsageError(explain(f"{where}: unknown kind of problem", got=repr(kind), accepted=problems.kinds()))
        module = problems.kind(kind)
        for values in itertools.product(*(v if isinstance(v, list) else [v] for v in table.values())):
            wanted.append(module.make(**_options(where, module.OPTIONS, dict(zip(table, values)))))
            if len(wanted) > MOST:
                raise UsageError(explain(f"{path} has too many problems", accepted=f"at most {MOST}"))
    return settings, wanted


def _are_tables(tables: Any) -> bool:
    return isinstance(tables, list) and bool(tables) and all(isinstance(t, dict) for t in tables)


def _options(where: str, options: Sequence[click.Option], values: dict[str, Any]) -> dict[str, Any]:
    """The options' values from a table, read and checked as on the command line."""
    words = [word for name, value in values.items() for word in _words(name, value)]
    try:
        return dict(click.Command("table", params=list(options)).make_context("table", words).params)
    except click.ClickException as error:
        raise UsageError(explain(where, got=error.format_message())) from error


def _words(name: str, value: Any) -> list[str]:
    option = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return [option] if value else []
    return [option, str(value)]
