"""What the README says is so: its commands parse, its masks are masks, its example runs, CI runs its test command."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.recorded import record
from tvm_stof import cli, masks, search
from tvm_stof.cli import problems
from tvm_stof.problems import Attention

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
MAIN_JOB = Attention(heads=8, q_len=2048, head_dim=64, mask=masks.parse("causal & window(256)"))


def after(marker: str) -> str:
    """The README's text from a marker to the next blank line."""
    return README.split(f"<!-- {marker} -->\n")[1].split("\n\n")[0]


def test_ci_runs_the_readmes_test_command() -> None:
    (line,) = [line for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines() if line.startswith("tests=")]
    found = subprocess.run(["bash", "-c", f'{line}; printf %s "$tests"'], cwd=ROOT, capture_output=True, text=True, check=True)
    command = BLOCKS[1][1]
    assert found.stdout == command.strip()
    assert ".venv/bin/python -m pytest" in command


def test_main_job_is_a_command_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(search, "tune", lambda problem, **settings: asked.append((problem, settings["trials"])))
    setup, install, job = BLOCKS[0][1].strip().split(" && ")
    assert (setup, install) == ("python3 -m venv .venv", ".venv/bin/pip install -e .")
    with pytest.raises(AttributeError):  # there is no result to report
        cli.run(shlex.split(job)[1:])
    assert asked == [(MAIN_JOB, 32)]


def test_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = [text for language, text in BLOCKS if language == "python"]
    assert code.strip().count("\n") <= 12
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "tuning_logs", MAIN_JOB)
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert capsys.readouterr().out.startswith("tuned {")
    assert np.isfinite(names["o"]).all()


def test_masks_are_masks() -> None:
    words = re.findall(r"`([^`]+)`", after("masks"))
    found = [masks.parse(word).kind for word in words]
    unmentioned = {name for name in masks.language.names() if name not in found and not name.startswith("test_")}
    assert len(words) >= 12
    assert unmentioned == set()


def test_commands_are_commands() -> None:
    said = set(re.findall(r"`tvm-stof (\w+)", README))
    assert said == set(cli.COMMANDS)
    assert set(re.findall(r"tune (attention|softmax)", README)) == set(problems.kinds())


def test_files_it_names_are_there() -> None:
    names = re.findall(r"`((?:scripts/|[A-Z]+\.md)[\w./]*)`", README)
    assert len(names) >= 4
    assert [name for name in names if not (ROOT / name).exists()] == []
