"""The record that answers a problem, and what to say when there is none."""

from __future__ import annotations

import importlib.util
import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import MaskError, RecordNotFound, explain
from ..problems import Problem
from .journal import Journal, journals
from .model import Trial
from .select import best, nearest

log = logging.getLogger(__name__)


def default_places() -> list[Path]:
    """./schedules and ./tuning_logs where they are, and the records shipped with the package."""
    places = [p for p in (Path("schedules"), Path("tuning_logs")) if p.is_dir()]
    spec = importlib.util.find_spec("tvm_stof.schedules")
    shipped = [Path(p) for p in (spec.submodule_search_locations or [])] if spec is not None else []
    return [*places, *(p for p in shipped if p.is_dir() and p.resolve() not in [q.resolve() for q in places])]


def collect(paths: Sequence[str | Path] | None) -> list[Trial]:
    """All trials of files or folders (the default places otherwise); broken lines are named in the log and skipped."""
    found: list[Trial] = []
    for path in journals([Path(p) for p in paths] if paths is not None else default_places()):
        content = Journal(path).read()
        for line in content.broken:
            log.warning("%s:%d skipped: %s", path, line.line, line.reason)
        found += content.trials
    return found


def find(problem: Problem, device: str, paths: Sequence[str | Path] | None = None) -> Trial:
    """The best trial of exactly this problem on exactly this device.

    Raises
    ------
    RecordNotFound : names the nearest records and the command that tunes.
    """
    trials = collect(paths)
    found = best(trials, problem.key(), device)
    if found is not None:
        return found
    near = [f"{t.device}: {_brief(dict(t.problem))}" for t in nearest(trials, problem, device)]
    raise RecordNotFound(explain(
        f"no record of this {problem.kind} problem on {device}", got=_brief(problem.to_data()), accepted=near or "none of this kind is recorded",
        way_out=f'Tune it: {cli_text(problem)}; or load(..., fallback="default")'))  # fmt: skip


def cli_text(problem: Problem) -> str:
    """The command that tunes a problem, or the Python call where a mask has no text."""
    from ..problems import Attention, Softmax

    if isinstance(problem, Softmax):
        return f"tvm-stof tune softmax --rows {problem.rows} --cols {problem.cols} --dtype {problem.dtype}"
    if isinstance(problem, Attention):
        words = _attention_words(problem)
        if words is not None:
            return "tvm-stof tune attention " + " ".join(words)
    return "tvm_stof.tune(problem)"


def _attention_words(p: Any) -> list[str] | None:
    from .. import masks

    try:
        mask = masks.text(p.mask)
    except MaskError:
        return None
    words = ["--mask", shlex.quote(mask), "--heads", str(p.heads), "--len", str(p.q_len), "--dim", str(p.head_dim), "--dtype", p.dtype]
    for option, value, usual in (("--batch", p.batch, 1), ("--kv-heads", p.kv_heads, p.heads), ("--kv-len", p.kv_len, p.q_len),
                                 ("--value-dim", p.value_dim, p.head_dim)):  # fmt: skip
        words += [option, str(value)] if value != usual else []
    scores = {s.kind: s for s in p.scores}
    scale = scores.pop("scale")
    words += ["--scale", repr(scale.value)] if scale.value != 1.0 / p.head_dim**0.5 else []
    words += ["--lse"] if p.return_lse else []
    for kind, option, field in (("softcap", "--softcap", "cap"), ("alibi", "--alibi", ""), ("relative_bias", "--relative-bias", "max_distance"),
                                ("sink", "--sink", "")):  # fmt: skip
        if kind in scores:
            value = scores.pop(kind)
            words += [option, str(getattr(value, field))] if field else [option]
    return None if scores else words


def _brief(data: dict[str, Any]) -> str:
    return ", ".join(f"{k}={_short(v)}" for k, v in data.items() if k not in ("kind", "scores"))


def _short(value: Any) -> str:
    if isinstance(value, dict):
        rest = ", ".join(f"{k}={_short(v)}" for k, v in value.items() if k != "kind")
        return f"{value.get('kind')}({rest})"[:120]
    return str(value)[:60]
