"""Reading /proc and /sys, on trees written for the purpose."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tvm_stof.targets.probe import Machine

ZEN = "processor : 0\nmodel name : AMD EPYC 9\nflags : fma avx2 avx512f\ncpu MHz : 2600.5\n\nprocessor : 1\nmodel name : other\n"


def tree(root: Path, **files: str) -> Machine:
    for path, text in files.items():
        file = root / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Machine(root)


def allow(monkeypatch: pytest.MonkeyPatch, *cpus: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(cpus))


def test_model_flags_and_clock_of_the_first_processor(tmp_path: Path) -> None:
    machine = tree(tmp_path, proc__cpuinfo=ZEN)
    assert machine.model() == "AMD EPYC 9"
    assert machine.flags() == {"fma", "avx2", "avx512f"}
    assert machine.clock() == pytest.approx(1.4 * 2600.5e6)


def test_clock_prefers_what_does_not_change(tmp_path: Path) -> None:
    named = tree(tmp_path, proc__cpuinfo="model name : Intel(R) Xeon(R) CPU @ 2.20GHz\ncpu MHz : 3100\n")
    assert named.clock() == pytest.approx(2.2e9)
    (tmp_path / "sys/devices/system/cpu/cpu0/cpufreq").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").write_text("3900000\n")
    assert named.clock() == pytest.approx(3.9e9)


def test_identity_follows_model_and_features(tmp_path: Path) -> None:
    texts = [ZEN, ZEN.replace("EPYC 9", "EPYC 7", 1), ZEN.replace(" avx512f", "", 1), ZEN.replace("2600.5", "1.0")]
    found = [tree(tmp_path, proc__cpuinfo=text).identity() for text in texts]
    assert len(set(found[:3])) == 3
    assert found[3] == found[0]


def test_arm_processor_has_a_model_and_features(tmp_path: Path) -> None:
    machine = tree(tmp_path, proc__cpuinfo="processor : 0\nFeatures : fp asimd\nCPU implementer : 0x41\nCPU part : 0xd4f\n")
    assert machine.model() == "0x41 0xd4f"
    assert "asimd" in machine.flags()


def test_caches_ignore_the_instruction_cache(tmp_path: Path) -> None:
    base = "sys__devices__system__cpu__cpu0__cache__index"
    facts = [("1", "Data", "48K"), ("1", "Instruction", "64K"), ("2", "Unified", "2048K"), ("3", "Unified", "1G")]
    files = {f"{base}{n}__{name}": value for n, fact in enumerate(facts) for name, value in zip(("level", "type", "size"), fact)}
    assert tree(tmp_path, **files).data_caches() == {1: 48 << 10, 2: 2 << 20, 3: 1 << 30}


def test_caches_have_defaults(tmp_path: Path) -> None:
    assert Machine(tmp_path).data_caches()[1] == 32 << 10


def test_threads_are_those_of_the_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, 0, 2, 5)
    assert Machine(tmp_path).threads() == 3


QUOTAS = {
    "v2": ({"proc__self__cgroup": "0::/a/b\n", "sys__fs__cgroup__a__b__cpu.max": "350000 100000\n"}, 3),
    "v2 of a parent": ({"proc__self__cgroup": "0::/a/b\n", "sys__fs__cgroup__a__cpu.max": "200000 100000\n"}, 2),
    "v2 below one": ({"proc__self__cgroup": "0::/\n", "sys__fs__cgroup__cpu.max": "50000 100000\n"}, 1),
    "v2 unlimited": ({"proc__self__cgroup": "0::/\n", "sys__fs__cgroup__cpu.max": "max 100000\n"}, 8),
    "v1": (
        {
            "proc__self__cgroup": "3:cpuset:/\n1:cpu,cpuacct:/j\n",
            "sys__fs__cgroup__cpu,cpuacct__j__cpu.cfs_quota_us": "400000\n",
            "sys__fs__cgroup__cpu,cpuacct__j__cpu.cfs_period_us": "100000\n",
        },
        4,
    ),
    "v1 unlimited": (
        {
            "proc__self__cgroup": "1:cpu:/\n",
            "sys__fs__cgroup__cpu__cpu.cfs_quota_us": "-1\n",
            "sys__fs__cgroup__cpu__cpu.cfs_period_us": "100000\n",
        },
        8,
    ),
}


@pytest.mark.parametrize("case", QUOTAS)
def test_threads_obey_the_quota(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, threads = QUOTAS[case]
    allow(monkeypatch, *range(8))
    assert tree(tmp_path, **files).threads() == threads


def test_cores_count_siblings_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, 0, 1, 2, 3)
    siblings = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}
    files = {f"sys__devices__system__cpu__cpu{n}__topology__thread_siblings_list": f"{s}\n" for n, s in siblings.items()}
    machine = tree(tmp_path, **files)
    assert (machine.cores(), machine.threads()) == (2, 4)
