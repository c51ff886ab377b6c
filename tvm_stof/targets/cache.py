"""The per-machine cache folder, and small JSON facts kept in it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def cache_folder() -> Path:
    """``$TVM_STOF_CACHE``, else ``~/.cache/tvm_stof``; it may not exist yet."""
    return Path(os.environ.get("TVM_STOF_CACHE") or Path.home() / ".cache" / "tvm_stof")


def read_facts(name: str) -> dict[str, Any]:
    """The JSON object kept under a name; empty when there is none or it cannot be read."""
    try:
        facts = json.loads((cache_folder() / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def write_facts(name: str, facts: Mapping[str, Any]) -> None:
    """Keep a JSON object under a name, atomically; a cache that cannot be written only costs time, so that is no error."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(facts, file, sort_keys=True)
            os.replace(temporary, folder / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError:
        return
