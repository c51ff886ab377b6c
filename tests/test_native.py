"""TVM's runtime on its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tvm_stof import native
from tvm_stof.errors import MissingDependency


def test_the_user_may_set_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", "7")
    monkeypatch.delenv("TVM_BIND_THREADS", raising=False)
    native.set_threads(2)
    assert (os.environ["TVM_NUM_THREADS"], os.environ["TVM_BIND_THREADS"]) == ("7", "0")
    monkeypatch.delenv("TVM_NUM_THREADS")
    native.set_threads(2)
    assert os.environ["TVM_NUM_THREADS"] == "2"


def test_missing_runtime_names_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"pip install apache-tvm=="):
        native._runtime_library("libtvm_runtime.so")


def test_compiler_is_the_one_tvm_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm.support import cc

    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    assert native.compiler() == cc.get_cc()
    monkeypatch.setenv("CXX", "/opt/c++")
    assert native.compiler() == cc.get_cc() == "/opt/c++"
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "/nowhere")
    assert native.compiler() is None
    assert cc.get_cc() is None


def test_torch_is_hidden_from_one_thread_only() -> None:
    finder = native._NoTorch()
    with pytest.raises(ModuleNotFoundError):
        finder.find_spec("torch", None)
    assert finder.find_spec("torchvision", None) is None
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(finder.find_spec("torch", None)))
    thread.start()
    thread.join()
    assert found == [None]


IN_ORDER = """
import sys
from tvm_stof import native
if sys.argv[1] == "torch":
    import torch
ffi = native.ffi()
assert ("torch" in sys.modules) == (sys.argv[1] == "torch")
assert not any(isinstance(f, native._NoTorch) for f in sys.meta_path)
import importlib.util
assert importlib.util.find_spec("torch") is not None
"""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
@pytest.mark.parametrize("first", ["torch", "nothing"])
def test_torch_is_imported_only_by_the_user(first: str) -> None:
    subprocess.run([sys.executable, "-c", IN_ORDER, first], check=True)


def test_a_library_that_is_none_is_refused(tmp_path: Path) -> None:
    shutil.copy("/bin/true", tmp_path / "kernel.so")
    with pytest.raises(Exception, match=r"kernel\.so"):
        native.load(tmp_path / "kernel.so")
