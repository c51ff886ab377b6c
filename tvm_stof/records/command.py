"""The command that tunes a problem, as text for a shell."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import MaskError
from ..problems import Attention, Problem, Softmax
from ..scores import Scale, Score

#: scores the command line can say, in the order it applies them
_SCORES: tuple[tuple[str, str, str], ...] = (
    ("softcap", "--softcap", "cap"),
    ("alibi", "--alibi", ""),
    ("relative_bias", "--relative-bias", "max_distance"),
    ("bias", "--bias", ""),
    ("sink", "--sink", ""),
)


def cli_text(problem: Problem) -> str:
    """``tvm-stof tune ...`` for this very problem, or the Python call where the command line has no words for it.

    Examples
    --------
    >>> cli_text(Softmax(rows=4, cols=8))
    'tvm-stof tune softmax --rows 4 --cols 8 --dtype float32'
    """
    words = _WORDS[problem.kind](problem) if problem.kind in _WORDS else None
    return "tvm_stof.tune(problem)" if words is None else shlex.join(["tvm-stof", "tune", problem.kind, *words])


def _softmax(p: Softmax) -> list[str]:
    return ["--rows", str(p.rows), "--cols", str(p.cols), "--dtype", p.dtype]


def _attention(p: Attention) -> list[str] | None:
    from .. import masks

    scores = _scores(p.scores, 1.0 / math.sqrt(p.head_dim))
    try:
        mask = masks.text(p.mask)
    except MaskError:
        return None
    if scores is None:
        return None
    words = ["--mask", mask, "--heads", str(p.heads), "--len", str(p.q_len), "--dim", str(p.head_dim), "--dtype", p.dtype]
    for option, value, usual in (
        ("--batch", p.batch, 1),
        ("--kv-heads", p.kv_heads, p.heads),
        ("--kv-len", p.kv_len, p.q_len),
        ("--value-dim", p.value_dim, p.head_dim),
    ):
        words += [option, str(value)] if value != usual else []
    return [*words, *scores, *(["--lse"] if p.return_lse else [])]


def _scores(scores: tuple[Score, ...], usual: float) -> list[str] | None:
    first, *rest = scores
    if not isinstance(first, Scale):
        return None
    words = ["--scale", repr(first.value)] if first.value != usual else []
    order = [kind for kind, _, _ in _SCORES]
    places = [order.index(s.kind) if s.kind in order else -1 for s in rest]
    if -1 in places or places != sorted(set(places)):
        return None
    for score, place in zip(rest, places):
        _, option, field = _SCORES[place]
        if not field and score != type(score)():
            return None
        words += [option, str(getattr(score, field))] if field else [option]
    return words


_WORDS: Mapping[str, Callable[[Any], list[str] | None]] = {"attention": _attention, "softmax": _softmax}
