"""Whether a kernel can decide by itself which elements take part, or needs lists and stored bits."""

from __future__ import annotations

from functools import lru_cache

from ..cascade import program_of
from ..problems import Problem
from .base import Value

#: operations of a predicate worth evaluating for every element; the hash behind random blocks has over 500, which take a compiler
#: longer to unroll than any other part of a kernel
MAX_OPERATIONS = 128


@lru_cache(maxsize=64)
def testable(problem: Problem) -> bool:
    """Whether the mask is index arithmetic of reasonable size."""
    mask, predicate = problem.bound_mask, program_of(problem).predicate
    if mask is None or predicate is None:
        return True
    return mask.arithmetic and len(predicate.walk()) <= MAX_OPERATIONS


def tests(problem: Problem) -> list[Value]:
    """How the partial tiles of a list may be tested: by the definition's predicate or by stored bits, whichever measures faster."""
    return ["predicate", "bits"] if testable(problem) else ["bits"]
