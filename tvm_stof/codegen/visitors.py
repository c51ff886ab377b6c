"""Arrays a kernel walks instead of the whole streamed axis: built once per problem and block size, from the mask."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import sparsity
from ..cascade.program import Axis
from ..masks import Mask
from ..problems import Problem

Array = npt.NDArray[Any]

#: explicit column lists longer than this (256 MiB) are not made
MAX_COLUMNS = 1 << 26


@dataclass(frozen=True)
class BlockTile:
    """A block of the lists, and the register tile in it: ``group`` rows (0: no spans are made), columns in multiples of ``lanes``."""

    block_q: int
    block_k: int
    group: int = 0
    lanes: int = 1


def extents(outer: Sequence[Axis]) -> tuple[int, int]:
    """(batch, heads) of a program's outer axes; a mask may vary over the last two."""
    sizes = [1, 1, *(a.extent for a in outer)]
    return int(np.prod(sizes[:-1])), sizes[-1]


@functools.lru_cache(maxsize=32)
def block_lists(problem: Problem, rows: int, cols: int, block_q: int, block_k: int, batch: int, heads: int) -> Any:
    """``sparsity.BlockLists`` of the problem's mask, cached."""
    return sparsity.block_lists(_mask(problem), rows, cols, block_q, block_k, batch=batch, heads=heads)


@functools.lru_cache(maxsize=8)
def row_lists(problem: Problem, rows: int, cols: int, batch: int, heads: int) -> Any:
    """``sparsity.RowLists`` (intervals) of the problem's mask, cached."""
    return sparsity.row_lists(_mask(problem), rows, cols, batch=batch, heads=heads)


def _mask(problem: Problem) -> Mask:
    mask = problem.bound_mask
    if mask is None:
        from ..masks import Dense

        return Dense()
    return mask


def strides(lists: Any, outer: Sequence[Axis]) -> list[int]:
    """The list group's stride for each outer axis."""
    if len(outer) <= 2:
        return [lists.stride_b, lists.stride_h][2 - len(outer) :]
    return [*(0 for _ in outer[:-2]), lists.stride_b, lists.stride_h]


