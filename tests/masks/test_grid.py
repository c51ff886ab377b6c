from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tvm_stof.masks import BlockGrid
from tvm_stof.masks.rectangles import count


def test_edge_blocks_are_shorter() -> None:
    grid = BlockGrid(10, 7, 4, 3)
    assert (grid.rows, grid.cols) == (3, 3)
    assert [x.tolist() for x in grid.q_bounds()] == [[0, 4, 8], [3, 7, 9]]
    assert [x.tolist() for x in grid.k_bounds()] == [[0, 3, 6], [2, 5, 6]]
    assert grid.areas().tolist() == [[12, 12, 4], [12, 12, 4], [6, 6, 2]]


def test_slabs_cover_the_grid_once() -> None:
    grid = BlockGrid(100, 50, 7, 9)
    for blocks in (1, 6, 13, 1000):
        slabs = list(grid.slabs(blocks))
        assert np.concatenate([s.q_bounds()[0] for s in slabs]).tolist() == grid.q_bounds()[0].tolist()
        assert all(s.rows * s.cols <= max(blocks, s.cols) for s in slabs)


@given(st.data())
def test_counts_of_rectangles(data: st.DataObject) -> None:
    """Rectangles one below the other, so that none overlap, reaching beyond the grid on every side."""
    q_len, kv_len, block_q, block_k = (data.draw(st.integers(1, n)) for n in (40, 40, 15, 15))
    cuts = sorted(data.draw(st.lists(st.integers(-5, 50), min_size=2, max_size=8, unique=True)))
    q0, q1 = np.array(cuts[:-1]), np.array(cuts[1:])
    k0, k1 = np.array(data.draw(st.lists(st.tuples(st.integers(-5, 50), st.integers(-5, 50)), min_size=len(q0), max_size=len(q0)))).T
    bits = np.zeros((q_len, kv_len), int)
    for a, b, c, d in zip(q0, q1, k0, k1):
        bits[max(a, 0) : max(b, 0), max(c, 0) : max(d, 0)] += 1
    for slab in BlockGrid(q_len, kv_len, block_q, block_k).slabs(4):
        (q_lo, q_hi), (k_lo, k_hi) = slab.q_bounds(), slab.k_bounds()
        expected = [[bits[a : b + 1, c : d + 1].sum() for c, d in zip(k_lo, k_hi)] for a, b in zip(q_lo, q_hi)]
        np.testing.assert_array_equal(count(slab, q0, q1, k0, k1), expected)
