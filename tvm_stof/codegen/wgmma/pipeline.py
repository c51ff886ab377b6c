"""Barriers between the producer and the consumers: rings of stages that fill and empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .instructions import fence_async_proxy, mbarrier_arrive, mbarrier_expect, mbarrier_init, mbarrier_wait
from .plan import BARRIER_BYTES, Plan

KEY, OPERAND = 0, 1


@dataclass(frozen=True)
class Pipeline:
    """mbarriers in shared memory, as 64-bit slots.

    Slot order: full and empty of each stage of the key ring, the same of the operand ring, then the one of the left side.
    """

    plan: Plan
    slots: Any

    def _slot(self, number: Any) -> Any:
        return self.slots.ptr_to([self.plan.barrier_base // BARRIER_BYTES + number])

    def full(self, ring: int, n: Any) -> Any:
        """Barrier that the n-th tile of a ring has arrived."""
        return self._slot(2 * ring * self.plan.stages + n % self.plan.stages)

    def empty(self, ring: int, n: Any) -> Any:
        """Barrier that the stage of the n-th tile is free again."""
        return self._slot((2 * ring + 1) * self.plan.stages + n % self.plan.stages)

    @property
    def lhs(self) -> Any:
        return self._slot(4 * self.plan.stages)

    def init(self) -> None:
        """One thread, before any other uses a barrier."""
        for ring in (KEY, OPERAND):
            for stage in range(self.plan.stages):
                mbarrier_init(self.full(ring, stage), 1)
                mbarrier_init(self.empty(ring, stage), self.plan.consumers)
        mbarrier_init(self.lhs, 1)
        fence_async_proxy()

    def wait_full(self, ring: int, n: Any) -> None:
        """Until the n-th tile is there."""
        mbarrier_wait(self.full(ring, n), n // self.plan.stages % 2)

    def wait_empty(self, ring: int, n: Any) -> None:
        """Until the n-th tile's stage is free; at once in the first round."""
        mbarrier_wait(self.empty(ring, n), 1 - n // self.plan.stages % 2)

    def wait_lhs(self) -> None:
        mbarrier_wait(self.lhs, 0)

    def expect(self, barrier: Any, size: int) -> Any:
        """Announce bytes to a barrier, and return it."""
        mbarrier_expect(barrier, size)
        return barrier

    def release(self, ring: int, n: Any, leader: Any) -> None:
        """This consumer is done with the n-th tile; ``leader`` is true in one of its threads."""
        mbarrier_arrive(self.empty(ring, n), 1, pred=leader)
