"""Attention in NumPy, a block of rows at a time: float64 for truth, float32 for the budget. Of large problems, a sample of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import expr
from ..expr import Expr
from ..masks import Mask
from ..problems import Attention
from ..scores import Sink
from .compare import Arrays, fast_exp

Array = npt.NDArray[Any]
#: (batch entry, head, query positions) computed together
Block = tuple[int, int, npt.NDArray[np.int64]]

SCORES_AT_ONCE = 1 << 22
#: problems with more scores are evaluated on as many rows as give SAMPLED_SCORES
WHOLE_SCORES, SAMPLED_SCORES = 1 << 28, 1 << 26
ATTEMPTED_ROWS = 128
MAX_ATTEMPTS = 32
#: lse is a logarithm: an error in it is a relative error of the sum of exponentials, however close to 0 it lies
SMALLEST_SCALE = {"lse": 1.0}


def sample(problem: Attention, seed: int = 0) -> list[Block] | None:
    """Rows that stand for all of a large problem: random ones of every (batch entry, head) and the ends; None where all are evaluated."""
    pairs = problem.batch * problem.heads
    if pairs * problem.q_len * problem.kv_len <= WHOLE_SCORES:
        return None
    rng = np.random.default_rng(seed)
    each = min(problem.q_len, max(4, SAMPLED_SCORES // (pairs * problem.kv_len)))
    ends = np.array([0, problem.q_len - 1])
    chosen = (np.union1d(ends, rng.choice(problem.q_len, each, replace=False)) for _ in range(pairs))
    return [(n // problem.heads, n % problem.heads, rows) for n, rows in enumerate(chosen)]


def evaluate(problem: Attention, inputs: Arrays, blocks: Sequence[Block] | None = None) -> Arrays:
    """o and lse in float64; a row without any key gives o = 0 and lse = -inf, one outside ``blocks`` NaN."""
    return _Attend(problem, inputs, np.dtype(np.float64)).run(_all_rows(problem) if blocks is None else blocks)


def attempts(problem: Attention, inputs: Arrays, blocks: Sequence[Block] | None = None) -> Iterator[Arrays]:
    """NumPy's products on all rows, then sums taken one by one in shuffled order on enough rows to meet bad luck."""
    attend = _Attend(problem, inputs, np.dtype(np.float32))
    yield attend.run(_all_rows(problem) if blocks is None else blocks)
    blocks = list(_some_rows(problem) if blocks is None else _some_of(blocks))
    for seed in range(min(MAX_ATTEMPTS, -(-ATTEMPTED_ROWS // sum(len(i) for _, _, i in blocks)))):
        yield _OneByOne(problem, inputs, np.dtype(np.float32), seed).run(iter(blocks))


def _all_rows(problem: Attention) -> Iterator[Block]:
    step = max(1, SCORES_AT_ONCE // problem.kv_len)
    for start in range(0, problem.q_len, step):
        i = np.arange(start, min(start + step, problem.q_len))
        yield from ((b, h, i) for b in range(problem.batch) for h in range(problem.heads))


def _some_rows(problem: Attention) -> Iterator[Block]:
    pairs = problem.batch * problem.heads
    chosen = np.unique(np.linspace(0, pairs - 1, min(4, pairs)).astype(np.int64))
    i = np.unique(np.linspace(0, problem.q_len - 1, min(problem.q_len, ATTEMPTED_ROWS // len(chosen))).astype(np.int64))
    yield from ((int(p) // problem.heads, int(p) % problem.heads, i) for p in chosen)


def _some_of(blocks: Sequence[Block]) -> Iterator[Block]:
    for n in np.unique(np.linspace(0, len(blocks) - 1, min(4, len(blocks))).astype(np.int64)):
        b, h, i = blocks[n]
        yield b, h, i[:: max(1, len(i) * 4 // ATTEMPTED_ROWS)]


class _Allowed:
    """The mask's rows as bits; heads that share them (most masks do not depend on b or h) pay once."""

    def __init__(self, problem: Attention) -> None:
        self.mask: Mask = problem.bound_mask
        self.depends_on = self.mask.depends_on
        self.keys = np.arange(problem.kv_len)[None, :]
        self.known: tuple[object, npt.NDArray[np.bool_]] | None = None

    def rows(self, b: int, h: int, i: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        name = (b if "b" in self.depends_on else 0, h if "h" in self.depends_on else 0, i.tobytes())
        if self.known is None or self.known[0] != name:
            bits = np.broadcast_to(np.asarray(self.mask(i[:, None], self.keys, b, h), dtype=bool), (len(i), self.keys.size))
            self.known = (name, bits)
        return self.known[1]


@dataclass
class _Attend:
    """The formula of problems.Attention in one dtype, with NumPy's products and sums."""

    problem: Attention
    inputs: Arrays
    dtype: np.dtype[Any]

    def run(self, blocks: Iterable[Block]) -> Arrays:
        p = self.problem
        allowed = _Allowed(p)
        out = {spec.name: np.full(spec.shape, np.nan, self.dtype) for spec in p.outputs()}
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            for b, h, i in blocks:
                o, lse = self._rows(b, h, i, allowed.rows(b, h, i))
                out["o"][b, h, i] = o
                if p.return_lse:
                    out["lse"][b, h, i] = lse
        return out

    def _rows(self, b: int, h: int, i: npt.NDArray[np.int64], allowed: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
        p, head = self.problem, h // self.problem.group
        j = self.order(np.flatnonzero(allowed.any(axis=0)))
        d = self.order(np.arange(p.head_dim))
        q, k, v = (self.inputs[n][at].astype(self.dtype) for n, at in (("q", (b, h, i)), ("k", (b, head, j)), ("v", (b, head, j))))
        s = self.product(q[:, d], k[:, d].T)
        for score in p.scores:
            s = np.asarray(_modify(score.expr(Expr("value"), p), s, self.inputs, (b, h, i[:, None], j[None, :])), dtype=self.dtype)
        s = np.where(allowed[:, j], s, self.dtype.type(-np.inf))
        top = s.max(axis=1, keepdims=True, initial=-np.inf)
        sink = self.inputs["sink"][h].astype(self.dtype) if any(isinstance(score, Sink) for score in p.scores) else None
        top = top if sink is None else np.maximum(top, sink)
        shift = np.where(np.isneginf(top), self.dtype.type(0), top)
        weight = self.exp(s - shift)
        total = self.total(weight)
        total = total if sink is None else total + self.exp(sink - shift)
        empty = total == 0
        o = self.product(weight, v) / np.where(empty, self.dtype.type(1), total)
        return o, np.where(empty, self.dtype.type(-np.inf), np.log(total) + shift)[:, 0]

    def order(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return positions

    def product(self, a: Array, b: Array) -> Array:
        return np.asarray(a @ b)

    def exp(self, x: Array) -> Array:
        return np.asarray(np.exp(x))

    def total(self, weight: Array) -> Array:
        return np.asarray(weight.sum(axis=1, keepdims=True))


@dataclass
class _OneByOne(_Attend):
    """The same formula as kernels write it: sums term by term in an order of its own, exponentials as powers of two."""

    seed: int

    def order(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.random.default_rng(self.seed).permutation(positions)

    def product(self, a: Array, b: Array) -> Array:
        out = np.zeros((a.shape[0], b.shape[1]), self.dtype)
        for m in range(a.shape[1]):
            out += a[:, m : m + 1] * b[m]
        return out

    def exp(self, x: Array) -> Array:
        return fast_exp(np.asarray(x), self.seed)

    def total(self, weight: Array) -> Array:
        return np.cumsum(weight, axis=1)[:, -1:] if weight.shape[1] else np.zeros((len(weight), 1), self.dtype)


def _modify(e: Expr, s: Array, tensors: Arrays, at: tuple[Any, ...]) -> Any:
    """A score modification on a block of scores; ``at`` holds b, h, i and j, shaped to broadcast."""
    places = dict(zip("bhij", at))

    def leaf(node: Expr, operands: tuple[Any, ...]) -> Any:
        if node.op == "value":
            return s
        if node.op == "index":
            return places[node.args[0]]
        if node.op == "cast":
            wanted = np.dtype(node.args[0])
            return np.asarray(operands[0]).astype(wanted if wanted.kind in "iub" else s.dtype)
        return tensors[node.args[0]][operands].astype(s.dtype)

    return expr.evaluate(e, leaf)
