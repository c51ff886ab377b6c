"""``softmax``"""

from __future__ import annotations

import click

from ...problems import Softmax

HELP = "Row softmax."
OPTIONS = [
    click.Option(["--rows"], type=int, required=True, help="Rows."),
    click.Option(["--cols"], type=int, required=True, help="Columns, the reduced axis."),
    click.Option(["--dtype"], default="float32", show_default=True, help="float32 or float16."),
]


def make(rows: int, cols: int, dtype: str) -> Softmax:
    """The problem of these options."""
    return Softmax(rows=rows, cols=cols, dtype=dtype)
