"""The algebra of cascaded reductions: recognise, decompose, prove, fuse or refuse (RedFuser, ASPLOS '26, arXiv 2603.10026)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from .fuse import fuse
from .program import NEUTRAL, Axis, Contraction, FusedProgram, Output, Stage, Tensor, safe
from .recognise import Cascade, recognise
from .value import absent

if TYPE_CHECKING:
    from ..problems.base import Problem


@lru_cache(maxsize=64)
def program_of(problem: Problem) -> FusedProgram:
    """The fused program of a problem's definition."""
    from ..definitions import definition

    return fuse(definition(problem))


__all__ = [
    "NEUTRAL",
    "Axis",
    "Cascade",
    "Contraction",
    "FusedProgram",
    "Output",
    "Stage",
    "Tensor",
    "absent",
    "fuse",
    "program_of",
    "recognise",
    "safe",
]
