"""LLVM's names of processors that records may name, with what code generation must know about each on another machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Processor:
    """Vector width, instruction set, and float32 lanes that its two FMA units really work on in a cycle."""

    vector_bytes: int
    machine: str = "x86_64"
    lanes: int = 16


_SSE, _AVX2 = Processor(16, lanes=4), Processor(32)
_AVX512, _HALF512 = Processor(64, lanes=32), Processor(64)
_NEON, _NEON4 = Processor(16, "aarch64", 8), Processor(16, "aarch64", 16)

PROCESSORS: Mapping[str, Processor] = {
    "x86-64": _SSE, "x86-64-v2": _SSE, "x86-64-v3": _AVX2, "x86-64-v4": _HALF512,
    "haswell": _AVX2, "broadwell": _AVX2, "skylake": _AVX2, "alderlake": _AVX2, "raptorlake": _AVX2, "meteorlake": _AVX2,
    "arrowlake": _AVX2, "lunarlake": _AVX2, "sierraforest": _AVX2, "icelake-client": _HALF512, "tigerlake": _HALF512,
    "rocketlake": _HALF512, "skylake-avx512": _AVX512, "cascadelake": _AVX512, "cooperlake": _AVX512,
    "icelake-server": _AVX512, "sapphirerapids": _AVX512, "emeraldrapids": _AVX512, "graniterapids": _AVX512,
    "znver1": Processor(32, lanes=8), "znver2": _AVX2, "znver3": _AVX2, "znver4": _HALF512, "znver5": _AVX512,
    "generic": _NEON, "neoverse-n1": _NEON, "neoverse-n2": _NEON, "neoverse-v1": _NEON4, "neoverse-v2": _NEON4,
    "cortex-a72": _NEON, "cortex-a76": _NEON, "apple-m1": _NEON4, "apple-m2": _NEON4, "apple-m3": _NEON4,
}  # fmt: skip
