"""Comparing a kernel's outputs with the oracle's, and the budget rule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, explain
from ..problems import Problem, TensorSpec

Arrays = dict[str, npt.NDArray[Any]]


class Oracle(Protocol):
    """What a module of this package offers for its kind.

    ``SMALLEST_SCALE`` gives outputs whose errors mean the same however small their values are.
    """

    SMALLEST_SCALE: Mapping[str, float]

    def sample(self, problem: Any) -> Any:
        """Rows that stand for all of a problem too large to evaluate, None for one that is evaluated as a whole."""

    def evaluate(self, problem: Any, inputs: Arrays, blocks: Any = None) -> Arrays:
        """Outputs in float64, full shape, NaN outside the sampled ``blocks``."""

    def attempts(self, problem: Any, inputs: Arrays, blocks: Any = None) -> Iterable[Arrays]:
        """Independent evaluations with float32 products and sums, full shape, NaN where an element was left out."""


@dataclass(frozen=True)
class Comparison:
    """Outcome of a comparison: the output that is worst against its budget.

    Attributes
    ----------
    ok : every output is within its budget.
    max_abs, budget : of that output; ``max_abs`` is infinite when a value is NaN or infinite where the oracle is not,
        or the other way round.
    message : empty when ok.
    """

    ok: bool
    output: str
    max_abs: float
    budget: float
    message: str = ""

    def to_data(self) -> dict[str, Any]:
        """What a record keeps (JSON has no infinity: text instead)."""
        return {"max_abs": self.max_abs if math.isfinite(self.max_abs) else "inf", "budget": self.budget}


@dataclass(frozen=True)
class Expected:
    """Oracle values (float64) and budgets of one problem and one set of inputs.

    Attributes
    ----------
    values : whole outputs; of a sampled problem, [sampled elements] of each.
    places : where the sampled elements lie in the flat outputs; empty when all were evaluated.
    """

    problem: Problem
    values: Arrays
    budgets: Mapping[str, float]
    places: Arrays = field(default_factory=dict)

    @staticmethod
    def of(problem: Problem, values: Arrays, budgets: Mapping[str, float], sampled: bool) -> Expected:
        """From whole outputs; of a sampled problem, what was left out is NaN."""
        if not sampled:
            return Expected(problem, values, budgets)
        places = {n: np.flatnonzero(~np.isnan(v)) for n, v in values.items()}
        return Expected(problem, {n: v.ravel()[places[n]] for n, v in values.items()}, budgets, places)

    def compare(self, outputs: Arrays) -> Comparison:
        """Whether ``outputs`` are within budget; a wrong set of names, shapes or dtypes raises ArgumentError."""
        _check(self.problem.outputs(), outputs, "outputs")
        results = [self._one(spec.name, outputs[spec.name]) for spec in self.problem.outputs()]
        for name in self.places:
            unwritten = int(np.isnan(outputs[name]).sum())
            if unwritten:
                return Comparison(False, name, math.inf, self.budgets[name], f"wrong result: {unwritten} elements of {name} are NaN")
        return max(results, key=lambda c: (not c.ok, c.max_abs / c.budget if c.budget else c.max_abs))

    def _one(self, name: str, got: npt.NDArray[Any]) -> Comparison:
        budget = self.budgets[name]
        places, shape = self.places.get(name), got.shape
        got = got if places is None else got.ravel()[places]
        with np.errstate(invalid="ignore", over="ignore"):
            plain = float(np.abs(got - self.values[name]).max())
        if plain <= budget:  # no NaN and no infinity on either side, so this is the distance
            return Comparison(True, name, plain, budget)
        difference = distance(got, self.values[name])
        worst = float(difference.max())
        if worst <= budget:
            return Comparison(True, name, worst, budget)
        worst_at = int(difference.argmax())
        at = [int(i) for i in np.unravel_index(worst_at if places is None else int(places[worst_at]), shape)]
        message = (
            f"wrong result: {name}{at} is {float(got.flat[worst_at])!r} where float64 gives "
            f"{float(self.values[name].flat[worst_at])!r}; largest error {worst:.3e}, budget {budget:.3e}, "
            f"{int((difference > budget).sum())} of {difference.size} elements over it"
        )
        return Comparison(False, name, worst, budget, message)


def distance(got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Element-wise absolute error: 0 for equal infinities and for two NaN, infinite for anything else not finite."""
    value = got.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(value - expected)
    same = (value == expected) | (np.isnan(value) & np.isnan(expected))
    difference = np.where(same, 0.0, difference)
    return np.where(np.isnan(difference), np.inf, difference)


def fast_exp(x: npt.NDArray[Any], seed: int) -> npt.NDArray[Any]:
    """Exponential as float32 kernels have it: a power of two, at random one unit in the last place off, exact at 0."""
    value = np.exp2(x * x.dtype.type(math.log2(math.e)))
    sign = np.random.default_rng(seed).integers(-1, 2, x.shape).astype(x.dtype)
    return np.asarray(np.where(x == 0, value, value * (1 + sign * np.finfo(x.dtype).eps)))


def spread(problem: Problem, expected: Arrays, attempts: Iterable[Arrays], smallest: Mapping[str, float]) -> dict[str, float]:
    """The budget of each output from what independent evaluations in its dtype miss it by."""
    worst = {spec.name: 0.0 for spec in problem.outputs()}
    for attempt in attempts:
        for spec in problem.outputs():
            with np.errstate(invalid="ignore", over="ignore"):
                error = np.abs(attempt[spec.name].astype(spec.dtype).astype(np.float64) - expected[spec.name])
            finite = error[np.isfinite(error)]
            worst[spec.name] = max(worst[spec.name], float(finite.max()) if finite.size else 0.0)
    return {
        spec.name: 2.0 * (worst[spec.name] + _ulp(expected[spec.name], spec.dtype, smallest.get(spec.name, 0.0)))
        for spec in problem.outputs()
    }


def _ulp(expected: npt.NDArray[Any], dtype: str, smallest: float) -> float:
    finite = np.abs(expected[np.isfinite(expected)])
    scale = min(max(smallest, float(finite.max()) if finite.size else 0.0), float(np.finfo(dtype).max) / 2)
    return float(np.spacing(np.dtype(dtype).type(scale)))


def check_inputs(problem: Problem, inputs: Arrays) -> None:
    """Raise ArgumentError unless the arrays are exactly the problem's inputs."""
    _check(problem.inputs(), inputs, "inputs")


def _check(specs: tuple[TensorSpec, ...], arrays: Arrays, what: str) -> None:
    names = [s.name for s in specs]
    if set(names) != set(arrays):
        raise ArgumentError(explain(f"{what} do not fit the problem", got=sorted(arrays), accepted=names))
    for spec in specs:
        array = arrays[spec.name]
        if tuple(array.shape) != spec.shape or str(array.dtype) != spec.dtype:
            got, wanted = f"{array.dtype} {list(array.shape)}", f"{spec.dtype} {list(spec.shape)}"
            raise ArgumentError(explain(f"array {spec.name!r} does not fit the problem", got=got, accepted=wanted))
