"""``tvm-stof env``"""

from __future__ import annotations

import click

from .output import FORMAT, emit_json, emit_table


@click.command("env")
@FORMAT
def command(style: str) -> int:
    """This machine and the versions at work, as records keep them, and where compiled kernels are kept."""
    from .. import native, targets
    from ..records import environment
    from ..targets.cache import cache_folder

    device = targets.current_device()
    data = environment.collect(device)
    here = {"cache": str(cache_folder()), "c_compiler": native.compiler() or "none: kernels are compiled at each load"}
    if style == "json":
        emit_json({"environment": data, "here": here})
    else:
        facts = {**{k: v for k, v in data.items() if k != "device"}, **here}
        facts.update({f"device.{name}": value for name, value in device.to_data().items()})
        emit_table(["name", "value"], [[name, _text(value)] for name, value in sorted(facts.items())], left=(0, 1))
    return 0


def _text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
