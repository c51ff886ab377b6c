"""Run-length text of a boolean array: the same bytes on every machine, whatever compression libraries it has."""

from __future__ import annotations

import base64
import binascii

import numpy as np
import numpy.typing as npt

from ..errors import MaskError, explain

_WAY_OUT = "Store the mask again with tvm_stof.masks.Array.of"


def encode(bits: npt.NDArray[np.bool_]) -> str:
    """Lengths of the runs (False first, in row order) as 7-bit groups, low first, in base64."""
    flat = bits.ravel()
    edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    lengths = np.diff(np.concatenate(([0], edges, [flat.size])))
    if flat.size and flat[0]:
        lengths = np.concatenate(([0], lengths))
    groups = lengths[:, None] >> np.arange(0, 63, 7)
    used = np.maximum(1, (groups > 0).sum(axis=1))
    column = np.arange(groups.shape[1])
    data = ((groups & 127) | np.where(column < used[:, None] - 1, 128, 0)).astype(np.uint8)
    return base64.b64encode(data[column < used[:, None]].tobytes()).decode("ascii")


def lengths(text: str) -> npt.NDArray[np.int64]:
    """The lengths that ``encode`` wrote; anything else raises MaskError."""
    try:
        data = np.frombuffer(base64.b64decode(text.encode("ascii"), validate=True), np.uint8).astype(np.int64)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise MaskError(explain("the content of an array mask is no base64 text", got=repr(text)[:40], way_out=_WAY_OUT)) from error
    ends = np.flatnonzero(data < 128)
    if data.size and (not ends.size or ends[-1] != data.size - 1):
        raise MaskError(explain("the content of an array mask is cut off", got=f"{data.size} bytes", way_out=_WAY_OUT))
    starts = np.concatenate(([0], ends[:-1] + 1)) if ends.size else ends
    place = np.arange(data.size) - np.repeat(starts, ends - starts + 1)
    if place.max(initial=0) > 5:
        raise MaskError(explain("the content of an array mask has a run beyond any array", way_out=_WAY_OUT))
    return np.add.reduceat((data & 127) << (7 * place), starts) if starts.size else starts.astype(np.int64)


def decode(runs: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """The flat array."""
    return np.repeat(np.arange(len(runs)) % 2 == 1, runs)
