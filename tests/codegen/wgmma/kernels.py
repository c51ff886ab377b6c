"""Kernels whose text is pinned: name -> CUDA text."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.codegen.wgmma.programs import CAUSAL, B, H, I, J, lists_of, softmax_program, text_of, window, with_value
from tvm_stof.expr import Expr, call, const


def _softcap() -> Expr:
    return call("mul", const(30.0), call("tanh", call("mul", Expr("prologue"), const(0.125 / 30))))


def _slopes() -> Expr:
    distance = Expr("cast", ("float32", call("sub", J, I)))
    slope = call("div", const(0.5), Expr("cast", ("float32", call("add", H, const(1)))))
    return call("add", call("mul", Expr("prologue"), const(0.125)), call("mul", distance, slope))


def _lists(bits: bool, block_q: int, block_k: int, length: int = 1000) -> dict[str, Any]:
    q, k = np.arange(length)[:, None], np.arange(length)[None]
    return lists_of((k <= q) & (q - k < 200), block_q, block_k, bits)


def _per_head() -> Expr:
    reach = call("add", const(100), call("add", call("mul", H, const(50)), call("mul", B, const(200))))
    return call("and", CAUSAL, call("lt", call("sub", I, J), reach))


def _d(block_q: int, block_k: int, **more: Any) -> dict[str, Any]:
    return {"block_q": block_q, "block_k": block_k, **more}


KERNELS: dict[str, Callable[[], str]] = {
    "dense": lambda: text_of(softmax_program(4096), _d(128, 128)),
    "dense_wide_tile": lambda: text_of(softmax_program(4096), _d(128, 176, pingpong=0)),
    "dense_short": lambda: text_of(softmax_program(256, depth=64), _d(192, 128)),
    "causal": lambda: text_of(softmax_program(4096, predicate=CAUSAL), _d(128, 128)),
    "causal_ragged": lambda: text_of(softmax_program(1111, predicate=CAUSAL, kv_heads=1), _d(128, 128)),
    "causal_wide_tile": lambda: text_of(softmax_program(1000, predicate=CAUSAL), _d(128, 176)),
    "window": lambda: text_of(softmax_program(1111, predicate=window(200), depth=64), _d(192, 128, heads_together=4)),
    "widest_tile": lambda: text_of(softmax_program(2000, predicate=window(200)), _d(128, 192)),
    "in_turn": lambda: text_of(softmax_program(1000, predicate=window(200)), _d(128, 128, overlap=0)),
    "one_consumer": lambda: text_of(softmax_program(1000), _d(64, 192, overlap=0, pingpong=0)),
    "lists": lambda: text_of(softmax_program(1000, predicate=window(200)), _d(128, 128), _lists(False, 128, 128)),
    "lists_bits": lambda: text_of(softmax_program(1000, depth=64), _d(192, 64, test="bits"), _lists(True, 192, 64)),
    "per_head": lambda: text_of(softmax_program(1000, predicate=_per_head()), _d(128, 64)),
    "bfloat16": lambda: text_of(softmax_program(1000, dtype="bfloat16", kv_heads=2), _d(128, 128)),
    "depth96": lambda: text_of(softmax_program(1000, depth=96), _d(128, 128)),
    "depth192_width128": lambda: text_of(softmax_program(1000, depth=192, width=128, predicate=CAUSAL), _d(128, 112)),
    "depth256": lambda: text_of(softmax_program(1000, depth=256), _d(128, 80)),
    "softcap": lambda: text_of(with_value(softmax_program(1000, depth=64, predicate=CAUSAL), _softcap()), _d(128, 128)),
    "slopes": lambda: text_of(with_value(softmax_program(1000, depth=64), _slopes()), _d(128, 128)),
}


def digest(name: str) -> str:
    """SHA-256 of a kernel's text."""
    return hashlib.sha256(KERNELS[name]().encode()).hexdigest()


if __name__ == "__main__":
    print(json.dumps({name: digest(name) for name in sys.argv[1:]}))
