"""The attention definition, compiled without any schedule, against the float64 oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_stof import cascade, reference, testing
from tvm_stof.canonical import canonical
from tvm_stof.cascade import interpret
from tvm_stof.definitions import definition
from tvm_stof.expr import Expr, call, const, index, load, text
from tvm_stof.masks import UNKNOWN, BlockGrid, Mask
from tvm_stof.masks.causal import Causal
from tvm_stof.problems import Attention, TensorSpec
from tvm_stof.scores import Score, Sink


@canonical("test_stored")
@dataclass(frozen=True)
class Stored(Mask):
    """Bits that no formula gives; per batch entry and head as ``over`` says."""

    over: str = ""
    seed: int = 0
    share: float = 0.5

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        bits = np.random.default_rng(self.seed).random((3, 4, 32, 32)) < self.share
        return bits[b if "b" in self.over else 0, h if "h" in self.over else 0, q, k]

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        return np.full((grid.rows, grid.cols), UNKNOWN, np.uint8)

    @property
    def arithmetic(self) -> bool:
        return False

    @property
    def depends_on(self) -> frozenset[str]:
        return frozenset(self.over)


@canonical("test_arithmetic")
@dataclass(frozen=True)
class Arithmetic(Mask):
    """A formula with every operation a mask may use, different for each batch entry and head."""

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        return ((k <= q + h) & ((q - k) % 3 < 2)) | (k // 2 < b) | ((q > 5) & (k * 2 >= q))

    def classify(self, grid: BlockGrid, b: int = 0, h: int = 0) -> npt.NDArray[np.uint8]:
        return np.full((grid.rows, grid.cols), UNKNOWN, np.uint8)

    @property
    def depends_on(self) -> frozenset[str]:
        return frozenset("bh")


@canonical("test_bent")
@dataclass(frozen=True)
class Bent(Score):
    """A score of positions, heads and a tensor: tanh(score) * 3 - (head + 1) |i - j| / 8 + table[h, j]."""

    def expr(self, score: Expr, problem: Attention) -> Expr:
        distance = call("abs", call("sub", index("i"), index("j")))
        slope = call("div", call("add", index("h"), const(1)), const(8.0))
        bent = call("mul", call("tanh", score), const(3.0))
        return call("add", call("sub", bent, call("mul", slope, distance)), load("table", index("h"), index("j")))

    def tensors(self, problem: Any) -> tuple[TensorSpec, ...]:
        return (TensorSpec("table", (problem.heads, problem.kv_len), "float32"),)


def bits_of(problem: Attention) -> list[npt.NDArray[np.uint8]]:
    """``mask_bits`` as the contract lays it out, where the definition takes it."""
    mask = problem.bound_mask
    if mask.arithmetic:
        return []
    over = mask.depends_on
    groups = [(b, h) for b in range(problem.batch if "b" in over else 1) for h in range(problem.heads if "h" in over else 1)]
    q, k = np.arange(problem.q_len)[:, None], np.arange(problem.kv_len)[None, :]
    return [np.stack([np.asarray(mask(q, k, b, h)) for b, h in groups]).astype(np.uint8)]


def run(problem: Attention, arrays: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
    outputs = {t.name: tvm.runtime.tensor(np.full(t.shape, np.nan, t.dtype)) for t in problem.outputs()}
    given = [*arrays.values(), *bits_of(problem)]
    tvm.compile(definition(problem), target="llvm")(*map(tvm.runtime.tensor, given), *outputs.values())
    return {name: t.numpy() for name, t in outputs.items()}


def assert_right(problem: Attention) -> dict[str, npt.NDArray[Any]]:
    arrays = testing.inputs(problem, 1)
    outputs = run(problem, arrays)
    verdict = reference.compare(problem, arrays, outputs)
    assert verdict.ok, verdict.message
    return outputs


MASKS: dict[str, Mask] = {
    "causal": Causal(),
    "causal bottom right": Causal(align="bottom_right"),
    "formula": Arithmetic(),
    "stored": Stored(),
    "stored for each entry": Stored("b", 1),
    "stored for each head": Stored("h", 2),
    "stored for each": Stored("bh", 3, 0.2),
    "nothing": Stored("", 4, 0.0),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(("q_len", "kv_len"), [(7, 13), (9, 5), (1, 11)])
def test_masks(name: str, q_len: int, kv_len: int) -> None:
    problem = Attention(
        batch=2,
        heads=4,
        kv_heads=2,
        q_len=q_len,
        kv_len=kv_len,
        head_dim=8,
        value_dim=3,
        mask=MASKS[name],
        return_lse=True,
        scores=(Sink(),),
    )
    assert_right(problem)


@pytest.mark.parametrize("mask", [Causal(align="bottom_right"), Stored("", 4, 0.0)], ids=["some rows", "all rows"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rows_without_keys_are_zero_and_minus_infinity(mask: Mask, dtype: str) -> None:
    problem = Attention(heads=2, q_len=9, kv_len=4, head_dim=8, mask=mask, dtype=dtype, return_lse=True)
    out = assert_right(problem)
    empty = ~np.broadcast_to(np.asarray(problem.bound_mask(np.arange(9)[:, None], np.arange(4)[None, :])), (9, 4)).any(axis=1)
    assert empty.any()
    assert np.all(out["o"][:, :, empty] == 0)
    assert np.all(out["lse"][:, :, empty] == -np.inf)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_types_and_groups(dtype: str, kv_heads: int) -> None:
    assert_right(Attention(heads=4, kv_heads=kv_heads, q_len=13, kv_len=17, head_dim=5, value_dim=7, dtype=dtype, mask=Causal()))


def test_smallest() -> None:
    assert_right(Attention(heads=1, q_len=1, head_dim=1, return_lse=True))


def test_scores_of_positions_heads_and_tensors() -> None:
    assert_right(Attention(heads=3, q_len=9, kv_len=11, head_dim=4, scores=(Bent(), Sink()), mask=Causal(), return_lse=True))


@pytest.mark.parametrize("sink", [-200.0, 0.0, 300.0])
@pytest.mark.parametrize("scale", [1.0, 500.0])
def test_extreme_sinks_and_scores_do_not_overflow(sink: float, scale: float) -> None:
    problem = Attention(heads=2, q_len=5, kv_len=3, head_dim=4, scores=(Sink(),), mask=Causal(align="bottom_right"), return_lse=True)
    arrays = testing.inputs(problem, 0)
    arrays["sink"][:] = sink
    arrays["q"] *= np.float32(scale)
    out = run(problem, arrays)
    want = reference.evaluate(problem, arrays)
    assert np.all(np.isfinite(out["o"]))
    np.testing.assert_allclose(out["lse"], want["lse"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out["o"], want["o"], rtol=1e-3, atol=1e-4)


def test_dense_leaves_no_condition_behind() -> None:
    problem = Attention(heads=2, q_len=5, head_dim=4)
    assert "inf" not in definition(problem)["main"].script().split('sblock("row_max")')[0]
    assert cascade.program_of(problem).predicate is None


@pytest.mark.parametrize("name", [n for n in MASKS if n != "nothing"])
def test_mask_is_the_predicate_of_the_program(name: str) -> None:
    problem = Attention(batch=2, heads=4, q_len=6, kv_len=9, head_dim=4, mask=MASKS[name], return_lse=True)
    program = cascade.program_of(problem)
    assert program.predicate is not None
    assert text(program.value) == "(prologue * 0.5)"
    arrays = dict(testing.inputs(problem, 0))
    arrays |= dict(zip(["mask_bits"], bits_of(problem)))
    got = interpret.run(program, arrays, ([np.arange(2)], [np.arange(2, 5), np.arange(5, 9)]))
    want = reference.evaluate(problem, testing.inputs(problem, 0))
    for output in want:
        np.testing.assert_allclose(got[output], want[output], rtol=1e-12, atol=1e-12)


def test_stored_bits_stand_before_the_outputs() -> None:
    names = [p.name for p in definition(Attention(heads=2, q_len=5, head_dim=4, mask=Stored("h"), return_lse=True))["main"].params]
    assert names == ["q", "k", "v", "mask_bits", "o", "lse"]


@given(data=st.data())
@settings(max_examples=8)
def test_any_shape(data: st.DataObject) -> None:
    kv_heads, group = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3))
    size = st.integers(1, 17)
    problem = Attention(
        batch=data.draw(st.integers(1, 2)),
        heads=kv_heads * group,
        kv_heads=kv_heads,
        q_len=data.draw(size),
        kv_len=data.draw(size),
        head_dim=data.draw(size),
        value_dim=data.draw(size),
        dtype=data.draw(st.sampled_from(["float32", "float16"])),
        mask=data.draw(st.sampled_from([Causal(), Causal(align="bottom_right"), Arithmetic()])),
        return_lse=data.draw(st.booleans()),
    )
    assert_right(problem)
