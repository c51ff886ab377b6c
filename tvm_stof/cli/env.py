"""``tvm-stof env``"""

from __future__ import annotations

import click

from .output import FORMAT, emit_json, emit_table


@click.command("env")
@FORMAT
def command(style: str) -> int:
    """This machine and the versions at work, as records keep them."""
    from .. import targets
    from ..records import environment

    device = targets.current_device()
    data = environment.collect(device)
    if style == "json":
        emit_json({"device": device.to_data(), "environment": data})
    else:
        emit_table(["", "value"], [["device.name", device.name], *([k, str(v)] for k, v in sorted(data.items()))])
    return 0
