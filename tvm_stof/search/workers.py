"""The parent's side of the workers: start, ask, time out, kill, start again. Imports no TVM, so workers load it while their parent does."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from typing import Any

from ..errors import StofError, explain
from ..targets import Device
from .task import Job, Reply, Sampling, Task

#: TVM's threads spin for work after a kernel, by default for some 0.2 s, on a core that the next worker's kernel needs; with this count
#: they sleep after SETTLE seconds.
_SPIN = {"TVM_THREAD_POOL_SPIN_COUNT": "10000"}
SETTLE = 0.01
_BOOT = """
import json, sys
fd, path, preload = json.loads(sys.argv[1])
sys.path[:] = path
from tvm_stof.search.zygote import main
main(fd, preload)
"""


class WorkerError(StofError, RuntimeError):
    """Workers that cannot be started at all, or cannot evaluate the oracle."""


@dataclass(frozen=True)
class TimeOuts:
    """Seconds after which a worker is killed."""

    start: float = 120.0
    prepare: float = 600.0
    build: float = 20.0
    run: float = 10.0


def time_outs_of(device: Device) -> TimeOuts:
    """The CUDA compiler takes its seconds, and so does a process at its first look at a GPU."""
    return TimeOuts() if device.kind == "cpu" else TimeOuts(build=90.0, run=20.0)


class Zygote:
    """Client of the process that forks workers (see ``zygote``)."""

    def __init__(self, threads: int, log: Path, preload: bool) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Unpinned: TVM would bind its threads to fixed cores, and two of them meet on one core for as long as a kernel is timed.
        environment = {**os.environ, "TVM_NUM_THREADS": str(threads), "TVM_BIND_THREADS": "0", **_SPIN}
        arguments = theirs.fileno(), [os.path.abspath(p) for p in sys.path], preload
        command = [sys.executable, "-c", _BOOT, json.dumps(arguments)]
        self._log = log
        with open(log, "wb") as stderr:
            self._process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr,
                                             env=environment, start_new_session=True)  # fmt: skip
        theirs.close()
        self._socket = ours

    def ask(self, timeout: float, *fds: int, **request: Any) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        self._socket.settimeout(timeout)
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], list(fds))
            reply = self._socket.recv(1 << 16)
        except OSError as error:
            reply = b""
            reason = f"{type(error).__name__} {error}"
        else:
            reason = "it ended"
        if not reply:
            what = f"the process that starts workers did not answer {request['do']!r}"
            raise WorkerError(explain(what, got=f"{reason}; {_tail(self._log)}"))
        answer: dict[str, Any] = json.loads(reply)
        return answer

    def close(self) -> None:
        """Hang up, at which it kills every worker; and make sure that it goes."""
        self._socket.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Worker:
    """One killable process and the job it has."""

    def __init__(self, zygote: Zygote, log: Path, time_outs: TimeOuts) -> None:
        self._zygote, self._log, self._time_outs = zygote, log, time_outs
        self._pid = 0
        self.connection: Any = None
        self._until = 0.0
        self._operation = ""

    def ask(self, operation: str, *arguments: Any, timeout: float) -> None:
        """Send a request; ``answer`` must be called before the next one."""
        if self.connection is None:
            ours, theirs = socket.socketpair()
            with theirs:
                self._pid = self._zygote.ask(self._time_outs.start, theirs.fileno(), do="fork", log=str(self._log))["pid"]
            self.connection = connection.Connection(ours.detach())
        self._operation, self._until = operation, time.monotonic() + timeout
        with contextlib.suppress(OSError):  # a worker that is gone shows when its answer is read
            self.connection.send((operation, arguments))

    @property
    def left(self) -> float:
        """Seconds until the request times out."""
        return self._until - time.monotonic()

    def answer(self) -> Reply:
        """The reply to the last request; a worker that died or hangs is replaced, and that is the reply."""
        doing = {"build": "building", "run": "running"}.get(self._operation, self._operation)
        try:
            if self.connection.poll(max(0.0, self.left)):
                reply: Reply = self.connection.recv()
                return reply
        except (EOFError, OSError, pickle.UnpicklingError):
            how = _ending(self.kill(patience=2.0))
            outcome = "build" if self._operation == "build" else "runtime"
            return Reply(outcome, f"worker died while {doing}: {how}; {_tail(self._log)}"[:500])
        self.kill()
        return Reply("timeout", f"killed while {doing}: over its time limit")

    def kill(self, patience: float = 0.0) -> int:
        """End the process; the next request starts a new one."""
        if self.connection is None:
            return 0
        self.connection.close()
        self.connection = None
        status: int = self._zygote.ask(patience + 30.0, do="kill", pid=self._pid, patience=patience)["status"]
        return status


class Farm:
    """A few workers for one task: builds run side by side, runs one at a time while nothing is built."""

    def __init__(self, workers: int, threads: int, scratch: Path, time_outs: TimeOuts = TimeOuts(), preload: bool = True) -> None:
        self.time_outs, self._scratch = time_outs, scratch
        self._zygote = Zygote(threads, scratch / "zygote.log", preload)
        self._workers = [Worker(self._zygote, scratch / f"worker{n}.log", time_outs) for n in range(workers)]
        self._home: dict[int, Worker] = {}
        self._last: tuple[Worker | None, float] = None, 0.0
        self._ready = False

    @property
    def workers(self) -> int:
        """How many build side by side."""
        return len(self._workers)

    def start(self, task: Task) -> None:
        """Tell the workers their task; the first of them begins to evaluate the oracle."""
        path = self._scratch / "task.pickle"
        path.write_bytes(pickle.dumps(task))
        self._zygote.ask(self.time_outs.start, do="load", path=str(path))
        self._workers[0].ask("prepare", timeout=self.time_outs.prepare)

    def ready(self) -> None:
        """Wait until the oracle's values are there."""
        if not self._ready:
            reply = self._workers[0].answer()
            if not reply.ok:
                raise WorkerError(explain("the float64 oracle could not be evaluated", got=reply.message))
            self._ready = True

    def build(self, jobs: Sequence[Job], stop: Callable[[], bool]) -> dict[int, Reply]:
        """Build side by side; jobs not yet begun when ``stop`` says so are left out of the answer."""
        self.ready()
        waiting, busy, replies = list(reversed(jobs)), dict[Any, tuple[Worker, Job]](), dict[int, Reply]()
        idle = list(self._workers)
        while busy or (waiting and not stop()):
            while waiting and idle and not stop():
                worker, job = idle.pop(), waiting.pop()
                worker.ask("build", job, timeout=self.time_outs.build)
                busy[worker.connection] = worker, job
            patience = max(0.0, min((w.left for w, _ in busy.values()), default=0.0))
            heard = set(connection.wait(list(busy), patience))
            for channel, (worker, job) in list(busy.items()):
                if channel in heard or worker.left <= 0:
                    del busy[channel]
                    replies[job.id] = worker.answer()
                    self._home[job.id] = worker
                    idle.append(worker)
        return replies

    def run(self, job: Job, sampling: Sampling) -> Reply:
        """Check and time one candidate in the worker that built it."""
        self.ready()
        worker = self._home.pop(job.id, self._workers[0])
        last, ended = self._last
        if worker is not last:
            time.sleep(max(0.0, ended + SETTLE - time.monotonic()))
        restarted = self.time_outs.build if worker.connection is None else 0.0
        worker.ask("run", job, sampling, timeout=self.time_outs.run + restarted)
        reply = worker.answer()
        self._last = worker, time.monotonic()
        return reply

    def close(self) -> None:
        """End all workers."""
        self._zygote.close()


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit status {os.waitstatus_to_exitcode(status)}"


def _tail(log: Path) -> str:
    with contextlib.suppress(OSError):
        return log.read_bytes()[-300:].decode(errors="replace").strip()
    return ""
