"""Cascaded reductions: chains of reductions over one axis in which later ones need earlier results (RedFuser, ASPLOS '26)."""

from __future__ import annotations

from .base import Problem


class CascadedReduction(Problem):
    """Base of the named cascades; a cascade is what its definition says, this class adds nothing to it."""
