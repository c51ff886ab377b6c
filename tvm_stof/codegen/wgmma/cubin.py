"""From a kernel module to CUDA text and, where nvcc is, to a cubin with the assembler's report."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm
from tvm.target import Target

from ...errors import MissingDependency, UnsupportedTarget, explain
from .plan import SHARED_LIMIT

TARGET: Mapping[str, Any] = {"kind": "cuda", "arch": "sm_90a", "max_threads_per_block": 1024, "max_shared_memory_per_block": SHARED_LIMIT,
                             "thread_warp_size": 32}  # fmt: skip
#: unused variables and expressions are what generated text is full of
FLAGS = ("-gencode", "arch=compute_90a,code=sm_90a", "-O3", "-diag-suppress", "177,550,1046", "-Xptxas", "-v", "-cubin")


def compiled(module: Any) -> Any:
    """The executable of a kernel module (no CUDA compiler runs yet)."""
    return tvm.compile(module, target=Target(dict(TARGET)), tir_pipeline="tirx")


def cuda_text(module: Any) -> str:
    """CUDA text of a kernel module."""
    return str(compiled(module).mod.imports[0].inspect_source())


def parameters(text: str) -> tuple[str, list[str]]:
    """(kernel's name, its parameters in order); the code generator sorts them by name and drops unused ones."""
    found = re.search(r"__launch_bounds__\([^)]*\) (\w+)\((.*?)\)\s*[{;]", text[text.index('extern "C"') :], re.S)
    assert found is not None
    return found.group(1), [p.split()[-1] for p in found.group(2).split(",")]


@dataclass(frozen=True)
class Cubin:
    """Machine code, and what the assembler said of it.

    Attributes
    ----------
    spills : bytes stored to and loaded from local memory.
    serialised : warnings that products wait for each other (C75xx).
    """

    code: bytes
    registers: int
    spills: int
    serialised: tuple[str, ...]

    @property
    def clean(self) -> bool:
        return self.spills == 0 and not self.serialised


def nvcc() -> str | None:
    """The CUDA compiler on the path."""
    return shutil.which("nvcc")


def assemble(text: str) -> Cubin:
    """Compile CUDA text with nvcc."""
    compiler = nvcc()
    if compiler is None:
        raise MissingDependency(explain("no nvcc on the path", way_out="Install the CUDA toolkit 13, or let TVM use NVRTC."))
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "kernel.cu", Path(folder) / "kernel.cubin"
        source.write_text(text, encoding="utf-8")
        done = subprocess.run([compiler, *FLAGS, "-o", str(target), str(source)], capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode:
            raise UnsupportedTarget(explain("nvcc refused the kernel", got=said[-2000:]))
        spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", said))
        registers = max((int(n) for n in re.findall(r"Used (\d+) registers", said)), default=0)
        return Cubin(target.read_bytes(), registers, spills, tuple(line for line in said.splitlines() if "C75" in line))
