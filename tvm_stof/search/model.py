"""The cost model of the search: the analytical prior until enough is measured, gradient-boosted trees from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm.ir.utils
import xgboost
from tvm.s_tir.meta_schedule.cost_model import PyCostModel

from ..records import bridge
from ..rules import Decisions

#: Expected time over the best expected time there is; no decisions stand for the unfused family.
Relative = Callable[[Decisions], float]
_Rows = npt.NDArray[np.float32]
_Scores = npt.NDArray[np.float64]
_ROUNDS = 60
_PARAMETERS = {"max_depth": 8, "eta": 0.2, "gamma": 0.001, "min_child_weight": 0, "base_score": 0.0, "nthread": 1, "verbosity": 0}
#: weight of the slowest candidates: the model must tell good from best rather than bad from worse
_LEAST_WEIGHT = 0.1


class Trees:
    """Gradient-boosted trees from feature rows to scores: best time over time, 0 for a failure; a candidate's score is its rows' sum.

    TVM's XGBModel evaluates two metrics after each round and makes its matrices on all cores, which costs ten times the training itself.
    """

    def __init__(self, seed: int) -> None:
        self._parameters = {**_PARAMETERS, "seed": seed}
        self._rows: list[_Rows] = []
        self._seconds: list[float] = []
        self._booster: Any = None

    def add(self, rows: list[_Rows], seconds: list[float]) -> None:
        """Learn results; infinite seconds for a failure."""
        self._rows += rows
        self._seconds += seconds
        times = np.array(self._seconds)
        scores = times.min() / times
        weights = np.maximum(scores, _LEAST_WEIGHT)
        matrix, owner = _matrix(self._rows)

        def objective(predicted: npt.NDArray[Any], _: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
            error = (np.bincount(owner, predicted, len(scores)) - scores) * weights
            return error[owner], weights[owner]

        self._booster = xgboost.train(self._parameters, matrix, num_boost_round=_ROUNDS, obj=objective)

    def scores(self, rows: list[_Rows]) -> _Scores:
        """The expected scores of candidates; ``add`` comes first."""
        matrix, owner = _matrix(rows)
        return np.bincount(owner, self._booster.predict(matrix), len(rows)).astype(np.float64)


def _matrix(rows: list[_Rows]) -> tuple[xgboost.DMatrix, npt.NDArray[np.int64]]:
    owner = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    return xgboost.DMatrix(np.concatenate(rows), nthread=1), owner


class _Model(PyCostModel):  # type: ignore[misc]
    """Trees behind a prior.

    Before ``warmup`` results the score is a random number, damped by how much slower than the best the analytical model expects a
    candidate to be: every family is tried, its promising members first.
    """

    def __init__(self, extractor: Any, relative: Relative, warmup: int, seed: int) -> None:
        super().__init__()
        self.extractor, self.relative, self.warmup = extractor, relative, warmup
        self.trees, self.count = Trees(seed), 0
        self.random = np.random.default_rng(seed)

    def load(self, path: str) -> None:
        raise NotImplementedError("the journal is what is kept")

    def save(self, path: str) -> None:
        raise NotImplementedError("the journal is what is kept")

    def update(self, context: Any, candidates: list[Any], results: list[Any]) -> None:
        self.count += len(candidates)
        seconds = [float(np.median([float(s) for s in r.run_secs])) if r.run_secs else float("inf") for r in results]
        self.trees.add(self._features(context, candidates), seconds)

    def predict(self, context: Any, candidates: list[Any]) -> _Scores:
        if self.count >= self.warmup:
            return self.trees.scores(self._features(context, candidates))
        damping = [self._damping(bridge.decisions(c.sch.mod)) for c in candidates]
        drawn: _Scores = self.random.uniform(0.0, 1.0, len(candidates)) * np.array(damping)
        return drawn

    def _features(self, context: Any, candidates: list[Any]) -> list[_Rows]:
        return [rows.numpy().astype(np.float32) for rows in self.extractor.extract_from(context, candidates)]

    def _damping(self, decisions: Decisions) -> float:
        return 1.0 / max(1.0, self.relative(decisions))


Model = tvm.ir.utils.derived_object(_Model)
