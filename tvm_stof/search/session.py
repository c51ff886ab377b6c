"""One tune: default first, then enumeration or evolutionary search, then the finalists again; a journal line as each is measured."""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import __version__, canonical, records, targets
from ..errors import UsageError, explain
from ..problems import Problem
from ..records import environment
from ..records.model import Trial
from .budget import Budget
from .progress import Progress
from .task import Decisions, Job, Materialise, Reply, Sampling, Task, materialise
from .workers import Farm, TimeOuts, time_outs_of

if TYPE_CHECKING:
    from .evolution import Evolution

#: decisions, scheduled definition (unfused only), and seconds -> trace as the record keeps it
Wanted: TypeAlias = "tuple[Decisions, str | None, Callable[[Sequence[float]], Any] | None]"
#: finalists timed again, and how
FINALISTS = 5
FINAL = Sampling(seconds=0.4, least=8, most=40)
BATCH = 8
#: each builder holds a GPU context and its own copy of the inputs
MAX_BUILDERS = 12


@dataclass(frozen=True)
class TuneResult:
    """What a tune found.

    Attributes
    ----------
    best : fastest correct candidate, None when there is none.
    default : the untuned first choice, measured first; a result is never slower than it.
    trials : all trials of this problem on this device in the journal.
    stopped : "trials", "seconds", "exhausted" (nothing new is left) or "interrupted".
    journal : the file they are in.
    """

    problem: Problem
    best: Trial | None
    default: Trial | None
    trials: list[Trial]
    stopped: str
    journal: Path


def tune(problem: Problem, *, device: str | None = None, trials: int = 64, seconds: float | None = None, seed: int = 0,
         logs: str | Path = "tuning_logs", progress: bool = True, families: Sequence[str] | None = None, workers: int | None = None,
         materialise: Materialise = materialise, time_outs: TimeOuts | None = None) -> TuneResult:  # fmt: skip
    """Search the best kernel for a problem.

    Parameters
    ----------
    device : slug; this machine by default.
    trials : candidates to measure at most, those the journal already has included.
    seconds : time budget, worker start included.
    logs : folder of journals; lines go to ``<logs>/<device>/<kind>.jsonl``.
    families : only these families.
    workers : build processes; one for each usable core by default, at most MAX_BUILDERS for a GPU.

    Raises
    ------
    StorageError : the journal cannot be written (before anything is measured).
    UsageError : a budget that is not positive, or an unknown family.
    WorkerError : workers cannot be started, or the oracle cannot be evaluated.

    Examples
    --------
    >>> tune(Softmax(rows=1024, cols=1024), trials=32).best.seconds_median  # doctest: +SKIP
    0.0002
    """
    for name, value in (("trials", trials), ("seconds", seconds), ("workers", workers)):
        if value is not None and value <= 0:
            raise UsageError(explain(f"{name} must be positive", got=value))
    budget = Budget(trials, seconds)
    machine = targets.current_device() if device is None else targets.device(device)
    targets.check_runs_here(machine)
    journal = records.Journal(Path(logs) / machine.name / f"{problem.kind}.jsonl")
    journal.check_writable()
    with tempfile.TemporaryDirectory(prefix="tvm_stof_") as scratch, budget.interrupt, Progress(trials, seconds, not progress) as shown:
        builders = machine.threads if machine.kind == "cpu" else min(MAX_BUILDERS, targets.current_device().threads)
        farm = Farm(workers or builders, machine.threads, Path(scratch), time_outs or time_outs_of(machine), machine.kind == "cpu")
        try:
            session = Session(problem, machine, journal, budget, seed, shown, farm, families)
            stopped = session.run(Task(problem, machine, seed, materialise))
        finally:
            farm.close()
    return session.result(stopped)


