"""From names to devices: this machine, and the ones that records name."""

from __future__ import annotations

import functools
import platform
from importlib import metadata
from typing import Any

from ..errors import MissingDependency, UnsupportedTarget, explain
from .cache import read_facts, write_facts
from .device import Device
from .driver import boards
from .gpus import GPUS, slug_of
from .probe import Machine
from .processors import PROCESSORS, Processor

FACTS = "cpu.json"
NOMINAL_CLOCK = 2.5e9
NOMINAL_CORES = 8
#: A desktop's two channels feed a few cores at this rate each; servers stop scaling where their channels end.
BANDWIDTH_PER_CORE, BANDWIDTH_LIMIT = 12e9, 200e9


@functools.lru_cache(maxsize=1)
def current_device() -> Device:
    """This machine's CPU, with the cores this process may use.

    LLVM's name of it is asked from TVM once per machine and kept in the cache folder, so that later calls import no TVM.
    """
    machine = Machine()
    facts = _facts(machine)
    arch, flags = str(facts["arch"]), machine.flags()
    processor = PROCESSORS.get(arch)
    width = _vector_bytes(flags, processor)
    caches = machine.data_caches()
    lanes = min(width // 2, processor.lanes) if processor else width // 2
    return Device(
        name=f"cpu-{arch}",
        kind="cpu",
        arch=arch,
        triple=f"{platform.machine()}-linux-gnu",
        cores=machine.cores(),
        threads=machine.threads(),
        vector_bytes=width,
        l1_bytes=caches[1],
        l2_bytes=caches[2],
        l3_bytes=caches[3],
        peak_flops=_peak(machine.cores(), float(facts["clock"]), lanes),
        bandwidth=_bandwidth(machine.cores()),
        disabled=_disabled(flags, processor),
    )


def device(name: str) -> Device:
    """The device of a name: ``cpu`` or ``cuda`` (this machine's), ``cpu-<LLVM's name>``, or a GPU of the table; with nominal limits when
    it is another machine's.

    Examples
    --------
    >>> device("cpu-znver3").vector_bytes
    32
    """
    if name == "cuda":
        return current_gpu()
    if name in GPUS:
        return GPUS[name].device(name)
    if name == "cpu" or name == current_device().name:
        return current_device()
    arch = name[4:] if name.startswith("cpu-") else ""
    processor = PROCESSORS.get(arch)
    if processor is None:
        accepted = ["cpu", "cuda", *sorted(GPUS), *(f"cpu-{p}" for p in sorted(PROCESSORS))]
        raise UnsupportedTarget(explain("unknown device", got=repr(name), accepted=accepted))
    caches = {1: 32 << 10, 2: 1 << 20, 3: 32 << 20}
    return Device(
        name=name,
        kind="cpu",
        arch=arch,
        triple=f"{processor.machine}-linux-gnu",
        cores=NOMINAL_CORES,
        threads=NOMINAL_CORES,
        vector_bytes=processor.vector_bytes,
        l1_bytes=caches[1],
        l2_bytes=caches[2],
        l3_bytes=caches[3],
        peak_flops=_peak(NOMINAL_CORES, NOMINAL_CLOCK, processor.lanes),
        bandwidth=_bandwidth(NOMINAL_CORES),
    )


def _facts(machine: Machine) -> dict[str, Any]:
    """LLVM's name and the clock of this CPU, from the cache folder while machine and TVM are the ones it was asked on."""
    identity = {"identity": machine.identity(), "tvm": _version("apache-tvm")}
    facts = read_facts(FACTS)
    known = {name: facts.get(name) for name in identity} == identity
    if not known or not isinstance(facts.get("arch"), str) or not isinstance(facts.get("clock"), float):
        facts = {**identity, "arch": _llvm_name(), "clock": round(machine.clock() or NOMINAL_CLOCK, -7)}
        write_facts(FACTS, facts)
    return facts


def _llvm_name() -> str:
    try:
        from tvm.target import codegen
    except ImportError as error:
        way_out = "Run: pip install apache-tvm==0.27.0.post1"
        raise MissingDependency(explain("TVM is needed to name this CPU", got=str(error), way_out=way_out)) from error
    return str(codegen.llvm_get_system_cpu())


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def _vector_bytes(flags: frozenset[str], processor: Processor | None) -> int:
    widest = 64 if "avx512f" in flags else 32 if "avx2" in flags else 16
    return min(widest, processor.vector_bytes) if processor else widest


def _disabled(flags: frozenset[str], processor: Processor | None) -> tuple[str, ...]:
    """LLVM names a CPU by its model; under a hypervisor that hides features, code for that name would be illegal."""
    if processor is None or processor.machine != "x86_64" or not flags:
        return ()
    implied = {64: ("avx512f",), 32: ("avx2", "fma", "avx")}
    return tuple(
        f"-{feature}"
        for width, features in implied.items()
        for feature in features
        if processor.vector_bytes >= width and feature not in flags
    )


def _peak(cores: int, clock: float, lanes: int) -> float:
    return 2.0 * cores * clock * lanes


def _bandwidth(cores: int) -> float:
    return min(cores * BANDWIDTH_PER_CORE, BANDWIDTH_LIMIT)


@functools.lru_cache(maxsize=1)
def current_gpu() -> Device:
    """This machine's first GPU; UnsupportedTarget when it has none, or none that kernels are generated for."""
    found = boards()
    if not found:
        raise UnsupportedTarget(explain("this machine has no GPU that the CUDA driver shows", accepted="an NVIDIA GPU and its driver"))
    slug = slug_of(found[0].name)
    if slug is None:
        raise UnsupportedTarget(explain("no kernels are generated for this GPU", got=found[0].name, accepted=sorted(GPUS)))
    return GPUS[slug].device(slug)


def here() -> list[str]:
    """Names of the devices this machine has."""
    slugs = [slug_of(board.name) for board in boards()[:1]]
    return [current_device().name, *(s for s in slugs if s is not None)]


def check_runs_here(wanted: Device) -> None:
    """Raise UnsupportedTarget unless this machine runs that device's kernels."""
    if wanted.name != current_device().name and wanted.name not in here():
        raise UnsupportedTarget(explain("this machine cannot run that device's kernels", got=wanted.name, accepted=here()))
