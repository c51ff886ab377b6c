"""A process that loads TVM once and forks the workers from itself.

A worker so starts in milliseconds instead of seconds, also after it has crashed. For a GPU, each worker loads TVM itself: its libraries
start the CUDA driver, which does not survive a fork. The process is started before its parent imports TVM, lives in a session of its own
(a terminal's Ctrl-C does not reach it), runs no kernel and so has no threads that a fork would lose. When its parent is gone, however it
went, it kills all workers and ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pickle
import signal
import socket
import time
from typing import Any

_PR_SET_PDEATHSIG = 1


def main(fd: int, preload: bool) -> None:
    """Serve requests on a SOCK_SEQPACKET socket, one JSON object each: load a task, fork a worker on a descriptor sent along, kill one."""
    from . import worker

    if preload:
        from . import measure  # noqa: F401  (TVM, while the parent loads its own)
    parent = socket.socket(fileno=fd)
    children: set[int] = set()
    task: Any = None
    while True:
        try:
            message, fds, _, _ = socket.recv_fds(parent, 1 << 16, 1)
        except OSError:
            message, fds = b"", []
        if not message:
            break
        request = json.loads(message)
        reply: dict[str, Any] = {}
        if request["do"] == "load":
            with open(request["path"], "rb") as file:
                task = pickle.load(file)
            if preload:
                worker.warm(task)
        elif request["do"] == "fork":
            reply["pid"] = _fork(parent, fds[0], lambda end, task=task, log=request["log"]: worker.serve(end, task, log))
            children.add(reply["pid"])
        elif request["do"] == "kill":
            reply["status"] = _kill(request["pid"], request["patience"])
            children.discard(request["pid"])
        parent.send(json.dumps(reply).encode())
    for pid in children:
        _kill(pid, 0.0)
    os._exit(0)


def _fork(parent: socket.socket, fd: int, serve: Any) -> int:
    pid = os.fork()
    if pid:
        os.close(fd)
        return pid
    try:
        os.setsid()
        parent.close()
        _die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        serve(fd)
    finally:
        os._exit(1)


def _die_with_parent() -> None:
    """Let the kernel end this process should the zygote itself be killed."""
    zygote = os.getppid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != zygote:
        os._exit(1)


def _kill(pid: int, patience: float) -> int:
    """Kill a worker and what it started, once it had ``patience`` seconds to end by itself; its wait status, 0 if it had to be killed."""
    until = time.monotonic() + patience
    while True:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        if ended or time.monotonic() >= until:
            break
        time.sleep(0.01)
    for send in (os.killpg, os.kill):  # before it is reaped: until then its number belongs to nobody else
        with contextlib.suppress(ProcessLookupError, PermissionError):
            send(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return status if ended else 0
