"""The design spaces MetaSchedule searches: one for each fused family, and the stock-scheduled definition beside them."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

# TuneContext imports 248 parsed tensor intrinsics (20 s) that no rule of ours uses: an empty module stands in for them.
sys.modules.setdefault("tvm.s_tir.tensor_intrin", types.ModuleType("tvm.s_tir.tensor_intrin"))

import tvm.ir.utils  # noqa: E402
from tvm.s_tir import Schedule  # noqa: E402
from tvm.s_tir.meta_schedule.space_generator import PySpaceGenerator  # noqa: E402

from ..records import bridge  # noqa: E402
from ..rules import Rule, Value, rulesets, unfused  # noqa: E402
from ..rules.annotate import Annotate  # noqa: E402
from ..rules.limits import Legal, Limits  # noqa: E402
from ..rules.mutator import MutateDecision  # noqa: E402

#: the unfused family is one draw in this many: its candidates are slow to build and rarely win
UNFUSED_SHARE = 8


class Family:
    """One fused family's space: its schedule with sampled decisions, from which any setting of them can be made."""

    def __init__(self, rule: Rule, choices: Mapping[str, list[Value]], module: Any) -> None:
        self.rule, self.choices = rule, dict(choices)
        schedule = Schedule(module)
        block = schedule.get_sblock(bridge.output_block(module))
        self.schedule = Annotate(rule.family, self.choices).apply(schedule, block)[0]

    def offers(self, decisions: Mapping[str, Value]) -> bool:
        """Whether these decisions are a point of the space."""
        return set(decisions) == {"family", *self.choices} and all(decisions[n] in values for n, values in self.choices.items())

    def setting(self, decisions: Mapping[str, Value], module: Any) -> Any:
        """A schedule whose samples are these decisions, as if the search had drawn them."""
        trace = self.schedule.trace
        samples = [i for i in trace.insts if i.kind.name == "SampleCategorical"]
        for instruction, (name, values) in zip(samples, self.choices.items()):
            trace = trace.with_decision(instruction, values.index(decisions[name]), remove_postproc=True)
        schedule = Schedule(module)
        trace.apply_to_schedule(schedule, remove_postproc=False)
        return schedule


class _Spaces(PySpaceGenerator):  # type: ignore[misc]
    """Every fused family has the same share of the first draw; evolutionary search draws uniformly over the spaces it is given."""

    def __init__(self, families: Sequence[Family], legal: Legal, stock: str | None) -> None:
        super().__init__()
        self.families, self.legal, self.stock = list(families), legal, stock
        self.sch_rules: list[Any] = []
        self.postprocs = [Limits(legal), *(unfused.postprocs(stock) if stock else [])]
        self.mutator_probs = {**({MutateDecision(): 1.0} if families else {}), **(unfused.mutators(stock) if stock else {})}
        self._context: Any = None

    def _initialize_with_tune_context(self, context: Any) -> None:
        self._context = context
        for part in [*self.postprocs, *self.mutator_probs]:
            part._initialize_with_tune_context(context)

    def clone(self) -> Any:
        return Spaces(self.families, self.legal, self.stock)

    def generate_design_space(self, mod: Any) -> list[Any]:
        stock = unfused.spaces(mod, self._context, self.stock) if self.stock else []
        ours = [f.schedule for f in self.families]
        if not ours or not stock:
            return [*ours, *stock]
        return [*stock, *(ours * max(1, (UNFUSED_SHARE - 1) * len(stock) // len(ours)))]


Spaces = tvm.ir.utils.derived_object(_Spaces)


def families(problem: Any, device: Any, names: Sequence[str] | None, module: Any) -> tuple[list[Family], bool]:
    """The fused families of a problem and whether the unfused one is wanted too."""
    rules = rulesets.rules_for(problem, device, names)
    fused = [Family(r, rulesets.choices(r, problem, device), module) for r in rules if not rulesets.is_unfused(r)]
    return fused, any(rulesets.is_unfused(r) for r in rules)
