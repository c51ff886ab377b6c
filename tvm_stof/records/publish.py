"""Schedules: the best record of every problem, in files that the same journals always make byte for byte."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import RecordError, StorageError, explain
from .journal import Journal, journals
from .model import Trial, dump_line
from .select import best_of_each

log = logging.getLogger(__name__)


def publish(logs: Sequence[Path], schedules: Path) -> list[Path]:
    """Write schedules/<device>/<kind>.jsonl from journals (files or folders), over what was published before.

    A problem that these journals do not hold keeps its published record. Each line is self-contained: its environment stands in it.

    Broken lines of a journal, and trials whose environment is not in it, are named in the log and left out; a published file with a broken
    line is left as it is (RecordError).

    Returns
    -------
    The files of the kinds concerned, whether or not their bytes changed.
    """
    groups: dict[tuple[str, str], list[Trial]] = {}
    for path in journals(list(logs)):
        found = Journal(path).read()
        for broken in found.broken:
            log.warning("%s:%d left out: %s", path, broken.line, broken.reason)
        for trial, line in zip(found.trials, found.lines):
            data = trial.environment_data or found.environments.get(trial.environment)
            if data is None:
                log.warning("%s:%d left out: its environment %s is not in the file", path, line, trial.environment[:12])
                continue
            groups.setdefault((trial.device, trial.kind), []).append(replace(trial, environment_data=data))
    written = []
    for (device, kind), trials in sorted(groups.items()):
        path = schedules / device / f"{kind}.jsonl"
        chosen = {at[0]: t for at, t in best_of_each(trials).items()}
        if not chosen:
            continue
        merged = {**_published(path), **chosen}
        replace_file(path, b"".join(dump_line(merged[key].to_data()) for key in sorted(merged)))
        written.append(path)
    return written


def _published(path: Path) -> dict[str, Trial]:
    if not path.exists():
        return {}
    found = Journal(path).read()
    for broken in found.broken:
        way_out = "Mend or delete that line, then publish again"
        raise RecordError(explain(f"{path}:{broken.line} is broken and would be lost", got=broken.reason, way_out=way_out))
    return {t.key: t for t in found.trials}


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
        got = error.strerror or error
        raise StorageError(explain(f"{path} cannot be written", got=got, accepted="a folder you may write to")) from error
