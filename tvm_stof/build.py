"""From decisions to something that runs: compiled in this process, or read from the per-machine cache of shared objects."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import canonical
from .errors import StorageError, explain
from .problems import Problem
from .targets import Device
from .targets.cache import cache_folder

if TYPE_CHECKING:
    from .codegen import Kernel, Prepared

#: packages whose source decides what code a record becomes
_SOURCES = ("expr.py", "cascade", "codegen", "definitions", "masks", "scores", "sparsity", "problems")
_LIBRARY, _ARRAYS, _ABOUT = "kernel.so", "prepared.npz", "about.json"


@dataclass(frozen=True)
class Executable:
    """A kernel ready to run.

    Attributes
    ----------
    main : the function; takes inputs, outputs, then ``prepared`` arrays.
    prepared : visitor arrays with content, and (shape, dtype) of workspaces.
    keep : whatever must outlive ``main``.
    cached : whether it came from the cache.
    """

    main: Any
    prepared: tuple[Any, ...]
    keep: Any
    cached: bool = False


def kernel_of(problem: Problem, decisions: Mapping[str, Any], trace: Any, device: Device) -> Kernel:
    """The generated kernel of a record's decisions (or of its trace, for the unfused family)."""
    if decisions.get("family") != "unfused":
        from .codegen import materialise

        return materialise(problem, decisions, device)
    from .codegen.cpu import exp
    from .records import bridge

    exp.register()
    return bridge.unfused_kernel(problem, bridge.replay(problem, decisions, trace).mod)


def source_text(kernel: Kernel) -> str:
    """The kernel as TVMScript; the same text on every machine."""
    return str(kernel.module.script())


def source_digest(kernel: Kernel) -> str:
    """SHA-256 of ``source_text``, as records hold it."""
    return hashlib.sha256(source_text(kernel).encode("utf-8")).hexdigest()


def compile(kernel: Kernel, device: Device) -> Executable:
    """Compile in this process.

    TVM's threads are set from ``device.threads`` unless TVM_NUM_THREADS says otherwise; it must not have run a parallel kernel before.
    """
    os.environ.setdefault("TVM_NUM_THREADS", str(device.threads))
    import tvm

    module = tvm.compile(kernel.module, target=tvm.target.Target(device.target_json())).mod
    return Executable(module["main"], kernel.prepared, module)


def cached(problem: Problem, decisions: Mapping[str, Any], trace: Any, device: Device) -> Executable:
    """The kernel from the cache, made first if it is not there. A hit imports no TVM.

    Without a C compiler nothing can be linked: the kernel is then compiled in this process at each load.
    """
    folder = cache_folder() / "kernels" / cache_key(problem, decisions, trace, device)
    found = _open(folder, device)
    if found is not None:
        return found
    kernel = kernel_of(problem, decisions, trace, device)
    if shutil.which("cc") is None and shutil.which("gcc") is None and "CC" not in os.environ:
        return compile(kernel, device)
    try:
        _store(folder, kernel, device)
    except OSError as error:
        way_out = "Set TVM_STOF_CACHE to a folder of yours"
        raise StorageError(explain("the kernel cache cannot be written", got=error, way_out=way_out)) from error
    return _open(folder, device) or compile(kernel, device)


def cache_key(problem: Problem, decisions: Mapping[str, Any], trace: Any, device: Device) -> str:
    """Digest of everything the shared object depends on, the generating code included."""
    return canonical.key({
        "problem": problem.key(), "decisions": dict(decisions), "trace": None if trace is None else canonical.key({"trace": trace}),
        "device": device.to_data(), "tvm": _version("apache-tvm"), "ffi": _version("apache-tvm-ffi"), "code": _code_digest(),
    })  # fmt: skip


def _version(package: str) -> str:
    from importlib import metadata

    return metadata.version(package)


def _code_digest() -> str:
    if not _CODE:
        digest, root = hashlib.sha256(), Path(__file__).parent
        for name in _SOURCES:
            for path in sorted([root / name] if name.endswith(".py") else (root / name).rglob("*.py")):
                digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
        _CODE.append(digest.hexdigest())
    return _CODE[0]


_CODE: list[str] = []


def _store(folder: Path, kernel: Kernel, device: Device) -> None:
    """Write library, arrays and their digests beside each other, then move the whole folder into place."""
    os.environ.setdefault("TVM_NUM_THREADS", str(device.threads))
    import tvm

    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _scratch(folder.parent) as made:
        tvm.compile(kernel.module, target=tvm.target.Target(device.target_json())).export_library(str(made / _LIBRARY))
        arrays, order = _split(kernel.prepared)
        np.savez(made / _ARRAYS, **arrays)  # type: ignore[arg-type]
        about = {"files": {n: _digest(made / n) for n in (_LIBRARY, _ARRAYS)}, "prepared": order}
        (made / _ABOUT).write_text(json.dumps(about))
        for path in made.iterdir():
            path.chmod(0o600)
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # another process was faster; its files are as good
            os.rename(made, folder)


@contextlib.contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="making-", dir=parent))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _split(prepared: tuple[Prepared, ...]) -> tuple[dict[str, Any], list[Any]]:
    arrays: dict[str, Any] = {}
    order: list[Any] = []
    for n, item in enumerate(prepared):
        if isinstance(item, np.ndarray):
            arrays[f"a{n}"] = item
            order.append(f"a{n}")
        else:
            order.append([list(item.shape), item.dtype])
    return arrays, order


def _open(folder: Path, device: Device) -> Executable | None:
    """A cached kernel, or None when there is none or a file of it is damaged."""
    try:
        about = json.loads((folder / _ABOUT).read_text())
        if any(_digest(folder / name) != digest for name, digest in about["files"].items()) or set(about["files"]) != {_LIBRARY, _ARRAYS}:
            return None
        with np.load(folder / _ARRAYS, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
        prepared = tuple(arrays[p] if isinstance(p, str) else (tuple(p[0]), str(p[1])) for p in about["prepared"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    os.environ.setdefault("TVM_NUM_THREADS", str(device.threads))
    module = _load(folder / _LIBRARY)
    return Executable(module["main"], prepared, module, cached=True)


def _load(library: Path) -> Any:
    """Load a shared object with the TVM runtime alone: ``import tvm`` takes seconds and is not needed to run a kernel."""
    import tvm_ffi

    if not _RUNTIME:
        import ctypes
        import importlib.util

        spec = importlib.util.find_spec("tvm")
        for place in (spec.submodule_search_locations or []) if spec is not None else []:
            path = Path(place) / "lib" / "libtvm_runtime.so"
            if path.exists():
                _RUNTIME.append(ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL))
                break
        else:
            raise StorageError(explain("TVM's runtime library is not where the wheel puts it", accepted="tvm/lib/libtvm_runtime.so"))
    return tvm_ffi.load_module(str(library))


_RUNTIME: list[Any] = []


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
