"""The search: the only package that runs MetaSchedule."""

from .session import TuneResult, tune

__all__ = ["TuneResult", "tune"]
