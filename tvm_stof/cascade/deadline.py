"""A limit on how long symbolic work may take, in any thread."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any


class OutOfTime(Exception):
    """Raised inside the limited block."""


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise OutOfTime from the next Python call after ``seconds``. A profile hook does it: signals work in the main thread only."""
    end = time.monotonic() + seconds
    before = sys.getprofile()
    calls = 0

    def hook(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += 1
        if calls % 512 == 0 and time.monotonic() > end:
            sys.setprofile(before)
            raise OutOfTime

    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(before)
