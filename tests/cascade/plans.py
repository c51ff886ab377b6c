"""Random ways to stream and merge an axis, and random cascades."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tvm_stof.cascade.interpret import Plan


@st.composite
def plans(draw: st.DrawFn, extent: int) -> Plan:
    """Tiles in any order, streamed and merged in any nesting; some are empty."""
    order = np.asarray(draw(st.permutations(range(extent))))
    cuts = sorted(draw(st.lists(st.integers(0, extent), max_size=6)))
    tiles: list[Any] = [np.asarray(t) for t in np.split(order, cuts)]
    while len(tiles) > 1:
        n = draw(st.integers(2, min(3, len(tiles))))
        at = draw(st.integers(0, len(tiles) - n))
        part = tiles[at : at + n]
        tiles[at : at + n] = [tuple(part) if draw(st.booleans()) else list(part)]
    return tiles[0]  # type: ignore[no-any-return]
