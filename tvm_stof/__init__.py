"""tvm_stof: fuse, tune, store and replay sparse attention and cascaded reductions, on TVM.

Names are imported at first use, so ``import tvm_stof`` loads neither TVM nor NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Attention": ".problems",
    "CascadedReduction": ".problems",
    "Problem": ".problems",
    "Softmax": ".problems",
    "StofError": ".errors",
    "TunedModule": ".runtime",
    "load": ".runtime",
    "replay": ".replay",
    "tune": ".search",
}
_MODULES = ("canonical", "errors", "masks", "problems", "scores")

__all__ = [
    "Attention", "CascadedReduction", "Problem", "Softmax", "StofError", "TunedModule", "__version__", "canonical", "errors", "load",
    "masks", "problems", "replay", "scores", "tune",
]  # fmt: skip

if TYPE_CHECKING:
    from . import canonical, errors, masks, problems, scores
    from .errors import StofError
    from .problems import Attention, CascadedReduction, Problem, Softmax
    from .replay import replay
    from .runtime import TunedModule, load
    from .search import tune


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
