"""Generated kernels and their text."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np

from tests import handmade
from tvm_stof import build, rules, targets
from tvm_stof.problems import Softmax
from tvm_stof.runtime import TunedModule

PROBLEM = Softmax(rows=8, cols=24)
DEVICE = targets.device("cpu-znver3")
SCRIPT = """
from tvm_stof import build, rules, targets
from tvm_stof.problems import Softmax
problem, device = Softmax(rows=8, cols=24), targets.device("cpu-znver3")
print(build.source_digest(build.kernel_of(problem, rules.default(problem, device), None, device)))
"""


def test_digest_is_of_the_text() -> None:
    kernel = handmade.kernel()
    text = build.source_text(kernel)
    assert "def main(" in text
    assert build.source_digest(kernel) == hashlib.sha256(text.encode()).hexdigest()


def test_text_is_the_same_in_another_process() -> None:
    kernel = build.kernel_of(PROBLEM, rules.default(PROBLEM, DEVICE), None, DEVICE)
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TVM_NUM_THREADS": "1"}
    found = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == build.source_digest(kernel)


def test_unfused_definition_runs_as_it_is() -> None:
    here = targets.current_device()
    executable = build.compile(build.kernel_of(PROBLEM, {"family": "unfused"}, None, here), here)
    x = np.random.default_rng(0).standard_normal((8, 24), dtype=np.float32)
    shifted = np.exp(x - x.max(1, keepdims=True))
    module = TunedModule(PROBLEM, executable, here, None, "default", {"family": "unfused"})
    np.testing.assert_allclose(module(x), shifted / shifted.sum(1, keepdims=True), rtol=1e-5)


def test_compiled_kernel_carries_its_arguments() -> None:
    executable = build.compile(handmade.kernel(), targets.current_device())
    assert not executable.cached
    assert isinstance(executable.prepared[0], np.ndarray)
    assert executable.prepared[1] == build.Scratch((64, 96), "float32")
