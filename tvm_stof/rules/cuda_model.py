"""The analytical model of the Hopper emitter: clocks of a tile on one multiprocessor, work items dealt to all of them.

A prior, a feature and a pruning rule; what is kept is decided by measuring.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..codegen import visitors
from ..codegen.wgmma.plan import Plan
from ..codegen.wgmma.visit import EveryTile
from ..problems import Problem
from . import cpu_model
from .base import Cost, Value

#: a multiprocessor does this many flops on its tensor cores, and exponentials, in a clock
FLOPS, EXPONENTIALS = 4096.0, 16.0
#: other operations of a score element (scale, maximum, sum, conversion), 128 lanes a clock
ELEMENT, TESTED, LANES = 4.0, 2.0, 128.0
#: clocks: of a tile's barriers and waits, of a work item's start and end
TILE, ITEM = 250.0, 3500.0
#: share of the shorter of products and update that hides behind the longer, by number of consumers
HIDDEN = {1: 0.4, 2: 0.85, 3: 0.95}
LAUNCH_SECONDS = 4e-6


def cost(problem: Problem, plan: Plan, decisions: Mapping[str, Value], device: Any) -> Cost:
    """Every work item takes its tiles' clocks; the last multiprocessor to finish counts."""
    laid = plan.laid
    outer = int(np.prod([a.extent for a in laid.shape.outer], dtype=np.int64))
    visits, tested = _tiles(problem, plan, outer, decisions["family"] == "block_sparse")
    element = plan.block_q * plan.block_k
    products = 2.0 * element * (laid.depth + laid.width) / FLOPS
    update = element * (1.0 / EXPONENTIALS + ELEMENT / LANES)
    hidden = HIDDEN[plan.consumers] * (1.0 if plan.pingpong else 0.95) * (1.0 if plan.overlap else 0.8)
    clocks = max(products, update) + (1 - hidden) * min(products, update) + TILE * plan.consumers / 2
    items = visits * clocks + tested * element * TESTED / LANES + ITEM
    rate = device.peak_flops / (device.cores * FLOPS)
    total, longest = float(items.sum()), float(items.max(initial=0.0))
    spread = total / device.cores
    seconds = max(spread + 0.5 * longest * (len(items) > device.cores), longest) / rate + LAUNCH_SECONDS
    moved = float(visits.sum()) * plan.block_k * (laid.depth + laid.width) * 2
    floor = cpu_model.floor_seconds(problem, laid.program, device)
    work = float(visits.sum()) * 2.0 * element * (laid.depth + laid.width)
    return Cost(max(seconds, floor), work, moved, min(1.0, spread / longest if longest else 1.0), floor)


def _tiles(problem: Problem, plan: Plan, outer: int, listed: bool) -> tuple[Any, Any]:
    """(tiles, tested tiles) of every work item."""
    if not listed:
        counts = EveryTile(plan).counts
        visits = np.array([r.last - r.first for r in counts], np.float64)
        full = np.array([r.last_full - r.first_full for r in counts], np.float64)
        return np.tile(visits, outer), np.tile(visits - full, outer)
    shape, stream = plan.laid.shape, plan.laid.program.stream
    batch, heads = visitors.extents(shape.outer)
    lists = visitors.block_lists(problem, shape.row.extent, stream.extent, plan.block_q, plan.block_k, batch, heads)
    rows = np.repeat(np.arange(len(lists.row_ptr) - 1), np.diff(lists.row_ptr))
    partial = np.bincount(rows[np.asarray(lists.full) == 0], minlength=len(lists.row_ptr) - 1).astype(np.float64)
    visits = np.diff(lists.row_ptr).astype(np.float64)
    return visitors.per_task(visits, lists, shape.outer), visitors.per_task(partial, lists, shape.outer)
