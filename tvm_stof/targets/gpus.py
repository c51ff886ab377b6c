"""NVIDIA GPUs by the names drivers give them, with what code generation must know about each on a machine without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .device import Device


@dataclass(frozen=True)
class Gpu:
    """A board.

    Attributes
    ----------
    arch : compute capability with the suffix that unlocks its own instructions.
    multiprocessors, shared_bytes, l2_bytes : as the driver reports them; shared memory is one block's at most.
    tensor_flops, bandwidth : float16 with float32 sums and no sparsity, bytes a second; from the vendor's datasheet.
    aliases : how drivers name it.
    """

    arch: str
    multiprocessors: int
    shared_bytes: int
    l2_bytes: int
    tensor_flops: float
    bandwidth: float
    aliases: tuple[str, ...]

    def device(self, name: str) -> Device:
        """As rules and emitters see it: cores are multiprocessors, the first level of cache is a block's shared memory."""
        return Device(name, "cuda", self.arch, "", self.multiprocessors, 1, 16, self.shared_bytes, self.l2_bytes, 0, self.tensor_flops,
                      self.bandwidth)  # fmt: skip


GPUS: Mapping[str, Gpu] = {
    "nvidia-h200": Gpu("sm_90a", 132, 232448, 60 << 20, 989e12, 4.8e12, ("NVIDIA H200",)),
    "nvidia-h100": Gpu("sm_90a", 132, 232448, 50 << 20, 989e12, 3.35e12, ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM5 80GB")),
    "nvidia-h100-pcie": Gpu("sm_90a", 114, 232448, 50 << 20, 756e12, 2.0e12, ("NVIDIA H100 PCIe",)),
    "nvidia-gh200": Gpu("sm_90a", 132, 232448, 60 << 20, 989e12, 4.0e12, ("NVIDIA GH200 480GB", "GH200 480GB")),
}


def slug_of(driver_name: str) -> str | None:
    """The device's name in records, None for a board that is not in the table."""
    return next((slug for slug, gpu in GPUS.items() if driver_name in gpu.aliases), None)

