"""Masks as text: ``causal & window(256)``."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, NoReturn

from ..canonical import kinds
from ..errors import MaskError, explain
from .base import Mask
from .combine import And, Not, Or

MAX_LENGTH = 1 << 20
MAX_DEPTH = 64
_TOKEN = re.compile(r"\s*(?:(?P<number>-?[0-9]{1,10}(?![0-9A-Za-z_]))|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|"
                    r"(?P<string>'[^'\"]*'|\"[^'\"]*\")|(?P<mark>[&|~()\[\],=]))", re.ASCII)  # fmt: skip


def names() -> dict[str, type[Mask]]:
    """Masks that have a name in this language."""
    return {kind: cls for kind, cls in kinds(Mask).items() if issubclass(cls, Mask) and cls.spoken}


def parse(text: str) -> Mask:
    """Read a mask. ``~`` binds tightest, then ``&``, then ``|``; nothing is evaluated.

    Examples
    --------
    >>> parse("causal & window(256)")
    And(masks=(Causal(align='top_left'), SlidingWindow(align='top_left', size=256, ahead=None)))
    """
    if not isinstance(text, str) or len(text) > MAX_LENGTH:
        raise MaskError(explain("a mask is written as text", got=repr(text)[:40], accepted=f"up to {MAX_LENGTH} characters"))
    parser = _Parser(text)
    mask = parser.any_of(0)
    if parser.kind != "end":
        parser.fail("this does not belong here", "& | or the end")
    return mask


class _Parser:
    """Recursive descent over one token of look-ahead."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.start = text, 0, 0
        self.kind, self.word = "end", ""
        self.step()

    def step(self) -> str:
        """Move to the next token and return the one before."""
        before = self.word
        if not self.text[self.at :].strip():
            self.start, self.kind, self.word = len(self.text), "end", ""
            return before
        found = _TOKEN.match(self.text, self.at)
        if found is None or found.lastgroup is None:
            self.start = self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
            self.fail("unreadable", "names, whole numbers of up to 10 digits, & | ~ ( ) [ ] , =")
        self.kind, self.word = found.lastgroup, found[found.lastgroup]
        self.start, self.at = found.start(found.lastgroup), found.end()
        return before

    def fail(self, what: str, accepted: object = None, start: int | None = None) -> NoReturn:
        """Raise MaskError that shows the text with a caret."""
        at = self.start if start is None else start
        left = max(0, at - 50)
        shown = "".join(c if c.isprintable() else " " for c in self.text[left : left + 100])
        got = "the end of the text" if at >= len(self.text) else repr(self.text[at : at + 20])
        raise MaskError(explain(what, got=got, accepted=accepted) + f"\n  {shown}\n  {' ' * (at - left)}^")

    def take(self, mark: str) -> bool:
        """Whether this mark stands here; if so, go on."""
        if self.kind == "mark" and self.word == mark:
            self.step()
            return True
        return False

    def need(self, mark: str) -> None:
        if not self.take(mark):
            self.fail("something is missing", repr(mark))

    def any_of(self, depth: int) -> Mask:
        masks = [self.all_of(depth)]
        while self.take("|"):
            masks.append(self.all_of(depth))
        return Or.of(*masks)

    def all_of(self, depth: int) -> Mask:
        masks = [self.one(depth)]
        while self.take("&"):
            masks.append(self.one(depth))
        return And.of(*masks)

    def one(self, depth: int) -> Mask:
        if depth > MAX_DEPTH:
            self.fail("the mask is nested too deeply", f"{MAX_DEPTH} levels")
        if self.take("~"):
            return Not.of(self.one(depth + 1))
        if self.take("("):
            mask = self.any_of(depth + 1)
            self.need(")")
            return mask
        return self.named()

    def named(self) -> Mask:
        start, cls = self.start, names().get(self.word)
        if self.kind != "name" or cls is None:
            self.fail("unknown mask" if self.kind == "name" else "a mask is expected", names())
        self.step()
        given = self.arguments(cls) if self.take("(") else {}
        missing = [f.name for f in _fields(cls) if f.default is dataclasses.MISSING and f.name not in given]
        if missing:
            self.fail(f"{cls.kind} needs {', '.join(missing)}", _usage(cls), start)
        try:
            return cls(**given)
        except MaskError as error:
            self.fail(str(error), start=start)

    def arguments(self, cls: type[Mask]) -> dict[str, Any]:
        fields = _fields(cls)
        positional = [f.name for f in fields if not f.kw_only]
        given: dict[str, Any] = {}
        if cls.gathers and self.kind == "number":
            given[positional[0]] = self.numbers()
        while not self.take(")"):
            start, name = self.start, positional[len(given)] if len(given) < len(positional) else ""
            value = self.value(0)
            if isinstance(value, str) and self.take("="):
                name, value = value, self.value(0)
                if name not in {f.name for f in fields}:
                    self.fail(f"{cls.kind} has no such parameter", _usage(cls), start)
            elif not name:
                self.fail(f"too many values for {cls.kind}", _usage(cls), start)
            elif any(n not in positional[: len(given)] for n in given):
                self.fail("a value without a name stands behind one with a name", _usage(cls), start)
            if name in given:
                self.fail(f"{name} is given twice", start=start)
            given[name] = value
            if not self.take(","):
                self.need(")")
                break
        return given

    def numbers(self) -> tuple[int, ...]:
        """Plain numbers up to the bracket or a name."""
        numbers = []
        while self.kind == "number":
            numbers.append(int(self.step()))
            if not self.take(","):
                break
        return tuple(numbers)

    def value(self, depth: int) -> Any:
        if self.kind == "number":
            return int(self.step())
        if self.kind == "string":
            return self.step()[1:-1]
        if self.kind == "name":
            word = self.step()
            return None if word == "none" else word
        if depth > 2 or not self.take("["):
            self.fail("a value is expected", "whole numbers, lists of them, words")
        values = []
        while not self.take("]"):
            values.append(self.value(depth + 1))
            if not self.take(","):
                self.need("]")
                break
        return tuple(values)


