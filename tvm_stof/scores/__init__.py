"""Score modifications: what happens to a score between the product and the softmax."""

from .base import Score
from .scale import Scale
from .sink import Sink

__all__ = ["Scale", "Score", "Sink"]
