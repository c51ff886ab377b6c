"""The commands that read: show, mask, publish, replay, env."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.recorded import record
from tvm_stof import cli, masks, rules, targets
from tvm_stof.cli.mask import floor_seconds
from tvm_stof.problems import Attention, Softmax
from tvm_stof.sparsity import analyse

HERE = targets.current_device().name


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with two records under tuning_logs/."""
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "tuning_logs", Softmax(rows=8, cols=32), 2e-3)
    record(tmp_path / "tuning_logs", Softmax(rows=8, cols=64), 4e-3)
    return tmp_path / "tuning_logs"


def spoil(logs: Path, old: str, new: str) -> None:
    path = logs / HERE / "softmax.jsonl"
    path.write_text(path.read_text().replace(old, new))


def test_show_table(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["show", str(logs)]) == 0
    out, err = capsys.readouterr()
    assert "softmax --rows 8 --cols 32 --dtype float32" in out
    assert [word in out for word in ("2 ms", "4 ms", "2.00 x", "1/1")] == [True] * 4
    assert "2 of 2 problems have a kernel" in err


def test_show_json_and_filters(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["show", str(logs), "--format", "json", "--kind", "softmax", "--device", HERE]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(item["seconds"] for item in found) == [2e-3, 4e-3]
    assert found[0]["tune"].startswith("tvm-stof tune softmax")
    assert cli.run(["show", str(logs), "--format", "json", "--device", "cpu-other"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_show_names_broken_lines_and_goes_on(logs: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    spoil(logs, '"outcome":"ok"', '"outcome":"fine"')
    record(logs, Softmax(rows=8, cols=96))
    assert cli.run(["show", str(logs), "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1
    assert "softmax.jsonl:2 skipped" in caplog.text


def test_publish_then_replay(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["publish"]) == 0
    path = Path("schedules") / HERE / "softmax.jsonl"
    assert capsys.readouterr().out.split() == [str(path)]
    before = path.read_bytes()
    assert cli.run(["publish", str(logs), "--to", "schedules"]) == 0
    assert path.read_bytes() == before
    capsys.readouterr()
    assert cli.run(["replay", "schedules", str(logs), "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert [(v["status"], v["level"]) for v in json.loads(out)] == [("ok", 3)] * 4
    assert "4 ok" in err


def test_replay_of_a_difference_is_code_1(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = (logs / HERE / "softmax.jsonl").read_text().splitlines()[1]
    spoil(logs, json.loads(line)["source_digest"], "0" * 64)
    assert cli.run(["replay", "--level", "1"]) == 0
    assert cli.run(["replay", "--level", "2"]) == 1
    out, err = capsys.readouterr()
    assert "different" in out
    assert "1 different" in err


def test_replay_of_a_broken_line_is_code_1(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(logs, '"schema":1', '"schema":7')
    assert cli.run(["replay", "--level", "0"]) == 1
    assert "broken" in capsys.readouterr().out


def test_nothing_to_do_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert [cli.run(["replay"]), cli.run(["publish", "empty"]), cli.run(["show", "empty"])] == [1, 1, 0]
    assert capsys.readouterr().err.split("\n")[:3] == ["no records", "no record to publish", "no records"]


def test_mask_table_and_drawing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["mask", "causal", "--len", "64", "--blocks", "16,32x8", "--width", "8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "causal: 64 queries x 64 keys, density 0.5078"
    assert lines[1].startswith(f"floor on {HERE}: ")
    rows = [line.split() for line in lines if line.startswith(("16x16", "32x8"))]
    assert rows[0][:8] == ["16x16", "37.50", "%", "25.00", "%", "37.50", "%", "4"]
    assert [line for line in lines if set(line) <= set("@+-.") and len(line) == 8][-1].startswith("@@@@@@")


def test_mask_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["mask", "causal & window(8)", "--len", "64", "--kv-len", "96", "--heads", "4", "--dim", "32", "--format", "json"]
    assert cli.run(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert [r["block_q"] for r in found["blocks"]] == [32, 64, 128]
    assert found["density"] == pytest.approx(found["blocks"][2]["density"])
    assert masks.parse("causal & window(8)").kind == found["mask"]["kind"]


@pytest.mark.parametrize(("length", "text"), [(64, "dense"), (512, "causal & window(1)"), (1024, "causal")])
@pytest.mark.parametrize("cache", [1, 1 << 30])
def test_mask_floor_is_the_models(length: int, text: str, cache: int) -> None:
    device = dataclasses.replace(targets.current_device(), l3_bytes=cache)
    problem = Attention(heads=3, batch=2, q_len=length, head_dim=32, mask=masks.parse(text))
    elements = analyse(problem.mask, length, length, 64, 64).elements * 6
    modelled = rules.cost(problem, rules.default(problem, device), device).floor_seconds
    assert floor_seconds(problem, elements, device) == pytest.approx(modelled, rel=1e-6)


def test_mask_as_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert cli.run(["mask", "bigbird(8)", "--len", "64", "--png", str(tmp_path / "mask.png")]) == 0
    assert (tmp_path / "mask.png").read_bytes().startswith(b"\x89PNG")
    assert cli.run(["mask", "bigbird(8)", "--len", "64", "--png", "/nowhere/mask.png"]) == 2


def test_env(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cli.run(["env", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["environment"]["device"]["name"] == HERE
    assert found["here"]["cache"]
    assert cli.run(["env"]) == 0
    assert "device.threads" in capsys.readouterr().out
