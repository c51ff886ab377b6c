"""Devices: what a kernel is generated for, with the limits and rates that rules and cost models need."""

from __future__ import annotations

from .device import Device
from .lookup import check_runs_here, current_device, current_gpu, device, here

__all__ = ["Device", "check_runs_here", "current_device", "current_gpu", "device", "here"]
