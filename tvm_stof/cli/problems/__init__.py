"""Options of each kind of problem. A new kind adds one module here with ``OPTIONS`` and ``make``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import click

from ...problems import Problem

#: kind -> one line of help
KINDS = {
    "attention": "Scaled dot-product attention with a mask.",
    "softmax": "Row softmax.",
}


def options(kind: str) -> list[click.Option]:
    """The kind's options."""
    found: list[click.Option] = importlib.import_module(f".{kind}", __name__).OPTIONS
    return found


def maker(kind: str) -> Callable[..., Problem]:
    """Builds the problem from the options' values."""
    made: Callable[..., Problem] = importlib.import_module(f".{kind}", __name__).make
    return made


def from_table(kind: str, values: dict[str, Any]) -> Problem:
    """A problem from a table of a sweep file, whose keys are the option names without dashes."""
    parser = click.Command(kind, params=list(options(kind)), callback=maker(kind))
    words = [w for name, value in values.items() for w in _words(name, value)]
    problem: Problem = parser.main(words, prog_name=f"problem {kind}", standalone_mode=False)
    return problem


def _words(name: str, value: Any) -> list[str]:
    option = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return [option] if value else []
    return [option, str(value)]
