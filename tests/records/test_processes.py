"""Several writers at once, and writers that are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tvm_stof.records import Journal

from .making import decided, trial

ROOT = Path(__file__).resolve().parents[2]
#: appends trials for ever (or ``count``), and says on its stdout, unbuffered, which of them append() has returned for
WRITER = """
import os, sys
from pathlib import Path
from tests.records.making import decided
import pytest

from tvm_stof.records import Journal
path, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
made = Journal(path)
os.write(1, b"ready\\n")
for n in range(first, first + count):
    made.append_trial(decided(n, 1e-3, n % 80000, message="x" * 3000))
    os.write(1, b"%d\\n" % n)
"""


def writer(path: Path, first: int, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(first), str(count)], cwd=ROOT, stdout=subprocess.PIPE)


def rows(path: Path) -> list[int]:
    return [int(t.decisions["rows"]) for t in Journal(path).read().trials]


def test_eight_writers_at_once(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    writers = [writer(path, 1000 * n, 25) for n in range(8)]
    for w in writers:
        w.communicate(timeout=90)
    assert [w.returncode for w in writers] == [0] * 8
    found = Journal(path).read()
    assert (found.broken, found.torn) == ([], False)
    assert sorted(rows(path)) == sorted(1000 * n + m for n in range(8) for m in range(25))
    by_writer = [[r for r in rows(path) if r // 1000 == n] for n in range(8)]
    assert all(order == sorted(order) for order in by_writer)


@pytest.mark.slow
def test_killed_writers_lose_nothing_they_were_told_is_safe(tmp_path: Path) -> None:
    path, promised, kills = tmp_path / "j.jsonl", set[int](), 0
    chance, end = random.Random(7), time.monotonic() + 45
    while kills < 30 and time.monotonic() < end:
        pair = [writer(path, (2 * kills + n) * 100_000, 100_000) for n in range(2)]
        for w in pair:
            assert w.stdout is not None
            w.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.05))
        for w in pair:
            os.kill(w.pid, signal.SIGKILL)
            said = w.communicate()[0].split(b"\n")
            promised.update(int(n) for n in said[:-1] if n)
            kills += 1
    assert kills >= 10
    assert promised
    assert promised <= set(rows(path))
    found = Journal(path).read()
    assert len(found.trials) == len(set(rows(path)))
    assert len(found.broken) <= kills


def test_kill_in_the_middle_of_a_write_costs_only_that_line(tmp_path: Path) -> None:
    """No signal can stop a write half-way on a local disk, so the torn lines that a crash leaves are made by hand."""
    path = tmp_path / "j.jsonl"
    made = Journal(path)
    for n in range(20):
        made.append_trial(decided(n, 1e-3, n))
        with path.open("ab") as file:
            file.write(json.dumps(trial().to_data()).encode()[: 7 * n + 1])
    found = made.read()
    assert rows(path) == list(range(20))
    assert (len(found.broken), found.torn) == (19, True)
