"""The cost model of the search: the analytical prior until enough is measured, gradient-boosted trees from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm.ir.utils
from tvm.s_tir.meta_schedule.cost_model import PyCostModel, XGBModel

from ..records import bridge
from ..rules import Decisions

#: Expected time over the best expected time there is; no decisions stand for the unfused family.
Relative = Callable[[Decisions], float]


class _Model(PyCostModel):  # type: ignore[misc]
    """XGBoost behind a prior.

    Before ``warmup`` results the score is a random number, damped by how much slower than the best the analytical model expects a
    candidate to be: every family is
    tried, its promising members first. The stock model would draw from NumPy's global generator instead, which no seed of ours governs.
    """

    def __init__(self, extractor: Any, relative: Relative, warmup: int, seed: int, threads: int) -> None:
        super().__init__()
        config = XGBModel._cls.__init__.__kwdefaults__["config"]._replace(nthread=threads, seed=seed)
        self.learned = XGBModel(extractor=extractor, config=config, num_warmup_samples=1, early_stopping_rounds=10)
        self.relative, self.warmup, self.count = relative, warmup, 0
        self.random = np.random.default_rng(seed)

    def load(self, path: str) -> None:
        raise NotImplementedError("the journal is what is kept")

    def save(self, path: str) -> None:
        raise NotImplementedError("the journal is what is kept")

    def update(self, context: Any, candidates: list[Any], results: list[Any]) -> None:
        self.count += len(candidates)
        self.learned.update(context, candidates, results)

    def predict(self, context: Any, candidates: list[Any]) -> npt.NDArray[np.float64]:
        if self.count >= self.warmup:
            scores: npt.NDArray[np.float64] = self.learned.predict(context, candidates)
            return scores
        damping = [self._damping(bridge.decisions(c.sch.mod)) for c in candidates]
        drawn: npt.NDArray[np.float64] = self.random.uniform(0.0, 1.0, len(candidates)) * np.array(damping)
        return drawn

    def _damping(self, decisions: Decisions) -> float:
        return 1.0 / max(1.0, self.relative(decisions))


Model = tvm.ir.utils.derived_object(_Model)
