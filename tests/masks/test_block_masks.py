"""Masks of blocks: documents, block lists, random blocks, BigBird."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tvm_stof.errors import MaskError
from tvm_stof.masks import BigBird, BlockList, Causal, Document, RandomBlocks

from .plain import from_rule, matrix


def test_documents_end_where_the_lengths_say() -> None:
    of = [0] * 3 + [1] * 5 + [2] * 2 + [-1] * 4
    expected = from_rule(14, 12, lambda q, k: of[q] == of[k] != -1)
    np.testing.assert_array_equal(matrix(Document((3, 5, 2)), 14, 12), expected)


def test_document_lengths_must_fit() -> None:
    with pytest.raises(MaskError, match="longer than the sequence: got 12; accepted: at most 11"):
        Document((5, 7)).check(11, 9, 1, 1)
    Document((5, 6)).check(11, 9, 1, 1)


def test_many_documents_are_stored_as_bits() -> None:
    assert Document((1, 2, 3)).arithmetic
    assert not Document((1,) * 40).arithmetic


def test_block_list() -> None:
    rows = ((1, 0), (), (2, 2))
    expected = from_rule(11, 10, lambda q, k: k // 4 in rows[q // 4])
    mask = BlockList(4, rows)
    mask.check(11, 10, 1, 1)
    np.testing.assert_array_equal(matrix(mask, 11, 10), expected)
    assert mask == BlockList(4, ((0, 1), (), (2,)))
    assert mask.arithmetic
    assert not BlockList(1, tuple((n,) for n in range(9))).arithmetic
    assert not BlockList(4, ((), ())).arithmetic


@pytest.mark.parametrize("shape", [(13, 10), (12, 8), (8, 10)])
def test_block_list_must_fit(shape: tuple[int, int]) -> None:
    with pytest.raises(MaskError, match="block list"):
        BlockList(4, ((1, 0), (), (2,))).check(*shape, 1, 1)


def _cells(bits: Any, block: int) -> Any:
    return bits[::block, ::block]


def test_random_blocks_are_whole_distinct_and_differ_by_row_and_seed() -> None:
    cells = _cells(matrix(RandomBlocks(8, 5), 512, 512), 8)
    assert (cells.sum(axis=1) == 5).all()
    assert (matrix(RandomBlocks(8, 5), 512, 512) == np.kron(cells, np.ones((8, 8), bool))).all()
    assert len({row.tobytes() for row in cells}) == 64
    other = _cells(matrix(RandomBlocks(8, 5, seed=1), 512, 512), 8)
    assert (cells & other).sum() < 64 * 5 // 3


def test_random_blocks_are_spread_evenly() -> None:
    """Chi-squared over columns and over distances: 95 % of good hashes lie within the bounds, and this one always does."""
    cells = _cells(matrix(RandomBlocks(1, 16), 512, 512), 1)
    distances = np.stack([np.roll(row, -n) for n, row in enumerate(cells)])
    for counts in (cells.sum(axis=0), distances.sum(axis=0)):
        chi = ((counts - 16.0) ** 2 / 16.0).sum()
        assert 512 - 4 * 32 < chi < 512 + 4 * 32


def test_random_share() -> None:
    cells = _cells(matrix(RandomBlocks(4, percent=25), 64, 160), 4)
    assert (cells.sum(axis=1) == 10).all()
    assert (_cells(matrix(RandomBlocks(4, percent=1), 64, 160), 4).sum(axis=1) == 1).all()


@pytest.mark.parametrize("away", [0, 1, 3, 8])
def test_random_blocks_keep_away_from_the_diagonal(away: int) -> None:
    cells = _cells(matrix(RandomBlocks(2, 7, away=away), 32, 32), 2)
    row, column = np.nonzero(cells)
    distance = np.minimum((row - column) % 16, (column - row) % 16)
    assert (distance >= away).all()
    assert (cells.sum(axis=1) == min(7, 16 - max(0, 2 * away - 1))).all()


def test_no_room_for_random_blocks() -> None:
    assert not matrix(RandomBlocks(4, 1, away=5), 16, 16).any()


def test_bigbird_parts() -> None:
    """Window and global blocks by rule; random blocks far from both, as many as asked for."""
    window, first, drawn = 1, 2, 3
    mask = BigBird(4, window=window, global_blocks=first, random_blocks=drawn)
    cells = _cells(matrix(mask, 128, 128), 4)
    fixed = from_rule(32, 32, lambda r, c: abs(r - c) <= window or r < first or c < first)
    assert cells[fixed].all()
    far = cells & ~fixed
    assert (far[first:].sum(axis=1) == drawn).all()
    assert len({row.tobytes() for row in far[first:]}) == 30


def test_bigbird_of_another_length() -> None:
    mask = BigBird(4, kv_len=64)
    mask.check(64, 64, 1, 1)
    with pytest.raises(MaskError, match="drawn for another length"):
        mask.check(64, 65, 1, 1)
    with pytest.raises(MaskError, match="drawn for another length"):
        RandomBlocks(4, 1, kv_len=64).check(64, 65, 1, 1)


@pytest.mark.parametrize("mask", [BigBird(), RandomBlocks(4, 1)])
def test_random_masks_have_to_be_bound(mask: Any) -> None:
    with pytest.raises(MaskError, match="not bound"):
        mask(0, 0)


def test_bigbird_at_the_end_is_that_of_the_whole() -> None:
    """The last queries alone see what they see among all."""
    mask = BigBird(8, global_blocks=1, align="bottom_right") & Causal(align="bottom_right")
    np.testing.assert_array_equal(matrix(mask, 11, 96), matrix(mask, 96, 96)[-11:])


@pytest.mark.parametrize("make", [
    lambda: Document(()), lambda: Document((1, 0)), lambda: BlockList(0, ()), lambda: BlockList(4, ((-1,),)),
    lambda: Document(5), lambda: BlockList(4, (1, 2)),  # type: ignore[arg-type]
    lambda: RandomBlocks(4), lambda: RandomBlocks(4, 1, percent=1), lambda: RandomBlocks(4, percent=101),
    lambda: RandomBlocks(0, 1), lambda: BigBird(0), lambda: BigBird(window=-1), lambda: RandomBlocks(1, 1 << 20, kv_len=1 << 20),
    lambda: BigBird(1, random_blocks=1, kv_len=1 << 17),
])  # fmt: skip
def test_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(MaskError, match="got "):
        make()
