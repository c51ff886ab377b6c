"""MetaSchedule's search over our design spaces, one proposal batch at a time."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .space import Family, Spaces, families  # isort: skip  (first: it keeps TVM from a slow import)

import tvm
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.database import MemoryDatabase, TuningRecord
from tvm.s_tir.meta_schedule.runner import RunnerResult
from tvm.s_tir.meta_schedule.search_strategy import EvolutionarySearch, MeasureCandidate

from .. import canonical
from ..definitions import definition
from ..errors import RecordError
from ..problems import Problem
from ..records import bridge
from ..records.model import Trial
from ..rules import Value, cost, legal, rulesets
from ..targets import Device
from .features import Columns, Features
from .model import Model
from .task import Decisions

#: results after which the learned model takes over from the analytical prior
WARM_UP = 16


@dataclass
class Proposal:
    """A candidate of the search.

    Attributes
    ----------
    identity : what the journal knows it by.
    module_json : the scheduled definition, for unfused candidates.
    trace_json : seconds -> the trace as a record keeps it, for unfused candidates.
    """

    candidate: Any
    decisions: Decisions
    identity: str
    module_json: str | None = None
    trace_json: Any = None


class Evolution:
    """Proposes candidates and learns from their times."""

    def __init__(self, problem: Problem, device: Device, names: Sequence[str] | None, seed: int) -> None:
        self.problem, self.device, self.names, self.seed = problem, device, names, seed
        self.module = definition(problem)
        self.families, self.unfused = families(problem, device, names, self.module)
        self._by_name = {f.rule.family: f for f in self.families}
        self._rules = [f.rule for f in self.families]
        self._legal: dict[str, str | None] = {}

    def default(self) -> tuple[Decisions, str | None]:
        """The analytical model's first choice; the unscheduled definition, as JSON, where only the unfused family is searched."""
        decisions = dict(rulesets.default(self.problem, self.device, self.names))
        return decisions, str(tvm.ir.save_json(self.module)) if decisions["family"] == "unfused" else None

    def ranked(self) -> list[Decisions]:
        """Every legal fused candidate, promising ones first."""
        return [dict(c) for c in rulesets.ranked(self._rules, self.problem, self.device)]

    def small(self, trials: int) -> bool:
        """Whether the fused families have no more candidates than the budget (and nothing else is searched)."""
        if self.unfused:
            return False
        return sum(1 for _ in rulesets.candidates(self._rules, self.problem, self.device)) <= trials

    def start(self, trials: int, batch: int) -> None:
        """Set the search up."""
        logging.getLogger("tvm.s_tir.meta_schedule").setLevel(logging.ERROR)
        target = tvm.target.Target(self.device.target_json())
        stock = self.device.kind if self.unfused else None
        space = Spaces(self.families, self._why_not, stock)
        strategy = EvolutionarySearch(population_size=32, init_measured_ratio=0.3, init_min_unmeasured=8, genetic_num_iters=2)
        self.database = MemoryDatabase()
        self.workload = self.database.commit_workload(self.module)
        columns = Columns({f.rule.family: f.choices for f in self.families}, lambda d: cost(self.problem, d, self.device))
        self.model = Model(Features(columns, stock is not None), self._relative(), WARM_UP, self.seed)
        self.arguments = bridge.arguments(self.module)
        self.context = ms.TuneContext(self.module, target=target, space_generator=space, search_strategy=strategy,
                                      rand_state=self.seed + 1, num_threads=1, logger=_silent())  # fmt: skip
        self.context.pre_tuning(max(trials, 1) * 100, batch, database=self.database, cost_model=self.model)

    def recall(self, known: Iterable[Trial]) -> None:
        """Let what is known already train the model and seed the population, as far as today's rules still offer it."""
        seeds = [(s, t) for t in known if (s := self._seed(t)) is not None]
        self.learn([s for s, _ in seeds], [t for _, t in seeds])

    def propose(self) -> list[Proposal] | None:
        """The next batch, None when the space is exhausted."""
        found = self.context.generate_measure_candidates()
        if found is None:
            return None
        batch = [self._proposal(c) for c in found]
        self.context.notify_runner_results(found, [RunnerResult([1.0], None)] * len(found))
        return batch

    def learn(self, proposals: Sequence[Proposal], trials: Sequence[Trial]) -> None:
        """Commit results; the model is never trained on failures alone, which it would take for the best there is."""
        pairs = list(zip(proposals, trials))
        for proposal, trial in pairs:
            seconds = list(trial.seconds) or [bridge.FAILED_SECONDS]
            record = TuningRecord(proposal.candidate.sch.trace, self.workload, seconds, self.context.target, self.arguments)
            self.database.commit_tuning_record(record)
        if any(t.seconds for _, t in pairs):
            results = [RunnerResult(list(t.seconds), None) if t.seconds else RunnerResult(None, t.message or t.outcome) for _, t in pairs]
            self.model.update(self.context, [p.candidate for p, _ in pairs], results)

    def _proposal(self, candidate: Any) -> Proposal:
        schedule = candidate.sch
        decisions = bridge.decisions(schedule.mod)
        if decisions:
            return Proposal(candidate, decisions, canonical.dumps(decisions))
        target = self.device.target_json()
        trace = bridge.to_trace(schedule.trace, self.module, None, target)
        return Proposal(candidate, {"family": "unfused"}, canonical.key({"trace": trace[0]}), tvm.ir.save_json(schedule.mod),
                        lambda seconds: bridge.to_trace(schedule.trace, self.module, seconds, target))  # fmt: skip

    def _seed(self, trial: Trial) -> Proposal | None:
        decisions = dict(trial.decisions)
        family: Family | None = self._by_name.get(str(decisions.get("family")))
        if family is not None and family.offers(decisions) and self._why_not(decisions) is None:
            return Proposal(MeasureCandidate(family.setting(decisions, self.module), self.arguments), decisions, canonical.dumps(decisions))
        if self.unfused and trial.trace is not None and decisions == {"family": "unfused"}:
            try:
                schedule = bridge.apply(trial.trace, self.module)
            except RecordError:
                return None
            return Proposal(MeasureCandidate(schedule, self.arguments), decisions, trial.identity[2])
        return None

    def _why_not(self, decisions: Mapping[str, Value]) -> str | None:
        return legal(self.problem, decisions, self.device)

    def _relative(self) -> Any:
        """Expected time over the best expected time of all candidates."""
        every = rulesets.candidates(self._rules, self.problem, self.device)
        best = min((cost(self.problem, c, self.device).seconds for c in every), default=0.0)
        return lambda d: cost(self.problem, d or {"family": "unfused"}, self.device).seconds / best if best else 1.0


def module_of(problem: Problem, trial: Trial) -> str:
    """The scheduled definition of an unfused trial, as JSON for a worker."""
    return str(tvm.ir.save_json(bridge.replay(problem, trial.decisions, trial.trace).mod))


def _silent() -> logging.Logger:
    logger = logging.getLogger("tvm_stof.search.metaschedule")
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    return logger
