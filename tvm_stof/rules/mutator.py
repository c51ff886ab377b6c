"""How evolutionary search changes one decision of a fused family."""

from __future__ import annotations

import random
from typing import Any

import tvm.ir.utils
from tvm.s_tir.meta_schedule.mutator import PyMutator


class _MutateDecision(PyMutator):  # type: ignore[misc]
    """Move one sampled decision, to a neighbour half of the time and anywhere else otherwise.

    v = sample_categorical([16, 32, 64, 128], decision=1)   ->   v = sample_categorical([16, 32, 64, 128], decision=2)

    Tile sizes are listed in order and times change smoothly along them, so neighbours are worth more tries than strangers.
    """

    def __init__(self) -> None:
        super().__init__()

    def _initialize_with_tune_context(self, context: Any) -> None:
        pass

    def apply(self, trace: Any, seed: int) -> Any:
        open_ = [i for i in trace.insts if i.kind.name == "SampleCategorical" and len(i.attrs[0]) > 1]
        if not open_:
            return None
        rng = random.Random(seed)
        chosen = rng.choice(open_)
        at, count = int(trace.get_decision(chosen)), len(chosen.attrs[0])
        near = [n for n in (at - 1, at + 1) if 0 <= n < count]
        far = [n for n in range(count) if n != at]
        return trace.with_decision(chosen, rng.choice(near if rng.random() < 0.5 else far), remove_postproc=True)

    def clone(self) -> Any:
        return MutateDecision()


MutateDecision = tvm.ir.utils.derived_object(_MutateDecision)
