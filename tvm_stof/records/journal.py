"""Append-only JSON Lines: a line once appended survives whatever happens next, and one bad line never hides the good ones."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import canonical
from ..errors import RecordError, StorageError, explain
from .model import MAX_LINE, SCHEMA, Trial, dump_line, environment_of, parse_line

#: seconds to wait for another process's append; one takes milliseconds, so a longer wait means that its holder is stopped
LOCK_PATIENCE = 60.0


@dataclass(frozen=True)
class Broken:
    """A line that could not be used: where it stands and why."""

    line: int
    reason: str


@dataclass
class ReadResult:
    """What a journal holds.

    Attributes
    ----------
    trials : in order; ``lines`` has the line number of each (from 1).
    environments : data by key.
    broken : lines that were skipped. A torn last line (its writer was killed) is dropped and not counted here.
    torn : whether there was one.
    """

    trials: list[Trial] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    environments: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)
    torn: bool = False


class Journal:
    """One file of trials and environments.

    Requirements it meets, whoever else writes: appends of several processes never mix (an exclusive lock on the file, one write of the
    whole line); when ``append`` returns the line is on disk (fsync); a half-written last line of a killed writer is closed off before the
    next line is added.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, data: Mapping[str, Any]) -> None:
        """Add one line; StorageError when the file cannot be written, RecordError when nobody could read the line."""
        line = _whole(data)
        with self._locked() as fd:
            self._write(fd, line)

    def append_trial(self, trial: Trial) -> None:
        """Add a trial."""
        self.append(trial.to_data())

    def append_environment(self, data: Mapping[str, Any]) -> str:
        """Add an environment unless the file has it; its key."""
        key = canonical.key(dict(data))
        line = _whole({"type": "environment", "schema": SCHEMA, "key": key, "data": dict(data)})
        with self._locked() as fd:
            if key not in self.read(key).environments:
                self._write(fd, line)
        return key

    def check_writable(self) -> None:
        """StorageError unless lines can be added; leaves an empty file where there was none."""
        with self._locked():
            pass

    def read(self, key: str | None = None) -> ReadResult:
        """Everything that can be read, or only lines that mention ``key``; StorageError when the file as a whole cannot be read."""
        found = ReadResult()
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise self._failed("read", error) from error
        lines = content.split(b"\n")
        wanted = (key or "").encode()
        for number, line in enumerate(lines, 1):
            if not line or wanted not in line:
                continue
            try:
                self._take(parse_line(line), number, found)
            except RecordError as error:
                if number == len(lines):
                    found.torn = True
                else:
                    found.broken.append(Broken(number, str(error)))
        return found

    def _take(self, data: Any, number: int, found: ReadResult) -> None:
        if isinstance(data, Mapping) and data.get("type") == "environment":
            key, environment = environment_of(data)
            found.environments[key] = environment
            return
        found.trials.append(Trial.from_data(data))
        found.lines.append(number)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """The file's descriptor under an exclusive lock; every OSError inside becomes a StorageError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                _lock(fd)
                yield fd
            finally:
                os.close(fd)
        except StorageError:
            raise
        except OSError as error:
            raise self._failed("written", error) from error

    def _write(self, fd: int, line: bytes) -> None:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            line = b"\n" + line
        written = os.write(fd, line)
        if written != len(line):
            os.ftruncate(fd, size)
            raise OSError(errno.ENOSPC, "only part of a line could be written")
        os.fsync(fd)
        if not size:
            _sync_folder(self.path.parent)

    def _failed(self, what: str, error: OSError) -> StorageError:
        reason = error.strerror or str(error)
        return StorageError(explain(f"journal {self.path} cannot be {what}", got=reason, accepted="a file in a folder you may write to",
                                    way_out="Name another place with --logs"))  # fmt: skip


def _whole(data: Mapping[str, Any]) -> bytes:
    line = dump_line(data)
    if len(line) > MAX_LINE:
        raise RecordError(explain("a line is too long", got=f"{len(line)} bytes", accepted=f"at most {MAX_LINE}"))
    return line


def _lock(fd: int) -> None:
    deadline, pause = time.monotonic() + LOCK_PATIENCE, 0.001
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, f"another process has held its lock for {LOCK_PATIENCE:.0f} seconds") from None
            time.sleep(pause)
            pause = min(2 * pause, 0.02)


def _sync_folder(folder: Path) -> None:
    """Make a new file's name as durable as its content."""
    with contextlib.suppress(OSError):  # some network file systems refuse it; the line itself is on disk
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def journals(paths: list[Path]) -> list[Path]:
    """The ``.jsonl`` files among paths and below folders, sorted; StorageError for a path that is not there."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.rglob("*.jsonl") if p.is_file())
        elif path.exists():
            found.append(path)
        else:
            raise StorageError(explain("no such file or folder", got=str(path), accepted="a .jsonl file, or a folder with such files"))
    return found
