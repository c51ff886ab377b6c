"""Masks looked at element by element, one of each kind, and hypothesis strategies over all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from tvm_stof import canonical, masks
from tvm_stof.masks import EMPTY, FULL, PARTIAL, Mask

Bits = npt.NDArray[np.bool_]
LENGTHS = (1, 2, 7, 16, 31, 48, 61)


def matrix(mask: Mask, q_len: int, kv_len: int, b: int = 0, h: int = 0) -> Bits:
    """All pairs of a mask."""
    bits = mask.bind(q_len, kv_len)(np.arange(q_len)[:, None], np.arange(kv_len), b, h)
    return np.broadcast_to(np.asarray(bits, bool), (q_len, kv_len))


def read_back(mask: Mask) -> Mask:
    """The mask from its own canonical text."""
    return from_json(canonical.dumps(canonical.to_data(mask)))


def from_json(text: str) -> Mask:
    """The mask of a canonical text."""
    mask: Mask = canonical.from_data(json.loads(text), Mask)  # type: ignore[type-abstract]
    return mask


def from_rule(q_len: int, kv_len: int, rule: Callable[[int, int], bool]) -> Bits:
    """All pairs of a rule in plain Python."""
    return np.array([[rule(q, k) for k in range(kv_len)] for q in range(q_len)], bool)


def classes(bits: Bits, block_q: int, block_k: int) -> npt.NDArray[np.uint8]:
    """Classes of blocks, from their elements."""
    rows = [bits[n : n + block_q] for n in range(0, bits.shape[0], block_q)]
    cells = [[row[:, n : n + block_k] for n in range(0, bits.shape[1], block_k)] for row in rows]
    return np.array([[FULL if c.all() else PARTIAL if c.any() else EMPTY for c in row] for row in cells], np.uint8)


def examples() -> dict[str, Mask]:
    """One or two masks of each kind for 37 queries and 53 keys; the golden keys are those of these."""
    bits = np.arange(37 * 53).reshape(37, 53) % 7 < 3
    return {
        "dense": masks.Dense(),
        "causal": masks.Causal(),
        "causal_end": masks.Causal(align="bottom_right"),
        "window": masks.SlidingWindow(5),
        "window_one_sided": masks.SlidingWindow(9, ahead=0),
        "dilated": masks.Dilated(12, 3),
        "strided": masks.Strided(6),
        "strided_local": masks.Strided(6, local=0),
        "global": masks.Global(3),
        "prefix": masks.PrefixLM(8),
        "document": masks.Document((9, 20, 8)),
        "longformer": masks.Longformer(4, tokens=2),
        "bigbird": masks.BigBird(4, global_blocks=1, random_blocks=2, align="bottom_right"),
        "random": masks.RandomBlocks(4, 3, seed=5),
        "random_share": masks.RandomBlocks(4, percent=20, away=2),
        "blocks": masks.BlockList(16, ((0, 1), (2,), (0, 3))),
        "array": masks.Array.of(bits),
        "array_heads": masks.Array.of(np.stack([bits, ~bits])),
        "function": masks.Function.trace(lambda b, h, q, kv: (kv <= q) & (q - kv < 3 * (h + 1)) | ((q + kv + b) % 5 == 0)),
        "and": masks.Causal() & masks.SlidingWindow(5),
        "or": masks.Global(2) | masks.Dilated(12, 3) & ~masks.SlidingWindow(2),
        "not": ~masks.Causal(),
    }


@st.composite
def aligned(draw: st.DrawFn) -> str | int:
    return draw(st.sampled_from(["top_left", "bottom_right"]) | st.integers(-20, 20))


def spoken(q_len: int, kv_len: int) -> st.SearchStrategy[Mask]:
    """Single masks that have a text."""
    small, align = st.integers(0, 12), aligned()
    maybe = st.none() | small
    ones: list[st.SearchStrategy[Any]] = [
        st.just(masks.Dense()),
        st.builds(masks.Causal, align=align),
        st.builds(masks.SlidingWindow, small, maybe, align=align),
        st.builds(masks.Dilated, st.integers(0, 40), st.integers(1, 6), align=align),
        st.builds(masks.Strided, st.integers(1, 12), maybe, align=align),
        st.builds(masks.Global, small, align=align),
        st.builds(masks.PrefixLM, st.integers(0, 70), align=align),
        st.builds(masks.Longformer, small, small, align=align),
        st.builds(masks.RandomBlocks, st.integers(1, 9), st.integers(1, 4), st.integers(0, 5), away=st.integers(0, 4), align=align),
        st.builds(masks.RandomBlocks, st.integers(1, 9), percent=st.integers(1, 100), align=align),
        st.builds(masks.BigBird, st.integers(1, 9), window=st.integers(0, 2), global_blocks=st.integers(0, 3),
                  random_blocks=st.integers(0, 5), seed=st.integers(0, 5), align=align),
        st.builds(masks.Document, _lengths(max(q_len, kv_len)), align=align),
        _block_lists(q_len, kv_len),
    ]  # fmt: skip
    return st.one_of(ones)


def any_mask(q_len: int, kv_len: int) -> st.SearchStrategy[Mask]:
    """Single masks, arrays and functions among them, and combinations."""
    function = st.sampled_from(FUNCTIONS).map(masks.Function.trace)
    single = st.one_of(spoken(q_len, kv_len), _arrays(q_len, kv_len), function)
    return combined(single)


def combined(single: st.SearchStrategy[Mask]) -> st.SearchStrategy[Mask]:
    """Combinations of masks."""

    def more(inner: st.SearchStrategy[Mask]) -> st.SearchStrategy[Mask]:
        pair = st.tuples(inner, inner)
        return pair.map(lambda p: p[0] & p[1]) | pair.map(lambda p: p[0] | p[1]) | inner.map(lambda m: ~m)

    return st.recursive(single, more, max_leaves=4)


FUNCTIONS: list[Callable[[Any, Any, Any, Any], Any]] = [
    lambda b, h, q, kv: (q + kv) % 3 != 0,
    lambda b, h, q, kv: (q // 4 == kv // 4) | (abs(q - kv) <= h + 1),
    lambda b, h, q, kv: np.where(q < 9, kv < 9, kv * 2 >= q),
    lambda b, h, q, kv: (np.minimum(q, kv) - np.maximum(q, 5) > -3) ^ (kv % (q + 1) == b),
    lambda b, h, q, kv: (q - kv) * 3 - (q - kv) // 2 < 4,
    lambda b, h, q, kv: kv > 1000,
    lambda b, h, q, kv: True,
]


@st.composite
def _lengths(draw: st.DrawFn, total: int) -> tuple[int, ...]:
    lengths: list[int] = []
    for one in draw(st.lists(st.integers(1, 20), min_size=1, max_size=6)):
        if sum(lengths) + one <= total:
            lengths.append(one)
    return tuple(lengths) or (1,)


@st.composite
def _block_lists(draw: st.DrawFn, q_len: int, kv_len: int) -> Mask:
    block = draw(st.integers(1, 20))
    column = st.integers(0, -(-kv_len // block) - 1)
    rows = -(-q_len // block)
    return masks.BlockList(block, tuple(map(tuple, draw(st.lists(st.lists(column, max_size=4), min_size=rows, max_size=rows)))))


@st.composite
def _arrays(draw: st.DrawFn, q_len: int, kv_len: int) -> Mask:
    shape = (*draw(st.sampled_from([(), (2,), (1,), (2, 2), (2, 1)])), q_len, kv_len)
    share = draw(st.sampled_from([0.0, 0.05, 0.5, 0.95, 1.0]))
    return masks.Array.of(np.random.default_rng(draw(st.integers(0, 99))).random(shape) < share)
