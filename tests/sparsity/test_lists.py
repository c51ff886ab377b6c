"""Block and row lists against the whole matrix, for any mask and shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.masks.plain import LENGTHS, any_mask, classes, examples, matrix
from tvm_stof import sparsity
from tvm_stof.masks import EMPTY, FULL, UNKNOWN, BlockGrid, BlockList, Causal, Function, Mask, SlidingWindow
from tvm_stof.sparsity import BlockLists, RowLists
from tvm_stof.sparsity.settle import settled


def unpacked(lists: BlockLists, group: int, q_len: int, kv_len: int) -> npt.NDArray[np.bool_]:
    """The matrix a kernel would compute from the lists."""
    rows, block_q, block_k = -(-q_len // lists.grid.block_q), lists.grid.block_q, lists.grid.block_k
    bits = np.zeros((rows * block_q, -(-kv_len // block_k) * block_k), bool)
    tile, tiles = lists.tile, lists.tiles()
    for r in range(rows):
        begin, end = lists.row_ptr[group * rows + r], lists.row_ptr[group * rows + r + 1]
        assert (np.diff(lists.col[begin:end]) > 0).all()
        for n in range(begin, end):
            c = int(lists.col[n])
            assert (tile[n] == -1) == bool(lists.full[n])
            bits[r * block_q : (r + 1) * block_q, c * block_k : (c + 1) * block_k] = True if lists.full[n] else tiles[tile[n]]
            # Stored bits end where the scores end.
            past_q, past_k = np.arange(block_q) >= q_len - r * block_q, np.arange(block_k) >= kv_len - c * block_k
            assert lists.full[n] or not tiles[tile[n]][past_q[:, None] | past_k].any()
    return bits[:q_len, :kv_len]


def spread(lists: RowLists, group: int, q_len: int, kv_len: int) -> npt.NDArray[np.bool_]:
    bits = np.zeros((q_len, kv_len), bool)
    for q in range(q_len):
        begin, end = lists.row_ptr[group * q_len + q], lists.row_ptr[group * q_len + q + 1]
        # Neither empty nor touching.
        assert (np.diff(np.stack((lists.start[begin:end], lists.stop[begin:end]), axis=1).ravel()) > 0).all()
        for n in range(begin, end):
            bits[q, lists.start[n] : lists.stop[n]] = True
    return bits


def check_lists(mask: Mask, q_len: int, kv_len: int, block_q: int, block_k: int, batch: int, heads: int) -> None:
    bound = mask.bind(q_len, kv_len)
    blocks = sparsity.block_lists(bound, q_len, kv_len, block_q, block_k, batch, heads)
    rows = sparsity.row_lists(bound, q_len, kv_len, batch, heads)
    assert {str(a.dtype) for a in (blocks.row_ptr, blocks.col, blocks.tile, rows.row_ptr, rows.start, rows.stop)} == {"int32"}
    assert {str(a.dtype) for a in (blocks.full, blocks.tiles())} == {"uint8"}
    assert len(blocks.row_ptr) == blocks.groups * -(-q_len // block_q) + 1
    assert len(rows.row_ptr) == rows.groups * q_len + 1
    assert len({t.tobytes() for t in blocks.tiles()}) == len(blocks.tiles())
    total = 0
    for b in range(batch):
        for h in range(heads):
            bits = matrix(mask, q_len, kv_len, b, h)
            assert blocks.group(b, h) == rows.group(b, h) < blocks.groups
            np.testing.assert_array_equal(unpacked(blocks, blocks.group(b, h), q_len, kv_len), bits)
            np.testing.assert_array_equal(spread(rows, rows.group(b, h), q_len, kv_len), bits)
            total += int(bits.sum())
    assert int(blocks.counts().sum()) * batch * heads == total * blocks.groups


@settings(max_examples=250)
@given(st.data())
def test_any_mask_and_shape(data: st.DataObject) -> None:
    q_len, kv_len = data.draw(st.sampled_from(LENGTHS)), data.draw(st.sampled_from(LENGTHS))
    block_q, block_k = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 20))
    mask = data.draw(any_mask(q_len, kv_len))
    mask.check(q_len, kv_len, 2, 2)
    grid = BlockGrid(q_len, kv_len, block_q, block_k)
    for b, h in ((0, 0), (1, 1)):
        true = classes(matrix(mask, q_len, kv_len, b, h), block_q, block_k)
        for slab in grid.slabs(7):
            part = true[slab.first : slab.first + slab.rows]
            found = mask.bind(q_len, kv_len).classify(slab, b, h)
            assert found.dtype == np.uint8
            np.testing.assert_array_equal(np.where(found == UNKNOWN, part, found), part)
            np.testing.assert_array_equal(settled(mask.bind(q_len, kv_len), slab, b, h), part)
    check_lists(mask, q_len, kv_len, block_q, block_k, 2, 2)


@pytest.mark.parametrize("name", examples())
@pytest.mark.parametrize("shape", [(37, 53, 8, 16), (37, 53, 64, 64), (37, 53, 5, 1)])
def test_each_kind(name: str, shape: tuple[int, int, int, int]) -> None:
    check_lists(examples()[name], *shape, batch=2, heads=2)


@pytest.mark.parametrize("name", [n for n in examples() if n not in ("function", "or")])
def test_shipped_masks_leave_nothing_open(name: str) -> None:
    """Closed forms decide every block; only functions and mixtures may have to look."""
    mask = examples()[name].bind(37, 53)
    for block_q, block_k in ((1, 1), (4, 4), (3, 7), (16, 5), (64, 64)):
        found = mask.classify(BlockGrid(37, 53, block_q, block_k), 0, 1)
        np.testing.assert_array_equal(found, classes(matrix(mask, 37, 53, h=1), block_q, block_k))


def test_groups_of_masks_that_differ_by_batch_or_head() -> None:
    rules: list[tuple[Any, tuple[int, int, int]]] = [
        (lambda b, h, q, kv: kv <= q, (1, 0, 0)),
        (lambda b, h, q, kv: kv <= q + h, (3, 0, 1)),
        (lambda b, h, q, kv: kv <= q + b, (2, 1, 0)),
        (lambda b, h, q, kv: (kv <= q + b) & (kv + q > h), (6, 3, 1)),
    ]
    for rule, expected in rules:
        mask = Function.trace(rule)
        for lists in (sparsity.block_lists(mask, 9, 11, 4, 4, 2, 3), sparsity.row_lists(mask, 9, 11, 2, 3)):
            assert (lists.groups, lists.stride_b, lists.stride_h) == expected
        check_lists(mask, 9, 11, 4, 4, 2, 3)
        check_lists(mask, 9, 11, 4, 4, 2, 1)


def test_figure_6_of_stof() -> None:
    """Full and partial blocks of the paper's 4 x 4 example, at 2 x 2 elements a block."""
    full, partial = ({0}, {0, 1}, {0, 2}, {0, 3}), ({1, 3}, {2}, {1, 3}, {2})
    whole = BlockList(2, tuple(tuple(a | b) for a, b in zip(full, partial)))
    holes = ~BlockList(2, tuple(tuple(b) for b in partial)) | Function.trace(lambda b, h, q, kv: (q + kv) % 2 == 0)
    lists = sparsity.block_lists(whole & holes, 8, 8, 2, 2)
    assert lists.row_ptr.tolist() == [0, 3, 6, 10, 13]
    assert lists.col.tolist() == [0, 1, 3, 0, 1, 2, 0, 1, 2, 3, 0, 2, 3]
    is_full = lists.full == 1
    assert lists.col[is_full].tolist() == [0, 0, 1, 0, 2, 0, 3]
    assert lists.col[~is_full].tolist() == [1, 3, 2, 1, 3, 2]
    assert np.bincount(lists.row[is_full]).tolist() == [1, 2, 2, 2]
    assert np.bincount(lists.row[~is_full]).tolist() == [2, 1, 2, 1]
    assert lists.tiles().tolist() == [[[1, 0], [0, 1]]]


def test_rows_without_any_key() -> None:
    nothing = ~Causal() & Causal()
    blocks, rows = sparsity.block_lists(nothing, 20, 20, 8, 8), sparsity.row_lists(nothing, 20, 20)
    assert blocks.row_ptr.tolist() == [0, 0, 0, 0]
    assert blocks.tiles().shape == (0, 8, 8)
    assert rows.row_ptr.tolist() == [0] * 21
    low = Causal(align=-10)
    assert sparsity.row_lists(low, 20, 20).row_ptr.tolist()[:12] == [0] * 11 + [1]
    assert (settled(low, BlockGrid(20, 20, 8, 8), 0, 0)[0] == EMPTY).all()


def test_like_blocks_are_stored_once() -> None:
    lists = sparsity.block_lists(Causal() & SlidingWindow(256), 8192, 8192, 64, 64)
    assert int((lists.full == 0).sum()) > 200
    assert len(lists.tiles()) == 2
    assert (settled(Causal(), BlockGrid(64, 64, 64, 8), 0, 0) != FULL).all()
