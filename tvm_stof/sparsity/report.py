"""What a mask leaves, in numbers and as a picture."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import MissingDependency, StorageError, explain
from ..masks import Mask
from .blocks import BlockLists, block_lists, partial_bits

LEGEND = "@ full  + over half  - under half  . nothing"


@dataclass(frozen=True)
class MaskReport:
    """Figures of one mask on one block grid, over all its groups.

    Attributes
    ----------
    density : allowed elements over all elements.
    full, partial, empty : shares of the blocks.
    longest_row, mean_row : blocks that are not empty, of the fullest block row and on average.
    balance : mean over longest row: 1 when all rows have the same work.
    efficiency : allowed elements over the elements of all blocks that are not empty.
    elements : allowed elements of one group.
    """

    block_q: int
    block_k: int
    density: float
    full: float
    partial: float
    empty: float
    longest_row: int
    mean_row: float
    balance: float
    efficiency: float
    elements: float

    def to_data(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)


def count(lists: BlockLists) -> int:
    """Allowed elements of all groups together."""
    areas = lists.grid.areas()
    row = np.repeat(np.arange(len(lists.row_ptr) - 1) % lists.grid.rows, np.diff(lists.row_ptr))
    whole = lists.full == 1
    total = int(areas[row[whole], lists.col[whole]].sum())
    return total + sum(int(bits.sum()) for _, bits in partial_bits(lists, np.flatnonzero(~whole)))


def analyse(mask: Mask, q_len: int, kv_len: int, block_q: int, block_k: int, batch: int = 1, heads: int = 1) -> MaskReport:
    """Report of a mask (bound here) on a block grid."""
    lists = block_lists(mask.bind(q_len, kv_len), q_len, kv_len, block_q, block_k, batch, heads)
    rows = np.diff(lists.row_ptr)
    blocks = len(rows) * lists.grid.cols
    elements = count(lists)
    areas = lists.grid.areas()
    row = np.repeat(np.arange(len(rows)) % lists.grid.rows, rows)
    loaded = int(areas[row, lists.col].sum())
    full, longest = int(lists.full.sum()), int(rows.max(initial=0))
    return MaskReport(
        block_q=block_q, block_k=block_k, density=elements / (lists.groups * q_len * kv_len), full=full / blocks,
        partial=(len(lists.col) - full) / blocks, empty=1 - len(lists.col) / blocks, longest_row=longest, mean_row=float(rows.mean()),
        balance=float(rows.mean()) / longest if longest else 1.0, efficiency=elements / loaded if loaded else 1.0, elements=elements / lists.groups,
    )  # fmt: skip


def shares(mask: Mask, q_len: int, kv_len: int, width: int, height: int) -> npt.NDArray[np.float64]:
    """Share of allowed elements in each cell of a coarse picture of the mask (of its first batch entry and head)."""
    block_q, block_k = -(-q_len // height), -(-kv_len // width)
    lists = block_lists(mask.bind(q_len, kv_len), q_len, kv_len, block_q, block_k)
    picture = np.zeros((lists.grid.rows, lists.grid.cols))
    row = np.repeat(np.arange(lists.grid.rows), np.diff(lists.row_ptr))
    picture[row, lists.col] = 1.0
    areas = lists.grid.areas()
    for at, bits in partial_bits(lists, np.flatnonzero(lists.full == 0)):
        picture[row[at], lists.col[at]] = bits.sum((1, 2)) / areas[row[at], lists.col[at]]
    return picture


def draw(mask: Mask, q_len: int, kv_len: int, width: int = 64) -> str:
    """The mask as characters, queries downwards, keys to the right."""
    picture = shares(mask, q_len, kv_len, min(width, kv_len), min(max(1, width * q_len // kv_len // 2), width, q_len))
    marks = np.select([picture == 0, picture < 0.5, picture < 1], [".", "-", "+"], "@")
    return "\n".join("".join(line) for line in marks) + f"\n{LEGEND}"


def draw_png(mask: Mask, q_len: int, kv_len: int, path: Path, title: str = "") -> None:
    """The mask as a PNG file; needs the ``plot`` extra."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingDependency(explain("drawing a PNG needs matplotlib", way_out="pip install 'tvm-stof[plot]'")) from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    picture = shares(mask, q_len, kv_len, min(512, kv_len), min(512, q_len))
    figure, axes = pyplot.subplots(figsize=(5, 5))
    axes.imshow(picture, cmap="Blues", vmin=0, vmax=1, extent=(0, kv_len, q_len, 0), interpolation="nearest", aspect="auto")
    axes.set(xlabel="key", ylabel="query", title=title)
    try:
        figure.savefig(path, dpi=150, bbox_inches="tight")
    except (OSError, ValueError) as error:
        raise StorageError(explain(f"{path} cannot be written", got=error, accepted="a .png file in a folder you may write to")) from error
    finally:
        pyplot.close(figure)
