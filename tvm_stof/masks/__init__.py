"""Masks: frozen values that say which query attends to which key. Combine them with ``&``, ``|`` and ``~``."""

from .base import EMPTY, FULL, PARTIAL, UNKNOWN, BlockGrid, Mask
from .dense import Dense

__all__ = ["EMPTY", "FULL", "PARTIAL", "UNKNOWN", "BlockGrid", "Dense", "Mask"]
