"""Do records still give what they gave? Four levels, each as far as this machine can go.

0  schema and canonical form: every field is of its shape, the key is the problem's, the line is canonical JSON
1  decisions apply: a kernel with these decisions exists for the problem; a stored trace applies to a freshly built definition
2  source digest: the generated kernel's text is the one that was measured, byte for byte
3  numerics and time: it runs here within its error budget; only on the device the record names
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import records, targets
from .errors import RecordError, StofError
from .records.model import Trial, dump_line

LEVELS = (0, 1, 2, 3)
#: a record on the same device may be this much slower than it was before a note is made of it; time never decides a verdict
SLOWER = 1.5


@dataclass(frozen=True)
class Verdict:
    """What replaying one record gave.

    Attributes
    ----------
    path, line : where the record stands.
    key : of its problem ("" when not even that could be read).
    level : highest level that was run.
    status : "ok", "different" (gives something else than it did), "broken" (breaks the schema or does not apply), "skipped".
    message : reason, or a note; which levels were not run, and why.
    """

    path: str
    line: int
    key: str
    level: int
    status: str
    message: str = ""

    def to_data(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)


def replay(paths: Sequence[str | Path], level: int | None = None, device: str | None = None) -> list[Verdict]:
    """Replay every ok record of files or folders.

    Parameters
    ----------
    level : highest level to run; all that this machine allows by default.
    device : only records of this device.

    Examples
    --------
    >>> [v.status for v in replay(["schedules"], level=1)]  # doctest: +SKIP
    ['ok', 'ok']
    """
    highest = max(LEVELS) if level is None else level
    verdicts: list[Verdict] = []
    for path in records.journals([Path(p) for p in paths]):
        content = records.Journal(path).read()
        lines = path.read_bytes().split(b"\n")
        verdicts += [Verdict(str(path), b.line, "", 0, "broken", b.reason) for b in content.broken]
        for trial, number in zip(content.trials, content.lines):
            if trial.outcome == "ok" and (device is None or trial.device == device):
                verdicts.append(_one(str(path), number, trial, lines[number - 1], content.environments, highest))
    return verdicts


def _one(path: str, line: int, trial: Trial, text: bytes, environments: Any, highest: int) -> Verdict:
    done = 0
    try:
        for done, note in _levels(trial, text, environments, highest):
            if note is not None:
                return Verdict(path, line, trial.key, done, *note)
    except RecordError as error:
        return Verdict(path, line, trial.key, done, "broken", str(error))
    except StofError as error:
        return Verdict(path, line, trial.key, done, "skipped", str(error))
    return Verdict(path, line, trial.key, done, "ok")


Note = "tuple[str, str] | None"


def _levels(trial: Trial, text: bytes, environments: Any, highest: int) -> Iterator[tuple[int, Note]]:
    """(level, final (status, message) or None to go on)"""
    problem = trial.rebuild()
    if dump_line(trial.to_data()) != text + b"\n":
        yield 0, ("different", "the line is not in canonical form")
    yield 0, None
    if highest < 1:
        return
    environment = trial.environment_data or environments.get(trial.environment)
    if environment is None:
        yield 0, ("broken", f"its environment {trial.environment[:12]} is not in the file")
    here = targets.current_device()
    made_for = targets.Device.from_data(environment["device"]) if environment and "device" in environment else targets.device(trial.device)
    from . import rules

    reason = rules.legal(problem, dict(trial.decisions), made_for)
    if reason is not None:
        yield 1, ("broken", f"its decisions do not apply: {reason}")
    if trial.decisions.get("family") == "unfused":
        from .records import bridge

        bridge.replay(problem, trial.decisions, trial.trace)
    yield 1, None
    if highest < 2:
        return
    from . import build

    kernel = build.kernel_of(problem, trial.decisions, trial.trace, made_for)
    digest = build.source_digest(kernel)
    if trial.source_digest is not None and digest != trial.source_digest:
        yield 2, ("different", f"generated source has digest {digest[:12]}, the record {trial.source_digest[:12]}: the code generator changed")
    yield 2, None
    if highest < 3:
        return
    if here.name != trial.device:
        yield 2, ("ok", f"level 3 not run: recorded on {trial.device}, this is {here.name}")
        return
    yield 3, _run(problem, kernel, trial, here)


def _run(problem: Any, kernel: Any, trial: Trial, device: targets.Device) -> Note:
    import time

    import numpy as np

    from . import build, reference
    from .runtime import TunedModule
    from .testing import inputs

    arrays = inputs(problem, seed=trial.trial + 1)
    module = TunedModule(problem, build.compile(kernel, device), device, trial, "tuned", dict(trial.decisions))
    out = [np.full(s.shape, np.nan, s.dtype) for s in problem.outputs()]
    given = [arrays[s.name] for s in problem.inputs()]
    module(*given, out=tuple(out))
    found = reference.compare(problem, arrays, {s.name: o for s, o in zip(problem.outputs(), out)})
    if not found.ok:
        return "different", found.message
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        module(*given, out=tuple(out))
        taken.append(time.perf_counter() - start)
    median = trial.seconds_median or 0.0
    slower = min(taken) / median if median else 1.0
    return ("ok", f"{slower:.1f} times its recorded time here") if slower > SLOWER else None


__all__ = ["LEVELS", "Verdict", "replay"]
