"""Score modifications against their formulas, and what they refuse."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tvm_stof import canonical, expr
from tvm_stof.errors import ProblemError, ScoreError
from tvm_stof.expr import Expr
from tvm_stof.problems import Attention, TensorSpec
from tvm_stof.scores import ALiBi, Bias, RelativeBias, Scale, Score, Sink, Softcap

Q_LEN, KV_LEN = 5, 9


def _problem(*scores: Score, heads: int = 4) -> Attention:
    return Attention(batch=2, heads=heads, q_len=Q_LEN, kv_len=KV_LEN, head_dim=16, scores=scores)


def _modified(score: Score, heads: int = 4, **tensors: Any) -> Any:
    """The scores 0, 1, 2, ... of every (b, h, i, j) after the modification, in float64."""
    shape = (2, heads, Q_LEN, KV_LEN)
    at = dict(zip("bhij", np.indices(shape)))

    def leaf(node: Expr, operands: tuple[Any, ...]) -> Any:
        if node.op == "value":
            return _before(heads)
        if node.op == "index":
            return at[node.args[0]]
        return np.float64(operands[0]) if node.op == "cast" else tensors[node.args[0]][operands]

    return np.broadcast_to(expr.evaluate(score.expr(Expr("value"), _problem(score, heads=heads)), leaf), shape)


def _before(heads: int = 4) -> Any:
    return np.arange(2.0 * heads * Q_LEN * KV_LEN).reshape(2, heads, Q_LEN, KV_LEN) - 50


def test_scale() -> None:
    np.testing.assert_array_equal(_modified(Scale(0.25)), _before() / 4)


def test_softcap() -> None:
    np.testing.assert_allclose(_modified(Softcap(30.0)), 30 * np.tanh(_before() / 30), rtol=1e-13)


def _slopes(heads: int) -> list[float]:
    """The function of the ALiBi paper's code."""
    power = math.log2(heads)
    if power.is_integer():
        start = 2 ** (-(2 ** -(power - 3)))
        return [start * start**n for n in range(heads)]
    closest = 2 ** math.floor(power)
    return _slopes(closest) + _slopes(2 * closest)[0::2][: heads - closest]


@pytest.mark.parametrize("heads", [1, 4, 6, 7, 12])
def test_alibi(heads: int) -> None:
    distance = np.abs(np.arange(Q_LEN)[:, None] + KV_LEN - Q_LEN - np.arange(KV_LEN))
    expected = _before(heads) - np.array(_slopes(heads))[:, None, None] * distance
    np.testing.assert_allclose(_modified(ALiBi(), heads), expected, rtol=1e-12)


def test_relative_bias() -> None:
    table = np.random.default_rng(0).standard_normal((4, 7))
    clipped = np.clip(np.arange(KV_LEN) - np.arange(Q_LEN)[:, None], -3, 3) + 3
    np.testing.assert_array_equal(_modified(RelativeBias(3), relative_bias=table), _before() + table[:, clipped])


@pytest.mark.parametrize(("batch", "heads"), [(1, 1), (1, 4), (2, 1), (2, 4)])
def test_bias(batch: int, heads: int) -> None:
    bias = np.random.default_rng(0).standard_normal((batch, heads, Q_LEN, KV_LEN))
    np.testing.assert_array_equal(_modified(Bias(batch, heads), bias=bias), _before() + bias)


def test_sink_changes_no_score() -> None:
    np.testing.assert_array_equal(_modified(Sink()), _before())


@pytest.mark.parametrize(("score", "specs"), [
    (Scale(1.0), ()), (Softcap(1.0), ()), (ALiBi(), ()),
    (RelativeBias(3), (TensorSpec("relative_bias", (4, 7), "float32"),)),
    (Bias(2, 1), (TensorSpec("bias", (2, 1, Q_LEN, KV_LEN), "float32"),)),
    (Sink(), (TensorSpec("sink", (4,), "float32"),)),
])  # fmt: skip
def test_tensors_stand_behind_q_k_v(score: Score, specs: tuple[TensorSpec, ...]) -> None:
    assert _problem(score).inputs()[3:] == specs


@pytest.mark.parametrize("score", [Scale(0.5), Softcap(30), ALiBi(), RelativeBias(8), Bias(heads=4), Sink()])
def test_json_round_trip(score: Score) -> None:
    text = canonical.dumps(canonical.to_data(score))
    back: Score = canonical.from_data(json.loads(text), Score)  # type: ignore[type-abstract]
    assert back == score
    assert canonical.key(back) == canonical.key(score)


def test_keys_stay_the_same(golden: Callable[[str, str], None]) -> None:
    scores = (Scale(0.125), Softcap(30), ALiBi(), RelativeBias(32), Bias(1, 4), Sink())
    golden("scores/keys.txt", "".join(f"{s.kind} {canonical.key(s)}\n" for s in scores))


def test_whole_numbers_and_fractions_have_one_key() -> None:
    assert canonical.key(Softcap(30)) == canonical.key(Softcap(30.0))
    assert canonical.key(Scale(1)) == canonical.key(Scale(1.0))


@pytest.mark.parametrize("make", [
    lambda: Scale(float("nan")), lambda: Scale(float("inf")), lambda: Scale("1"), lambda: Scale(True),  # type: ignore[arg-type]
    lambda: Softcap(0), lambda: Softcap(-3.0), lambda: Softcap(float("inf")),
    lambda: RelativeBias(-1), lambda: RelativeBias(2.0), lambda: Bias(0), lambda: Bias(heads=True),  # type: ignore[arg-type]
])  # fmt: skip
def test_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ScoreError, match="got "):
        make()


def test_bias_must_fit_the_problem() -> None:
    for bias in (Bias(batch=3), Bias(heads=2)):
        with pytest.raises(ScoreError, match=r"does not fit the problem.*batch 1 or 2, heads 1 or 4"):
            _problem(bias)


def test_one_tensor_of_a_name() -> None:
    with pytest.raises(ProblemError, match="may stand once only"):
        _problem(Sink(), Sink())
