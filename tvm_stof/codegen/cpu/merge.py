"""Partial states of segments and their merge, derived from each stage's ratio (RedFuser Eq. 11).

d_i = R over parts of d_i[part] * ratio_i(part's earlier results -> merged earlier results), stage by stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.tirx.script.builder import ir as B

from ...cascade.program import FusedProgram, Stage
from .loops import COMBINE, local, store, vectors
from .stages import RowState, apply, guarded_ratio, row_leaf


class Partials:
    """Workspaces [tasks, segments, rows(, cols)] that hold each segment's state."""

    def __init__(self, program: FusedProgram, tasks: int, segments: int, rows: int, cols: Mapping[str, int]) -> None:
        self.program, self.segments, self.rows, self.cols = program, segments, rows, cols
        self.shapes = {
            f"part_{s.name}": (tasks, segments, rows, cols[s.name]) if s.axes else (tasks, segments, rows) for s in program.stages
        }

    def save(self, buffers: Mapping[str, Any], state: RowState, task: Any, segment: Any, width: int) -> None:
        """part[task, segment] = state"""
        with B.serial(0, self.rows) as r:
            for s in self.program.stages:
                part = buffers[f"part_{s.name}"]
                if s.axes:
                    held = state.products[s.name]
                    vectors(self.cols[s.name], width, lambda c, _, p=part, h=held: store(p, h[r, c], task, segment, r, c))  # type: ignore[misc]
                else:
                    store(part, state.scalars[s.name][r], task, segment, r)

    def merge(self, buffers: Mapping[str, Any], state: RowState, task: Any, width: int) -> None:
        """state = merge of all segments of one task; ``state`` comes in neutral."""
        with B.serial(0, self.rows) as r:
            for s in self.program.stages:
                part = buffers[f"part_{s.name}"]
                with B.serial(0, self.segments) as g:
                    factor = local(1)
                    if s.ratio is not None:
                        store(factor, self._factor(s, buffers, state, task, g, r), 0)
                    if s.axes:
                        total = state.products[s.name]

                        def add(
                            c: Any, _: Any, part: Any = part, total: Any = total, s: Stage = s, g: Any = g, factor: Any = factor
                        ) -> None:
                            store(total, COMBINE[s.monoid](total[r, c], _based(s, part[task, g, r, c], factor)), r, c)

                        vectors(self.cols[s.name], width, add)
                    else:
                        total = state.scalars[s.name]
                        store(total, COMBINE[s.monoid](total[r], _based(s, part[task, g, r], factor)), r)

    def _factor(self, stage: Stage, buffers: Mapping[str, Any], state: RowState, task: Any, segment: Any, row: Any) -> Any:
        """The ratio from the part's earlier results (``previous``) to the merged ones (``result``)."""
        old = {s.name: buffers[f"part_{s.name}"][task, segment, row] for s in self.program.stages if not s.axes}
        return guarded_ratio(self.program, stage, row_leaf(state, row, {}, lambda e, _: None, None, old), old)


def _based(stage: Stage, value: Any, factor: Any) -> Any:
    return value if stage.ratio is None else apply(stage, value, factor[0])
