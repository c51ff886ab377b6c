"""Masks as text: ``causal & window(256)``. Parsed by hand, never evaluated."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from ..canonical import kinds
from ..errors import MaskError, explain
from .base import Mask
from .combine import And, Not, Or
from .document import Document

MAX_TEXT, MAX_DEPTH = 100_000, 50
_TOKEN = re.compile(r"\s*(?:(?P<int>-?\d+)|(?P<name>[a-z_]+)|(?P<text>\"[^\"]*\"|'[^']*')|(?P<mark>[&|~()\[\],=])|(?P<end>$))")


def parse(text: str) -> Mask:
    """The mask of a text.

    Grammar: names with arguments, ``&`` binds closer than ``|``, ``~`` closest, parentheses. Arguments are whole numbers, texts, none, and
    lists of them, by position or by name.

    Examples
    --------
    >>> text(parse("~causal | window(4, ahead=0) & global(2)"))
    '(global(2) & window(4, 0)) | ~causal'
    """
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise MaskError(explain("a mask expression must be text", got=type(text).__name__, accepted=f"at most {MAX_TEXT} characters"))
    parser = _Parser(text)
    mask = parser.either(0)
    parser.expect("end")
    return mask


def text(mask: Mask) -> str:
    """The text that ``parse`` turns into this mask; MaskError for arrays and traced functions, which have none."""
    if isinstance(mask, Or):
        return " | ".join(_inside(m, (And,)) for m in mask.masks)
    if isinstance(mask, And):
        return " & ".join(_inside(m, (Or,)) for m in mask.masks)
    if isinstance(mask, Not):
        return "~" + _inside(mask.mask, (And, Or))
    if not mask.spoken:
        raise MaskError(explain("this mask has no text", got=mask.kind, way_out="Tune it from Python: tvm_stof.tune(problem)"))
    words, skipped = [], False
    for field in dataclasses.fields(mask):  # type: ignore[arg-type]
        value = getattr(mask, field.name)
        if field.default is not dataclasses.MISSING and value == field.default:
            skipped = True
            continue
        words.append(f"{field.name}={_value(value)}" if skipped or field.kw_only else _value(value))
    return mask.kind + (f"({', '.join(words)})" if words else "")


def _inside(mask: Mask, brackets: tuple[type, ...]) -> str:
    return f"({text(mask)})" if isinstance(mask, brackets) else text(mask)


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return "none" if value is None else f'"{value}"' if isinstance(value, str) else str(value)


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, source: str) -> None:
        self.source, self.at = source, 0
        self.kind, self.word, self.start = "", "", 0
        self.names = {name: cls for name, cls in kinds(Mask).items() if cls.spoken and name not in ("and", "or", "not")}
        self.step()

    def step(self) -> None:
        match = _TOKEN.match(self.source, self.at)
        if match is None or match.lastgroup is None:
            self.start = self.at + len(self.source[self.at :]) - len(self.source[self.at :].lstrip())
            raise self.wrong("unexpected character", repr(self.source[self.start]), "names, numbers, & | ~ ( ) [ ] , =")
        self.kind, self.word, self.start, self.at = match.lastgroup, match[match.lastgroup], match.start(match.lastgroup), match.end()

    def wrong(self, what: str, got: str, accepted: Any) -> MaskError:
        shown = self.source if len(self.source) <= 200 else self.source[:200] + "..."
        caret = f"\n  {shown}\n  {' ' * min(self.start, 200)}^\n"
        return MaskError(explain(f"mask expression: {what}", got=got) + caret + explain("accepted", got=None, accepted=accepted).replace("accepted; ", ""))

    def expect(self, word: str) -> None:
        if (self.kind if word == "end" else self.word) != word:
            raise self.wrong(f"expected {'the end' if word == 'end' else word}", self.word or "the end", word if word != "end" else "& or | and another mask")
        if word != "end":
            self.step()

    def either(self, depth: int) -> Mask:
        if depth > MAX_DEPTH:
            raise self.wrong("nested too deeply", f"over {MAX_DEPTH} levels", f"at most {MAX_DEPTH} levels")
        mask = self.both(depth)
        while self.kind == "mark" and self.word == "|":
            self.step()
            mask = mask | self.both(depth)
        return mask

    def both(self, depth: int) -> Mask:
        mask = self.single(depth)
        while self.kind == "mark" and self.word == "&":
            self.step()
            mask = mask & self.single(depth)
        return mask

    def single(self, depth: int) -> Mask:
        if depth > MAX_DEPTH:
            raise self.wrong("nested too deeply", f"over {MAX_DEPTH} levels", f"at most {MAX_DEPTH} levels")
        if self.kind == "mark" and self.word == "~":
            self.step()
            return ~self.single(depth + 1)
        if self.kind == "mark" and self.word == "(":
            self.step()
            mask = self.either(depth + 1)
            self.expect(")")
            return mask
        return self.named()

    def named(self) -> Mask:
        if self.kind != "name" or self.word not in self.names:
            raise self.wrong("unknown mask" if self.kind == "name" else "a mask is missing", self.word or "the end", sorted(self.names))
        cls, name, start = self.names[self.word], self.word, self.start
        self.step()
        given: list[Any] = []
        named: dict[str, Any] = {}
        if self.kind == "mark" and self.word == "(":
            self.step()
            while not (self.kind == "mark" and self.word == ")"):
                self.argument(given, named)
                if not (self.kind == "mark" and self.word == ")"):
                    self.expect(",")
            self.step()
        if cls is Document and given and all(isinstance(v, int) for v in given):
            given = [tuple(given)]
        fields = [f.name for f in dataclasses.fields(cls)]
        try:
            made: Mask = cls(*given, **named)
        except TypeError as error:
            self.start = start
            raise self.wrong(f"arguments do not fit {name}", str(error).split("__init__() ")[-1], f"{name}({', '.join(fields)})") from error
        except MaskError as error:
            self.start = start
            raise self.wrong(f"{name} refuses its arguments", str(error), f"{name}({', '.join(fields)})") from error
        return made

    def argument(self, given: list[Any], named: dict[str, Any]) -> None:
        if self.kind == "name" and self.word != "none":
            name = self.word
            self.step()
            if not (self.kind == "mark" and self.word == "="):
                given.append(name)
                return
            self.step()
            named[name] = self.value(0)
            return
        given.append(self.value(0))

    def value(self, depth: int) -> Any:
        if depth > 3:
            raise self.wrong("lists nested too deeply", "over 3 levels", "at most 3 levels")
        kind, word = self.kind, self.word
        if kind == "mark" and word == "[":
            self.step()
            items: list[Any] = []
            while not (self.kind == "mark" and self.word == "]"):
                items.append(self.value(depth + 1))
                if not (self.kind == "mark" and self.word == "]"):
                    self.expect(",")
            self.step()
            return tuple(items)
        if kind not in ("int", "text", "name") or (kind == "int" and len(word) > 20):
            raise self.wrong("a value is missing or too long", word[:30] or "the end", "a whole number, a text, none, or a list of them")
        self.step()
        return int(word) if kind == "int" else word[1:-1] if kind == "text" else None if word == "none" else word
