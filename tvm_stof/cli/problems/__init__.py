"""Options of each kind of problem. A new kind adds one module here, named like it, and nothing else.

A module has ``HELP`` (one line), ``OPTIONS`` (click options) and ``make`` (their values -> Problem).
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def kinds() -> list[str]:
    """Names of the kinds."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__))


def kind(name: str) -> Any:
    """The module of a kind."""
    return importlib.import_module(f".{name}", __name__)
