"""Between records and MetaSchedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm.s_tir import Schedule

from tvm_stof import build, masks, reference, testing
from tvm_stof.definitions import definition
from tvm_stof.errors import RecordError
from tvm_stof.problems import Attention, Problem, Softmax
from tvm_stof.records import bridge
from tvm_stof.runtime import TunedModule
from tvm_stof.targets import current_device

SOFTMAX = Softmax(rows=6, cols=33)
BITS = np.random.default_rng(1).random((2, 9, 7)) < 0.5
STORED = Attention(heads=2, q_len=9, kv_len=7, head_dim=8, mask=masks.Array.of(BITS), return_lse=True)
UNFUSED = {"family": "unfused"}


def test_decisions_stand_on_the_definition_and_come_back() -> None:
    chosen: dict[str, int | str] = {"family": "single_segment", "rows": 4, "output": "store"}
    module = definition(SOFTMAX)
    before = module.script()
    schedule = bridge.annotate(module, chosen)
    assert bridge.decisions(schedule.mod) == chosen
    assert bridge.decisions(module) == {}
    assert module.script() == before


def trace_of(chosen: dict[str, int | str], seconds: list[float]) -> bridge.Trace:
    module = definition(SOFTMAX)
    return bridge.to_trace(bridge.annotate(module, chosen).trace, module, seconds, current_device().target_json())


def test_trace_gives_its_decisions_back_on_a_fresh_definition() -> None:
    chosen: dict[str, int | str] = {"family": "single_segment", "rows": 4}
    assert bridge.decisions(bridge.replay(SOFTMAX, chosen, trace_of(chosen, [1.0])).mod) == chosen


def test_trace_and_decisions_that_disagree_are_refused() -> None:
    with pytest.raises(RecordError, match="trace and decisions disagree"):
        bridge.replay(SOFTMAX, {"family": "single_segment", "rows": 8}, trace_of({"family": "single_segment", "rows": 4}, [1.0]))


def test_digest_of_a_trace_does_not_hang_on_its_times() -> None:
    four, again, eight = (trace_of({"family": "x", "rows": rows}, [s]) for rows, s in ((4, 1.0), (4, 2.0), (8, 1.0)))
    assert bridge.trace_digest(four) == bridge.trace_digest(again) != bridge.trace_digest(eight)
    assert bridge.trace_digest(None) is None


@pytest.mark.parametrize("trace", [[], ["x"], [[[], []], [1.0]], [[[["Nothing", [], [], []]], []], [1.0], {"kind": "llvm"}, []]])
def test_trace_that_tvm_cannot_use_is_a_record_error(trace: list[Any]) -> None:
    with pytest.raises(RecordError, match="trace"):
        bridge.replay(SOFTMAX, UNFUSED, trace)


def shifted(array: Any, by: int) -> Any:
    """The same array at an address that is a multiple of its element size, and of nothing larger."""
    memory = np.empty(array.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + by
    view = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


@pytest.mark.parametrize("problem", [SOFTMAX, STORED], ids=["softmax", "stored mask"])
def test_unfused_kernel_runs_on_arrays_of_any_alignment(problem: Problem) -> None:
    here = current_device()
    kernel = bridge.unfused_kernel(problem, definition(problem))
    assert len(kernel.prepared) == (problem is STORED)
    module = TunedModule(problem, build.compile(kernel, here), here, None, "default", UNFUSED)
    arrays = testing.inputs(problem)
    outputs = {s.name: shifted(np.full(s.shape, np.nan, s.dtype), 4) for s in problem.outputs()}
    module(*(shifted(arrays[s.name], 4) for s in problem.inputs()), out=tuple(outputs.values()))
    assert reference.compare(problem, arrays, outputs).message == ""


def test_output_block_is_the_last_one() -> None:
    assert bridge.output_block(definition(SOFTMAX)) == "y"
    assert Schedule(definition(SOFTMAX)).get_sblock("y") is not None
