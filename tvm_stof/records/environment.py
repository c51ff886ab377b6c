"""What a measurement depends on beside the problem: machine and versions."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from typing import Any

from .. import __version__
from ..targets import Device
from ..targets.probe import Machine

PACKAGES = ("apache-tvm", "apache-tvm-ffi", "numpy", "xgboost", "sympy")


def collect(device: Device) -> dict[str, Any]:
    """Plain data, equal as long as nothing that matters changed; no names of hosts or people."""
    machine = Machine()
    return {
        "tool": __version__,
        "python": platform.python_version(),
        **{name.replace("-", "_"): _version(name) for name in PACKAGES},
        "platform": f"{sys.platform}-{platform.machine()}",
        "libc": "-".join(platform.libc_ver()),
        "cpu_model": machine.model(),
        "governor": machine.governor(),
        "device": device.to_data(),
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"
