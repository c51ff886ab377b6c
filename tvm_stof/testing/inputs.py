"""Inputs of a problem, the same on every machine for a seed."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..problems import Problem, TensorSpec

Maker = Callable[[TensorSpec, np.random.Generator], npt.NDArray[Any]]

#: (kind, tensor) -> maker, where standard normal values are not what the tensor means
MAKERS: Mapping[tuple[str, str], Maker] = {}


def inputs(problem: Problem, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Arrays for every input by name: standard normal, in the tensor's dtype, each from a stream of its own.

    Examples
    --------
    >>> from tvm_stof.problems import Softmax
    >>> inputs(Softmax(rows=2, cols=3), seed=1)["x"].shape
    (2, 3)
    """
    return {spec.name: _array(problem.kind, spec, seed) for spec in problem.inputs()}


def _array(kind: str, spec: TensorSpec, seed: int) -> npt.NDArray[Any]:
    rng = np.random.default_rng([seed, zlib.crc32(spec.name.encode())])
    return MAKERS.get((kind, spec.name), _normal)(spec, rng)


def _normal(spec: TensorSpec, rng: np.random.Generator) -> npt.NDArray[Any]:
    return rng.standard_normal(spec.shape, dtype=np.float32).astype(spec.dtype)
