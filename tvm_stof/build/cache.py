"""The per-machine cache: a folder a kernel with its shared object, its visitor arrays, and a digest of both.

A cached object is code that we run, so the folder must belong to this user and be writable by nobody else, and every file is compared with
its digest before it is loaded. Where the cache cannot be used (no C compiler to link with, a folder we may not write or must not trust), a
warning says so and the kernel is compiled in this process at each load.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__, canonical
from ..problems import Problem
from ..targets import Device
from ..targets.cache import cache_folder
from . import generate, native
from .executable import Executable, Prepared, Scratch

if TYPE_CHECKING:
    from ..codegen import Kernel

log = logging.getLogger(__name__)

#: what decides which code a record becomes, within the package
_SOURCES = ("expr.py", "cascade", "codegen", "definitions", "masks", "scores", "sparsity", "problems")
_LIBRARY, _ARRAYS, _ABOUT = "kernel.so", "prepared.npz", "about.json"
_DAMAGED, _UNFINISHED, _STALE_SECONDS = "damaged", "making-", 86400.0
_code: list[str] = []


class _Unusable(Exception):
    """Why the cache cannot be used here."""


def cached(problem: Problem, decisions: Mapping[str, Any], trace: Any, device: Device) -> Executable:
    """The kernel from the cache, built first when it is not there or damaged. A hit imports no TVM."""
    try:
        folder = _trusted(cache_folder() / "kernels") / cache_key(problem, decisions, trace, device)
        found = _open(folder, device)
        if found is not None:
            return found
        kernel = generate.kernel_of(problem, decisions, trace, device)
        try:
            _store(folder, kernel, device)
        except _Unusable as reason:
            log.warning("%s; the kernel is compiled in this process at each load", reason)
            return generate.compile(kernel, device)
        return _open(folder, device) or generate.compile(kernel, device)
    except _Unusable as reason:
        log.warning("%s; the kernel is compiled in this process at each load", reason)
        return generate.compile(generate.kernel_of(problem, decisions, trace, device), device)


def cache_key(problem: Problem, decisions: Mapping[str, Any], trace: Any, device: Device) -> str:
    """Digest of everything the shared object depends on, the generating code included."""
    return canonical.key({
        "problem": problem.key(), "decisions": dict(decisions), "trace": None if trace is None else canonical.key({"trace": trace}),
        "device": device.to_data(), "tool": __version__, "tvm": metadata.version("apache-tvm"),
        "ffi": metadata.version("apache-tvm-ffi"), "code": _code_digest(),
    })  # fmt: skip


def _code_digest() -> str:
    if not _code:
        digest, root = hashlib.sha256(), Path(__file__).parents[1]
        for name in _SOURCES:
            for path in sorted([root / name] if name.endswith(".py") else (root / name).rglob("*.py")):
                digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
        _code.append(digest.hexdigest())
    return _code[0]


def _trusted(folder: Path) -> Path:
    """The folder, made private; _Unusable when it is not ours alone."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        facts = folder.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
            raise _Unusable(f"kernel cache {folder} is not a folder of this user's (set TVM_STOF_CACHE to one)")
        if facts.st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise _Unusable(f"kernel cache {folder} cannot be made: {error.strerror} (set TVM_STOF_CACHE to a folder of yours)") from error
    return folder


def _store(folder: Path, kernel: Kernel, device: Device) -> None:
    """Write library, arrays and digests beside each other under another name, then move the whole folder into place."""
    compiler = native.compiler()
    if compiler is None:
        raise _Unusable("no C compiler (g++, gcc or clang) to link a shared object with")
    built = generate.lower(kernel, device)
    try:
        _remove_stale(folder.parent)
        with _scratch(folder.parent) as made:
            try:
                built.export_library(str(made / _LIBRARY))
            except (RuntimeError, ValueError) as error:
                raise _Unusable(f"the C compiler {compiler} failed: {str(error).strip()[-200:]}") from error
            arrays, order = _split(generate.prepared_of(kernel))
            np.savez(made / _ARRAYS, **arrays)
            about = {"files": {name: _digest(made / name) for name in (_LIBRARY, _ARRAYS)}, "prepared": order}
            (made / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
            for path in made.iterdir():
                path.chmod(0o600)
            with contextlib.suppress(FileNotFoundError):
                os.rename(folder, made / _DAMAGED)
            try:
                os.rename(made, folder)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another process was faster; its files are as good
                    raise
    except OSError as error:
        way_out = "set TVM_STOF_CACHE to a folder of yours"
        raise _Unusable(f"kernel cache {folder.parent} cannot be written: {error.strerror or error} ({way_out})") from error
    shutil.rmtree(folder / _DAMAGED, ignore_errors=True)


@contextlib.contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=parent))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _remove_stale(parent: Path) -> None:
    """Clear away what killed builds have left."""
    for path in parent.glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def _split(prepared: tuple[Prepared, ...]) -> tuple[dict[str, Any], list[Any]]:
    """Arrays by name, and for each argument its array's name or the shape and dtype of scratch memory."""
    arrays = {f"a{n}": item for n, item in enumerate(prepared) if not isinstance(item, Scratch)}
    return arrays, [[list(item.shape), item.dtype] if isinstance(item, Scratch) else f"a{n}" for n, item in enumerate(prepared)]


def _open(folder: Path, device: Device) -> Executable | None:
    """A cached kernel, or None when there is none or a file of it is damaged."""
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        if {name: _digest(folder / name) for name in (_LIBRARY, _ARRAYS)} != about["files"]:
            log.warning("a cached kernel is damaged and built again: %s", folder)
            return None
        with np.load(folder / _ARRAYS, allow_pickle=False) as data:
            prepared = tuple(data[p] if isinstance(p, str) else Scratch(tuple(p[0]), str(p[1])) for p in about["prepared"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        log.warning("a cached kernel is damaged and built again: %s", folder)
        return None
    native.set_threads(device.threads)
    module = native.load(folder / _LIBRARY)
    return Executable(module["main"], prepared, module, cached=True)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
