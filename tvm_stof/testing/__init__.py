"""Shipped helpers for tests and tuning: the arrays that kernels are checked and timed with."""

from __future__ import annotations

from .inputs import inputs

__all__ = ["inputs"]
