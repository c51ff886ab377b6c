"""Float64 NumPy oracles and the error budget that every kernel is held to.

A kind's oracle is one module here, named in ``_ORACLES``, with ``evaluate(problem, inputs)`` and
``attempts(problem, inputs)``.
"""

from __future__ import annotations

import importlib
from typing import cast

from ..errors import ProblemError, explain
from ..problems import Problem
from .compare import Arrays, Comparison, Expected, Oracle, check_inputs, spread

__all__ = ["Arrays", "Comparison", "Expected", "budget", "check", "compare", "evaluate", "expect"]

_ORACLES = {"attention": ".attention", "softmax": ".softmax"}


def evaluate(problem: Problem, inputs: Arrays) -> Arrays:
    """Every output of the problem, in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from tvm_stof.problems import Softmax
    >>> evaluate(Softmax(rows=1, cols=4), {"x": np.zeros((1, 4), np.float32)})["y"].tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    oracle = _oracle(problem)
    check_inputs(problem, inputs)
    values: Arrays = oracle.evaluate(problem, inputs)
    return values


def budget(problem: Problem, inputs: Arrays, expected: Arrays | None = None) -> dict[str, float]:
    """Largest absolute error allowed for each output.

    Twice the sum of the error that independent NumPy evaluations in the problem's own dtype (float32 products and
    sums) make against float64, and one unit in the last place at the scale of the output. Nothing in it is chosen by
    hand, so it holds for every mask, shape and dtype.
    """
    oracle = _oracle(problem)
    check_inputs(problem, inputs)
    values = evaluate(problem, inputs) if expected is None else expected
    return spread(problem, values, oracle.attempts(problem, inputs), oracle.SMALLEST_SCALE)


def expect(problem: Problem, inputs: Arrays) -> Expected:
    """Oracle values and budgets of one set of inputs, to check many kernels against; of a large problem, on a sample of its rows."""
    oracle = _oracle(problem)
    check_inputs(problem, inputs)
    blocks = oracle.sample(problem)
    values: Arrays = oracle.evaluate(problem, inputs, blocks)
    budgets = spread(problem, values, oracle.attempts(problem, inputs, blocks), oracle.SMALLEST_SCALE)
    return Expected.of(problem, values, budgets, blocks is not None)


def compare(problem: Problem, inputs: Arrays, outputs: Arrays) -> Comparison:
    """Whether a kernel's outputs are within budget of the oracle."""
    return expect(problem, inputs).compare(outputs)


def check(expected: Expected, outputs: Arrays) -> Comparison:
    """``compare`` against an oracle that has been evaluated before."""
    return expected.compare(outputs)


def _oracle(problem: Problem) -> Oracle:
    name = _ORACLES.get(problem.kind)
    if name is None:
        raise ProblemError(explain("no oracle for this kind of problem", got=repr(problem.kind), accepted=_ORACLES))
    oracle: Oracle = cast(Oracle, importlib.import_module(name, __name__))
    return oracle
