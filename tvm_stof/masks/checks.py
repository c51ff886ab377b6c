"""Checks of mask fields; what stands in a mask may come from a file or a command line."""

from __future__ import annotations

from typing import Any

from ..errors import MaskError, explain

#: Positions plus fields must stay within int32, which kernels count in.
LIMIT = 1 << 30


def whole(name: str, value: Any, least: int = 0, most: int = LIMIT) -> None:
    """Raise MaskError unless the value is an int from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise MaskError(explain(f"{name} must be a whole number", got=repr(value)[:80], accepted=f"{least} to {most}"))


def wholes(name: str, values: Any, least: int = 0, most: int = LIMIT) -> None:
    """Raise MaskError unless the value is a tuple of such ints."""
    if not isinstance(values, tuple):
        raise MaskError(explain(f"{name} must be a list of whole numbers", got=repr(values)[:80]))
    for n, value in enumerate(values):
        whole(f"{name}[{n}]", value, least, most)
