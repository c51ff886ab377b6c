"""Schedules from journals."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tvm_stof import canonical
from tvm_stof.errors import RecordError, StorageError
from tvm_stof.problems import Attention, Softmax
from tvm_stof.records import Journal
from tvm_stof.records.publish import publish, replace_file

from .making import ENVIRONMENT, PROBLEM, decided, journal, trial

OTHER = Softmax(rows=2, cols=2)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    journal(logs / "cpu-znver3/softmax.jsonl", decided(1, 2.0, 1), decided(2, 1.0, 2), decided(3, None, 3), trial(OTHER))
    journal(logs / "cpu-znver3/attention.jsonl", trial(Attention(heads=1, q_len=4, head_dim=8)))
    journal(logs / "cpu-znver4/softmax.jsonl", trial(device="cpu-znver4"), trial(Softmax(1, 1), seconds=None, device="cpu-znver4"))
    return logs


def test_best_of_every_problem_sorted_by_key(logs: Path, tmp_path: Path) -> None:
    to = tmp_path / "schedules"
    written = publish([logs], to)
    kinds = ["cpu-znver3/attention", "cpu-znver3/softmax", "cpu-znver4/softmax"]
    assert written == [to / f"{kind}.jsonl" for kind in kinds]
    found = Journal(to / "cpu-znver3/softmax.jsonl").read()
    assert [t.key for t in found.trials] == sorted([PROBLEM.key(), OTHER.key()])
    assert {t.key: t.decisions["rows"] for t in found.trials} == {PROBLEM.key(): 2, OTHER.key(): 4}
    assert len(Journal(to / "cpu-znver4/softmax.jsonl").read().trials) == 1


def test_lines_are_self_contained_and_canonical(logs: Path, tmp_path: Path) -> None:
    publish([logs], tmp_path / "s")
    for path in (tmp_path / "s").rglob("*.jsonl"):
        assert path.read_bytes() == b"".join(canonical.dumps(t.to_data()).encode() + b"\n" for t in Journal(path).read().trials)
        assert all(t.environment_data == ENVIRONMENT for t in Journal(path).read().trials)


def test_again_and_in_any_order_gives_the_same_bytes(logs: Path, tmp_path: Path) -> None:
    paths = sorted(logs.rglob("*.jsonl"))
    publish([logs], tmp_path / "a")
    first = files(tmp_path / "a")
    publish([logs], tmp_path / "a")
    assert files(tmp_path / "a") == first
    publish(paths[::-1], tmp_path / "b")
    assert files(tmp_path / "b") == first
    publish([tmp_path / "a"], tmp_path / "c")
    assert files(tmp_path / "c") == first


def test_published_problems_that_the_journals_lack_are_kept(logs: Path, tmp_path: Path) -> None:
    publish([logs], tmp_path / "s")
    journal(tmp_path / "new.jsonl", decided(9, 5.0, 50))
    publish([tmp_path / "new.jsonl"], tmp_path / "s")
    found = {t.key: t.decisions["rows"] for t in Journal(tmp_path / "s/cpu-znver3/softmax.jsonl").read().trials}
    assert found == {PROBLEM.key(): 9, OTHER.key(): 4}


def test_journal_without_a_usable_trial_publishes_nothing(tmp_path: Path) -> None:
    journal(tmp_path / "j.jsonl", trial(seconds=None))
    assert publish([tmp_path / "j.jsonl"], tmp_path / "s") == []
    assert not (tmp_path / "s").exists()


def test_what_is_left_out_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = journal(tmp_path / "j.jsonl", trial(OTHER)).path
    with path.open("ab") as file:
        file.write(b"oops\n")
    Journal(path).append_trial(trial(environment=canonical.key({"unknown": 1})))
    with caplog.at_level(logging.WARNING):
        (written,) = publish([path], tmp_path / "s")
    assert [t.key for t in Journal(written).read().trials] == [OTHER.key()]
    assert "j.jsonl:3 left out: a line is not JSON" in caplog.text
    assert "j.jsonl:4 left out: its environment" in caplog.text


def test_published_file_with_a_broken_line_is_not_touched(logs: Path, tmp_path: Path) -> None:
    (path, *_) = publish([logs], tmp_path / "s")
    path.write_bytes(b"oops\n" + path.read_bytes())
    before = files(tmp_path / "s")
    with pytest.raises(RecordError, match=r"attention.jsonl:1 is broken and would be lost"):
        publish([logs], tmp_path / "s")
    assert files(tmp_path / "s") == before


def test_place_that_cannot_be_written_is_a_storage_error(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a file")
    with pytest.raises(StorageError, match="cannot be written"):
        publish([logs], tmp_path / "s")
    with pytest.raises(StorageError, match="no such file"):
        publish([tmp_path / "none"], tmp_path / "t")


def test_replacement_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    replace_file(path, b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="No space left"):
        replace_file(path, b"new")
    assert files(tmp_path) == {"f": b"old"}
