"""128k x 128k: lists are built in memory far below that of a matrix (17 GB)."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tvm_stof import sparsity
from tvm_stof.masks import parse

LENGTH = 1 << 17
MASKS = ["causal & window(1024)", "causal", "window(256)", "dilated(512, 2)", "causal & strided(128)", "longformer(256, 64)",
         "causal & longformer(256, 64)", "bigbird(64)", "causal & bigbird(64)", "prefix(5000)", "random(128, 3)", "global(77) & ~window(5)",
         "causal & document([" + ", ".join(["1000"] * 131) + "])"]  # fmt: skip


@pytest.mark.parametrize("text", MASKS)
def test_block_lists(text: str) -> None:
    mask = parse(text).bind(LENGTH, LENGTH)
    tracemalloc.start()
    try:
        lists = sparsity.block_lists(mask, LENGTH, LENGTH, 128, 128)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 600e6
    assert len(lists.row_ptr) == 1025
    # Some block rows, element by element.
    for r in (0, 1, 511, 1023):
        bits = np.array(mask(np.arange(r * 128, r * 128 + 128)[:, None], np.arange(LENGTH)), bool).reshape(128, 1024, 128)
        some, every = np.any(bits, axis=(0, 2)), np.all(bits, axis=(0, 2))
        begin, end = lists.row_ptr[r], lists.row_ptr[r + 1]
        np.testing.assert_array_equal(lists.col[begin:end], np.flatnonzero(some))
        np.testing.assert_array_equal(lists.full[begin:end], every[lists.col[begin:end]])


@pytest.mark.parametrize("text", ["causal & window(1024)", "bigbird(64)", "causal & longformer(256, 64)", "prefix(5000)"])
def test_row_lists_and_tiles(text: str) -> None:
    mask = parse(text).bind(LENGTH, LENGTH)
    tracemalloc.start()
    try:
        rows = sparsity.row_lists(mask, LENGTH, LENGTH)
        tiles = sparsity.block_lists(mask, LENGTH, LENGTH, 128, 128).tiles()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 600e6
    assert len(tiles) < 16
    for q in (0, 1000, 77_777, LENGTH - 1):
        edges = np.flatnonzero(np.diff(np.pad(np.asarray(mask(q, np.arange(LENGTH)), bool), 1).astype(np.int8)))
        begin, end = rows.row_ptr[q], rows.row_ptr[q + 1]
        assert np.stack((rows.start[begin:end], rows.stop[begin:end]), 1).ravel().tolist() == edges.tolist()
