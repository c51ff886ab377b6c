"""Do records still give what they gave? Four levels, each as far as this machine can go.

0  schema and canonical form: every field is of its shape, the key is the problem's, the line is canonical JSON
1  decisions apply: a kernel with these decisions exists for the problem; a stored trace applies to a freshly built definition
2  source digest: the generated kernel's text is the one that was measured, byte for byte
3  numerics and time: it runs here within its error budget; only on the device the record names
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import canonical, records, targets
from .errors import MaskError, MissingDependency, RecordError, ReplayMismatch, StofError, UnsupportedTarget, explain
from .problems import Problem
from .records.model import Trial, dump_line

if TYPE_CHECKING:
    from .codegen import Kernel
    from .reference import Expected

LEVELS = (0, 1, 2, 3)
#: a record on the same device may be this much slower than it was before a note is made of it; time never decides a verdict
SLOWER = 1.5
#: of the inputs that level 3 checks with: not the seed of the tune
SEED = 1 << 20


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
    """Replay every record of files or folders; failed trials only have a form to check.

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
    try:
        for path in records.journals([Path(p) for p in paths]):
            verdicts += _file(path, highest, device)
    finally:
        _expected.cache_clear()
    return verdicts


def _file(path: Path, highest: int, device: str | None) -> list[Verdict]:
    content = records.Journal(path).read()
    texts = path.read_bytes().split(b"\n")
    verdicts = [Verdict(str(path), b.line, "", 0, "broken", b.reason) for b in content.broken]
    if content.torn:
        verdicts.append(Verdict(str(path), len(texts), "", 0, "skipped", "a torn last line: its writer was killed"))
    for trial, line in zip(content.trials, content.lines):
        if device is None or trial.device == device:
            record = _Record(trial, texts[line - 1], trial.environment_data or content.environments.get(trial.environment))
            verdicts.append(Verdict(str(path), line, trial.key, *record.run(highest)))
    return sorted(verdicts, key=lambda v: v.line)


class _Record:
    """One record on its way through the levels. A level that fails raises; what it raises decides the status."""

    def __init__(self, trial: Trial, text: bytes, environment: Mapping[str, Any] | None) -> None:
        self.trial, self.text, self.environment = trial, text, environment
        self.note = ""

    def run(self, highest: int) -> tuple[int, str, str]:
        """(highest level run, status, message)"""
        done = 0
        try:
            for done in range(highest + 1):
                if done == 1 and self.trial.outcome != "ok":
                    return 0, "skipped", f"outcome {self.trial.outcome!r}: there is no kernel to replay"
                if done == 3 and self.trial.device not in targets.here():
                    here = " and ".join(targets.here())
                    return 2, "ok", f"level 3 not run: recorded on {self.trial.device}, this is {here}"
                (self.form, self.decisions, self.source, self.numbers)[done]()
        except ReplayMismatch as error:
            return done, "different", str(error)
        except (UnsupportedTarget, MissingDependency) as error:
            return max(0, done - 1), "skipped", f"level {done} not run: {error}"
        except MaskError as error:
            if '"content":null' in canonical.dumps(dict(self.trial.problem)):  # an array too large to stand in a record
                return max(0, done - 1), "skipped", f"level {done} not run: {error}"
            return done, "broken", str(error)
        except StofError as error:
            return done, "broken", str(error)
        except Exception as error:  # TVM raises whatever it likes on a record that does not fit it
            lines = [line for line in str(error).splitlines() if line.strip()] or [""]
            return done, "broken", f"{type(error).__name__}: {lines[0].strip()}"[:300]
        return done, "ok", self.note

    def form(self) -> None:
        """Level 0."""
        self.problem: Problem = self.trial.rebuild()
        if self.environment is None:
            raise RecordError(explain("its environment is not in the file", got=self.trial.environment))
        if dump_line(self.trial.to_data()) != self.text + b"\n":
            raise ReplayMismatch("the line is not in canonical form: sorted names, no blanks, shortest numbers")

    def decisions(self) -> None:
        """Level 1."""
        from . import rules

        data = (self.environment or {}).get("device")
        self.device = targets.device(self.trial.device) if data is None else targets.Device.from_data(data)
        if self.device.name != self.trial.device:
            raise RecordError(explain("its environment is another device's", got=self.device.name, accepted=self.trial.device))
        reason = rules.legal(self.problem, dict(self.trial.decisions), self.device)
        if reason is not None:
            raise RecordError(explain("its decisions do not apply", got=reason))
        if self.trial.trace is not None:
            from .records import bridge

            bridge.replay(self.problem, self.trial.decisions, self.trial.trace)

    def source(self) -> None:
        """Level 2."""
        from . import build

        trial = self.trial
        self.kernel: Kernel = build.kernel_of(self.problem, trial.decisions, trial.trace, self.device)
        digest = build.source_digest(self.kernel)
        if trial.source_digest is None:
            self.note = "it has no source digest to compare with"
        elif digest != trial.source_digest:
            what = "the generated source is another one: the code generator or TVM has changed"
            raise ReplayMismatch(explain(what, got=digest[:16], accepted=trial.source_digest[:16]))

    def numbers(self) -> None:
        """Level 3."""
        from . import build
        from .search.clock import clock
        from .search.measure import rehearse
        from .search.task import Sampling

        arrays, expected = _expected(canonical.dumps(self.problem.to_data()))
        here = targets.device(self.trial.device)
        timer = clock(here)
        given = [timer.tensor(arrays[s.name]) for s in self.problem.inputs()]
        found, taken = rehearse(build.lower(self.kernel.module, here).mod, self.kernel, expected, given, timer, Sampling())
        if not found.ok:
            raise ReplayMismatch(found.message)
        recorded = self.trial.seconds_median
        if recorded and min(taken) > SLOWER * recorded:
            self.note = f"{min(taken) / recorded:.1f} times its recorded time here"


@functools.lru_cache(maxsize=1)
def _expected(problem_text: str) -> tuple[dict[str, Any], Expected]:
    """Inputs and oracle of a problem; a journal has many trials of the same one in a row."""
    import json

    from . import reference, testing

    problem: Problem = canonical.from_data(json.loads(problem_text), Problem)  # type: ignore[type-abstract]
    arrays = testing.inputs(problem, SEED)
    return arrays, reference.expect(problem, arrays)


class _Module(types.ModuleType):
    """``tvm_stof.replay`` is the function to users and this module to Python's imports, which may set either name first."""

    def __call__(self, *args: Any, **options: Any) -> list[Verdict]:
        return replay(*args, **options)


sys.modules[__name__].__class__ = _Module

__all__ = ["LEVELS", "Verdict", "replay"]
