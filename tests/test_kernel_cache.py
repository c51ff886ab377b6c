"""The cache of compiled kernels: found again, never trusted blindly, and no obstacle where it cannot be used."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import handmade
from tvm_stof import build, kernel_cache, native, targets

DEVICE = targets.current_device()


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Kernels generated so far, with a cache folder of the test's own."""
    made: list[int] = []

    def kernel_of(*_: Any) -> Any:
        made.append(1)
        return handmade.kernel()

    monkeypatch.setenv("TVM_STOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "kernel_of", kernel_of)
    return made


def cached() -> build.Executable:
    return build.cached(handmade.PROBLEM, handmade.DECISIONS, None, DEVICE)


def assert_works(executable: build.Executable) -> None:
    x = handmade.inputs()
    np.testing.assert_array_equal(handmade.module(executable)(x), handmade.expected(x))


def the_folder() -> Path:
    (folder,) = kernel_cache.folder().iterdir()
    return folder


def test_second_look_generates_nothing(built: list[int]) -> None:
    assert_works(cached())
    again = cached()
    assert again.cached
    assert len(built) == 1
    assert_works(again)


def test_prepared_arguments_come_back_in_order(built: list[int]) -> None:
    cached()
    shift, work = cached().prepared
    np.testing.assert_array_equal(shift, handmade.SHIFT)
    assert work == build.Scratch((64, 96), "float32")


def test_only_this_user_may_look(built: list[int]) -> None:
    cached()
    places = [kernel_cache.folder(), the_folder(), *the_folder().iterdir()]
    assert [p.stat().st_mode & 0o077 for p in places] == [0] * 5


def test_folder_open_to_others_is_closed(built: list[int]) -> None:
    kernel_cache.folder().mkdir(parents=True)
    kernel_cache.folder().chmod(0o777)
    cached()
    assert kernel_cache.folder().stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["kernel.so", "prepared.npz", "about.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_damaged_kernel_is_built_again(built: list[int], caplog: pytest.LogCaptureFixture, name: str, damage: str) -> None:
    cached()
    path = the_folder() / name
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle] ^= 0xFF
    path.unlink()  # a new file: this process has the old one mapped
    if damage != "gone":
        path.write_bytes(content if damage == "flip" else content[:middle])
    assert_works(cached())
    assert len(built) == 2
    assert "is damaged" in caplog.text
    assert_works(cached())
    assert len(built) == 2
    assert len(list(kernel_cache.folder().iterdir())) == 1


def test_swapped_library_is_not_loaded(built: list[int], tmp_path: Path) -> None:
    cached()
    (the_folder() / "kernel.so").unlink()
    shutil.copy("/bin/true", the_folder() / "kernel.so")
    assert_works(cached())
    assert len(built) == 2


def test_what_is_listed_but_missing_is_damage(built: list[int]) -> None:
    cached()
    about = the_folder() / "about.json"
    data = json.loads(about.read_text())
    about.write_text(json.dumps({**data, "prepared": ["a7", "a8"]}))
    assert_works(cached())
    assert len(built) == 2


def test_without_a_compiler_kernels_are_compiled_at_each_load(
    built: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(native, "compiler", lambda: None)
    assert_works(cached())
    assert not cached().cached
    assert "no C compiler" in caplog.text
    assert list(kernel_cache.folder().iterdir()) == []


def test_broken_compiler_is_named(built: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("CXX", "/bin/false")
    assert_works(cached())
    assert "/bin/false failed" in caplog.text
    assert list(kernel_cache.folder().iterdir()) == []


def test_unwritable_cache_is_named(built: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("TVM_STOF_CACHE", "/dev/null")
    assert_works(cached())
    assert "TVM_STOF_CACHE" in caplog.text


def test_folder_of_another_user_is_not_used(built: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    cached()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    found = cached()
    assert not found.cached
    assert "not this user's" in caplog.text


def test_link_in_place_of_the_folder_is_not_used(built: list[int], tmp_path: Path) -> None:
    cached()
    kernel_cache.folder().rename(tmp_path / "elsewhere")
    kernel_cache.folder().symlink_to(tmp_path / "elsewhere")
    assert not cached().cached


def test_builders_at_the_same_time_leave_one_kernel(built: list[int]) -> None:
    found: list[build.Executable] = []
    threads = [threading.Thread(target=lambda: found.append(cached())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for executable in found:
        assert_works(executable)
    assert [p.name for p in kernel_cache.folder().iterdir()] == [kernel_cache.key(handmade.PROBLEM, handmade.DECISIONS, None, DEVICE)]


def test_remains_of_killed_builds_are_cleared(built: list[int]) -> None:
    cached()
    old, young = (kernel_cache.folder() / f"making-{name}" for name in ("old", "young"))
    for path in (old, young):
        path.mkdir()
    os.utime(old, (0, 0))
    shutil.rmtree(kernel_cache.folder() / kernel_cache.key(handmade.PROBLEM, handmade.DECISIONS, None, DEVICE))
    cached()
    assert not old.exists()
    assert young.exists()


def test_key_holds_everything_a_kernel_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, decisions = handmade.PROBLEM, handmade.DECISIONS
    other = dataclasses.replace(problem, rows=65)
    keys = [
        kernel_cache.key(problem, decisions, None, DEVICE),
        kernel_cache.key(other, decisions, None, DEVICE),
        kernel_cache.key(problem, {**decisions, "factor": 4}, None, DEVICE),
        kernel_cache.key(problem, decisions, [1], DEVICE),
        kernel_cache.key(problem, decisions, None, dataclasses.replace(DEVICE, threads=DEVICE.threads + 1)),
    ]
    monkeypatch.setattr(kernel_cache, "_code", ["another emitter"])
    keys.append(kernel_cache.key(problem, decisions, None, DEVICE))
    assert len(set(keys)) == len(keys)
    assert kernel_cache.key(problem, dict(reversed(decisions.items())), None, DEVICE) == keys[-1]


def test_a_hit_says_nothing(built: list[int], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="tvm_stof")
    cached()
    cached()
    assert caplog.text == ""
