"""The registry: which families are tried on which kind of device, and what follows from that."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..cascade import program_of
from ..cascade.program import FusedProgram
from ..errors import CascadeRefused, RecordError, UnsupportedPrimFunc, UnsupportedTarget, UsageError, explain
from ..problems import Problem
from . import cuda_space
from .base import Cost, Decisions, Rule, Value, combinations
from .block_sparse import BlockSparse
from .cuda_block_sparse import CudaBlockSparse
from .cuda_single_segment import CudaSingleSegment
from .multi_segment import MultiSegment
from .row_wise import RowWise
from .single_segment import SingleSegment
from .unfused import Unfused

#: Device kind -> its families; among equally good candidates the earlier family is the default.
RULES: Mapping[str, tuple[Rule, ...]] = {
    "cpu": (SingleSegment(), BlockSparse(), MultiSegment(), RowWise(), Unfused()),
    "cuda": (CudaSingleSegment(), CudaBlockSparse()),
}


#: the unfused family is left out when the analytical model expects it to be this many times slower than the best fused candidate
HOPELESS = 16.0


@functools.lru_cache(maxsize=64)
def program(problem: Problem) -> FusedProgram | None:
    """The problem's fused program; None where the cascade is refused, which leaves the unfused family only."""
    try:
        return program_of(problem)
    except (CascadeRefused, UnsupportedPrimFunc):
        return None


def rules_for(problem: Problem, device: Any, families: Sequence[str] | None = None) -> list[Rule]:
    """The families that have a kernel for this problem on this device, optionally only some of them."""
    if device.kind not in RULES:
        raise UnsupportedTarget(explain("no rules for this kind of device", got=device.kind, accepted=RULES))
    known = {r.family: r for r in RULES[device.kind]}
    unknown = [f for f in families or () if f not in known]
    if unknown:
        raise UsageError(explain("unknown family", got=", ".join(unknown), accepted=known))
    wanted = [r for r in known.values() if families is None or r.family in families]
    offered = [r for r in wanted if is_unfused(r) or _offers(r, problem, device)]
    if not offered and families is None:
        raise UnsupportedTarget(explain(f"no family of kernels takes this problem on {device.name}", got=_why_not(problem, device)))
    if families is None and len(offered) > 1 and _hopeless(offered, problem, device):
        offered = [r for r in offered if not is_unfused(r)]
    return offered


def _hopeless(offered: Sequence[Rule], problem: Problem, device: Any) -> bool:
    """Whether the unfused form is expected to be so much slower that its candidates (seconds each, at worst) are not worth measuring."""
    best = min((cost(problem, c, device).seconds for c in candidates(offered, problem, device)), default=float("inf"))
    unfused = next((r for r in offered if is_unfused(r)), None)
    return unfused is not None and unfused.cost(problem, {}, device).seconds > HOPELESS * best


def _why_not(problem: Problem, device: Any) -> str:
    """The emitter's own words for a program it does not take."""
    if device.kind != "cuda" or program(problem) is None:
        return "its cascade is refused"
    found = cuda_space.laid(program_of(problem))
    return found if isinstance(found, str) else "every combination of decisions is impossible"


def is_unfused(rule: Rule) -> bool:
    """Whether a family's decisions are in the trace alone."""
    return rule.family == Unfused.family


def choices(rule: Rule, problem: Problem, device: Any) -> dict[str, list[Value]]:
    """A rule's choices for a problem; of a problem that cannot be fused, an impossible one."""
    fused = program(problem)
    return {"family": []} if fused is None else rule.choices(problem, fused, device)


def _offers(rule: Rule, problem: Problem, device: Any) -> bool:
    return program(problem) is not None and all(choices(rule, problem, device).values())


def candidates(rules: Sequence[Rule], problem: Problem, device: Any) -> Iterator[Decisions]:
    """Every legal setting of the fused families."""
    for rule in rules:
        if not is_unfused(rule):
            for chosen in combinations(rule.family, choices(rule, problem, device)):
                if rule.legal(problem, chosen, device) is None:
                    yield chosen


def ranked(rules: Sequence[Rule], problem: Problem, device: Any) -> list[Decisions]:
    """The legal settings of the fused families, the analytical model's first choice first."""
    by_family = {r.family: r for r in rules}
    found = list(candidates(rules, problem, device))
    return sorted(found, key=lambda c: by_family[str(c["family"])].cost(problem, c, device).seconds)


def default(problem: Problem, device: Any, families: Sequence[str] | None = None) -> Decisions:
    """The analytical model's first choice; the unscheduled definition where no family fuses the problem."""
    rules = rules_for(problem, device, families)
    best = min(candidates(rules, problem, device), key=lambda c: cost(problem, c, device).seconds, default=None)
    return best if best is not None else {"family": Unfused.family}


def cost(problem: Problem, decisions: Mapping[str, Value], device: Any) -> Cost:
    """The analytical model: prior, feature and pruning of the search."""
    return _rule(decisions, device).cost(problem, decisions, device)


def legal(problem: Problem, decisions: Mapping[str, Value], device: Any) -> str | None:
    """None, or why no kernel with these decisions exists."""
    return _rule(decisions, device).legal(problem, decisions, device)


def _rule(decisions: Mapping[str, Value], device: Any) -> Rule:
    known = {r.family: r for r in RULES.get(device.kind, ())}
    family = str(decisions.get("family"))
    if family not in known:
        raise RecordError(explain("unknown family", got=family, accepted=known))
    return known[family]
