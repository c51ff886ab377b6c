"""``attention``"""

from __future__ import annotations

from typing import Any

import click

from ... import masks, scores
from ...problems import Attention

HELP = "Scaled dot-product attention with a mask."
OPTIONS = [
    click.Option(["--mask"], default="dense", show_default=True, help='A mask expression, e.g. "causal & window(256)".'),
    click.Option(["--batch"], type=int, default=1, show_default=True),
    click.Option(["--heads"], type=int, required=True, help="Query heads."),
    click.Option(["--kv-heads"], type=int, default=0, help="Key heads; as many as query heads by default."),
    click.Option(["--len", "q_len"], type=int, required=True, help="Queries."),
    click.Option(["--kv-len"], type=int, default=0, help="Keys; as many as queries by default."),
    click.Option(["--dim", "head_dim"], type=int, required=True, help="Size of a query and key vector."),
    click.Option(["--value-dim"], type=int, default=0, help="Size of a value vector; that of a key by default."),
    click.Option(["--dtype"], default="float32", show_default=True, help="float32 or float16."),
    click.Option(["--scale"], type=float, help="Factor of the scores; 1/sqrt(dim) by default."),
    click.Option(["--softcap"], type=float, help="cap * tanh(score / cap)."),
    click.Option(["--alibi"], is_flag=True, help="ALiBi biases."),
    click.Option(["--relative-bias"], type=int, help="Learned bias by distance, up to this one (tensor input)."),
    click.Option(["--bias"], is_flag=True, help="Additive bias tensor (q_len x kv_len)."),
    click.Option(["--sink"], is_flag=True, help="Attention sink, one logit a head (tensor input)."),
    click.Option(["--lse"], is_flag=True, help="Also give the log-sum-exp of every row."),
]


def make(mask: str, scale: float | None, softcap: float | None, alibi: bool, relative_bias: int | None, bias: bool,
         sink: bool, lse: bool, **sizes: Any) -> Attention:  # fmt: skip
    """The problem of these options."""
    wanted: list[scores.Score] = []
    if scale is not None:  # otherwise the problem itself puts the usual one first
        wanted.append(scores.Scale(scale))
    if softcap is not None:
        wanted.append(scores.Softcap(softcap))
    if alibi:
        wanted.append(scores.ALiBi())
    if relative_bias is not None:
        wanted.append(scores.RelativeBias(relative_bias))
    if bias:
        wanted.append(scores.Bias())
    if sink:
        wanted.append(scores.Sink())
    return Attention(**sizes, mask=masks.parse(mask), scores=tuple(wanted), return_lse=lse)
