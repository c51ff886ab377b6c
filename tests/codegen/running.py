"""Build a kernel in this process, run it once on poisoned outputs and hold it to the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm

from tvm_stof import reference, rules
from tvm_stof.codegen import Kernel, Workspace, materialise
from tvm_stof.problems import Problem
from tvm_stof.targets import Device, current_device
from tvm_stof.testing import inputs


def run(problem: Problem, kernel: Kernel, arrays: dict[str, Any], device: Device) -> dict[str, Any]:
    """Outputs of one call; every output starts as NaN."""
    function = tvm.compile(kernel.module, target=tvm.target.Target(device.target_json())).mod["main"]
    outputs = {t.name: tvm.runtime.tensor(np.full(t.shape, np.nan, t.dtype)) for t in problem.outputs()}
    given = [tvm.runtime.tensor(arrays[t.name]) for t in problem.inputs()]
    prepared = [np.full(p.shape, np.nan, p.dtype) if isinstance(p, Workspace) else p for p in kernel.prepared]
    function(*given, *outputs.values(), *map(tvm.runtime.tensor, prepared))
    return {name: t.numpy() for name, t in outputs.items()}


def assert_right(problem: Problem, decisions: dict[str, Any], seed: int = 0) -> None:
    """Fail unless the decisions are legal and their kernel is within the error budget."""
    device = current_device()
    reason = rules.legal(problem, decisions, device)
    assert reason is None, f"{decisions} of {problem}: {reason}"
    arrays = inputs(problem, seed)
    verdict = reference.compare(problem, arrays, run(problem, materialise(problem, decisions, device), arrays, device))
    assert verdict.ok, f"{decisions} of {problem.to_data()}: {verdict.message}"


def legal_candidates(problem: Problem, family: str) -> list[dict[str, Any]]:
    """Every legal setting of one family on this device."""
    device = current_device()
    found = rules.rules_for(problem, device, [family])
    return list(rules.candidates(found, problem, device))
