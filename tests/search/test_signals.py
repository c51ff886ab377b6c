"""Ctrl-C and kill -9 while a tune runs, as a user meets them: the real command in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

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
    for _ in range(signals):
        os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err.decode()
    [report] = json.loads(out)["results"] if isinstance(json.loads(out), dict) else json.loads(out)
    assert report["stopped"] == "interrupted"
    assert report["best"]["outcome"] == "ok"
    assert all(json.loads(line) for line in lines(tmp_path))
    assert workers(process.pid) == []


def test_kill_leaves_whole_lines_and_no_worker(tmp_path: Path) -> None:
    process = start(tmp_path)
    wait_for(tmp_path, 4)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)
    whole = [line for path in tmp_path.rglob("*.jsonl") for line in path.read_bytes().split(b"\n")[:-1]]
    assert len(whole) >= 4
    assert all(json.loads(line) for line in whole)
    until = time.monotonic() + 10
    while workers(process.pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert workers(process.pid) == []


def workers(parent: int) -> list[str]:
    """Zygotes that were started by this tune (their command line names no parent, so by their environment's session)."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes()
            if b"tvm_stof.search.zygote" in command and _started_by(path, parent):
                found.append(path.name)
        except OSError:
            continue
    return found


def _started_by(path: Path, parent: int) -> bool:
    status = (path / "status").read_text()
    return f"PPid:\t{parent}\n" in status or "PPid:\t1\n" in status
