"""Where elements lie: swizzled tiles, accumulator fragments, tensor maps, permuted bits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.wgmma.programs import lists_of, softmax_program
from tvm_stof.cascade.program import Axis, Tensor
from tvm_stof.codegen.wgmma.fragments import fragment, registers_of, row_of
from tvm_stof.codegen.wgmma.laid import Laid, laid_out
from tvm_stof.codegen.wgmma.lists import lane_bits, partial_first
from tvm_stof.codegen.wgmma.tensor_map import Boxed
from tvm_stof.codegen.wgmma.tiles import SharedTile
from tvm_stof.expr import index


@pytest.mark.parametrize("cols", [16, 32, 48, 64, 80, 96, 128, 192, 256])
def test_a_tile_holds_every_element_once_where_the_hardware_puts_it(cols: int) -> None:
    tile = SharedTile(64, cols)
    mask = {128: 7, 64: 3, 32: 1}[tile.line]
    seen = {}
    for row in range(tile.rows):
        for col in range(0, cols, 2):
            plain = col // tile.span * tile.slab + row * tile.line + col % tile.span * 2
            swizzled = plain ^ (((plain >> 7) & mask) << 4)  # the permutation as the PTX manual states it, on byte addresses
            assert tile.word(row, col // 8 * 8, col % 8 // 2) * 4 == swizzled
            seen[swizzled] = (row, col)
    assert len(seen) == tile.bytes // 4
    assert max(seen) < tile.bytes


@pytest.mark.parametrize("columns", [64, 128, 176])
def test_fragments_cover_the_accumulator_once(columns: int) -> None:
    every = [(warp, *fragment(lane, i)) for warp in range(4) for lane in range(32) for i in range(columns // 2)]
    assert len(every) == 64 * columns
    assert {(16 * warp + row, col) for warp, row, col in every} == {(r, c) for r in range(64) for c in range(columns)}


def test_registers_of_a_row_share_it() -> None:
    for r in range(2):
        rows = {fragment(13, i)[0] for i in registers_of(r, 128)}
        assert len(rows) == 1
        assert all(row_of(i) == r for i in registers_of(r, 128))


@pytest.mark.parametrize("cols", [64, 128, 176])
def test_lane_bits_are_in_the_order_of_registers(cols: int) -> None:
    tiles = np.random.default_rng(0).integers(0, 2, (3, 64, cols)).astype(np.uint8)
    bits = lane_bits(tiles)
    for n, warp, lane, i in ((0, 0, 0, 0), (1, 2, 31, cols // 2 - 1), (2, 3, 17, 29), (2, 1, 6, 30)):
        row, col = fragment(lane, i)
        word, bit = divmod(i // 4 * 2 + i % 2, 32)
        assert bits[n, 16 * warp + row, lane % 4, word] >> bit & 1 == tiles[n, 16 * warp + row, col]


def test_partial_tiles_come_first_and_nothing_is_lost() -> None:
    q, k = np.arange(300)[:, None], np.arange(260)[None]
    arrays = lists_of((k <= q) & (q - k < 150), 64, 64, bits=True)
    made = partial_first(arrays)
    for r, (begin, end) in enumerate(zip(made["row_ptr"][:-1], made["row_ptr"][1:])):
        old = {arrays["col"][n]: (arrays["whole"][n], arrays["tile"][n]) for n in range(begin, end)}
        new = [old.pop(made["col"][n]) for n in range(begin, end)]
        assert [whole for whole, _ in new] == sorted(whole for whole, _ in new)
        assert sum(1 - int(whole) for whole, _ in new) == made["tested"][r]
        assert [tile for _, tile in new] == list(made["tile"][begin:end])
        assert not old


def test_empty_lists_keep_their_unread_element() -> None:
    made = partial_first({"row_ptr": np.zeros(4, np.int32), "col": np.zeros(1, np.int32), "whole": np.zeros(1, np.uint8)})
    assert made["col"].tolist() == [0]
    assert made["tested"].tolist() == [0, 0, 0]


def test_neighbouring_dimensions_fold_and_others_stay() -> None:
    laid = laid_out(softmax_program(kv_heads=2))
    assert isinstance(laid, Laid)
    folded = laid.key.map(SharedTile(128, 128))
    assert folded.dims == (64, 1000, 2, 4)
    assert folded.strides == (256, 128, 256000)
    assert folded.box == (64, 128, 2, 1)
    tokens_first = Boxed.of(Tensor("q", (2, 1000, 4, 96), "float16"), [index(n) for n in "bihd"], Axis("i", 1000), Axis("d", 96))
    assert isinstance(tokens_first, Boxed)
    apart = tokens_first.map(SharedTile(64, 96))
    assert apart.dims == (32, 1000, 3, 4, 2)
    assert apart.strides == (768, 64, 192, 768000)
    assert apart.swizzle == 2
