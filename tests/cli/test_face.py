"""The command as a face: help, exit codes, errors, streams."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tvm_stof import cli
from tvm_stof.cli import problems
from tvm_stof.errors import MaskError, ReplayMismatch, StorageError

COMMAND = [sys.executable, "-m", "tvm_stof"]


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``tvm-stof env`` end with this error."""

    def callback() -> None:
        raise error

    monkeypatch.setattr(cli.Lazy, "get_command", lambda *_: click.Command("env", callback=callback))


@pytest.mark.parametrize("words", [["--help"], ["tune", "-h"], *([name, "--help"] for name in cli.COMMANDS)])
def test_help_is_data(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(words) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: tvm-stof")
    assert err == ""


def test_help_names_every_command_and_kind(capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["--help"])
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert [name for name in cli.COMMANDS if name not in listed] == []
    cli.run(["tune", "--help"])
    out = capsys.readouterr().out
    assert [kind for kind in problems.kinds() if kind not in out] == []


def test_help_imports_neither_numpy_nor_tvm() -> None:
    heavy = "{'numpy', 'tvm', 'tvm_ffi', 'rich'}"
    script = f"import sys; from tvm_stof import cli; cli.run(['--help']); sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "Usage:"),
        (["tunes"], "unknown command: got 'tunes'; accepted: tune, show, mask, publish, replay, env"),
        (["tune", "attenton"], "unknown kind of problem: got 'attenton'; accepted: attention"),
        (["tune"], "a kind of problem is missing: attention"),
        (["tune", "softmax", "--rows", "3"], "Missing option '--cols'"),
        (["tune", "softmax", "--rows", "three", "--cols", "3"], "'three' is not a valid integer"),
        (["tune", "softmax", "--rows", "3", "--cols", "3", "--trials", "0"], "0 is not in the range"),
        (["tune", "softmax", "--rows", "0", "--cols", "3"], "tvm-stof: rows must be a positive whole number: got 0"),
        (["tune", "attention", "--heads", "6", "--kv-heads", "4", "--len", "8", "--dim", "4"], "heads must be a multiple of kv_heads"),
        (["tune", "--sweep", "x.toml", "softmax"], "either --sweep or a kind"),
        (["show", "/nowhere"], "no such file or folder: got /nowhere"),
        (["mask", "causal &", "--len", "8"], "a mask is expected"),
        (["mask", "causal", "--len", "8", "--blocks", "0"], "--blocks is not a list of sizes"),
        (["replay", "--level", "4"], "4 is not in the range"),
        (["show", "--format", "yaml"], "'yaml' is not one of 'table', 'json'"),
    ],
)
def test_bad_use_is_code_2_on_stderr(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert text in err
    assert "Traceback" not in err


@pytest.mark.parametrize(("error", "code"), [(MaskError("m"), 2), (StorageError("s"), 2), (ReplayMismatch("r"), 1)])
def test_errors_are_a_line_and_a_code(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(error, monkeypatch)
    assert cli.run(["env"]) == code
    assert capsys.readouterr().err == f"tvm-stof: {error}\n"
    with pytest.raises(type(error)):
        cli.run(["--debug", "env"])


def test_interrupt_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    raising(KeyboardInterrupt(), monkeypatch)
    assert cli.run(["env"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_errors_of_our_own_making_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(ZeroDivisionError(), monkeypatch)
    with pytest.raises(ZeroDivisionError):
        cli.run(["env"])


def test_a_reader_that_leaves_early_is_no_failure(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    words = ["mask", "causal", "--len", "2048", "--width", "512"]
    found = subprocess.run([*COMMAND, *words], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (found.returncode, found.stderr) == (0, "")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tvm-stof, version ")
