"""``tvm-stof mask``"""

from __future__ import annotations

from pathlib import Path

import click

from .output import FORMAT, emit_json, emit_table, milliseconds

BLOCKS = (16, 32, 64, 128)


@click.command("mask")
@click.argument("expression")
@click.option("--len", "q_len", type=click.IntRange(1, 1 << 20), required=True, help="Queries.")
@click.option("--kv-len", type=click.IntRange(1, 1 << 20), help="Keys; as many as queries by default.")
@click.option("--block", "blocks", type=click.IntRange(1), multiple=True, help="Block size to report on; 16, 32, 64 and 128 by default.")
@click.option("--dim", type=click.IntRange(1), default=64, show_default=True, help="Head size, for the floor.")
@click.option("--heads", type=click.IntRange(1), default=1, show_default=True, help="Heads, for the floor.")
@click.option("--png", type=click.Path(dir_okay=False, path_type=Path), help="Also draw it into this file (needs the plot extra).")
@FORMAT
def command(
    expression: str, q_len: int, kv_len: int | None, blocks: tuple[int, ...], dim: int, heads: int, png: Path | None, style: str
) -> int:
    """What a mask EXPRESSION leaves of the scores.

    Density; for each block size the shares of full, partial and empty blocks, the fullest block row against the mean (balance), and how much
    of the loaded blocks is useful; the floor: useful operations at this device's peak rate, float32.
    """
    from .. import masks, sparsity, targets

    keys = kv_len or q_len
    mask = masks.parse(expression)
    mask.check(q_len, keys, 1, heads)
    reports = [sparsity.analyse(mask, q_len, keys, b, b) for b in blocks or BLOCKS]
    device = targets.current_device()
    floor = 4.0 * dim * heads * reports[0].elements / device.peak_flops
    if style == "json":
        emit_json({"mask": masks.text(mask), "q_len": q_len, "kv_len": keys, "density": reports[0].density, "floor_seconds": floor,
                   "device": device.name, "blocks": [r.to_data() for r in reports]})  # fmt: skip
    else:
        click.echo(f"{masks.text(mask)}, {q_len} x {keys}: density {reports[0].density:.4f}, floor {milliseconds(floor)} for {heads} heads of {dim} "
                   f"on {device.name}\n")  # fmt: skip
        rows = [[f"{r.block_q}x{r.block_k}", f"{r.full:.3f}", f"{r.partial:.3f}", f"{r.empty:.3f}", str(r.longest_row), f"{r.mean_row:.1f}",
                 f"{r.balance:.2f}", f"{r.efficiency:.2f}"] for r in reports]  # fmt: skip
        emit_table(["block", "full", "partial", "empty", "longest row", "mean row", "balance", "efficiency"], rows)
        click.echo()
        click.echo(sparsity.draw(mask, q_len, keys))
    if png is not None:
        sparsity.draw_png(mask, q_len, keys, png, masks.text(mask))
        click.echo(f"wrote {png}", err=True)
    return 0
