"""Hopper emitter: warp-specialised kernels (TMA, mbarriers, wgmma, setmaxnreg) for programs with a prologue contraction and one product."""

from __future__ import annotations

from .emit import Warpgroups, supports
from .materialise import kernel_of
from .plan import Plan

__all__ = ["Plan", "Warpgroups", "kernel_of", "supports"]
