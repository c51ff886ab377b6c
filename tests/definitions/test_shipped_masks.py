"""Every shipped mask in the definition that runs and in the program that streams: both against the float64 oracle."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_stof import cascade, reference, testing
from tvm_stof.cascade import interpret
from tvm_stof.masks import Mask
from tvm_stof.masks.array import Array
from tvm_stof.masks.bigbird import BigBird
from tvm_stof.masks.block_list import BlockList
from tvm_stof.masks.causal import Causal
from tvm_stof.masks.dense import Dense
from tvm_stof.masks.dilated import Dilated
from tvm_stof.masks.document import Document
from tvm_stof.masks.function import Function
from tvm_stof.masks.global_tokens import Global
from tvm_stof.masks.longformer import Longformer
from tvm_stof.masks.prefix import PrefixLM
from tvm_stof.masks.random_blocks import RandomBlocks
from tvm_stof.masks.strided import Strided
from tvm_stof.masks.window import SlidingWindow
from tvm_stof.problems import Attention

from .test_attention import assert_right, bits_of

BITS = np.random.default_rng(0).random((1, 4, 13, 11)) < 0.4
MASKS: dict[str, Mask] = {
    "two-sided window": SlidingWindow(size=2),
    "causal window": Causal() & SlidingWindow(size=3),
    "dilated": Dilated(window=3, step=2),
    "strided": Strided(stride=3),
    "global": Global(tokens=2),
    "longformer": Longformer(window=2, tokens=1),
    "prefix": PrefixLM(length=4),
    "document": Document(lengths=(3, 4, 4)),
    "bigbird": BigBird(block=2, window=1, global_blocks=1, random_blocks=1),
    "random": RandomBlocks(block=4, per_row=1),
    "blocks": BlockList(block=4, rows=((0,), (1, 2), (), (2,))),
    "union": Causal() | Global(tokens=1),
    "complement": Causal(align="bottom_right") & ~SlidingWindow(size=1),
    "nothing": ~Dense(),
    "function": Function.trace(lambda b, h, q, kv: (q >= kv) & ((kv + h + b) % 3 < 2)),
    "array": Array.of(BITS),
}


@pytest.mark.parametrize("name", MASKS)
def test_definition_and_program(name: str) -> None:
    problem = Attention(batch=2, heads=4, kv_heads=2, q_len=13, kv_len=11, head_dim=4, value_dim=3, mask=MASKS[name], return_lse=True)
    assert_right(problem)
    arrays = dict(testing.inputs(problem, 0))
    want = reference.evaluate(problem, arrays)
    arrays |= dict(zip(["mask_bits"], bits_of(problem)))
    program = cascade.program_of(problem)
    assert program.predicate is not None
    got = interpret.run(program, arrays, ([np.arange(2)], [np.arange(2, 5), np.arange(5, 11)]))
    for output in want:
        np.testing.assert_allclose(got[output], want[output], rtol=1e-12, atol=1e-12)
