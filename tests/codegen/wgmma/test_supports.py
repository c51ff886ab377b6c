"""What the emitter takes, by structure, and what it says of the rest."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import pytest

from tests.codegen.wgmma.programs import CAUSAL, I, softmax_program
from tvm_stof.cascade import program_of
from tvm_stof.cascade.program import FusedProgram
from tvm_stof.codegen.wgmma import Plan, Warpgroups, supports
from tvm_stof.codegen.wgmma.laid import Laid, laid_out
from tvm_stof.errors import RecordError, UnsupportedTarget
from tvm_stof.expr import Expr, call, const, load
from tvm_stof.problems.attention import Attention
from tvm_stof.targets.device import Device

HOPPER = Device("nvidia-h200", "cuda", "sm_90a", "", 132, 2048, 16, 233472, 52428800, 0, 9.9e14, 4.8e12)


def laid(program: FusedProgram) -> Laid:
    found = laid_out(program)
    assert isinstance(found, Laid), found
    return found


def test_attention_is_taken_in_all_its_shapes() -> None:
    for depth, width in ((16, 16), (64, 64), (96, 96), (128, 128), (192, 128), (256, 256)):
        assert supports(softmax_program(depth=depth, width=width, kv_heads=2), HOPPER) is None


def test_the_definition_of_attention_is_taken() -> None:
    problem = Attention(heads=4, kv_heads=2, q_len=100, kv_len=300, head_dim=64, value_dim=128, dtype="float16", return_lse=True)
    assert supports(program_of(problem), HOPPER) is None


def test_other_devices_are_refused() -> None:
    assert "sm_90a" in str(supports(softmax_program(), dataclasses.replace(HOPPER, arch="sm_80")))


def _no_prologue(p: FusedProgram) -> FusedProgram:
    return dataclasses.replace(p, prologue=None)


def _loose_mask(p: FusedProgram) -> FusedProgram:
    stages = (p.stages[0], dataclasses.replace(p.stages[1], term=call("abs", Expr("value"))), p.stages[2])
    return dataclasses.replace(p, predicate=CAUSAL, stages=stages)


def _two_products(p: FusedProgram) -> FusedProgram:
    return dataclasses.replace(p, stages=(*p.stages, dataclasses.replace(p.stages[2], name="r")))


@pytest.mark.parametrize(("change", "reason"), [
    (_no_prologue, "no prologue contraction"), (_loose_mask, "not neutral"), (_two_products, "2 product stages")])  # fmt: skip
def test_structures_it_does_not_take(change: Callable[[FusedProgram], FusedProgram], reason: str) -> None:
    assert reason in str(supports(change(softmax_program()), HOPPER))


@pytest.mark.parametrize(("given", "reason"), [
    ({"dtype": "float32"}, "float32"), ({"depth": 40}, "multiples of 16"), ({"width": 320}, "up to 256")])  # fmt: skip
def test_sizes_it_does_not_take(given: dict[str, int], reason: str) -> None:
    program = softmax_program(**given)  # type: ignore[arg-type]
    assert reason in str(supports(program, HOPPER))
    with pytest.raises(UnsupportedTarget, match=reason):
        Warpgroups(program, {"block_q": 128, "block_k": 128}, program.tensors)


def test_a_mask_inside_the_value_becomes_the_predicate() -> None:
    program = softmax_program()
    inside = dataclasses.replace(program, value=call("select", CAUSAL, program.value, const(-math.inf)))
    assert laid(inside).program.predicate == CAUSAL
    assert laid(inside).program.value == program.value


@pytest.mark.parametrize(("decisions", "reason"), [
    ({"block_q": 96, "block_k": 64}, "block_q"), ({"block_q": 128, "block_k": 72}, "block_k"),
    ({"block_q": 128, "block_k": 128, "stages": 1}, "stages"),
    ({"block_q": 64, "block_k": 64}, "ping-pong"), ({"block_q": 128, "block_k": 256}, "shared memory"),
    ({"block_q": 192, "block_k": 128}, "registers")])  # fmt: skip
def test_decisions_that_cannot_be(decisions: dict[str, int], reason: str) -> None:
    program = softmax_program()
    assert reason in str(Plan.of(laid(program), decisions).refusal())
    with pytest.raises(RecordError, match=reason):
        Warpgroups(program, decisions, program.tensors)


def test_a_predicate_that_reads_needs_bits() -> None:
    program = dataclasses.replace(softmax_program(), predicate=call("eq", load("mask_bits", I), const(1)))
    assert "bits" in str(Plan.of(laid(program), {"block_q": 128, "block_k": 128}).refusal())
    assert Plan.of(laid(program), {"block_q": 128, "block_k": 128, "test": "bits"}).refusal() is None
