"""Problems: what is computed, as pure data with canonical JSON and a SHA-256 key."""

from .attention import Attention
from .base import Problem, TensorSpec
from .cascaded import CascadedReduction
from .softmax import Softmax

__all__ = ["Attention", "CascadedReduction", "Problem", "Softmax", "TensorSpec"]
