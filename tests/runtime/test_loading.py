"""From a problem to its recorded kernel, or to the error or fallback that stands for it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.recorded import record
from tvm_stof import masks, records, rules, runtime, targets
from tvm_stof.errors import MaskError, ProblemError, RecordNotFound, UnsupportedTarget, UsageError
from tvm_stof.problems import Attention, Softmax

PROBLEM = Softmax(rows=16, cols=64)
LARGER = Softmax(rows=16, cols=128)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal with a record of PROBLEM."""
    folder = tmp_path_factory.mktemp("logs")
    record(folder, PROBLEM)
    return folder


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TVM_STOF_CACHE", str(tmp_path_factory.mktemp("cache")))
        targets.current_device.cache_clear()  # so that this cache learns LLVM's name of the CPU
        yield


def softmax(x: Any) -> Any:
    shifted = np.exp(x - x.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


def check(module: runtime.TunedModule) -> None:
    shape = module.problem.inputs()[0].shape
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    np.testing.assert_allclose(module(x), softmax(x), rtol=1e-5)


def test_record_is_found_and_its_kernel_runs(logs: Path) -> None:
    module = runtime.load("softmax", rows=16, cols=64, records=logs)
    assert module.origin == "tuned"
    assert module.record is not None
    assert module.record.key == PROBLEM.key()
    assert module.decisions == dict(module.record.decisions)
    check(module)


def test_source_is_what_was_recorded(logs: Path) -> None:
    import hashlib

    module = runtime.load(PROBLEM, records=[logs])
    assert module.record is not None
    assert hashlib.sha256(module.source.encode()).hexdigest() == module.record.source_digest


def test_a_record_wins_over_every_fallback(logs: Path) -> None:
    assert runtime.load(PROBLEM, records=logs, fallback="nearest").origin == "tuned"


def test_missing_record_names_the_command_and_the_nearest(logs: Path) -> None:
    with pytest.raises(RecordNotFound) as caught:
        runtime.load(LARGER, records=logs)
    text = str(caught.value)
    assert "tvm-stof tune softmax --rows 16 --cols 128" in text
    assert "cols=64" in text


def test_default_needs_no_record(logs: Path) -> None:
    module = runtime.load(LARGER, records=logs, fallback="default")
    assert (module.origin, module.record) == ("default", None)
    assert module.decisions == rules.default(LARGER, targets.current_device())
    check(module)


def test_nearest_borrows_decisions_and_says_from_whom(logs: Path) -> None:
    module = runtime.load(Softmax(rows=32, cols=64), records=logs, fallback="nearest")
    assert module.origin.startswith(f"nearest: {targets.current_device().name} ")
    assert '"rows":16' in module.origin
    assert module.record is not None
    assert module.decisions == dict(module.record.decisions)
    check(module)


def test_nearest_does_not_borrow_what_does_not_apply(tmp_path: Path) -> None:
    trial = record(tmp_path, PROBLEM)
    odd = dataclasses.replace(trial, decisions={**trial.decisions, "lanes": 7}, time="2026-12-01T13:00:00Z", trial=1)
    journal = tmp_path / trial.device / "softmax.jsonl"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    records.Journal(journal).append_trial(odd)
    with pytest.raises(RecordNotFound, match="near enough"):
        runtime.load(LARGER, records=tmp_path, fallback="nearest")


def test_nearest_without_any_record_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordNotFound, match="near enough"):
        runtime.load(PROBLEM, records=tmp_path, fallback="nearest")


def test_mask_may_be_text() -> None:
    found = runtime.problem_from("attention", {"heads": 2, "q_len": 8, "head_dim": 4, "mask": "causal & window(4)"})
    assert found == Attention(heads=2, q_len=8, head_dim=4, mask=masks.parse("causal & window(4)"))


@pytest.mark.parametrize(
    ("problem", "shape", "error", "text"),
    [
        (PROBLEM, {"fallback": "any"}, UsageError, "unknown fallback: got 'any'; accepted: none, default, nearest"),
        (PROBLEM, {"rows": 3}, UsageError, "sizes belong to the problem"),
        ("soft", {}, ProblemError, "unknown kind of problem: got 'soft'; accepted: attention"),
        ("softmax", {"rows": 3}, ProblemError, "cols"),
        ("softmax", {"rows": 3, "cols": -1}, ProblemError, "cols must be a positive whole number"),
        ("attention", {"heads": 2, "q_len": 8, "head_dim": 4, "mask": "casual"}, MaskError, "unknown mask"),
        (PROBLEM, {"device": "cpu-nowhere"}, UnsupportedTarget, "unknown device"),
        (PROBLEM, {"device": "cpu-cortex-a72"}, UnsupportedTarget, "cannot run"),
    ],
)
def test_what_cannot_be_loaded_is_named(problem: object, shape: dict[str, object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        runtime.load(problem, **shape)  # type: ignore[arg-type]


def test_record_of_another_device_is_not_used(tmp_path: Path) -> None:
    other = dataclasses.replace(targets.current_device(), name="cpu-other")
    record(tmp_path, PROBLEM, device=other)
    with pytest.raises(RecordNotFound, match="cpu-other"):
        runtime.load(PROBLEM, records=tmp_path)


FRESH = """
import os, signal, sys, threading
import numpy as np
import tvm_stof

module = tvm_stof.load("softmax", rows=16, cols=64, records=sys.argv[1])
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
before = os.sched_getaffinity(0)
x = np.ones((16, 64), np.float32)
assert np.allclose(module(x), 1 / 64)
assert "tvm" not in sys.modules, "TVM was imported"
assert "torch" not in sys.modules, "torch was imported"
assert os.sched_getaffinity(0) == before, "the calling thread was moved to another core"
try:
    import torch
except ModuleNotFoundError:
    pass
else:
    assert isinstance(module(torch.ones(16, 64)), torch.Tensor)
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if np.allclose(module(x), 1 / 64) else 1)
assert os.waitpid(child, 0)[1] == 0, "a call in a forked child failed or hangs"
assert "default" == tvm_stof.load("softmax", rows=16, cols=8, records=sys.argv[1], fallback="default").origin
assert "tvm" in sys.modules
assert np.allclose(module(x), 1 / 64)
"""


def test_fresh_process_loads_a_cached_kernel_with_the_runtime_alone(logs: Path) -> None:
    check(runtime.load(PROBLEM, records=logs))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TVM_NUM")}
    found = subprocess.run([sys.executable, "-c", FRESH, str(logs)], env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
