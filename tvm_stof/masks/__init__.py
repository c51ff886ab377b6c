"""Masks: frozen values that say which query attends to which key. Combine them with ``&``, ``|`` and ``~``."""

from .array import Array
from .base import EMPTY, FULL, PARTIAL, UNKNOWN, BlockGrid, Mask
from .bigbird import BigBird
from .block_list import BlockList
from .causal import Causal
from .combine import And, Not, Or
from .dense import Dense
from .dilated import Dilated
from .document import Document
from .function import Function
from .global_tokens import Global
from .language import parse, text
from .longformer import Longformer
from .prefix import PrefixLM
from .random_blocks import RandomBlocks
from .strided import Strided
from .window import SlidingWindow

__all__ = ["EMPTY", "FULL", "PARTIAL", "UNKNOWN", "And", "Array", "BigBird", "BlockGrid", "BlockList", "Causal",
           "Dense", "Dilated", "Document", "Function", "Global", "Longformer", "Mask", "Not", "Or", "PrefixLM",
           "RandomBlocks", "SlidingWindow", "Strided", "parse", "text"]  # fmt: skip
