"""When a tune ends: trials, seconds, or the user's Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import dataclass, field
from types import FrameType
from typing import Any


class Interrupt:
    """Count SIGINT while a tune runs, instead of breaking off in the middle of a trial.

    A plain list on purpose: two signals close together deadlock in ``threading.Event.set``. Outside the main thread Python allows no
    handler and nothing is counted.
    """

    def __init__(self) -> None:
        self._signals: list[int] = []
        self._before: Any = None

    @property
    def count(self) -> int:
        return len(self._signals)

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._signals.append(number)


@dataclass
class Budget:
    """What a tune may spend.

    Attributes
    ----------
    trials : candidates, those in the journal included.
    seconds : from ``started`` on, the final timing included; None for no limit.
    """

    trials: int
    seconds: float | None = None
    started: float = field(default_factory=time.monotonic)
    interrupt: Interrupt = field(default_factory=Interrupt)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def reserve(self) -> float:
        """Seconds kept back for the final timing."""
        return 0.0 if self.seconds is None else min(3.0, 0.15 * self.seconds)

    def spent(self, trials: int) -> str | None:
        """Why to stop after so many trials; None to go on."""
        if self.interrupt.count:
            return "interrupted"
        if trials >= self.trials:
            return "trials"
        if self.seconds is not None and self.elapsed >= self.seconds - self.reserve:
            return "seconds"
        return None