def _fields(cls: type[Mask]) -> list[dataclasses.Field[Any]]:
    fields = [f for f in dataclasses.fields(cls) if f.init]  # type: ignore[arg-type]
    return sorted(fields, key=lambda f: bool(f.kw_only))


def _usage(cls: type[Mask]) -> str:
    parts = [f.name if f.default is dataclasses.MISSING else f"{f.name}={_value(f.default)}" for f in _fields(cls)]
    return f"{cls.kind}({', '.join(parts)})"


def text(mask: Mask) -> str:
    """Write a mask so that ``parse`` reads it back; arrays and functions have no such text.

    Examples
    --------
    >>> text(parse("window(8,8)&~dense|global(2)"))
    '(~dense & window(8)) | global(2)'
    """
    if isinstance(mask, (And, Or)):
        return (" & " if isinstance(mask, And) else " | ").join(_operand(m) for m in mask.masks)
    if isinstance(mask, Not):
        return f"~{_operand(mask.mask)}"
    if not mask.spoken:
        raise MaskError(explain("this mask cannot be written as text", got=mask.kind, accepted=names(),
                                way_out="Its canonical JSON can be stored"))  # fmt: skip
    parts: list[str] = []
    named = False
    for f in _fields(type(mask)):
        value = getattr(mask, f.name)
        if f.default is not dataclasses.MISSING and value == f.default:
            named = True
            continue
        # Optional values read better with their names.
        named = named or bool(f.kw_only) or f.default is not dataclasses.MISSING
        parts.append(f"{f.name}={_value(value)}" if named else _value(value))
    return f"{mask.kind}({', '.join(parts)})" if parts else mask.kind


def _operand(mask: Mask) -> str:
    return f"({text(mask)})" if isinstance(mask, (And, Or)) else text(mask)


def _value(value: Any) -> str:
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, tuple) else "none" if value is None else str(value)
