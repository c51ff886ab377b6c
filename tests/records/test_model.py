"""What a line says, and what is refused."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tvm_stof import canonical
from tvm_stof.errors import CanonicalError, RecordError
from tvm_stof.records import OUTCOMES, Journal, Trial
from tvm_stof.records.model import MAX_DEPTH, MAX_LINE, dump_line, environment_of, parse_line

from .making import ENVIRONMENT, PROBLEM, trial

ASSETS = Path(__file__).parent.parent / "assets"
DATA = trial().to_data()


def test_round_trip_is_byte_stable() -> None:
    text = dump_line(DATA)
    again = Trial.from_data(parse_line(text))
    assert again == trial()
    assert dump_line(again.to_data()) == text


def test_lines_of_the_first_schema_are_still_read() -> None:
    found = Journal(ASSETS / "schema_1.jsonl").read()
    assert (len(found.trials), len(found.environments), found.broken, found.torn) == (7, 1, [], False)
    assert {t.outcome for t in found.trials} == set(OUTCOMES)
    assert all(t.rebuild().key() == t.key for t in found.trials)


def test_median_and_identity() -> None:
    one = trial(seconds=3.0)
    assert one.seconds_median == 3.0
    assert trial(seconds=None).seconds_median is None
    assert one.identity == (PROBLEM.key(), "cpu-znver3", '{"family":"single_segment","rows":4}')


def test_identity_of_an_unfused_trial_is_its_trace_without_times() -> None:
    def unfused(decision: int, seconds: float) -> Trial:
        return trial(decisions={"family": "unfused"}, trace=[[[], [decision]], [seconds], {}, []])

    assert unfused(1, 0.1).identity == unfused(1, 0.2).identity
    assert unfused(1, 0.1).identity != unfused(2, 0.1).identity


def test_rebuild_gives_the_problem() -> None:
    assert trial().rebuild() == PROBLEM


def test_rebuild_refuses_what_is_no_problem() -> None:
    data = {"kind": "softmax", "rows": 0, "cols": 1, "dtype": "float32"}
    broken = replace(trial(), problem=data, key=canonical.key(data))
    with pytest.raises(RecordError, match=r"'problem' is no problem.*rows"):
        broken.rebuild()


BAD: dict[str, list[Any]] = {
    "problem": [None, [], {}, {"kind": 3}, {"kind": "Über"}],
    "key": ["", "0" * 63, "G" * 64, None, "0" * 64],
    "device": ["", "a b", "../x", "A", 3],
    "decisions": [None, {}, {"family": 1}, {"family": "x", "rows": -1}, {"family": "x", "rows": 1.5}, {"family": "x", "rows": True},
                  {"family": "x", "a b": 1}, {"family": "x", "y": "A B"}],
    "trace": ["x", {}, []],
    "outcome": ["fine", None, ["ok"]],
    "message": [None, "x" * 4001],
    "seconds": [None, 1.0, ["1"], [-1.0], [float("nan")], [True], []],
    "error": [1, {"max_abs": 1}, {"max_abs": "nan", "budget": 1}, {"max_abs": None, "budget": 1}],
    "default_seconds": ["1", float("inf"), True],
    "floor_seconds": ["1", -1],
    "source_digest": ["", 1],
    "environment": [None, "x"],
    "seed": [None, 1.0, True, 1 << 70],
    "trial": [-1, None],
    "time": ["today", "2026-12-01 15:00:00"],
    "tool": [None, "x" * 65],
    "environment_data": [3, [], {"not": "its own"}],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_bad_field_is_named(name: str, value: Any) -> None:
    with pytest.raises(RecordError, match=f"field '{name}'|field 'environment'"):
        Trial.from_data({**DATA, name: value})


@pytest.mark.parametrize("name", sorted(set(DATA) - {"type", "schema"}))
def test_missing_field_is_named(name: str) -> None:
    with pytest.raises(RecordError, match=f"missing.*{name}"):
        Trial.from_data({k: v for k, v in DATA.items() if k != name})


def test_unknown_field_is_named() -> None:
    with pytest.raises(RecordError, match=r"unknown .*'colour'"):
        Trial.from_data({**DATA, "colour": 1})


@pytest.mark.parametrize("version", [0, 2, True, 1.0, "1", None])
def test_other_schema_versions_are_refused(version: Any) -> None:
    with pytest.raises(RecordError, match="'schema' is of another version"):
        Trial.from_data({**DATA, "schema": version})
    environment = {"type": "environment", "schema": version, "key": canonical.key(ENVIRONMENT), "data": ENVIRONMENT}
    with pytest.raises(RecordError, match="'schema' is of another version"):
        environment_of(environment)


def test_failed_trial_has_no_times() -> None:
    with pytest.raises(RecordError, match="exactly when the outcome is ok"):
        Trial.from_data({**DATA, "outcome": "wrong"})


def test_key_of_another_problem_is_refused() -> None:
    with pytest.raises(RecordError, match="'key' is not the digest"):
        Trial.from_data({**DATA, "problem": {**DATA["problem"], "rows": 9}})


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"\xff", b"NaN", b'{"a":1e999}', b'{"a":-Infinity}', b'{"a":1,"a":2}', b"[" * 100_000, b"[" * 200 + b"]" * 200, b"9" * 5000,
     b" " * (MAX_LINE + 1)],
)  # fmt: skip
def test_line_that_is_no_plain_json_is_refused(line: bytes) -> None:
    with pytest.raises(RecordError, match="a line is"):
        parse_line(line)


@pytest.mark.parametrize("pair", [b"[]", b"{}"])
def test_depth_limit(pair: bytes) -> None:
    opening = pair[:1] if pair == b"[]" else b'{"a":'
    assert parse_line(opening * (MAX_DEPTH - 1) + b"1" + pair[1:] * (MAX_DEPTH - 1)) is not None
    with pytest.raises(RecordError, match="too deeply"):
        parse_line(opening * MAX_DEPTH + b"1" + pair[1:] * MAX_DEPTH)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def deep(levels: int) -> Any:
    data: Any = 1
    for _ in range(levels):
        data = [data]
    return data


@pytest.mark.parametrize("name", ["problem", "trace", "environment_data", "message", "type"])
def test_data_without_a_bottom_is_refused(name: str) -> None:
    data = {"problem": {"kind": "softmax", "x": deep(5000)}, "trace": deep(5000), "environment_data": {"x": deep(5000)}}
    with pytest.raises(RecordError):
        Trial.from_data({**DATA, name: data.get(name, deep(5000))})


@given(JSON)
def test_anything_at_all_is_a_trial_or_an_error_of_ours(data: Any) -> None:
    with pytest.raises(RecordError):
        Trial.from_data(data)


@given(st.dictionaries(st.sampled_from(sorted(DATA)), JSON, max_size=3))
@example({"problem": {"kind": "softmax", "x": float("nan")}})
@example({"problem": {"kind": "softmax", "x": "\ud800"}})
@example({"environment_data": {"x": float("inf")}})
@example({"message": "\ud800"})
def test_changed_fields_give_a_usable_trial_or_an_error_of_ours(changes: dict[str, Any]) -> None:
    with contextlib.suppress(RecordError, CanonicalError):
        found = Trial.from_data({**DATA, **changes})
        assert Trial.from_data(parse_line(dump_line(found.to_data()))) == found
        assert found.rebuild().key() == found.identity[0]


@given(st.binary(max_size=40) | JSON.map(lambda data: json.dumps(data).encode()))
def test_any_bytes_are_a_line_or_an_error_of_ours(line: bytes) -> None:
    with contextlib.suppress(RecordError):
        assert dump_line({"data": parse_line(line)})


def test_number_that_python_will_not_print_is_refused() -> None:
    with pytest.raises(RecordError, match="a very large int"):
        Trial.from_data({**DATA, "seed": 10**5000})


def test_document_names_every_field() -> None:
    text = (ASSETS.parents[1] / "docs" / "records.md").read_text(encoding="utf-8")
    names = [*trial().to_data(), "environment_data", *OUTCOMES]
    assert [name for name in names if f"`{name}`" not in text and f'"{name}"' not in text] == []
