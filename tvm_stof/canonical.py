"""Identity is data: frozen dataclasses to canonical JSON and back, and SHA-256 keys of that text.

An object's data is ``{"kind": name, field: value, ...}``. Canonical text sorts keys, has no blanks and refuses NaN, so equal objects have
equal
text and equal keys on every machine. A key never depends on ``repr``, source text or closures.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

from .errors import CanonicalError, StofError, explain

T = TypeVar("T")
MAX_DEPTH = 64
_KINDS: dict[str, type] = {}


def canonical(kind: str) -> Callable[[type[T]], type[T]]:
    """Register a frozen dataclass under a name that stands in its JSON for good."""

    def register(cls: type[T]) -> type[T]:
        if not dataclasses.is_dataclass(cls) or not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise TypeError(f"{cls.__name__} must be a frozen dataclass")
        if kind in _KINDS:
            raise TypeError(f"kind {kind!r} is taken by {_KINDS[kind].__name__}")
        _KINDS[kind] = cls
        cls.kind = kind  # type: ignore[attr-defined]
        return cls

    return register


def kinds(base: type) -> dict[str, type]:
    """The registered kinds that are subclasses of ``base``, by name."""
    return {name: cls for name, cls in sorted(_KINDS.items()) if issubclass(cls, base)}


def to_data(value: Any) -> Any:
    """Plain JSON data of a registered object (recursively) or of a scalar or tuple of such."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = getattr(value, "kind", None)
        if kind is None or _KINDS.get(kind) is not type(value):
            raise CanonicalError(explain("not a registered kind", got=type(value).__name__))
        fields = {f.name: to_data(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
        return {"kind": kind, **fields}
    if isinstance(value, (tuple, list)):
        return [to_data(v) for v in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise CanonicalError(explain("not canonical data", got=repr(value)[:80], accepted="finite numbers, text, bool, None, tuples"))


def from_data(data: Any, base: type[T], _depth: int = 0) -> T:
    """Rebuild a registered object; unknown kinds, unknown or missing fields and bad values raise CanonicalError."""
    if _depth > MAX_DEPTH:
        raise CanonicalError(explain("data is nested too deeply", accepted=f"at most {MAX_DEPTH} levels"))
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        raise CanonicalError(explain(f"not a {base.__name__}", got=repr(data)[:80], accepted="an object with a 'kind'"))
    cls = kinds(base).get(data["kind"])
    if cls is None:
        raise CanonicalError(explain(f"unknown {base.__name__}", got=repr(data["kind"]), accepted=kinds(base)))
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    given = {k: v for k, v in data.items() if k != "kind"}
    unknown = sorted(given.keys() - fields.keys())
    missing = sorted(fields.keys() - given.keys())
    if unknown or missing:
        raise CanonicalError(
            explain(f"fields of {data['kind']!r} do not fit", got=f"unknown {unknown}, missing {missing}", accepted=fields)
        )
    try:
        return cls(**{k: _value(v, _depth + 1) for k, v in given.items()})  # type: ignore[no-any-return]
    except StofError:
        raise
    except (TypeError, ValueError) as error:
        raise CanonicalError(explain(f"bad value in {data['kind']!r}", got=str(error)[:200])) from error


def _value(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise CanonicalError(explain("data is nested too deeply", accepted=f"at most {MAX_DEPTH} levels"))
    if isinstance(value, list):
        return tuple(_value(v, depth + 1) for v in value)
    return from_data(value, object, depth) if isinstance(value, dict) else value


def dumps(data: Any) -> str:
    """Canonical text of plain JSON data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def key(value: Any) -> str:
    """SHA-256 (hexadecimal, 64 digits) of the canonical text of an object or of plain data."""
    data = to_data(value) if dataclasses.is_dataclass(value) else value
    return hashlib.sha256(dumps(data).encode("ascii")).hexdigest()
