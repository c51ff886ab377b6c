"""The worker's side: answers its parent's requests, and turns every exception into an outcome."""

from __future__ import annotations

import os
import sys
import traceback
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from .task import Reply, Task

if TYPE_CHECKING:
    from .measure import Bench

EXPECTED = "expected.npz"


def warm(task: Task) -> None:
    """See ``measure.warm``; what it raises is not this process's business."""
    try:
        from . import measure

        measure.warm(task)
    except Exception:
        traceback.print_exc(file=sys.stderr)


def serve(fd: int, task: Task, log: str) -> None:
    """Answer (operation, arguments) messages until the parent hangs up; stray output goes to the ``log`` file."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(out, stream)
    connection: Connection[Any, Any] = Connection(fd)
    path = os.path.join(os.path.dirname(log), EXPECTED)
    bench: Bench | None = None
    while True:
        try:
            operation, arguments = connection.recv()
        except (EOFError, OSError):
            os._exit(0)
        try:
            from . import measure

            if operation == "prepare":
                reply = Reply("ok")
                measure.prepare(task, path)
            else:
                bench = bench or measure.Bench(task, path)
                reply = getattr(bench, operation)(*arguments)
        except Exception as error:
            reply = Reply("build" if operation == "build" else "runtime", _text(error))
        connection.send(reply)


def _text(error: Exception) -> str:
    """Type and message without TVM's C++ backtrace."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    useful = [line.strip() for line in lines if not line.lstrip().startswith(("File", "at ", "[bt]", "Stack trace"))]
    return f"{type(error).__name__}: {' '.join(useful)}"[:500]
