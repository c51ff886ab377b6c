"""This machine as a device, its cache, and devices by name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tvm_stof.errors import RecordError, UnsupportedTarget
from tvm_stof.targets import Device, current_device, device, lookup
from tvm_stof.targets.probe import Machine
from tvm_stof.targets.processors import PROCESSORS


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TVM_STOF_CACHE", str(tmp_path / "cache"))
    current_device.cache_clear()
    yield tmp_path / "cache"
    current_device.cache_clear()


def name_is(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    asked: list[str] = []

    def answer() -> str:
        asked.append(name)
        return name

    monkeypatch.setattr(lookup, "_llvm_name", answer)
    current_device.cache_clear()
    return asked


def test_llvm_is_asked_once_per_machine(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = name_is(monkeypatch, "znver2")
    assert current_device().name == "cpu-znver2"
    current_device.cache_clear()
    assert current_device().arch == "znver2"
    assert asked == ["znver2"]


def test_cache_is_dropped_when_the_cpu_changes(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name_is(monkeypatch, "znver2")
    assert current_device().arch == "znver2"
    name_is(monkeypatch, "haswell")
    monkeypatch.setattr(Machine, "model", lambda self: "another CPU")
    assert current_device().arch == "haswell"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"arch": 3}', "[" * 5000])
def test_broken_cache_file_is_replaced(cache: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    cache.mkdir()
    (cache / "cpu.json").write_text(text)
    name_is(monkeypatch, "znver2")
    assert current_device().arch == "znver2"
    assert json.loads((cache / "cpu.json").read_text())["arch"] == "znver2"


def test_cache_folder_that_cannot_be_made_is_no_error(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write_text("a file where the folder should be")
    name_is(monkeypatch, "znver2")
    assert current_device().arch == "znver2"


def test_known_machine_needs_no_tvm(cache: Path) -> None:
    current_device()
    code = "import sys; from tvm_stof.targets import current_device as c; print(c().name, 'tvm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [current_device().name, "False"]


def test_hidden_features_are_disabled(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name_is(monkeypatch, "skylake-avx512")
    monkeypatch.setattr(Machine, "flags", lambda self: frozenset({"avx", "avx2", "fma"}))
    found = current_device()
    assert found.vector_bytes == 32
    assert found.target_json()["mattr"] == ["-avx512f"]


def test_target_is_one_that_tvm_takes_for_this_cpu() -> None:
    tvm = pytest.importorskip("tvm")
    target = tvm.target.Target(current_device().target_json())
    assert str(target.attrs["mcpu"]) == tvm.target.codegen.llvm_get_system_cpu()
    assert int(target.attrs["num-cores"]) == current_device().threads


def test_names_of_the_table_are_llvm_names() -> None:
    tvm = pytest.importorskip("tvm")
    valid = tvm.target.codegen.llvm_is_valid_cpu
    unknown = [n for n, p in PROCESSORS.items() if not valid(n, f"{p.machine}-linux-gnu")]
    assert unknown == []


def test_device_by_name(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name_is(monkeypatch, "znver2")
    assert device("cpu") == device("cpu-znver2") == current_device()
    foreign = device("cpu-neoverse-v2")
    assert (foreign.vector_bytes, foreign.triple) == (16, "aarch64-linux-gnu")


@pytest.mark.parametrize("name", ["", "cpu-", "cpu-z80", "gpu", "nvidia-nothing", "CPU"])
def test_unknown_device_names_the_accepted_ones(name: str) -> None:
    with pytest.raises(UnsupportedTarget, match=r"got '.*accepted: cpu, .*cpu-znver3"):
        device(name)


def test_data_round_trip() -> None:
    here = current_device()
    assert Device.from_data(json.loads(json.dumps(here.to_data()))) == here


def test_data_of_a_version_without_optional_fields_is_read() -> None:
    data = device("cpu-znver3").to_data()
    del data["disabled"]
    assert Device.from_data(data) == device("cpu-znver3")


@pytest.mark.parametrize(("field", "value"), [("cores", -1), ("cores", True), ("name", 3), ("disabled", "x"), ("peak_flops", 0)])
def test_bad_data_names_the_field(field: str, value: object) -> None:
    with pytest.raises(RecordError, match=field):
        Device.from_data({**device("cpu-znver3").to_data(), field: value})


@pytest.mark.parametrize("data", [None, [], {}, {"name": "cpu"}, {**device("cpu-znver3").to_data(), "more": 1}])
def test_data_of_another_form_is_refused(data: object) -> None:
    with pytest.raises(RecordError, match="not the data of a device"):
        Device.from_data(data)
