"""Definitions: the plain TensorIR of each problem, as the formula says it and as it runs without any schedule."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..errors import ProblemError, explain

if TYPE_CHECKING:
    import tvm

    from ..problems.base import Problem


def definition(problem: Problem) -> tvm.IRModule:
    """The module whose "main" computes the problem: parameters are its inputs, ``mask_bits`` where the mask needs it, then its outputs."""
    import tvm

    try:
        builder: Any = importlib.import_module(f".{problem.kind}", __name__)
    except ModuleNotFoundError as error:
        raise ProblemError(
            explain("no definition for this kind of problem", got=getattr(problem, "kind", type(problem).__name__))
        ) from error
    return tvm.IRModule({"main": builder.build(problem).with_attr("global_symbol", "main")})


__all__ = ["definition"]
