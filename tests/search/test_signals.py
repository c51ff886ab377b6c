"""Ctrl-C and kill -9 while a tune runs, as a user meets them: the real command in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

FAMILIES = "single_segment,multi_segment"
COMMAND = ["tune", "softmax", "--rows", "64", "--cols", "128", "--trials", "2000", "--families", FAMILIES, "--format", "json"]


def start(logs: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tvm_stof", *COMMAND, "--logs", str(logs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def lines(logs: Path) -> list[bytes]:
    return [line for path in logs.rglob("*.jsonl") for line in path.read_bytes().split(b"\n") if line]


def wait_for(logs: Path, count: int) -> None:
    until = time.monotonic() + 60
    while len(lines(logs)) < count:
        assert time.monotonic() < until, "no trials within a minute"
        time.sleep(0.05)


@pytest.mark.parametrize("signals", [1, 2])
def test_interrupt_keeps_everything_and_reports_the_best(tmp_path: Path, signals: int) -> None:
    process = start(tmp_path)
    wait_for(tmp_path, 5)
    started = workers(process)
    for _ in range(signals):
        os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err.decode()
    [report] = json.loads(out)["results"] if isinstance(json.loads(out), dict) else json.loads(out)
    assert report["stopped"] == "interrupted"
    assert report["best"]["outcome"] == "ok"
    assert all(json.loads(line) for line in lines(tmp_path))
    assert left(started, 0.0) == []


def test_kill_leaves_whole_lines_and_no_worker(tmp_path: Path) -> None:
    process = start(tmp_path)
    wait_for(tmp_path, 4)
    started = workers(process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)
    whole = [line for path in tmp_path.rglob("*.jsonl") for line in path.read_bytes().split(b"\n")[:-1]]
    assert len(whole) >= 4
    assert all(json.loads(line) for line in whole)
    assert left(started, 10.0) == []


def workers(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The zygote and its workers."""
    found = psutil.Process(process.pid).children(recursive=True)
    assert len(found) >= 2
    return found


def left(processes: list[psutil.Process], patience: float) -> list[psutil.Process]:
    """Those that still run after a while."""
    return psutil.wait_procs(processes, timeout=patience)[1]
