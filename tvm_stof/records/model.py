"""What a line of a journal says. Schema 1; ``docs/records.md`` has it for people, ``tests/assets`` a file of each version."""

from __future__ import annotations

import json
import math
import re
import reprlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from .. import canonical
from ..errors import CanonicalError, RecordError, StofError, explain
from ..problems import Problem

SCHEMA = 1
OUTCOMES = ("ok", "invalid", "build", "timeout", "wrong", "runtime")
#: longest line that is read; a record is about 2 KB, a stored mask at most 64 KB
MAX_LINE = 1 << 20
#: a problem may nest as deeply as canonical data may, and stands a little below the line's top
MAX_DEPTH = canonical.MAX_DEPTH + 8
_HEX = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_DEVICE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True)
class Trial:
    """One measured candidate.

    Attributes
    ----------
    problem : canonical data of the problem; ``key`` its SHA-256.
    device : slug of the device it ran on.
    decisions : flat, with "family".
    trace : MetaSchedule's TuningRecord as JSON (what replays an unfused candidate), or None.
    outcome : one of OUTCOMES; ``message`` says more of all but "ok".
    seconds : time of one call, for each repeat; empty unless "ok".
    error : {"max_abs", "budget"} of the check, or None.
    default_seconds : the untuned default's median in the same run, or None when this is it (or it failed).
    floor_seconds : time no kernel can beat, by the device's rates.
    source_digest : SHA-256 of the generated source, or None.
    environment : key of the environment line.
    environment_data : that environment itself, in published records only.
    """

    problem: Mapping[str, Any]
    key: str
    device: str
    decisions: Mapping[str, int | str]
    trace: list[Any] | None
    outcome: str
    message: str
    seconds: tuple[float, ...]
    error: Mapping[str, Any] | None
    default_seconds: float | None
    floor_seconds: float | None
    source_digest: str | None
    environment: str
    seed: int
    trial: int
    time: str
    tool: str
    environment_data: Mapping[str, Any] | None = None

    @property
    def kind(self) -> str:
        """The problem's kind."""
        return str(self.problem["kind"])

    @property
    def seconds_median(self) -> float | None:
        """Median time of a call; None for a failed candidate."""
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes two trials the same candidate: problem, device, and decisions (or the instructions of the trace)."""
        chosen = canonical.dumps(dict(self.decisions))
        if self.decisions.get("family") == "unfused" and self.trace is not None:
            chosen = canonical.key({"trace": self.trace[0]})
        return self.key, self.device, chosen

    def rebuild(self) -> Problem:
        """The problem itself; RecordError when its data is not canonical or its key is another's."""
        try:
            problem: Problem = canonical.from_data(dict(self.problem), Problem)  # type: ignore[type-abstract]
            key = problem.key()
        except StofError as error:
            raise RecordError(explain("field 'problem' is no problem", got=str(error)[:300])) from error
        if key != self.key:
            raise RecordError(explain("field 'key' is not the problem's", got=self.key, accepted=key))
        return problem

    def to_data(self) -> dict[str, Any]:
        """Plain JSON data of the line."""
        data = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        if self.environment_data is None:
            del data["environment_data"]
        return {"type": "trial", "schema": SCHEMA, **data}

    @staticmethod
    def from_data(data: Any) -> Trial:
        """The trial of a line; RecordError names the field that breaks the schema."""
        if not isinstance(data, Mapping) or data.get("type") != "trial":
            raise RecordError(explain("not a trial", got=_shown(data), accepted='an object with "type": "trial"'))
        if not _shallow(data):
            raise RecordError(explain("a record is nested too deeply", accepted=f"at most {MAX_DEPTH} levels"))
        check_schema(data)
        given = {k: v for k, v in data.items() if k not in ("type", "schema")}
        unknown, missing = sorted(map(str, given.keys() - _CHECKS.keys())), sorted(_CHECKS.keys() - given.keys() - {"environment_data"})
        if unknown or missing:
            raise RecordError(explain("fields do not fit the schema", got=f"unknown {unknown}, missing {missing}"))
        for name, value in given.items():
            if not _CHECKS[name](value):
                raise RecordError(explain(f"field {name!r} breaks the schema", got=_shown(value)))
        trial = Trial(**{**given, "seconds": tuple(given["seconds"])})
        check_key("key", trial.key, trial.problem)
        if trial.environment_data is not None:
            check_key("environment", trial.environment, trial.environment_data)
        if (trial.outcome == "ok") != bool(trial.seconds):
            got = f"{trial.outcome}, {len(trial.seconds)} times"
            raise RecordError(explain("field 'seconds' must have times exactly when the outcome is ok", got=got))
        return trial


