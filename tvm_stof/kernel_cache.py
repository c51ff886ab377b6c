"""The per-machine cache of compiled kernels: a folder each, with a shared object, its prepared arrays, and digests of both.

A cached object is code that we run. So the folder must belong to this user and be closed to all others, and both files are
compared with their digests before they are loaded. Files are written under another name and the whole folder is then moved
into place, so that what can be found is complete, however its writer ended.
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
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__, canonical, native
from .native import Executable, Prepared, Scratch
from .problems import Problem
from .targets import Device
from .targets.cache import cache_folder

log = logging.getLogger(__name__)

#: what decides which code a record becomes, within the package
_SOURCES = ("build.py", "expr.py", "cascade", "codegen", "definitions", "masks", "scores", "sparsity", "problems")
_LIBRARY, _ARRAYS, _ABOUT = "kernel.so", "prepared.npz", "about.json"
_UNFINISHED, _DAMAGED, _STALE_SECONDS = "making-", "damaged", 86400.0
_code: list[str] = []


class Unusable(Exception):
    """Why the cache cannot be used here."""


def key(problem: Problem, decisions: Mapping[str, Any], trace: Any, device: Device) -> str:
    """Digest of everything a compiled kernel depends on, the generating code included."""
    return canonical.key({
        "problem": problem.key(), "decisions": dict(decisions), "trace": None if trace is None else canonical.key({"trace": trace}),
        "device": device.to_data(), "tool": __version__, "tvm": metadata.version("apache-tvm"),
        "ffi": metadata.version("apache-tvm-ffi"), "code": _code_digest(),
    })  # fmt: skip


def folder() -> Path:
    """Where kernels are kept."""
    return cache_folder() / "kernels"


def check_usable() -> None:
    """Raise Unusable when nothing could be written; cheaper than to find out after a kernel was built."""
    _trusted()
    if native.compiler() is None:
        raise Unusable("there is no C compiler (g++, gcc or clang) to link a kernel with")


def read(key: str, kind: str = "cpu") -> Executable | None:
    """The kernel of a key for a kind of device, or None when there is none or it is damaged.

    Raises Unusable for a folder that is not ours alone.
    """
    place = _trusted() / key
    try:
        about = json.loads((place / _ABOUT).read_text(encoding="utf-8"))
        if {name: _digest(place / name) for name in (_LIBRARY, _ARRAYS)} != about["files"]:
            raise ValueError("another digest")
        with np.load(place / _ARRAYS, allow_pickle=False) as data:
            prepared = tuple(data[p] if isinstance(p, str) else Scratch(tuple(p[0]), str(p[1])) for p in about["prepared"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        if place.exists():
            log.warning("cached kernel %s is damaged (%s) and is built again", place, error)
        return None
    module = native.load(place / _LIBRARY, kind)
    return Executable(module["main"], prepared, module, cached=True)


def write(key: str, link: Callable[[str], Any], prepared: tuple[Prepared, ...]) -> None:
    """Keep a kernel; ``link`` makes the shared object at a path. Raises Unusable when that fails."""
    parent = _trusted()
    arrays: dict[str, Any] = {f"a{n}": item for n, item in enumerate(prepared) if not isinstance(item, Scratch)}
    order = [[list(item.shape), item.dtype] if isinstance(item, Scratch) else f"a{n}" for n, item in enumerate(prepared)]
    try:
        _remove_stale(parent)
        with _unfinished(parent) as made:
            try:
                link(str(made / _LIBRARY))
            except (RuntimeError, ValueError) as error:
                raise Unusable(f"the C compiler {native.compiler()} failed: {str(error).strip()[-200:]}") from error
            np.savez(made / _ARRAYS, **arrays)
            about = {"files": {name: _digest(made / name) for name in (_LIBRARY, _ARRAYS)}, "prepared": order}
            (made / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
            for path in made.iterdir():
                path.chmod(0o600)
            _put(made, parent / key)
    except OSError as error:
        raise Unusable(f"kernel cache {parent} cannot be written: {error.strerror or error}") from error


def _put(made: Path, place: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.rename(place, made / _DAMAGED)
    try:
        os.rename(made, place)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another process was faster; its files are as good
            raise
    shutil.rmtree(place / _DAMAGED, ignore_errors=True)


def _trusted() -> Path:
    place = folder()
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        facts = place.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
            raise Unusable(f"kernel cache {place} is not this user's folder (TVM_STOF_CACHE names another)")
        if facts.st_mode & 0o077:
            place.chmod(0o700)
    except OSError as error:
        raise Unusable(f"kernel cache {place} cannot be used: {error.strerror} (TVM_STOF_CACHE names another)") from error
    return place


@contextlib.contextmanager
def _unfinished(parent: Path) -> Iterator[Path]:
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


def _code_digest() -> str:
    if not _code:
        digest, root = hashlib.sha256(), Path(__file__).parent
        for name in _SOURCES:
            for path in sorted([root / name] if name.endswith(".py") else (root / name).rglob("*.py")):
                digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
        _code.append(digest.hexdigest())
    return _code[0]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
