"""The schedule rule behind every fused family: decisions become sampled values annotated on the definition's output block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm.ir.utils
from tvm.s_tir.meta_schedule.schedule_rule import PyScheduleRule

from ..records import bridge
from .base import Value


class _Annotate(PyScheduleRule):  # type: ignore[misc]
    """Turn one family into one design space.

    with T.sblock("out"):          with T.sblock("out"):
        ...                  ->        T.sblock_attr({"stof.family": "single_segment", "stof.rows": <sampled>, ...})
                                       ...

    ``codegen`` builds the kernel from the annotations; the definition's own loops stay as they are. MetaSchedule calls a rule for each
    block; only the output block is answered, and only once. A decision among texts is sampled by its index.
    """

    def __init__(self, family: str, choices: Mapping[str, list[Value]]) -> None:
        super().__init__()
        self.family, self.choices = family, dict(choices)

    def _initialize_with_tune_context(self, context: Any) -> None:
        pass

    def apply(self, sch: Any, block: Any) -> list[Any]:
        name = str(sch.get(block).name_hint)
        if name == "root" or name != bridge.output_block(sch.mod) or bridge.decisions(sch.mod):
            return [sch]
        space = sch.copy()
        out = space.get_sblock(name)
        space.annotate(out, bridge.PREFIX + "family", self.family)
        for key, values in self.choices.items():
            if any(isinstance(v, str) for v in values):
                space.annotate(out, bridge.PREFIX + key + bridge.TEXTS, "|".join(map(str, values)))
                space.annotate(out, bridge.PREFIX + key, _sample(space, list(range(len(values)))))
            else:
                space.annotate(out, bridge.PREFIX + key, _sample(space, [int(v) for v in values]))
        return [space]

    def clone(self) -> Any:
        return Annotate(self.family, self.choices)


def _sample(space: Any, values: list[int]) -> Any:
    return space.sample_categorical(values, [1.0 / len(values)] * len(values))


Annotate = tvm.ir.utils.derived_object(_Annotate)