def parse_line(line: bytes) -> Any:
    """The data of one line; RecordError when it is too long, not UTF-8 or not JSON, has a name twice, or is nested too deeply."""
    if len(line) > MAX_LINE:
        raise RecordError(explain("a line is too long", got=f"{len(line)} bytes", accepted=f"at most {MAX_LINE}"))
    try:
        data = json.loads(line.decode("utf-8"), parse_constant=_finite, parse_float=_finite, object_pairs_hook=_once)
    except (RecursionError, ValueError) as error:
        raise RecordError(explain("a line is not JSON", got=str(error)[:120])) from error
    if not _shallow(data):
        raise RecordError(explain("a line is nested too deeply", accepted=f"at most {MAX_DEPTH} levels"))
    return data


def environment_of(data: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Key and data of an environment line; RecordError names what breaks the schema."""
    check_schema(data)
    if set(data) != {"type", "schema", "key", "data"} or not isinstance(data["data"], Mapping):
        raise RecordError(explain("fields do not fit an environment", got=sorted(map(str, data)), accepted="type, schema, key, data"))
    check_key("key", data["key"], data["data"])
    return data["key"], data["data"]


def check_schema(data: Mapping[str, Any]) -> None:
    """Raise RecordError unless a line is of the version this package reads."""
    version = data.get("schema")
    if version != SCHEMA or not isinstance(version, int) or isinstance(version, bool):
        way_out = "A newer tvm_stof wrote it: upgrade" if isinstance(version, int) and version > SCHEMA else ""
        raise RecordError(explain("field 'schema' is of another version", got=_shown(version), accepted=SCHEMA, way_out=way_out))


def check_key(name: str, key: Any, data: Mapping[str, Any]) -> None:
    """Raise RecordError unless ``key`` is the SHA-256 of ``data``: a record that says it is of another problem must never be loaded."""
    try:
        wanted = canonical.key(dict(data))
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(explain(f"field {name!r} stands for data that is not canonical", got=str(error)[:120])) from error
    if key != wanted:
        raise RecordError(explain(f"field {name!r} is not the digest of its data", got=str(key)[:64], accepted=wanted))


def dump_line(data: Mapping[str, Any]) -> bytes:
    """One canonical line with its end."""
    try:
        return canonical.dumps(data).encode("ascii") + b"\n"
    except (TypeError, ValueError) as error:
        raise CanonicalError(explain("data cannot be a line", got=error)) from error


def _shown(value: Any) -> str:
    try:
        return reprlib.repr(value)[:80]
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return f"a very large {type(value).__name__}"


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return data


def _shallow(data: Any) -> bool:
    level: list[Any] = [data]
    for _ in range(MAX_DEPTH):
        level = [v for item in level if isinstance(item, (dict, list)) for v in (item.values() if isinstance(item, dict) else item)]
        if not level:
            return True
    return False


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _real(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value < 1e12


def _text(limit: int, shape: re.Pattern[str] | None = None) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, str) and len(v) <= limit and (shape is None or shape.fullmatch(v) is not None)


def _decisions(value: Any) -> bool:
    whole = isinstance(value, Mapping) and len(value) <= 32 and isinstance(value.get("family"), str)
    return whole and all(
        isinstance(k, str) and _NAME.fullmatch(k) and (_count(v) or (isinstance(v, str) and _NAME.fullmatch(v))) for k, v in value.items()
    )


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _error(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, Mapping) and set(value) == {"max_abs", "budget"} and all(_real(v) or v == "inf" for v in value.values())


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda v: v is None or check(v)


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "problem": lambda v: isinstance(v, Mapping) and isinstance(v.get("kind"), str) and _NAME.fullmatch(v["kind"]) is not None,
    "key": _text(64, _HEX),
    "device": _text(64, _DEVICE),
    "decisions": _decisions,
    "trace": _or_none(lambda v: isinstance(v, list) and len(v) > 0),
    "outcome": lambda v: v in OUTCOMES,
    "message": _text(4000),
    "seconds": lambda v: isinstance(v, (list, tuple)) and len(v) <= 10000 and all(_real(s) for s in v),
    "error": _error,
    "default_seconds": _or_none(_real),
    "floor_seconds": _or_none(_real),
    "source_digest": _or_none(_text(64, _HEX)),
    "environment": _text(64, _HEX),
    "seed": lambda v: isinstance(v, int) and not isinstance(v, bool) and abs(v) < 1 << 63,
    "trial": _count,
    "time": _text(20, _TIME),
    "tool": _text(64),
    "environment_data": _or_none(lambda v: isinstance(v, Mapping)),
}
