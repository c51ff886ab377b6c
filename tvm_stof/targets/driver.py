"""What the CUDA driver says, asked through ctypes: neither TVM nor torch is needed to know whether there is a GPU."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass


@dataclass(frozen=True)
class Board:
    """A GPU of this machine: the driver's name of it, its number, and the driver's CUDA version (13000 is 13.0)."""

    name: str
    number: int
    driver: int


@functools.lru_cache(maxsize=1)
def boards() -> tuple[Board, ...]:
    """The GPUs this process may use (CUDA_VISIBLE_DEVICES counts); empty without a driver.

    It starts the driver, which a fork does not survive: workers must not be forked from a process that asked.
    """
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ()
    version, count = ctypes.c_int(), ctypes.c_int()
    if library.cuInit(0) or library.cuDriverGetVersion(ctypes.byref(version)) or library.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    found = []
    for number in range(count.value):
        handle, text = ctypes.c_int(), ctypes.create_string_buffer(256)
        if not library.cuDeviceGet(ctypes.byref(handle), number) and not library.cuDeviceGetName(text, 256, handle):
            found.append(Board(text.value.decode("utf-8", "replace"), number, version.value))
    return tuple(found)
