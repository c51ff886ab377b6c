"""Schedules: the best record of every problem, in files that the same journals always make byte for byte."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import StorageError, explain
from .journal import Journal, journals
from .model import Trial, dump_line
from .select import best_of_each


def publish(logs: Sequence[Path], schedules: Path) -> list[Path]:
    """Write schedules/<device>/<kind>.jsonl from journals (files or folders), over what was published before.

    A problem that these journals do not hold keeps its published record. Each line is self-contained: its environment stands in it.

    Returns
    -------
    The files of the kinds concerned, whether or not their bytes changed.
    """
    groups: dict[tuple[str, str], list[Trial]] = {}
    for path in journals(list(logs)):
        found = Journal(path).read()
        for trial in found.trials:
            data = trial.environment_data or found.environments.get(trial.environment)
            groups.setdefault((trial.device, trial.kind), []).append(replace(trial, environment_data=data))
    written = []
    for (device, kind), trials in sorted(groups.items()):
        path = schedules / device / f"{kind}.jsonl"
        chosen = {at[0]: t for at, t in best_of_each(trials).items()}
        if not chosen:
            continue
        before = {t.key: t for t in Journal(path).read().trials} if path.exists() else {}
        merged = {**before, **chosen}
        replace_file(path, b"".join(dump_line(merged[key].to_data()) for key in sorted(merged)))
        written.append(path)
    return written


def replace_file(path: Path, content: bytes) -> None:
    """Put a whole file in place at once; StorageError when that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageError(explain(f"{path} cannot be written", got=error.strerror or error, accepted="a folder you may write to")) from error
