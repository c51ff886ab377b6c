"""Sparsity: from a mask to what a kernel visits, in O(blocks) or O(rows) and without a q_len x kv_len array."""

from .blocks import BlockLists, block_lists
from .drawing import draw, draw_png
from .report import MaskReport, analyse
from .rows import RowLists, row_lists

__all__ = ["BlockLists", "MaskReport", "RowLists", "analyse", "block_lists", "draw", "draw_png", "row_lists"]