class Session:
    """The state of one tune."""

    def __init__(self, problem: Problem, device: targets.Device, journal: records.Journal, budget: Budget, seed: int, progress: Progress,
                 farm: Farm, families: Sequence[str] | None) -> None:  # fmt: skip
        self.problem, self.device, self.journal, self.budget, self.seed = problem, device, journal, budget, seed
        self.progress, self.farm, self.families = progress, farm, families
        self.batch = max(BATCH, farm.workers)
        self.environment = journal.append_environment(environment.collect(device))
        self.trials = [t for t in journal.read().trials if t.key == problem.key() and t.device == device.name]
        self.known = {t.identity[2]: t for t in self.trials}
        self.default: Trial | None = None
        self.jobs = 0
        times = [t.seconds_median for t in self.known.values() if t.seconds_median is not None]
        progress.resumed(len(self.known), min(times, default=float("inf")))

    def run(self, task: Task) -> str:
        """Everything; why it stopped."""
        start = threading.Thread(target=self._start, args=(task,), daemon=True)
        self._failure: list[BaseException] = []
        start.start()
        from .evolution import Evolution  # imports TVM while the workers do

        search = Evolution(self.problem, self.device, self.families, self.seed)
        small = search.small(self.budget.trials)
        if not small:
            search.start(self.budget.trials, self.batch)
        start.join()
        if self._failure:
            raise self._failure[0]
        self._default(*search.default())
        stopped = self._enumerate(search) if small else self._evolve(search)
        if self.budget.interrupt.count < 2:
            self._finals()
        return stopped

    def _start(self, task: Task) -> None:
        try:
            self.farm.start(task)
            self.farm.ready()
        except BaseException as error:
            self._failure.append(error)

    def _default(self, decisions: Decisions, module: str | None) -> None:
        """Measure the analytical model's first choice, or take it from the journal."""
        known = self.known.get(canonical.dumps(decisions))
        if known is None:
            for known in self._measure([(decisions, module, None)]):
                self.progress.note(known.seconds_median, is_default=True)
        self.default = known
        self.progress.default = known.seconds_median if known is not None else None

    def _enumerate(self, search: Evolution) -> str:
        """A space no larger than the budget: every candidate, the promising ones first."""
        waiting = [c for c in search.ranked() if canonical.dumps(c) not in self.known]
        while waiting:
            stopped = self.budget.spent(len(self.known))
            if stopped:
                return stopped
            batch, waiting = waiting[: self.batch], waiting[self.batch :]
            self._measure([(c, None, None) for c in batch])
        return "exhausted"

    def _evolve(self, search: Evolution) -> str:
        """MetaSchedule's evolutionary search under the learned cost model."""
        search.recall(self.known.values())
        dry = 0
        while dry < 6:
            stopped = self.budget.spent(len(self.known))
            if stopped:
                return stopped
            batch = search.propose()
            if batch is None:
                break
            new = {p.identity: p for p in batch if p.identity not in self.known}
            chosen = list(new.values())[: self.budget.trials - len(self.known)]
            dry = 0 if chosen else dry + 1
            measured = self._measure([(p.decisions, p.module_json, p.trace_json) for p in chosen])
            search.learn(chosen, measured)
        return "exhausted"

    def _measure(self, wanted: Sequence[Wanted], sampling: Sampling | None = None, final: bool = False) -> list[Trial]:
        """Build side by side, run one by one, write each line at once; stops early when the budget is spent."""
        jobs = [Job(self._number(), decisions, module) for decisions, module, _ in wanted]
        replies = self.farm.build(jobs, lambda: self._late(final))
        done: list[Trial] = []
        for job, (decisions, _, trace) in zip(jobs, wanted):
            reply = replies.get(job.id)
            if reply is None or (done and self._late(final)):
                break
            if reply.ok:
                reply = self.farm.run(job, sampling or Sampling())
            trial = self._trial(decisions, reply, trace(reply.seconds) if trace is not None else None)
            self.journal.append_trial(trial)
            self.trials.append(trial)
            self.known[trial.identity[2]] = trial
            done.append(trial)
            if not final and self.default is not None:
                self.progress.note(trial.seconds_median)
        return done

    def _late(self, final: bool) -> bool:
        """Whether to leave the rest of a batch: the default is measured whatever the seconds, the finals until a second Ctrl-C."""
        if final:
            return self.budget.interrupt.count > 1
        if self.default is None:
            return self.budget.interrupt.count > 0
        return self.budget.spent(0) is not None

    def _finals(self) -> None:
        """Time the best few again, longer, so that the winner is not the luckiest of noise; not again where that is how they stand."""
        usable = [t for t in self.known.values() if t.outcome == "ok" and (t.decisions.get("family") != "unfused" or t.trace is not None)]
        ranked = sorted(usable, key=lambda t: t.seconds_median or float("inf"))[:FINALISTS]
        if self.default is not None and self.default.outcome == "ok" and all(t.identity != self.default.identity for t in ranked):
            ranked.append(self.default)
        times = Counter(t.identity for t in self.trials if t.outcome == "ok")
        if len(ranked) < 2 or all(times[t.identity] > 1 for t in ranked):
            return
        from .evolution import module_of

        wanted: list[Wanted] = []
        for t in ranked:
            module = module_of(self.problem, t) if t.decisions.get("family") == "unfused" else None
            wanted.append((dict(t.decisions), module, _keep(t.trace) if t.trace else None))
        for again in self._measure(wanted, FINAL, final=True):
            if self.default is not None and again.identity == self.default.identity:
                self.default = again

    def _number(self) -> int:
        self.jobs += 1
        return self.jobs

    def _trial(self, decisions: Decisions, reply: Reply, trace: Any) -> Trial:
        from ..rules import cost

        default = self.default.seconds_median if self.default is not None else None
        return Trial(
            problem=self.problem.to_data(), key=self.problem.key(), device=self.device.name, decisions=dict(decisions), trace=trace,
            outcome=reply.outcome, message=reply.message[:4000], seconds=tuple(_rounded(s) for s in reply.seconds) if reply.ok else (),
            error=reply.error, default_seconds=default, floor_seconds=_rounded(cost(self.problem, decisions, self.device).floor_seconds),
            source_digest=reply.digest, environment=self.environment, seed=self.seed, trial=len(self.trials),
            time=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), tool=__version__,
        )  # fmt: skip

    def result(self, stopped: str) -> TuneResult:
        """The best of the journal by the rule that ``load`` uses."""
        best = records.best(self.trials, self.problem.key(), self.device.name)
        return TuneResult(self.problem, best, self.default, self.trials, stopped, self.journal.path)


def _keep(trace: Any) -> Callable[[Sequence[float]], Any]:
    """The trace a trial already has, whatever is measured now."""
    return lambda _: trace


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.6g}")
