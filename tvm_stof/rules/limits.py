"""The postprocessor that turns candidates away before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tvm.ir.utils
from tvm.s_tir.meta_schedule.postproc import PyPostproc

from ..records import bridge
from .base import Value

Legal = Callable[[Mapping[str, Value]], "str | None"]


class _Limits(PyPostproc):  # type: ignore[misc]
    """Reject decisions for which ``legal`` names a reason; stock-scheduled candidates pass.

    MetaSchedule runs this on threads of its own. An exception here would end the whole search without its text, so it counts as a
    rejection.
    """

    def __init__(self, legal: Legal) -> None:
        super().__init__()
        self.legal = legal

    def _initialize_with_tune_context(self, context: Any) -> None:
        pass

    def apply(self, sch: Any) -> bool:
        try:
            chosen = bridge.decisions(sch.mod)
            return not chosen or self.legal(chosen) is None
        except Exception:
            return False

    def clone(self) -> Any:
        return Limits(self.legal)


Limits = tvm.ir.utils.derived_object(_Limits)