def order(work: Array, threads: int) -> Array | None:
    """A permutation of tasks that gives each thread's contiguous share the same work, or None where the plain order already does.

    TVM's pool gives thread t the t-th contiguous share. Tasks are dealt to threads by falling work, back and forth, and stay in their own
    order within a share, so that neighbours still share keys in cache.
    """
    share = -(-len(work) // threads)
    loads = [float(work[t * share : (t + 1) * share].sum()) for t in range(threads)]
    if threads == 1 or len(work) < 2 * threads or max(loads) <= 1.02 * sum(loads) / threads:
        return None
    falling = np.argsort(-work, kind="stable")
    dealt: list[list[int]] = [[] for _ in range(threads)]
    sizes = [max(0, min(share, len(work) - t * share)) for t in range(threads)]
    for n, task in enumerate(falling):
        turn, at = divmod(n, threads)
        first = at if turn % 2 == 0 else threads - 1 - at
        thread = next(t % threads for t in range(first, first + threads) if len(dealt[t % threads]) < sizes[t % threads])
        dealt[thread].append(int(task))
    return np.array([task for share_of in dealt for task in sorted(share_of)], np.int32)


def per_task(work: Array, lists: Any, outer: Sequence[Axis]) -> Array:
    """Work of each (outer position, row tile) task from that of each (group, row tile)."""
    steps = strides(lists, outer)
    grid = np.indices(tuple(a.extent for a in outer)).reshape(len(outer), -1)
    groups = (grid * np.array(steps)[:, None]).sum(0)
    return np.asarray(work.reshape(lists.groups, -1)[groups].ravel())


def block_arrays(problem: Problem, row: Axis, stream: Axis, outer: Sequence[Axis], tile: BlockTile, bits: bool,
                 threads: int) -> tuple[dict[str, Array], list[int]]:  # fmt: skip
    """Arguments of a block-list kernel and the list group's strides. A ragged last column block counts as partial."""
    block_q, block_k, group, lanes = tile.block_q, tile.block_k, tile.group, tile.lanes
    batch, heads = extents(outer)
    lists = block_lists(problem, row.extent, stream.extent, block_q, block_k, batch, heads)
    whole = lists.full.astype(np.uint8)
    col = lists.col
    ragged = np.zeros(len(col), bool)
    if stream.extent % block_k:
        ragged = (col == stream.extent // block_k) & (whole == 1)
        whole = np.where(ragged, 0, whole).astype(np.uint8)
    arrays: dict[str, Array] = {"row_ptr": lists.row_ptr, "col": _some(col), "whole": _some(whole)}
    if group and not arrays["whole"].all():
        arrays["span"], arrays["spans"] = _spans(lists, ragged, stream.extent % block_k, group, lanes)
    if bits:
        tiles = np.asarray(lists.tiles())
        index = np.asarray(lists.tile)
        if ragged.any():
            edge = np.zeros((1, block_q, block_k), np.uint8)
            edge[:, :, : stream.extent % block_k] = 1
            index = np.where(ragged, len(tiles), index)
            tiles = np.concatenate([tiles, edge])
        arrays["tile"] = _some(np.maximum(index, 0).astype(np.int32))
        arrays["tiles"] = tiles if len(tiles) else np.zeros((1, block_q, block_k), np.uint8)
    work = per_task(np.diff(lists.row_ptr).astype(np.float64) + 0.5, lists, outer)
    permutation = order(work, threads)
    if permutation is not None:
        arrays["order"] = permutation
    return arrays, strides(lists, outer)


def row_arrays(
    problem: Problem, row: Axis, stream: Axis, outer: Sequence[Axis], rows: int, threads: int
) -> tuple[dict[str, Array], list[int]]:
    """Arguments of a row-wise kernel: explicit columns of every row."""
    batch, heads = extents(outer)
    lists = row_lists(problem, row.extent, stream.extent, batch, heads)
    lengths = (lists.stop - lists.start).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(lengths)])
    row_ptr = before[lists.row_ptr].astype(np.int32)
    col = np.repeat(lists.start - before[:-1], lengths) + np.arange(before[-1])
    per_row = np.diff(row_ptr).reshape(lists.groups, row.extent)
    padded = np.pad(per_row, ((0, 0), (0, -row.extent % rows))).reshape(lists.groups, -1, rows).sum(2)
    arrays: dict[str, Array] = {"row_ptr": row_ptr, "col": _some(col.astype(np.int32))}
    permutation = order(per_task(padded.astype(np.float64) + 1.0, lists, outer), threads)
    if permutation is not None:
        arrays["order"] = permutation
    return arrays, strides(lists, outer)


def _spans(lists: Any, ragged: Array, tail: int, group: int, lanes: int) -> tuple[Array, Array]:
    """(span, spans): for each entry the number of its spans, and for each of these the columns, rounded to whole vectors, between which any
    element of a group of rows takes part. Number 0 is everything.
    """
    grid = lists.grid
    groups = grid.block_q // group
    known: dict[bytes, int] = {}
    kept = [np.tile(np.array([0, grid.block_k], np.int32), (groups, 1))]

    def number(bounds: Array) -> int:
        text = bounds.tobytes()
        if text not in known:
            known[text] = len(kept)
            kept.append(bounds)
        return known[text]

    span = np.zeros(len(lists.col), np.int32)
    for at, which, bits in lists.partial_bits():
        some = bits.reshape(len(bits), groups, group, -1).any(2)
        first = np.where(some.any(2), some.argmax(2), 0) // lanes * lanes
        last = np.where(some.any(2), grid.block_k - some[:, :, ::-1].argmax(2), 0)
        bounds = np.stack([first, -(-last // lanes) * lanes], 2).astype(np.int32)
        span[at] = np.array([number(b) for b in bounds], np.int32)[which]
    if ragged.any():
        span[ragged] = number(np.tile(np.array([0, -(-tail // lanes) * lanes], np.int32), (groups, 1)))
    return _some(span), np.stack(kept)


def _some(array: Array) -> Array:
    """An empty array has no address that a kernel could take; it gets one element that is never read."""
    return array if len(array) else np.zeros(1, array.dtype)
