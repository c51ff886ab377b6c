"""What a device is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import RecordError, explain


@dataclass(frozen=True)
class Device:
    """A CPU or GPU as code generation and cost models see it.

    Attributes
    ----------
    name : slug in records: ``cpu-<LLVM's name>``, or the GPU's (``nvidia-h200``).
    kind : "cpu" or "cuda".
    arch : LLVM's name of the processor (``znver4``), compute capability for CUDA (``sm_90a``).
    triple : LLVM's target triple; empty for CUDA.
    cores : physical cores this process may use; multiprocessors of a GPU.
    threads : logical processors this process may use, by affinity and cgroup quota.
    vector_bytes : width of a vector register.
    l1_bytes, l2_bytes, l3_bytes : data caches; L1 and L2 of one core, L3 as a whole. Of a GPU: a block's shared memory, L2, 0.
    peak_flops : float32 operations a second of all usable cores, an estimate from clock and vector width; of a GPU, float16 ones of its
        tensor cores.
    bandwidth : bytes a second from main memory, an estimate.
    disabled : features that ``arch`` implies and this machine lacks (``-avx512f``).
    """

    name: str
    kind: str
    arch: str
    triple: str
    cores: int
    threads: int
    vector_bytes: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    peak_flops: float
    bandwidth: float
    disabled: tuple[str, ...] = ()

    def target_json(self) -> dict[str, Any]:
        """Configuration for ``tvm.target.Target``."""
        if self.kind == "cuda":
            return {"kind": "cuda", "arch": self.arch, "max_threads_per_block": 1024, "max_shared_memory_per_block": self.l1_bytes,
                    "thread_warp_size": 32}  # fmt: skip
        config: dict[str, Any] = {
            "kind": "llvm",
            "mcpu": self.arch,
            "mtriple": self.triple,
            "num-cores": self.threads,
            "opt-level": 2,
        }
        return {**config, "mattr": list(self.disabled)} if self.disabled else config

    def to_data(self) -> dict[str, Any]:
        """Plain data, kept in a record's environment so that the same code can be generated elsewhere."""
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    @staticmethod
    def from_data(data: Any) -> Device:
        """The device of ``to_data``, also of a version without today's optional fields; anything else raises RecordError."""
        types = {f.name: f.type for f in dataclasses.fields(Device)}
        needed = {f.name for f in dataclasses.fields(Device) if f.default is dataclasses.MISSING}
        if not isinstance(data, Mapping) or not needed <= set(data) <= set(types):
            got = sorted(map(str, data)) if isinstance(data, Mapping) else type(data).__name__
            raise RecordError(explain("not the data of a device", got=got, accepted=types))
        for name in data:
            kind = types[name]
            if not _CHECKS[str(kind)](data[name]):
                raise RecordError(explain(f"bad device field {name!r}", got=repr(data[name])[:80], accepted=kind))
        values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
        return Device(**values)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 50


_CHECKS: Mapping[str, Any] = {
    "str": lambda v: isinstance(v, str),
    "int": _is_count,
    "float": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and 0 < v < 1e30,
    "tuple[str, ...]": lambda v: isinstance(v, list) and all(isinstance(s, str) for s in v),
}
