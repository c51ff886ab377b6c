"""Decisions of one kernel, and what follows from them: threads, shared memory, registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .fragments import ROWS, WARPGROUP
from .laid import Laid
from .tiles import SharedTile

SHARED_LIMIT, REGISTER_FILE = 232448, 65536
#: (producer, consumer) registers by number of consumers; two warpgroups start with as many as a thread can have, so they keep them
REGISTERS = {1: (248, 248), 2: (24, 240), 3: (32, 160)}
#: registers a consumer needs beside its fragments
BESIDE = 32
BARRIER_BYTES = 8
ALIGN = 1024


@dataclass(frozen=True)
class Plan:
    """What one kernel is specialised for.

    Attributes
    ----------
    block_q : rows of a work item, 64 for each consumer warpgroup.
    block_k : streamed elements of a tile.
    stages : tiles of each streamed operand in shared memory.
    pingpong : consumers take turns at the tensor cores: one's update runs beside another's products.
    overlap : the prologue of tile n runs beside the product of tile n - 1.
    heads_together : outer positions whose row tiles are dealt out in turn, heaviest row tile first.
    test : partial tiles are told by "predicate" or by "bits".
    """

    laid: Laid
    block_q: int
    block_k: int
    stages: int = 2
    pingpong: bool = True
    overlap: bool = True
    heads_together: int = 1
    test: str = "predicate"

    @staticmethod
    def of(laid: Laid, decisions: Mapping[str, Any]) -> Plan:
        """From flat decisions; absent ones take the defaults."""
        numbers = {k: int(decisions[k]) for k in ("block_q", "block_k", "stages", "heads_together") if k in decisions}
        flags = {k: bool(decisions[k]) for k in ("pingpong", "overlap") if k in decisions}
        return Plan(laid, **numbers, **flags, test=str(decisions.get("test", "predicate")))  # type: ignore[arg-type]

    @property
    def consumers(self) -> int:
        return self.block_q // ROWS

    @property
    def threads(self) -> int:
        return WARPGROUP * (self.consumers + 1)

    @property
    def row_tiles(self) -> int:
        return -(-self.laid.shape.row.extent // self.block_q)

    @property
    def tiles(self) -> int:
        return -(-self.laid.program.stream.extent // self.block_k)

    @property
    def ragged(self) -> bool:
        """Whether the last tile reaches past the end of the stream."""
        return self.laid.program.stream.extent % self.block_k != 0

    @property
    def lhs_tile(self) -> SharedTile:
        return SharedTile(ROWS, self.laid.depth)

    @property
    def out_tile(self) -> SharedTile:
        return SharedTile(ROWS, self.laid.width)

    @property
    def key_tile(self) -> SharedTile:
        return SharedTile(self.block_k, self.laid.depth)

    @property
    def operand_tile(self) -> SharedTile:
        return SharedTile(self.block_k, self.laid.width)

    # Shared memory: a slab for each consumer (the left side, then its rows of the output), key stages, operand stages, barriers.
    @property
    def slab(self) -> int:
        return _aligned(max(self.lhs_tile.bytes, self.out_tile.bytes))

    @property
    def key_stage(self) -> int:
        return _aligned(self.key_tile.bytes)

    @property
    def operand_stage(self) -> int:
        return _aligned(self.operand_tile.bytes)

    @property
    def key_base(self) -> int:
        return self.slab * self.consumers

    @property
    def operand_base(self) -> int:
        return self.key_base + self.key_stage * self.stages

    @property
    def barrier_base(self) -> int:
        return self.operand_base + self.operand_stage * self.stages

    @property
    def shared_bytes(self) -> int:
        return self.barrier_base + BARRIER_BYTES * (1 + 4 * self.stages)

    @property
    def redistributes(self) -> bool:
        """Whether the producer gives registers to the consumers (setmaxnreg)."""
        return self.registers[0] != self.registers[1]

    @property
    def registers(self) -> tuple[int, int]:
        """(producer, consumer) registers."""
        return REGISTERS[self.consumers]

    def refusal(self) -> str | None:
        """Why these decisions would hang, spill or not fit; None where they are possible."""
        if self.block_q % ROWS or self.consumers not in REGISTERS:
            return f"block_q {self.block_q}: accepted are 64, 128, 192"
        if self.block_k % 16 or not 16 <= self.block_k <= 256:
            return f"block_k {self.block_k}: accepted are multiples of 16 up to 256"
        if self.stages < 2:
            return "fewer than 2 stages"
        if self.pingpong and self.consumers == 1:
            return "ping-pong of one consumer"
        if self.shared_bytes > SHARED_LIMIT:
            return f"{self.shared_bytes} bytes of shared memory, limit {SHARED_LIMIT}"
        if self.test == "predicate" and self.laid.program.predicate is not None and self._loads_in_predicate():
            return "the predicate reads a tensor: partial tiles need stored bits"
        producer, consumer = self.registers
        launched = REGISTER_FILE // self.threads // 8 * 8
        if producer + self.consumers * consumer > (self.consumers + 1) * launched:
            return "setmaxnreg would wait for ever"
        held = self.block_k // 2 + self.block_k // 4 + self.laid.width // 2  # scores, packed weights, product
        if held > consumer - BESIDE:
            return f"{held} registers of fragments, {consumer - BESIDE} at most"
        return None

    def _loads_in_predicate(self) -> bool:
        predicate = self.laid.program.predicate
        return predicate is not None and any(n.op == "load" for n in predicate.walk())


def _aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN
