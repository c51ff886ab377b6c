"""Kernels from fused programs: ``materialise`` picks the emitter for a device and a program's structure."""

from __future__ import annotations

from .kernel import Kernel, Prepared, Workspace
from .materialise import materialise

__all__ = ["Kernel", "Prepared", "Workspace", "materialise"]
