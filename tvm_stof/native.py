"""Compiled kernels, and TVM's runtime without TVM's Python package: it takes seconds to import and no kernel needs it."""

from __future__ import annotations

import ctypes
import importlib.abc
import importlib.machinery
import importlib.util
import os
import shutil
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import MissingDependency, explain

_RUNTIME, _CUDA_RUNTIME = "libtvm_runtime.so", "libtvm_runtime_cuda.so"
_loaded: dict[str, ctypes.CDLL] = {}
_lock = threading.Lock()



class Scratch(NamedTuple):
    """Memory a kernel works in; what it holds between calls means nothing. (``codegen.Workspace`` without importing ``codegen``.)"""

    shape: tuple[int, ...]
    dtype: str


Prepared: TypeAlias = "npt.NDArray[np.generic] | Scratch"


@dataclass(frozen=True)
class Executable:
    """A kernel ready to run.

    Attributes
    ----------
    main : the function; takes inputs, outputs, then ``prepared``.
    prepared : visitor arrays with their content, and scratch memory, in call order.
    keep : the library ``main`` lives in.
    cached : whether it was read from the cache of shared objects.
    """

    main: Any
    prepared: tuple[Prepared, ...]
    keep: Any
    cached: bool = False


def ffi() -> Any:
    """``tvm_ffi``, imported without torch.

    tvm_ffi imports torch whenever it is installed (seconds, and it has no switch against that). Unless the caller has torch already, we
    hide it from that one import; torch tensors work all the same when torch is imported later.
    """
    if "tvm_ffi" not in sys.modules and "torch" not in sys.modules:
        hidden = _NoTorch()
        sys.meta_path.insert(0, hidden)
        try:
            import tvm_ffi
        finally:
            sys.meta_path.remove(hidden)
    else:
        import tvm_ffi
    return tvm_ffi


class _NoTorch(importlib.abc.MetaPathFinder):
    """Says that there is no torch, to the thread that made it and no other."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if name == "torch" and threading.get_ident() == self._thread:
            raise ModuleNotFoundError("torch is hidden while tvm_ffi is imported", name=name)
        return None


def compiler() -> str | None:
    """The C compiler that TVM links shared objects with: the one it would pick by itself."""
    named = os.environ.get("CXX") or os.environ.get("CC")
    return named or next(filter(None, map(shutil.which, ("g++", "gcc", "clang++", "clang", "c++", "cc"))), None)


def set_threads(threads: int) -> None:
    """Let TVM's pools, which it makes at a thread's first parallel kernel, use this many threads; a setting of the user's stands.

    TVM would also pin the calling thread to CPU 0 and its workers to the next ones, whatever affinity the process was given; not so here.
    """
    os.environ.setdefault("TVM_NUM_THREADS", str(threads))
    os.environ.setdefault("TVM_BIND_THREADS", "0")


def load(library: Path, kind: str = "cpu") -> Any:
    """A compiled library as a ``tvm_ffi.Module``; imports no TVM."""
    module = ffi()
    with _lock:
        for name in (_RUNTIME, *([_CUDA_RUNTIME] if kind == "cuda" else [])):
            if name not in _loaded and "tvm" not in sys.modules:
                _loaded[name] = ctypes.CDLL(str(_runtime_library(name)), ctypes.RTLD_GLOBAL)
    return module.load_module(str(library))


def _runtime_library(name: str) -> Path:
    spec = importlib.util.find_spec("tvm")
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        path = Path(place) / "lib" / name
        if path.is_file():
            return path
    what, way_out = "TVM's runtime library is not where its wheel puts it", "Run: pip install apache-tvm==0.27.0.post1"
    raise MissingDependency(explain(what, accepted=f"tvm/lib/{name}", way_out=way_out))
