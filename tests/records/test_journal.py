"""Appending and reading, whatever happens to the file."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tvm_stof import canonical
from tvm_stof.errors import RecordError, StorageError
from tvm_stof.records import Journal, journals
from tvm_stof.records import journal as module
from tvm_stof.records.model import MAX_LINE, SCHEMA, dump_line

from . import making
from .making import ENVIRONMENT, decided, line, trial


def write(path: Path, *parts: bytes) -> Journal:
    path.write_bytes(b"".join(parts))
    return Journal(path)


GOOD = [dump_line(decided(n, 1e-3, n).to_data()) for n in range(4)]


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    made = making.journal(tmp_path / "a" / "b" / "softmax.jsonl", trial(), decided(8, None, 1))
    found = made.read()
    assert found.trials == [trial(), decided(8, None, 1)]
    assert found.lines == [2, 3]
    assert found.environments == {canonical.key(ENVIRONMENT): ENVIRONMENT}
    assert (found.broken, found.torn) == ([], False)


def test_lines_are_canonical(tmp_path: Path) -> None:
    path = making.journal(tmp_path / "j.jsonl", trial()).path
    for text in path.read_bytes().splitlines():
        assert text == canonical.dumps(json.loads(text)).encode()


def test_environment_is_written_once(tmp_path: Path) -> None:
    made = Journal(tmp_path / "j.jsonl")
    keys = [made.append_environment({**ENVIRONMENT, "tool": tool}) for tool in ("1", "2", "1")]
    assert keys[0] == keys[2] != keys[1]
    assert list(made.read().environments) == keys[:2]
    assert len(made.path.read_bytes().splitlines()) == 2


def test_torn_last_line_is_dropped(tmp_path: Path) -> None:
    for cut in (1, 20, len(GOOD[2]) - 2):
        found = write(tmp_path / "j.jsonl", *GOOD[:2], GOOD[2][:cut]).read()
        assert (len(found.trials), found.torn, found.broken) == (2, True, [])


def test_whole_last_line_counts_without_its_end(tmp_path: Path) -> None:
    found = write(tmp_path / "j.jsonl", *GOOD[:2], GOOD[2].rstrip()).read()
    assert (len(found.trials), found.torn) == (3, False)


def test_append_closes_a_torn_line_off(tmp_path: Path) -> None:
    made = write(tmp_path / "j.jsonl", GOOD[0], GOOD[1][:30])
    made.append_trial(trial())
    found = made.read()
    assert len(found.trials) == 2
    assert [b.line for b in found.broken] == [2]
    assert found.lines == [1, 3]


def test_broken_middle_line_is_named_and_skipped(tmp_path: Path) -> None:
    found = write(tmp_path / "j.jsonl", GOOD[0], b"{oops\n", GOOD[1], b"\n", b'{"type":"trial","schema":1}\n', GOOD[2]).read()
    assert [b.line for b in found.broken] == [2, 5]
    assert "not JSON" in found.broken[0].reason
    assert "missing" in found.broken[1].reason
    assert found.lines == [1, 3, 6]


BROKEN = {
    "not UTF-8": b"\xff\xfe\n",
    "nul bytes left by a power cut": b"\0" * 300 + b"\n",
    "a bare number": b"1\n",
    "another type": line({"type": "note", "schema": 1}),
    "deep": b"[" * 3000 + b"]" * 3000 + b"\n",
    "long": b'{"a":"' + b"x" * MAX_LINE + b'"}\n',
    "infinite": b'{"type":"environment","schema":1,"key":"0","data":{"a":1e999}}\n',
    "environment of another key": line({"type": "environment", "schema": 1, "key": "0" * 64, "data": {}}),
    "environment without data": line({"type": "environment", "schema": 1, "key": "0" * 64}),
    "environment of a later schema": line({"type": "environment", "schema": 2, "key": canonical.key({}), "data": {}}),
    "merge conflict": b"<<<<<<< ours\n",
}


@pytest.mark.parametrize("what", BROKEN)
def test_no_line_hides_the_others(what: str, tmp_path: Path) -> None:
    found = write(tmp_path / "j.jsonl", GOOD[0], BROKEN[what], GOOD[1]).read()
    assert [b.line for b in found.broken] == [2]
    assert found.lines == [1, 3]


def test_lines_with_windows_ends_are_read(tmp_path: Path) -> None:
    assert len(write(tmp_path / "j.jsonl", *(g.replace(b"\n", b"\r\n") for g in GOOD)).read().trials) == 4


def test_reading_for_one_key_parses_its_lines_only(tmp_path: Path) -> None:
    made = write(tmp_path / "j.jsonl", GOOD[0], b"{oops\n", GOOD[1])
    found = made.read(trial().key)
    assert (found.lines, found.broken) == ([1, 3], [])
    assert made.read("0" * 64).trials == []


def test_line_that_no_reader_would_take_is_not_written(tmp_path: Path) -> None:
    made = Journal(tmp_path / "j.jsonl")
    with pytest.raises(RecordError, match="too long"):
        made.append({"x": "x" * MAX_LINE})
    assert not made.path.exists()


UNUSABLE: dict[str, Callable[[Path], Path]] = {
    "a folder": lambda tmp: tmp,
    "below a file": lambda tmp: tmp / "file" / "j.jsonl",
    "below /proc": lambda tmp: Path("/proc/no/j.jsonl"),
    "a name that is too long": lambda tmp: tmp / ("x" * 300),
}


@pytest.mark.parametrize("where", UNUSABLE)
def test_place_that_cannot_be_used_is_a_storage_error(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = Journal(UNUSABLE[where](tmp_path))
    for use in (made.check_writable, made.read, lambda: made.append(trial().to_data()), lambda: made.append_environment(ENVIRONMENT)):
        with pytest.raises(StorageError, match=r"journal .* cannot be (read|written): got .*; accepted: .*--logs"):
            use()


def test_missing_file_is_a_storage_error_on_reading_only(tmp_path: Path) -> None:
    made = Journal(tmp_path / "new" / "j.jsonl")
    with pytest.raises(StorageError, match="No such file"):
        made.read()
    made.check_writable()
    assert made.read().trials == []


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EMFILE])
def test_read_only_file_is_a_storage_error(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = making.journal(tmp_path / "j.jsonl", trial())
    really = os.open

    def refuse(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & os.O_RDWR:
            raise OSError(code, os.strerror(code))
        return really(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StorageError, match=os.strerror(code)):
        made.append_trial(trial())
    assert len(made.read().trials) == 1


def test_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = making.journal(tmp_path / "j.jsonl", trial())
    before = made.path.read_bytes()
    really = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: really(fd, data[:10]))
    with pytest.raises(StorageError, match="only part of a line"):
        made.append_trial(trial())
    assert made.path.read_bytes() == before
    monkeypatch.setattr(os, "write", lambda fd, data: exec("raise OSError(28, 'No space left on device')"))
    with pytest.raises(StorageError, match="No space left"):
        made.append_trial(trial())
    assert made.path.read_bytes() == before


def test_lock_that_is_never_released_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = making.journal(tmp_path / "j.jsonl")
    monkeypatch.setattr(module, "LOCK_PATIENCE", 0.05)
    with made.path.open("rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(StorageError, match="held its lock"):
            made.append_trial(trial())
    made.append_trial(trial())
    assert len(made.read().trials) == 1


def test_journals_are_found_below_folders(tmp_path: Path) -> None:
    for name in ("b/x.jsonl", "a/y.jsonl", "a/z.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "folder.jsonl").mkdir()
    assert journals([tmp_path, tmp_path / "a" / "z.txt"]) == [tmp_path / "a/y.jsonl", tmp_path / "b/x.jsonl", tmp_path / "a/z.txt"]
    with pytest.raises(StorageError, match="no such file or folder"):
        journals([tmp_path / "none"])


def test_schema_of_new_lines() -> None:
    assert json.loads(GOOD[0])["schema"] == SCHEMA == 1
