"""The two products of a tile on the tensor cores: prologue (both sides in shared memory) and weights . operand (weights in registers)."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from .instructions import PTX_TYPE, local, wgmma_commit, wgmma_fence
from .tiles import SharedTile

#: elements along the contraction that one wgmma takes
STEP = 16


def _descriptor(name: str, pointer: Any, tile: SharedTile, leading: int) -> Any:
    """wgmma's view of a tile in shared memory. Groups of 8 lines follow each other; ``leading`` is in bytes."""
    desc = local(name, 1, "uint64")
    T.evaluate(T.cuda.wgmma.encode_matrix_descriptor(desc.ptr_to([0]), pointer, leading >> 4, 8 * tile.line >> 4, tile.swizzle))
    return desc[0]


def along_columns(name: str, pointer: Any, tile: SharedTile) -> Any:
    """Descriptor of a tile contracted along its columns; its leading offset is unused."""
    return _descriptor(name, pointer, tile, 16)


def along_rows(name: str, pointer: Any, tile: SharedTile) -> Any:
    """Descriptor of a tile contracted along its rows: the leading offset goes to the next span of columns."""
    return _descriptor(name, pointer, tile, tile.slab)


def advance(desc: Any, offset: Any) -> Any:
    """Move a descriptor by bytes (it counts units of 16)."""
    return desc + (T.uint64(offset >> 4) if isinstance(offset, int) else T.cast(offset // 16, "uint64"))


def _wgmma(acc: Any, columns: int, dtype: str, a: Any, b: Any, accumulate: bool, transpose_b: int) -> None:
    """acc (64 x columns) (+)= A . B over 16 columns of A: a descriptor, or four packed registers."""
    op = T.ptx[f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{PTX_TYPE[dtype]}.{PTX_TYPE[dtype]}"]
    operands, flags = (a, ()) if isinstance(a, list) else ([a], (0,))
    T.evaluate(op(*[acc[i] for i in range(columns // 2)], *operands, b, T.bool(accumulate), 1, 1, *flags, transpose_b))


def issue_scores(scores: Any, dtype: str, lhs: tuple[Any, SharedTile], key: tuple[Any, SharedTile]) -> None:
    """scores = lhs . key^T, without waiting; each operand is (descriptor, tile)."""
    wgmma_fence()
    (a, a_tile), (b, b_tile) = lhs, key
    for step in range(0, a_tile.cols, STEP):
        span, inner = divmod(step, a_tile.span)
        left, right = advance(a, span * a_tile.slab + 2 * inner), advance(b, span * b_tile.slab + 2 * inner)
        _wgmma(scores, b_tile.rows, dtype, left, right, step > 0, 0)
    wgmma_commit()


def issue_product(out: Any, dtype: str, weights: Any, operand: tuple[Any, SharedTile]) -> None:
    """out += weights . operand, without waiting; weights are packed pairs in registers."""
    wgmma_fence()
    desc, tile = operand
    for step in range(0, tile.rows, STEP):
        a = [weights[step // 4 + i] for i in range(4)]
        _wgmma(out, tile.cols, dtype, a, advance(desc, step * tile.line), True, 1)
    wgmma_commit()
