"""What the learned cost model sees of a candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
import tvm.ir.utils
from tvm.s_tir.meta_schedule.feature_extractor import PerStoreFeature, PyFeatureExtractor

from ..records import bridge
from ..rules import Cost, Value

#: Columns of TVM's PerStoreFeature.
STOCK_COLUMNS = 164
_Row = npt.NDArray[np.float64]


class Columns:
    """Own features of fused candidates: family bits, decisions and the analytical model's expectation, in powers of two.

    A text decision is the position among its choices.
    """

    def __init__(self, choices: Mapping[str, Mapping[str, Sequence[Value]]], cost: Callable[[Mapping[str, Value]], Cost]) -> None:
        self._families = list(choices)
        self._names = sorted({name for family in choices.values() for name in family})
        every = [(name, str(v)) for family in choices.values() for name, values in family.items() for v in values]
        self._texts = {name: sorted({v for n, v in every if n == name}) for name, _ in every}
        self._cost = cost

    @property
    def width(self) -> int:
        return len(self._families) + len(self._names) + 4

    def row(self, decisions: Mapping[str, Value]) -> list[float]:
        """The features of one candidate, all finite."""
        cost = self._cost(decisions)
        return [
            *(float(decisions["family"] == family) for family in self._families),
            *(self._number(name, decisions[name]) if name in decisions else -1.0 for name in self._names),
            *(_log2(v) for v in (cost.seconds * 1e9, cost.work, cost.bytes)),
            cost.balance,
        ]

    def _number(self, name: str, value: Value) -> float:
        return float(self._texts[name].index(value)) if isinstance(value, str) else _log2(value)


class _Features(PyFeatureExtractor):  # type: ignore[misc]
    """One row of own columns for a fused candidate; TVM's rows, behind zeros, for an unfused one (the model adds a candidate's rows up)."""

    def __init__(self, columns: Columns, stock: bool) -> None:
        super().__init__()
        self.columns, self.stock = columns, PerStoreFeature() if stock else None

    def extract_from(self, context: Any, candidates: list[Any]) -> list[Any]:
        found = [bridge.decisions(c.sch.mod) for c in candidates]
        plain = [c for c, d in zip(candidates, found) if not d]
        stock = iter(self.stock.extract_from(context, plain) if self.stock is not None and plain else [])
        return [tvm.runtime.tensor(self._own(d) if d else self._behind_zeros(next(stock).numpy())) for d in found]

    def _own(self, decisions: Mapping[str, Value]) -> _Row:
        return np.array([self.columns.row(decisions) + [0.0] * (STOCK_COLUMNS if self.stock is not None else 0)])

    def _behind_zeros(self, rows: npt.NDArray[Any]) -> _Row:
        padded = np.pad(rows.astype(np.float64), ((0, 0), (self.columns.width, 0)))
        return padded if len(padded) else np.zeros((1, self.columns.width + STOCK_COLUMNS))


def _log2(value: float) -> float:
    return float(np.log2(max(float(value), 1.0)))


Features = tvm.ir.utils.derived_object(_Features)
