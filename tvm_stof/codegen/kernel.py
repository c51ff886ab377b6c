"""What an emitter returns: a PrimFunc and the arrays that are prepared once for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Workspace:
    """Scratch memory a kernel takes as an argument; its content means nothing between calls."""

    shape: tuple[int, ...]
    dtype: str = "float32"


Prepared: TypeAlias = "npt.NDArray[np.generic] | Workspace"


@dataclass(frozen=True)
class Kernel:
    """A generated kernel.

    Attributes
    ----------
    module : IRModule with the function ``main``.
    prepared : arguments after inputs and outputs, in order: visitor arrays with their content, and workspaces.
    """

    module: Any
    prepared: tuple[Prepared, ...] = ()
