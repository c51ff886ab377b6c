"""The streamed scalar that stages share, and the condition under which an element takes part."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..expr import Expr, call, const, evaluate
from .axes import uses
from .program import NEUTRAL, FusedProgram


@dataclass(frozen=True)
class Streamed:
    """The shared scalar, the terms over ``Expr("value")``, and the predicate split off them."""

    value: Expr
    terms: tuple[Expr, ...]
    predicate: Expr | None


def streamed_value(stages: tuple[tuple[str, Expr], ...], outputs: tuple[Expr, ...], stream: str, whole: frozenset[str]) -> Streamed:
    """Split the predicate off (monoid, term) pairs and name what they share, among them and with the outputs.

    ``whole`` are the tensors of whole numbers or truth values.
    """
    terms = tuple(t for _, t in stages)
    neutrals = tuple(NEUTRAL[m] for m, _ in stages)
    parts: list[Expr] = []
    while True:
        split = _split(terms, neutrals, whole)
        if split is None:
            break
        parts.append(split[0])
        terms = split[1]
    predicate = None
    for p in parts:
        predicate = p if predicate is None else call("and", predicate, p)
    value = _shared(terms, outputs, stream)
    return Streamed(value, tuple(t.substitute({value: Expr("value")}) for t in terms), predicate)


def _split(terms: tuple[Expr, ...], neutrals: tuple[float, ...], whole: frozenset[str]) -> tuple[Expr, tuple[Expr, ...]] | None:
    """One static condition that, when false, makes every term neutral; and the terms where it is true."""
    for node in [n for n in reversed(terms[0].walk()) if n.op == "select" and static(n.args[0], whole)]:
        condition = node.args[0]
        for holds in (True, False):
            if all(neutral_value(arm(t, condition, not holds)) == n for t, n in zip(terms, neutrals)):
                return condition if holds else call("not", condition), tuple(arm(t, condition, holds) for t in terms)
    return None


def static(e: Expr, whole: frozenset[str]) -> bool:
    """Whether an expression is made of positions, and of loaded bits or whole numbers."""
    return all(n.op not in ("result", "previous", "prologue", "value") and (n.op != "load" or n.args[0] in whole) for n in e.walk())


def arm(e: Expr, condition: Expr, holds: bool) -> Expr:
    """``e`` where the condition is known."""
    if e.op == "select" and e.args[0] == condition:
        return arm(e.args[1 if holds else 2], condition, holds)
    return e.rebuild(lambda a: arm(a, condition, holds))


def _shared(terms: tuple[Expr, ...], outputs: tuple[Expr, ...], stream: str) -> Expr:
    """The largest subtree of a term, free of results, whose replacement leaves its anchor (contraction or first load) nowhere."""
    prologue = any(n.op == "prologue" for t in (*terms, *outputs) for n in t.walk())
    anchors = [n for t in terms for n in t.walk() if (n.op == "prologue" if prologue else n.op == "load" and uses(n, [stream]))]
    if not anchors:
        return next((n for t in terms for n in t.walk() if n.op == "index" and n.args[0] == stream), terms[0])
    anchor = anchors[0]
    home = next(t for t in terms if anchor in t.walk())
    free = [n for n in home.walk() if anchor in n.walk() and all(m.op not in ("result", "previous") for m in n.walk())]
    for candidate in sorted(dict.fromkeys(free), key=lambda n: -len(n.walk())):
        if all(anchor not in t.substitute({candidate: Expr("value")}).walk() for t in (*terms, *outputs)):
            return candidate
    return anchor


def absent(program: FusedProgram) -> float | None:
    """A value of x[l] that is neutral to every stage (for tails and masked elements of a tile), or None when there is none."""
    for x in (-math.inf, 0.0, math.inf):
        if all(neutral_value(s.term, {Expr("value"): x}) == s.neutral for s in program.stages):
            return x
    return None


class _Finite(float):
    """Some finite number, its value unknown."""


def neutral_value(e: Expr, known: dict[Expr, float] | None = None) -> float:
    """The value of a term when it does not depend on the data, else NaN; loads and results count as some finite number.

    Every number is finite data here: 0 * x is 0. A masked element whose value is inf or NaN is thereby left out, as a mask means it.
    """
    known = known or {}
    if e in known:
        return known[e]
    args = [neutral_value(a, known) for a in e.operands()] if e.op not in ("load", "index") else []
    if e.op == "const":
        return float(e.args[0])
    if e.op in ("load", "index", "result", "previous", "value", "prologue"):
        return _Finite("nan")
    if e.op == "cast":
        return args[0]
    return _fold(e.op, args)


def _fold(op: str, args: list[float]) -> float:
    """One operation on numbers of which some are finite but unknown; NaN where that leaves the outcome open."""
    unknown = [isinstance(a, _Finite) for a in args]
    rest = [a for a, u in zip(args, unknown) if not u]
    if op == "select":
        return _fold_select(args, unknown)
    if any(math.isnan(a) for a in rest):
        return math.nan
    if not any(unknown) or (op in _COMPARE and any(math.isinf(a) for a in rest)):
        with np.errstate(all="ignore"):
            return float(evaluate(call(op, *(const(0.0 if u else a) for a, u in zip(args, unknown))), lambda node, operands: math.nan))
    if all(unknown):
        return _Finite("nan")
    known = rest[0]
    if op in ("add", "sub") and math.isinf(known):
        return -known if op == "sub" and unknown[0] else known
    if (op in ("mul", "and") and known == 0) or (op == "div" and ((known == 0 and unknown[1]) or (math.isinf(known) and unknown[0]))):
        return 0.0
    if (op == "max" and known == math.inf) or (op == "min" and known == -math.inf) or (op == "or" and known):
        return known
    if math.isinf(known):
        return _Finite("nan") if op in ("max", "min") else math.nan
    return math.nan if op == "div" and unknown[0] and known == 0 else _Finite("nan")


def _fold_select(args: list[float], unknown: list[bool]) -> float:
    condition, yes, no = args
    if not unknown[0]:
        return math.nan if math.isnan(condition) else yes if condition else no
    if not any(unknown[1:]) and yes == no:
        return yes
    return _Finite("nan") if all(u or math.isfinite(a) for a, u in zip(args[1:], unknown[1:])) else math.nan


_COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")
