"""Hopper emitter: warp-specialised kernels (TMA, mbarriers, wgmma, setmaxnreg) for programs with a prologue contraction and one product."""

from __future__ import annotations

from .emit import Warpgroups, supports
from .plan import Plan

__all__ = ["Plan", "Warpgroups", "supports"]
