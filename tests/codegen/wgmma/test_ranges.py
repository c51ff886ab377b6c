"""Closed-form tile ranges against the predicate itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.codegen.wgmma.programs import CAUSAL, I, J, window
from tvm_stof.cascade.program import Axis
from tvm_stof.codegen.wgmma.ranges import Bounds, TileRange, half_planes
from tvm_stof.codegen.wgmma.visit import nth_tile
from tvm_stof.expr import Expr, call, const, evaluate

ROW, STREAM = Axis("i", 1), Axis("j", 1)


def dense(predicate: Expr, rows: int, cols: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    at = {"i": np.arange(rows)[:, None], "j": np.arange(cols)[None]}
    return np.broadcast_to(evaluate(predicate, lambda e, _: at[str(e.args[0])]), (rows, cols))


def assert_exact(predicate: Expr, rows: int, cols: int, block_q: int, block_k: int) -> None:
    """Outside [first, last) nothing takes part; inside the full range everything does, and all whole tiles are in it."""
    bounds, keep = Bounds.of(predicate, ROW, STREAM), dense(predicate, rows, cols)
    for begin in range(0, rows, block_q):
        part = keep[begin : begin + block_q]
        r = bounds.tiles((begin, min(begin + block_q, rows) - 1), block_k, cols)
        assert 0 <= r.first <= r.first_full <= r.last_full <= r.last <= -(-cols // block_k)
        for tile in range(-(-cols // block_k)):
            inside = part[:, tile * block_k : (tile + 1) * block_k]
            if not r.first <= tile < r.last:
                assert not inside.any()
            whole = inside.all() and (tile + 1) * block_k <= cols
            assert (r.first_full <= tile < r.last_full) == (whole and bounds.exact)


@given(st.integers(-300, 300), st.integers(1, 400), st.integers(1, 300), st.integers(1, 300), st.sampled_from([16, 64, 80]))
def test_ranges_of_bands(shift: int, width: int, rows: int, cols: int, block_k: int) -> None:
    upper = call("le", J, call("add", I, const(shift)))
    lower = call("lt", call("sub", call("add", I, const(shift)), J), const(width))
    for predicate in (upper, lower, call("and", upper, lower)):
        assert_exact(predicate, rows, cols, 64, block_k)


@pytest.mark.parametrize("predicate", [
    CAUSAL, window(200), call("ge", call("mul", I, const(2)), J), call("eq", I, J), call("lt", J, const(77)),
    call("and", CAUSAL, call("eq", call("mod", call("sub", I, J), const(2)), const(0))),
    call("or", CAUSAL, call("lt", J, const(5)))])  # fmt: skip
def test_ranges_of_predicates(predicate: Expr) -> None:
    assert_exact(predicate, 333, 290, 128, 64)


def test_a_condition_that_is_no_half_plane_leaves_every_touched_tile_tested() -> None:
    dilated = call("and", CAUSAL, call("eq", call("mod", call("sub", I, J), const(2)), const(0)))
    bounds = Bounds.of(dilated, ROW, STREAM)
    assert not bounds.exact
    assert bounds.uppers


def test_half_planes_of_strict_and_weak_comparisons() -> None:
    assert half_planes(call("lt", J, I), "i", "j") == [(1, -1, -1)]
    assert half_planes(call("ge", I, J), "i", "j") == [(1, -1, 0)]
    assert half_planes(call("lt", call("mul", I, J), const(3)), "i", "j") is None
    assert half_planes(call("lt", J, const(2.5)), "i", "j") is None


@given(st.lists(st.integers(0, 12), min_size=4, max_size=4))
def test_a_walk_visits_every_tile_once_and_tested_ones_first(cuts: list[int]) -> None:
    r = TileRange(*sorted(cuts))
    visited = [nth_tile(r, n) for n in range(r.last - r.first)]
    assert sorted(visited) == list(range(r.first, r.last))
    tested = (r.last - r.first) - (r.last_full - r.first_full)
    assert all(r.first_full <= tile < r.last_full for tile in visited[tested:])
