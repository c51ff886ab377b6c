"""Records: journals of trials, schedules of the best of them, and what they say. Only ``bridge`` needs TVM."""

from .command import cli_text
from .find import collect, find
from .journal import Broken, Journal, ReadResult, journals
from .model import OUTCOMES, SCHEMA, Trial
from .select import best, best_of_each, nearest

__all__ = ["OUTCOMES", "SCHEMA", "Broken", "Journal", "ReadResult", "Trial", "best", "best_of_each", "cli_text", "collect", "find",
           "journals", "nearest"]  # fmt: skip
