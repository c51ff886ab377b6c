"""The rules of tests/conftest.py, on test runs of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parent / "conftest.py"


def run(folder: Path, test: str, *options: str) -> int:
    (folder / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_it.py").write_text(test, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *options, str(folder)]
    return subprocess.run(command, capture_output=True, cwd=folder, check=False).returncode


SKIPPED = "import pytest\n@pytest.mark.skip\ndef test_a(): pass\n"


@pytest.mark.parametrize(("test", "code"), [(SKIPPED, 1), (SKIPPED + "def test_b(): pass\n", 0)])
def test_run_in_which_every_test_was_skipped_fails(tmp_path: Path, test: str, code: int) -> None:
    assert run(tmp_path, test) == code


def test_golden_text_is_compared_and_updated(tmp_path: Path) -> None:
    test = "def test_a(golden): golden('a.txt', {!r})\n"
    assert run(tmp_path, test.format("one")) == 1
    assert run(tmp_path, test.format("one"), "--update-golden") == 0
    assert run(tmp_path, test.format("one")) == 0
    assert run(tmp_path, test.format("two")) == 1
    assert (tmp_path / "golden" / "a.txt").read_text(encoding="utf-8") == "one"
