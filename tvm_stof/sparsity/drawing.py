"""A mask as a picture: characters, or a PNG file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import MissingDependency, StorageError, explain
from ..masks import EMPTY, FULL, PARTIAL, BlockGrid, Mask

LEGEND = "@ all  + half or more  - less  . nothing"
#: positions looked at along each side of a cell
SAMPLES = 32


def draw(mask: Mask, q_len: int, kv_len: int, width: int = 64) -> str:
    """The mask (of its first batch entry and head) as characters, queries downwards, keys to the right.

    Examples
    --------
    >>> from tvm_stof.masks import Causal
    >>> print(draw(Causal(), 256, 256, width=6))
    +-....
    @@+-..
    @@@@+-
    @ all  + half or more  - less  . nothing
    """
    columns = max(1, min(width, kv_len))
    # A character is about twice as high as it is wide.
    picture = shares(mask, q_len, kv_len, columns, max(1, min(columns * q_len // kv_len // 2, columns, q_len)))
    marks = np.select([picture == 0, picture < 0.5, picture < 1], [".", "-", "+"], "@")
    return "\n".join("".join(line) for line in marks) + f"\n{LEGEND}"


def shares(mask: Mask, q_len: int, kv_len: int, columns: int, rows: int) -> npt.NDArray[np.float64]:
    """Share of allowed elements in each cell, estimated from evenly spread positions where the mask has no class for the cell."""
    bound = mask.bind(q_len, kv_len)
    grid = BlockGrid(q_len, kv_len, -(-q_len // rows), -(-kv_len // columns))
    classes = bound.classify(grid)
    picture = (classes == FULL).astype(np.float64)
    row, col = np.nonzero((classes != EMPTY) & (classes != FULL))
    q, k = _spread(*grid.q_bounds())[row], _spread(*grid.k_bounds())[col]
    for n in range(0, len(row), 256):
        bits = np.asarray(bound(q[n : n + 256, :, None], k[n : n + 256, None, :], 0, 0), bool)
        picture[row[n : n + 256], col[n : n + 256]] = bits.mean((1, 2))
    between: npt.NDArray[np.float64] = np.clip(picture, 1e-3, 1 - 1e-3)
    return np.where(classes == PARTIAL, between, picture)


def _spread(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    spread: npt.NDArray[np.int64] = low[:, None] + (2 * np.arange(SAMPLES) + 1) * (high - low + 1)[:, None] // (2 * SAMPLES)
    return spread


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
