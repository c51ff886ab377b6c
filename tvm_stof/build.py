"""From a record's decisions to something that runs: generated, compiled in this process, or read from the per-machine cache."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import kernel_cache, native
from .native import Executable, Prepared, Scratch
from .problems import Problem
from .targets import Device

if TYPE_CHECKING:
    from .codegen import Kernel

__all__ = ["Executable", "Scratch", "cached", "compile", "kernel_of", "lower", "source_digest", "source_text"]

log = logging.getLogger(__name__)


def kernel_of(problem: Problem, decisions: Mapping[str, Any], trace: Any, device: Device) -> Kernel:
    """The generated kernel of a record's decisions (or of its trace, for the unfused family)."""
    if decisions.get("family") != "unfused":
        from .codegen import materialise

        return materialise(problem, decisions, device)
    from .codegen.cpu import exp
    from .records import bridge

    exp.register()
    return bridge.unfused_kernel(problem, bridge.replay(problem, decisions, trace).mod)


def source_text(kernel: Kernel) -> str:
    """The kernel as TVMScript; the same text on every machine."""
    return str(kernel.module.script())


def source_digest(kernel: Kernel) -> str:
    """SHA-256 of ``source_text``, as records hold it."""
    return hashlib.sha256(source_text(kernel).encode("utf-8")).hexdigest()


def compile(kernel: Kernel, device: Device) -> Executable:
    """Compile in this process."""
    module = lower(kernel.module, device).mod
    return Executable(module["main"], _prepared(kernel), module)


def cached(problem: Problem, decisions: Mapping[str, Any], trace: Any, device: Device) -> Executable:
    """The kernel from the per-machine cache, built first when it is not there or damaged. A hit imports no TVM.

    Where the cache cannot be used (no C compiler to link with, a folder we may not write or must not trust), a warning says so and the
    kernel is compiled in this process, at this and every later load.
    """
    key = kernel_cache.key(problem, decisions, trace, device)
    kernel: Kernel | None = None
    try:
        native.set_threads(device.threads)
        found = kernel_cache.read(key, device.kind)
        if found is None:
            kernel_cache.check_usable()
            kernel = kernel_of(problem, decisions, trace, device)
            kernel_cache.write(key, lower(kernel.module, device).export_library, _prepared(kernel))
            found = kernel_cache.read(key, device.kind)
    except kernel_cache.Unusable as reason:
        log.warning("%s; the kernel is compiled in this process at each load", reason)
        found = None
    return found or compile(kernel or kernel_of(problem, decisions, trace, device), device)


def lower(module: Any, device: Device) -> Any:
    """TVM's executable of a kernel's module: machine code, or CUDA text where no GPU is at hand.

    The Hopper emitter writes TIRx, which has a lowering pipeline of its own.
    """
    native.set_threads(device.threads)
    import tvm

    pipeline = "tirx" if device.kind == "cuda" else "default"
    return tvm.compile(module, target=tvm.target.Target(device.target_json()), tir_pipeline=pipeline)


def _prepared(kernel: Kernel) -> tuple[Prepared, ...]:
    return tuple(p if isinstance(p, np.ndarray) else Scratch(tuple(p.shape), p.dtype) for p in kernel.prepared)
