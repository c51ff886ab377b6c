"""Records that still give what they gave, and all the ways in which they may not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm_stof
from tvm_stof import build, canonical, masks, rules
from tvm_stof.errors import StorageError
from tvm_stof.problems import Attention, Problem, Softmax
from tvm_stof.records import Journal, Trial, publish
from tvm_stof.records.environment import collect
from tvm_stof.replay import Verdict, replay
from tvm_stof.search.clock import CpuClock
from tvm_stof.targets import Device, current_device, device

from .records.making import trial

HERE = current_device()
SOFTMAX = Softmax(rows=6, cols=33)
ATTENTION = Attention(heads=2, q_len=17, kv_len=9, head_dim=8, mask=masks.Causal(align="bottom_right"), return_lse=True)


def recorded(problem: Problem, on: Device = HERE, **changes: Any) -> Trial:
    """The untuned default as a record that replays."""
    decisions = dict(rules.default(problem, on))
    digest = build.source_digest(build.kernel_of(problem, decisions, None, on))
    made = trial(problem, device=on.name, decisions=decisions, source_digest=digest, seconds=10.0, environment=canonical.key(collect(on)))
    return replace(made, **changes)


def journal(path: Path, *trials: Trial, on: Device = HERE) -> Path:
    made = Journal(path)
    made.append_environment(collect(on))
    for t in trials:
        made.append_trial(t)
    return path


def only(path: Path, level: int | None = None) -> Verdict:
    (verdict,) = replay([path], level)
    return verdict


@pytest.mark.parametrize("problem", [SOFTMAX, ATTENTION])
def test_good_record_passes_every_level(problem: Problem, tmp_path: Path) -> None:
    path = journal(tmp_path / "j.jsonl", recorded(problem))
    assert only(path) == Verdict(str(path), 2, problem.key(), 3, "ok", "")
    for level in range(4):
        assert only(path, level) == Verdict(str(path), 2, problem.key(), level, "ok", "")


def test_published_record_needs_no_journal(tmp_path: Path) -> None:
    publish.publish([journal(tmp_path / "j.jsonl", recorded(SOFTMAX))], tmp_path / "schedules")
    (verdict,) = replay([tmp_path / "schedules"])
    assert (verdict.level, verdict.status) == (3, "ok")


def test_unfused_record_applies_to_a_fresh_definition(tmp_path: Path) -> None:
    plain = {"family": "unfused"}
    digest = build.source_digest(build.kernel_of(SOFTMAX, plain, None, HERE))
    path = journal(tmp_path / "j.jsonl", recorded(SOFTMAX, decisions=plain, source_digest=digest))
    assert (only(path).level, only(path).status) == (3, "ok")


def traced(**schedule: int) -> Trial:
    """An unfused record with a trace: one loop of the output block split."""
    from tvm.s_tir import Schedule

    from tvm_stof.definitions import definition
    from tvm_stof.records import bridge

    module = definition(SOFTMAX)
    sch = Schedule(module)
    loop = sch.get_loops(sch.get_sblock(bridge.output_block(module)))[0]
    sch.split(loop, factors=[schedule["outer"], None])
    trace = bridge.to_trace(sch.trace, module, [10.0], HERE.target_json())
    digest = build.source_digest(build.kernel_of(SOFTMAX, {"family": "unfused"}, trace, HERE))
    return recorded(SOFTMAX, decisions={"family": "unfused"}, trace=trace, source_digest=digest)


def test_trace_is_replayed(tmp_path: Path) -> None:
    one, two = traced(outer=2), traced(outer=3)
    assert one.source_digest != two.source_digest
    path = journal(tmp_path / "j.jsonl", one, two, replace(one, source_digest=two.source_digest))
    assert [(v.level, v.status) for v in replay([path])] == [(3, "ok"), (3, "ok"), (2, "different")]


def test_trace_that_does_not_apply_is_broken(tmp_path: Path) -> None:
    good = traced(outer=2)
    text = json.dumps(good.trace)
    garbled = {
        "names another block": text.replace('"y"', '"nothing"'),
        "unknown instruction": text.replace('"Split"', '"Splice"'),
        "not a trace": '["hello"]',
    }
    path = journal(tmp_path / "j.jsonl", *(replace(good, trace=json.loads(t)) for t in garbled.values() if t != text))
    found = replay([path])
    assert len(found) >= 2
    assert {(v.level, v.status) for v in found} == {(1, "broken")}
    assert all("trace" in v.message for v in found)


def test_changed_source_is_different(tmp_path: Path) -> None:
    found = only(journal(tmp_path / "j.jsonl", recorded(SOFTMAX, source_digest="0" * 64)))
    assert (found.level, found.status) == (2, "different")
    assert "accepted: 0000000000000000" in found.message


def test_record_without_a_digest_says_so(tmp_path: Path) -> None:
    found = only(journal(tmp_path / "j.jsonl", recorded(SOFTMAX, source_digest=None)))
    assert (found.level, found.status, found.message) == (3, "ok", "it has no source digest to compare with")


def test_wrong_numbers_are_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = journal(tmp_path / "j.jsonl", recorded(SOFTMAX))
    really = CpuClock.first

    def spoil(clock: CpuClock, main: Any, arguments: Any) -> float:
        taken = really(clock, main, arguments)
        np.from_dlpack(arguments[1])[3, 7] += 1
        return taken

    monkeypatch.setattr(CpuClock, "first", spoil)
    found = only(path)
    assert (found.level, found.status) == (3, "different")
    assert "wrong result: y[3, 7]" in found.message


def test_slower_than_recorded_is_a_note_not_a_difference(tmp_path: Path) -> None:
    found = only(journal(tmp_path / "j.jsonl", recorded(SOFTMAX, seconds=(1e-12,))))
    assert found.status == "ok"
    assert found.message.endswith("times its recorded time here")


FOREIGN = device("cpu-neoverse-v2")


def test_record_of_another_device_stops_before_numerics(tmp_path: Path) -> None:
    path = journal(tmp_path / "j.jsonl", recorded(ATTENTION, FOREIGN), on=FOREIGN)
    found = only(path)
    assert (found.level, found.status) == (2, "ok")
    assert found.message == f"level 3 not run: recorded on cpu-neoverse-v2, this is {HERE.name}"


def test_source_is_generated_for_the_cores_it_was_recorded_with(tmp_path: Path) -> None:
    there = replace(HERE, threads=HERE.threads + 14, cores=HERE.cores + 14)
    found = only(journal(tmp_path / "j.jsonl", recorded(ATTENTION, there), on=there), level=2)
    assert (found.level, found.status) == (2, "ok")


def test_only_records_of_one_device(tmp_path: Path) -> None:
    journal(tmp_path / "a.jsonl", recorded(SOFTMAX, FOREIGN), on=FOREIGN)
    journal(tmp_path / "b.jsonl", recorded(SOFTMAX))
    assert [v.path for v in replay([tmp_path], 0, FOREIGN.name)] == [str(tmp_path / "a.jsonl")]


def test_device_nobody_knows_is_skipped(tmp_path: Path) -> None:
    environment = {k: v for k, v in collect(HERE).items() if k != "device"}
    made = Journal(tmp_path / "j.jsonl")
    made.append_trial(recorded(SOFTMAX, device="gpu-of-2031", environment=made.append_environment(environment)))
    found = only(made.path)
    assert (found.level, found.status) == (0, "skipped")
    assert "level 1 not run: unknown device: got 'gpu-of-2031'" in found.message


def test_failed_trial_has_only_a_form(tmp_path: Path) -> None:
    path = journal(tmp_path / "j.jsonl", recorded(SOFTMAX, outcome="wrong", seconds=(), source_digest=None))
    assert (only(path).level, only(path).status, only(path, 0).status) == (0, "skipped", "ok")


def test_array_too_large_for_a_record_is_skipped(tmp_path: Path) -> None:
    bits = np.random.default_rng(0).random((900, 900)) < 0.5
    problem = Attention(heads=1, q_len=900, head_dim=8, mask=masks.Array.of(bits))
    assert canonical.to_data(problem)["mask"]["content"] is None
    found = only(journal(tmp_path / "j.jsonl", recorded(problem)))
    assert found.status == "skipped"
    assert "not in memory" in found.message


def changed(**changes: Any) -> Mapping[str, Any]:
    return {**recorded(SOFTMAX).to_data(), **changes}


def test_decisions_that_do_not_apply_are_broken(tmp_path: Path) -> None:
    family = recorded(SOFTMAX).decisions["family"]
    bad: list[dict[str, Any]] = [{"family": family}, {"family": "none"}, {**recorded(SOFTMAX).decisions, "cols": 7}]
    path = journal(tmp_path / "j.jsonl", *(recorded(SOFTMAX, decisions=d) for d in bad))
    assert [(v.level, v.status) for v in replay([path], 1)] == [(1, "broken")] * 3


def test_line_in_another_form_is_different(tmp_path: Path) -> None:
    path = journal(tmp_path / "j.jsonl")
    with path.open("ab") as file:
        file.write(json.dumps(changed()).encode() + b"\n")
    found = only(path)
    assert (found.line, found.level, found.status) == (2, 0, "different")


def test_problem_with_a_default_left_out_is_broken(tmp_path: Path) -> None:
    data = {"kind": "softmax", "rows": 6, "cols": 33}
    path = journal(tmp_path / "j.jsonl", replace(recorded(SOFTMAX), problem=data, key=canonical.key(data)))
    assert (only(path).status, only(path).level) == ("broken", 0)
    assert "missing ['dtype']" in only(path).message


def test_record_whose_environment_is_missing_or_another_s_is_broken(tmp_path: Path) -> None:
    path = journal(tmp_path / "j.jsonl", recorded(SOFTMAX, environment="0" * 64), recorded(SOFTMAX, device="cpu-z80"))
    assert [(v.level, v.status) for v in replay([path])] == [(0, "broken"), (1, "broken")]


def test_broken_and_torn_lines_are_reported_where_they_stand(tmp_path: Path) -> None:
    path = journal(tmp_path / "j.jsonl", recorded(SOFTMAX))
    text = path.read_bytes()
    path.write_bytes(b"oops\n" + text + text.splitlines()[1][:50])
    assert [(v.line, v.status) for v in replay([path], 0)] == [(1, "broken"), (3, "ok"), (4, "skipped")]


def test_missing_path(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file or folder"):
        replay([tmp_path / "none"])


def test_lines_of_the_first_schema_still_have_its_form() -> None:
    found = replay([Path(__file__).parent / "assets" / "schema_1.jsonl"], 0)
    assert [v.status for v in found] == ["ok"] * 7


def test_name_is_the_function_whatever_was_imported_first(tmp_path: Path) -> None:
    path = journal(tmp_path / "j.jsonl", recorded(SOFTMAX))
    assert [v.status for v in tvm_stof.replay([path], 0)] == ["ok"]
    code = f"import tvm_stof; print(len(tvm_stof.replay([{str(path)!r}], 0)), len(tvm_stof.replay([{str(path)!r}], 0)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    assert done.stdout.split() == ["1", "1"]
