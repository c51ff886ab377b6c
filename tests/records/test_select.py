"""Choosing among trials."""

from __future__ import annotations

import random
from dataclasses import replace

from tvm_stof.problems import Attention, Softmax
from tvm_stof.records import Trial, best, best_of_each, nearest

from .making import PROBLEM, decided, trial

KEY, DEVICE = PROBLEM.key(), "cpu-znver3"


def test_fastest_ok_trial_wins() -> None:
    trials = [decided(1, 3.0, 1), decided(2, None, 2), decided(3, 2.0, 3), decided(4, 1.0, 4, device="cpu-znver4")]
    found = best(trials, KEY, DEVICE)
    assert found is trials[2]
    assert best(trials, KEY, "cpu-haswell") is None
    assert best(trials, Softmax(1, 1).key(), DEVICE) is None
    assert best([], KEY, DEVICE) is None


def test_median_decides_not_the_luckiest_repeat() -> None:
    lucky = replace(decided(1, 1.0, 1), seconds=(0.1, 5.0, 5.0))
    steady = replace(decided(2, 1.0, 2), seconds=(2.0, 2.0, 2.0))
    assert best([lucky, steady], KEY, DEVICE) is steady


def test_last_measurement_of_a_candidate_counts() -> None:
    trials = [decided(1, 1.0, 1), decided(2, 1.5, 2), decided(1, 2.0, 3), decided(2, 1.6, 4)]
    assert best(trials, KEY, DEVICE) is trials[3]


def test_finalists_beat_what_was_measured_once() -> None:
    trials = [decided(1, 1.0, 1), decided(2, 1.2, 2), decided(2, 1.3, 3)]
    assert best(trials, KEY, DEVICE) is trials[2]


def test_candidate_whose_last_measurement_failed_is_out() -> None:
    trials = [decided(1, 1.0, 1), decided(2, 3.0, 2), decided(1, None, 3)]
    assert best(trials, KEY, DEVICE) is trials[1]


def test_same_line_twice_is_one_measurement() -> None:
    once = [decided(1, 2.0, 1), decided(2, 1.0, 2)]
    assert best([*once, once[0]], KEY, DEVICE) is once[1]


def test_order_of_lines_does_not_matter() -> None:
    trials = [decided(n % 5, 1.0 + n % 3, n) for n in range(20)] + [decided(7, 1.0, 30), decided(8, 1.0, 31)]
    wanted = best(trials, KEY, DEVICE)
    for seed in range(20):
        assert best(random.Random(seed).sample(trials, len(trials)), KEY, DEVICE) == wanted


def test_best_of_each_problem_and_device() -> None:
    other = Softmax(rows=3, cols=3)
    trials = [trial(), trial(other), trial(device="cpu-znver4"), trial(Softmax(1, 1), seconds=None)]
    assert set(best_of_each(trials)) == {(KEY, DEVICE), (other.key(), DEVICE), (KEY, "cpu-znver4")}


def names(found: list[Trial]) -> list[tuple[object, str]]:
    return [(t.problem["rows"], t.device) for t in found]


def test_nearest_are_of_the_kind_and_close_in_size() -> None:
    trials = [
        *(trial(Softmax(rows, 64)) for rows in (4096, 32, 8, 16)),
        trial(Softmax(9, 64, "float16")),
        trial(Softmax(16, 64), device="cpu-znver4"),
        trial(Attention(heads=1, q_len=1, head_dim=1)),
        trial(Softmax(17, 64), seconds=None),
    ]
    found = nearest(trials, Softmax(16, 64), DEVICE, count=4)
    assert sorted(names(found[:2])) == [(8, DEVICE), (32, DEVICE)]
    assert names(found[2:]) == [(9, DEVICE), (16, "cpu-znver4")]
