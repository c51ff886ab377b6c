"""The strided pattern of Sparse Transformers (Child et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..canonical import canonical
from .checks import whole
from .position import Relative


@canonical("strided")
@dataclass(frozen=True)
class Strided(Relative):
    """Keys a multiple of ``stride`` away, and all keys at most ``local`` away.

    Parameters
    ----------
    stride : distance between far keys.
    local : half width of the band; None means ``stride - 1``, as in the paper. 0 leaves the far keys and the query's own.
        The paper's pattern is ``Causal() & Strided(stride)``.

    Examples
    --------
    >>> [k for k in range(9) if Strided(4, local=1)(4, k)]
    [0, 3, 4, 5, 8]
    """

    stride: int
    local: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("stride", self.stride, 1)
        if self.local is not None:
            whole("strided local", self.local)
            if self.local == self.stride - 1:
                object.__setattr__(self, "local", None)

    def __call__(self, q: Any, k: Any, b: Any = 0, h: Any = 0) -> Any:
        d = q + self.offset - k
        local = self.stride - 1 if self.local is None else self.local
        return (d % self.stride < 1) | ((d <= local) & (d >= -local))
