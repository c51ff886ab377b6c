"""``tvm-stof mask``"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError, explain
from .output import FORMAT, emit_json, emit_table, milliseconds

if TYPE_CHECKING:
    from ..problems import Attention
    from ..targets import Device

_PNG = click.Path(dir_okay=False, path_type=Path)


@click.command("mask")
@click.argument("text")
@click.option("--len", "q_len", type=int, required=True, help="Queries.")
@click.option("--kv-len", type=int, default=0, help="Keys; as many as queries by default.")
@click.option("--heads", type=int, default=1, show_default=True, help="Query heads.")
@click.option("--batch", type=int, default=1, show_default=True)
@click.option("--dim", "head_dim", type=int, default=64, show_default=True, help="Size of a query, key and value vector.")
@click.option("--dtype", default="float32", show_default=True)
@click.option("--blocks", default="32,64,128", show_default=True, help="Block sizes: N, or QUERIESxKEYS.")
@click.option("--width", type=click.IntRange(8, 512), default=64, show_default=True, help="Characters of the drawing.")
@click.option("--png", type=_PNG, help="Also draw to this file (needs the plot extra).")
@FORMAT
def command(text: str, q_len: int, kv_len: int, heads: int, batch: int, head_dim: int, dtype: str, blocks: str,
            width: int, png: Path | None, style: str) -> int:  # fmt: skip
    """What the mask TEXT leaves at these lengths, e.g. "causal & window(256)".

    For each block size: shares of full and partial blocks, blocks in the longest row, balance (mean over longest row),
    efficiency (allowed elements over the elements of touched blocks). The floor is the time no kernel can beat here.
    """
    from .. import masks, sparsity, targets
    from ..problems import Attention

    sizes = _sizes(blocks)
    mask = masks.parse(text)
    problem = Attention(heads=heads, batch=batch, q_len=q_len, kv_len=kv_len, head_dim=head_dim, dtype=dtype, mask=mask)
    shape = (problem.q_len, problem.kv_len)
    reports = [sparsity.analyse(mask, *shape, *size, batch=batch, heads=heads) for size in sizes]
    device = targets.current_device()
    floor = floor_seconds(problem, reports[0].elements * batch * heads, device)
    if style == "json":
        emit_json({"mask": problem.to_data()["mask"], "q_len": shape[0], "kv_len": shape[1], "density": reports[0].density,
                   "device": device.name, "floor_seconds": floor, "blocks": [r.to_data() for r in reports]})  # fmt: skip
    else:
        click.echo(f"{text}: {shape[0]} queries x {shape[1]} keys, density {reports[0].density:.4g}")
        click.echo(f"floor on {device.name}: {milliseconds(floor)}\n")
        rows = [[f"{r.block_q}x{r.block_k}", *(f"{100 * share:.2f} %" for share in (r.full, r.partial, r.empty)), str(r.longest_row),
                 f"{r.mean_row:.1f}", f"{r.balance:.3f}", f"{r.efficiency:.3f}"] for r in reports]  # fmt: skip
        columns = ["blocks", "full", "partial", "empty", "longest row", "mean row", "balance", "efficiency"]
        emit_table(columns, rows)
        click.echo("\n" + sparsity.draw(mask, *shape, width))
    if png is not None:
        sparsity.draw_png(mask, *shape, png, title=text)
        click.echo(f"drawn to {png}", err=True)
    return 0


def floor_seconds(problem: Attention, elements: float, device: Device) -> float:
    """The analytical model's floor for this many score elements in all; ``rules`` has the same without the wait for TVM."""
    sizes = {"float32": 4, "float16": 2}
    moved = sum(sizes[t.dtype] * _count(t.shape) for t in (*problem.inputs(), *problem.outputs()))
    useful = 2.0 * (problem.head_dim + problem.value_dim) * elements
    cached = 4.0 if moved < device.l3_bytes else 1.0
    return max(useful / device.peak_flops, moved / (device.bandwidth * cached))


def _count(shape: Any) -> float:
    product = 1.0
    for extent in shape:
        product *= extent
    return product


def _sizes(text: str) -> list[tuple[int, int]]:
    found = []
    for word in text.split(","):
        match = re.fullmatch(r"\s*([1-9][0-9]{0,6})(?:x([1-9][0-9]{0,6}))?\s*", word)
        if match is None:
            raise UsageError(explain("--blocks is not a list of sizes", got=repr(text), accepted="e.g. 64 or 64,128x32"))
        found.append((int(match[1]), int(match[2] or match[1])))
    return found
