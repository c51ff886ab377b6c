"""What a tune says while it runs, on stderr: a line that moves on a terminal, a line a batch elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any


class Progress:
    """Trials done, best and default time, rate and time left."""

    def __init__(self, total: int, seconds: float | None, quiet: bool = False) -> None:
        self.total, self.seconds, self.quiet = total, seconds, quiet
        self.done, self.best = 0, float("inf")
        self.default: float | None = None
        self._first, self._counted = 0.0, 0
        self._last_line = 0.0
        self._status: Any = None

    def __enter__(self) -> Progress:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("starting workers", refresh_per_second=2)  # on a core that kernels are timed on
            self._status.start()
        elif not self.quiet:
            print("starting workers", file=sys.stderr, flush=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._status is not None:
            self._status.stop()
        if not self.quiet and self.done:
            print(self.text(), file=sys.stderr, flush=True)

    def resumed(self, done: int, best: float) -> None:
        """Count what the journal already had."""
        self.done, self.best = done, best

    def note(self, seconds: float | None, is_default: bool = False) -> None:
        """One more trial."""
        now = time.monotonic()
        self._first = self._first or now
        self.done, self._counted = self.done + 1, self._counted + 1
        if seconds is not None:
            self.best = min(self.best, seconds)
            self.default = seconds if is_default else self.default
        if self._status is not None:
            self._status.update(self.text())
        elif not self.quiet and now - self._last_line > 5.0:
            self._last_line = now
            print(self.text(), file=sys.stderr, flush=True)

    def text(self) -> str:
        """The line."""
        best = f"best {self.best * 1e3:.4g} ms" if self.best < float("inf") else "no kernel yet"
        default = f", default {self.default * 1e3:.4g} ms" if self.default is not None else ""
        spent = time.monotonic() - self._first if self._counted > 1 else 0.0
        rate = (self._counted - 1) / spent if spent else 0.0
        left = (self.total - self.done) / rate if rate else None
        eta = f", {left:.0f} s left" if left is not None and self.done < self.total else ""
        return f"{self.done}/{self.total} trials, {best}{default}" + (f", {rate:.1f} trials/s{eta}" if rate else "")
