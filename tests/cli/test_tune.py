"""``tvm-stof tune``: from words to problems and settings, and what is said of the results. The search itself is not run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.recorded import record
from tvm_stof import cli, masks, scores, search
from tvm_stof.problems import Attention, Problem, Softmax
from tvm_stof.records import cli_text

Calls = list[tuple[Problem, dict[str, Any]]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Calls:
    """What the search was asked; it answers with a recorded kernel for softmax and with none for attention."""
    asked: Calls = []

    def tune(problem: Problem, **settings: Any) -> search.TuneResult:
        asked.append((problem, settings))
        best = record(tmp_path, problem) if isinstance(problem, Softmax) else None
        return search.TuneResult(problem, best, best, [best] if best else [], "trials", tmp_path / "x.jsonl")

    monkeypatch.setattr(search, "tune", tune)
    return asked


def test_every_option_of_attention(calls: Calls) -> None:
    words = """tune attention --mask "causal & window(256)" --heads 8 --kv-heads 2 --len 128 --kv-len 64 --dim 32 --value-dim 16 --batch 3
    --dtype float16 --scale 0.25 --softcap 30 --alibi --relative-bias 9 --bias --sink --lse
    --trials 5 --seconds 2.5 --seed 7 --device cpu --logs here --families row_wise,block_sparse"""
    assert cli.run(shlex.split(words)) == 1
    mask = masks.parse("causal & window(256)")
    changed = (scores.Scale(0.25), scores.Softcap(30.0), scores.ALiBi(), scores.RelativeBias(9), scores.Bias(), scores.Sink())
    wanted = Attention(heads=8, kv_heads=2, q_len=128, kv_len=64, head_dim=32, value_dim=16, batch=3, dtype="float16", mask=mask,
                       scores=changed, return_lse=True)  # fmt: skip
    settings = {"trials": 5, "seconds": 2.5, "seed": 7, "device": "cpu", "logs": Path("here"), "families": ["row_wise", "block_sparse"]}
    assert calls == [(wanted, settings)]


def test_what_is_not_said_is_the_problems_own_default(calls: Calls) -> None:
    cli.run(shlex.split("tune attention --heads 8 --len 128 --dim 80"))
    settings = {"trials": 64, "seconds": None, "seed": 0, "device": None, "logs": Path("tuning_logs"), "families": None}
    assert calls == [(Attention(heads=8, q_len=128, head_dim=80), settings)]


@pytest.mark.parametrize(
    "problem",
    [
        Softmax(rows=3, cols=5, dtype="float16"),
        Attention(heads=4, q_len=9, head_dim=80, mask=masks.BigBird(8, seed=3), scores=(scores.Sink(),)),
        Attention(heads=4, kv_heads=2, q_len=9, kv_len=7, head_dim=8, value_dim=4, return_lse=True,
                  scores=(scores.Scale(0.1), scores.Softcap(2.5))),
    ],
)
def test_the_command_a_missing_record_names_tunes_that_problem(calls: Calls, problem: Problem) -> None:
    cli.run(shlex.split(cli_text(problem))[1:])
    assert [asked for asked, _ in calls] == [problem]


def test_report_as_json(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(shlex.split("tune softmax --rows 16 --cols 32 --format json")) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["problem"] == Softmax(rows=16, cols=32).to_data()
    assert (result["seconds"], result["stopped"], result["trials"]) == (1e-3, "trials", 1)
    assert result["best"]["decisions"]["family"]


def test_report_as_table(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(shlex.split("tune softmax --rows 16 --cols 32")) == 0
    out = capsys.readouterr().out
    assert "1 ms" in out
    assert "1.00 x" in out


def test_no_kernel_is_code_1(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(shlex.split("tune attention --heads 1 --len 8 --dim 4")) == 1
    assert "no kernel" in capsys.readouterr().out


SWEEP = """
[tune]
trials = 3
logs = "there"
[[problem]]
kind = "softmax"
rows = [8, 16]
cols = [32, 64]
[[problem]]
kind = "attention"
mask = "causal"
heads = 2
len = 16
dim = 8
lse = true
alibi = false
"""


def test_sweep(calls: Calls, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(SWEEP)
    assert cli.run(["tune", "--sweep", str(tmp_path / "s.toml"), "--format", "json"]) == 1
    wanted = [Softmax(rows=r, cols=c) for r in (8, 16) for c in (32, 64)]
    attention = Attention(heads=2, q_len=16, head_dim=8, mask=masks.Causal(), return_lse=True)
    assert [p for p, _ in calls] == [*wanted, attention]
    assert {(s["trials"], s["logs"], s["families"]) for _, s in calls} == {(3, Path("there"), None)}
    out, err = capsys.readouterr()
    assert len(json.loads(out)) == 5
    assert "[5/5] tvm-stof tune attention" in err


def test_shipped_sweep_is_one(calls: Calls) -> None:
    path = Path(__file__).parents[2] / "scripts" / "bench_cpu.toml"
    cli.run(["tune", "--sweep", str(path)])
    assert len(calls) == 6


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "is not a sweep"),
        ("kind = 1\n[[problem]]\nkind='softmax'", "is not a sweep: got kind"),
        ("[tune", "is not TOML"),
        ("problem = 3", "is not a sweep"),
        ("[[problem]]\nkind = 'sofmax'", "problem 1: unknown kind of problem: got 'sofmax'; accepted: attention"),
        ("[[problem]]\nkind = 'softmax'\nrows = 1\ncolls = 2", "problem 1: got No such option '--colls'"),
        ("[[problem]]\nkind = 'softmax'\nrows = 1", "problem 1: got Missing"),
        ("[[problem]]\nkind = 'softmax'\nrows = 0\ncols = 1", "rows must be a positive whole number"),
        ("[tune]\ntrials = 0\n[[problem]]\nkind = 'softmax'\nrows = 1\ncols = 1", "[tune]: got Invalid value for '--trials'"),
        ("[tune]\ntrails = 9\n[[problem]]\nkind = 'softmax'\nrows = 1\ncols = 1", "[tune]: got No such option '--trails'"),
        (f"[[problem]]\nkind = 'softmax'\nrows = {list(range(1, 200))}\ncols = {list(range(1, 200))}", "too many problems"),
    ],
)
def test_broken_sweep_is_named(calls: Calls, content: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(content)
    assert cli.run(["tune", "--sweep", str(tmp_path / "s.toml")]) == 2
    assert text in capsys.readouterr().err
    assert calls == []


def test_sweep_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["tune", "--sweep", "/nowhere.toml"]) == 2
    assert "/nowhere.toml cannot be read: got No such file" in capsys.readouterr().err
