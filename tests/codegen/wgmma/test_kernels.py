"""Generated kernels: text pinned, independent of hash seeds, and assembled without spills or serialised products."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.codegen.wgmma.kernels import KERNELS, digest
from tvm_stof.codegen.wgmma.cubin import assemble, nvcc, parameters

needs_nvcc = pytest.mark.skipif(nvcc() is None, reason="no nvcc on the path")


@pytest.mark.parametrize("name", KERNELS)
def test_text_is_pinned(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"wgmma/{name}.sha256", digest(name) + "\n")


def test_text_does_not_depend_on_the_hash_seed() -> None:
    names = ["causal_ragged", "lists_bits", "slopes"]
    here = {name: digest(name) for name in names}
    for seed in ("1", "4242"):
        done = subprocess.run([sys.executable, "-m", "tests.codegen.wgmma.kernels", *names], capture_output=True, text=True, check=True,
                              cwd=Path(__file__).parents[3], env={**os.environ, "PYTHONHASHSEED": seed})  # fmt: skip
        assert json.loads(done.stdout) == here


@needs_nvcc
@pytest.mark.parametrize("name", KERNELS)
def test_no_spills_and_no_serialised_products(name: str) -> None:
    cubin = assemble(KERNELS[name]())
    assert cubin.serialised == ()
    assert cubin.spills == 0


def test_full_tiles_pay_for_no_test() -> None:
    """A causal kernel evaluates its bound for tested tiles only: once in the first visit, never in the loop of full tiles."""
    text = KERNELS["causal"]()
    loop = text[text.rindex("for (int") :]
    assert "highest" in text
    assert "highest" not in loop[: loop.index("wait_group")]


def test_exponentials_are_the_hardware_instruction_with_one_multiply_add() -> None:
    """exp(c x - m) is ex2(x * (c log2 e) - m log2 e): no expf, and 2 x 64 of them a tile beside the two ratios."""
    text = KERNELS["dense"]()
    body = text[text.index('extern "C" __global__') :]
    assert "expf" not in body
    factor = re.findall(r"ex2_approx_ftz_f32\(scores_ptr\[0\], \(\(scores_ptr\[0\] \* (\S+?)f/", body)
    assert factor
    assert float.fromhex(factor[0]) == pytest.approx(0.125 * 1.4426950408889634, rel=1e-6)


def test_parameters_are_read_from_the_text() -> None:
    name, given = parameters(KERNELS["lists"]())
    assert name == "main_kernel"
    assert given == sorted(given, key=str.lower)
    assert set(given) == {"col_ptr", "key_map", "lhs_map", "lse_ptr", "operand_map", "out_map", "row_ptr_ptr", "tested_ptr"}
