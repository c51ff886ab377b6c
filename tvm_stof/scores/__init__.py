"""Score modifications: what happens to a score between the product and the softmax."""

from .alibi import ALiBi
from .base import Score
from .bias import Bias
from .relative_bias import RelativeBias
from .scale import Scale
from .sink import Sink
from .softcap import Softcap

__all__ = ["ALiBi", "Bias", "RelativeBias", "Scale", "Score", "Sink", "Softcap"]
