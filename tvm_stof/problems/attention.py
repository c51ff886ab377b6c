"""Scaled dot-product attention with any mask and any score modifications."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..canonical import canonical
from ..errors import ProblemError, explain
from ..masks import Dense, Mask
from ..scores import Scale, Score
from .base import Problem, TensorSpec, known_dtype, positive


@canonical("attention")
@dataclass(frozen=True)
class Attention(Problem):
    """o = softmax(scores(q k^T) where mask) v, per batch entry and head.

    Shapes: q [batch, heads, q_len, head_dim], k [batch, kv_heads, kv_len, head_dim], v [batch, kv_heads, kv_len, value_dim],
    o [batch, heads, q_len, value_dim] in ``dtype``; lse [batch, heads, q_len] float32 (natural logarithm of the sum of exponentials).
    Query head h reads key head h // (heads / kv_heads). Products and sums are float32. A row whose keys are all masked gives o = 0 and
    lse = -inf.
    Without a Scale among ``scores``, Scale(1 / sqrt(head_dim)) is put first.

    Examples
    --------
    >>> from tvm_stof.masks import Causal
    >>> Attention(heads=8, q_len=128, head_dim=64, mask=Causal()).kv_len
    128
    """

    heads: int
    q_len: int
    head_dim: int
    batch: int = 1
    kv_heads: int = 0
    kv_len: int = 0
    value_dim: int = 0
    dtype: str = "float32"
    mask: Mask = field(default_factory=Dense)
    scores: tuple[Score, ...] = ()
    return_lse: bool = False

    def __post_init__(self) -> None:
        for name, default in (("kv_heads", self.heads), ("kv_len", self.q_len), ("value_dim", self.head_dim)):
            if getattr(self, name) == 0:
                object.__setattr__(self, name, default)
        positive(batch=self.batch, heads=self.heads, kv_heads=self.kv_heads, q_len=self.q_len, kv_len=self.kv_len,
                 head_dim=self.head_dim, value_dim=self.value_dim)  # fmt: skip
        known_dtype(self.dtype)
        if self.heads % self.kv_heads:
            fitting = [n for n in range(1, self.heads + 1) if self.heads % n == 0]
            got = f"heads={self.heads}, kv_heads={self.kv_heads}"
            raise ProblemError(explain("heads must be a multiple of kv_heads", got=got, accepted=fitting))
        if not isinstance(self.mask, Mask):
            way_out = "Wrap a function with tvm_stof.masks.Function.trace"
            raise ProblemError(explain("mask must be a Mask", got=type(self.mask).__name__, way_out=way_out))
        scores = tuple(self.scores)
        if any(not isinstance(s, Score) for s in scores):
            raise ProblemError(explain("scores must be Score objects", got=[type(s).__name__ for s in scores]))
        if not any(isinstance(s, Scale) for s in scores):
            scores = (Scale(1.0 / math.sqrt(self.head_dim)), *scores)
        object.__setattr__(self, "scores", scores)
        names = [t.name for s in scores for t in s.tensors(self)]
        if len(set(names)) != len(names):
            raise ProblemError(explain("a score that brings a tensor may stand once only", got=names))
        self.mask.check(self.q_len, self.kv_len, self.batch, self.heads)

    @property
    def group(self) -> int:
        """Query heads that share one key head."""
        return self.heads // self.kv_heads

    @property
    def bound_mask(self) -> Mask:
        """The mask with its alignment resolved for these lengths."""
        return self.mask.bind(self.q_len, self.kv_len)

    def inputs(self) -> tuple[TensorSpec, ...]:
        kv = (self.batch, self.kv_heads, self.kv_len)
        extra = tuple(t for s in self.scores for t in s.tensors(self))
        q = TensorSpec("q", (self.batch, self.heads, self.q_len, self.head_dim), self.dtype)
        return (q, TensorSpec("k", (*kv, self.head_dim), self.dtype), TensorSpec("v", (*kv, self.value_dim), self.dtype), *extra)

    def outputs(self) -> tuple[TensorSpec, ...]:
        rows = (self.batch, self.heads, self.q_len)
        o = TensorSpec("o", (*rows, self.value_dim), self.dtype)
        return (o, TensorSpec("lse", rows, "float32")) if self.return_lse else (o,)
