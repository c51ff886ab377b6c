"""Looking records up."""

from __future__ import annotations

import importlib.util
import logging
import shlex
from pathlib import Path

import click
import numpy as np
import pytest

from tvm_stof import masks, scores
from tvm_stof.cli import problems as cli
from tvm_stof.errors import RecordNotFound, StorageError
from tvm_stof.problems import Attention, Problem, Softmax
from tvm_stof.records import cli_text, find
from tvm_stof.records.environment import collect
from tvm_stof.records.find import default_places
from tvm_stof.records.model import dump_line
from tvm_stof.targets import current_device

from .making import PROBLEM, decided, journal, trial

DEVICE = "cpu-znver3"


def test_best_over_all_places(tmp_path: Path) -> None:
    journal(tmp_path / "a/x.jsonl", decided(1, 2.0, 1))
    journal(tmp_path / "b.jsonl", decided(2, 1.0, 2))
    assert find(PROBLEM, DEVICE, [tmp_path / "a", tmp_path / "b.jsonl"]).decisions["rows"] == 2
    assert find(PROBLEM, DEVICE, [str(tmp_path / "a")]).decisions["rows"] == 1


def test_default_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = default_places()
    installed = importlib.util.find_spec("tvm_stof.schedules") is not None
    assert [p.name for p in shipped] == ["schedules"] * installed
    journal(tmp_path / "schedules/cpu-znver3/softmax.jsonl", decided(1, 2.0, 1))
    journal(tmp_path / "tuning_logs/cpu-znver3/softmax.jsonl", decided(2, 1.0, 2))
    assert default_places() == [Path("schedules"), Path("tuning_logs"), *shipped]
    assert find(PROBLEM, DEVICE).decisions["rows"] == 2


def test_no_record_names_the_nearest_and_the_command(tmp_path: Path) -> None:
    journal(tmp_path / "j.jsonl", trial(Softmax(8, 128)), trial(device="cpu-znver4"), trial(Attention(heads=1, q_len=4, head_dim=8)))
    with pytest.raises(RecordNotFound) as caught:
        find(PROBLEM, DEVICE, [tmp_path])
    text = str(caught.value)
    assert "no record of this softmax problem on cpu-znver3: got cols=64, dtype=float32, rows=8" in text
    assert "cpu-znver3: cols=128, dtype=float32, rows=8" in text
    assert "cpu-znver4: cols=64, dtype=float32, rows=8" in text
    assert "heads" not in text
    assert "tvm-stof tune softmax --rows 8 --cols 64 --dtype float32" in text


def test_nothing_recorded_at_all(tmp_path: Path) -> None:
    with pytest.raises(RecordNotFound, match="none of this kind is recorded"):
        find(PROBLEM, DEVICE, [tmp_path])


def test_place_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file or folder"):
        find(PROBLEM, DEVICE, [tmp_path / "none"])


def test_broken_line_is_named_and_hides_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = journal(tmp_path / "j.jsonl", trial(Softmax(8, 128))).path
    with path.open("ab") as file:
        file.write(dump_line(trial().to_data()).replace(b'"rows":8', b'"rows":9') + dump_line(decided(1, 2.0, 1).to_data()))
    with caplog.at_level(logging.WARNING):
        assert find(PROBLEM, DEVICE, [path]).decisions["rows"] == 1
    assert "j.jsonl:3 skipped: field 'key' is not the digest of its data" in caplog.text


def from_command(text: str) -> Problem:
    program, tune, kind, *words = shlex.split(text)
    assert (program, tune) == ("tvm-stof", "tune")
    command = click.Command(kind, params=list(cli.kind(kind).OPTIONS), callback=cli.kind(kind).make)
    problem: Problem = command.main(words, standalone_mode=False)
    return problem


SAYABLE: list[Problem] = [
    Softmax(rows=3, cols=5, dtype="float16"),
    Attention(heads=8, q_len=2048, head_dim=64, mask=masks.Causal() & masks.SlidingWindow(256)),
    Attention(heads=8, kv_heads=2, q_len=7, kv_len=9, head_dim=48, value_dim=32, batch=3, dtype="float16", return_lse=True),
    Attention(heads=2, q_len=8, head_dim=48, mask=~masks.BigBird(2, global_blocks=1, random_blocks=1) | masks.Causal(align="bottom_right")),
    Attention(heads=2, q_len=8, head_dim=48, scores=(scores.Scale(0.3),)),
    Attention(heads=2, q_len=8, head_dim=48, scores=(scores.Softcap(30.0), scores.ALiBi(), scores.RelativeBias(4), scores.Sink())),
    Attention(heads=2, q_len=8, head_dim=48, scores=(scores.ALiBi(), scores.Bias(), scores.Sink()), return_lse=True),
    Attention(heads=2, q_len=8, head_dim=80, scores=(scores.Sink(),)),
]


@pytest.mark.parametrize("number", range(len(SAYABLE)))
def test_command_makes_the_very_problem(number: int) -> None:
    problem = SAYABLE[number]
    assert from_command(cli_text(problem)).key() == problem.key()


BITS = np.tri(8, dtype=bool)
UNSAYABLE = [
    Attention(heads=2, q_len=8, head_dim=4, mask=masks.Array.of(BITS)),
    Attention(heads=2, q_len=8, head_dim=4, scores=(scores.Sink(), scores.Softcap(3.0))),
    Attention(heads=2, q_len=8, head_dim=4, scores=(scores.Softcap(3.0), scores.Scale(1.0))),
    Attention(heads=2, q_len=8, head_dim=4, batch=2, scores=(scores.Bias(batch=2),)),
]


@pytest.mark.parametrize("number", range(len(UNSAYABLE)))
def test_problem_without_words_has_a_python_call(number: int) -> None:
    assert cli_text(UNSAYABLE[number]) == "tvm_stof.tune(problem)"


def test_environment_is_the_same_twice_and_has_what_matters() -> None:
    first, again = collect(current_device()), collect(current_device())
    assert first == again
    versions = {"tool", "python", "apache_tvm", "apache_tvm_ffi", "numpy", "xgboost"}
    assert versions | {"platform", "cpu_model", "governor", "device"} <= set(first)
    assert first["device"]["threads"] == current_device().threads
