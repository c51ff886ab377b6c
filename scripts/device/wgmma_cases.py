"""Kernels to check and to time on a Hopper GPU: shapes, masks and decisions as plain data.

A mask is a Python expression of q, k, b, h that means the same on NumPy, torch and expression trees; a score map is one of x (the raw
product),
q, k, b, h and the named tensors. ``blocks`` asks for block lists.
"""

from __future__ import annotations

from typing import Any

Case = dict[str, Any]


def case(**given: Any) -> Case:
    """Defaults of one case."""
    base: Case = {"batch": 1, "heads": 2, "kv_heads": 0, "q_len": 1111, "kv_len": 0, "head_dim": 128, "value_dim": 0, "dtype": "float16",
            "mask": "", "score": "", "blocks": False, "decisions": {}}  # fmt: skip
    base |= given
    base["kv_heads"] = base["kv_heads"] or base["heads"]
    base["kv_len"] = base["kv_len"] or base["q_len"]
    base["value_dim"] = base["value_dim"] or base["head_dim"]
    return base


CAUSAL = "k <= q"
WINDOW = "(k <= q) & (q - k < 200)"
TWO_SIDED = "(q - k < 129) & (k - q < 129)"
DEAD_ROWS = "(k <= q) & (q - k < 200) & ((q < 256) | (q >= 384)) & (q != 5)"
PER_HEAD = "(k <= q) & (q - k < 100 + 50 * h + 200 * b)"
SCATTERED = "(q * 7919 + k * 104729 + h * 31 + b * 17) % 97 < 40"
RANDOM_BLOCKS = "((q // 64) * 7919 + (k // 64) * 104729) % 97 < 35"
DILATED = "(q - k < 256) & (k - q < 256) & ((q - k) % 2 == 0)"
BIGBIRD = "(k // 64 - q // 64 < 2) & (q // 64 - k // 64 < 2) | (k < 64) | (q < 64) | (((q // 64) * 7919 + (k // 64) * 104729) % 97 < 9)"

SOFTCAP = "30.0 * tanh(x * (0.125 / 30.0))"
ALIBI = "x * 0.125 + (k - q) * (0.5 / (h + 1))"


def _d(block_q: int, block_k: int, **more: Any) -> dict[str, Any]:
    return {"block_q": block_q, "block_k": block_k, **more}


def _small() -> dict[str, Case]:
    """Where synchronisation that is wrong hangs first: tiny, one after the other."""
    return {
        "dense256": case(q_len=256, decisions=_d(128, 128)),
        "causal256": case(q_len=256, mask=CAUSAL, decisions=_d(128, 128)),
        "turn256": case(q_len=256, decisions=_d(128, 128, overlap=0)),
        "alone256": case(q_len=256, decisions=_d(64, 128, pingpong=0)),
        "three256": case(q_len=256, head_dim=64, decisions=_d(192, 128)),
        "lists256": case(q_len=256, mask=CAUSAL, blocks=True, decisions=_d(128, 128)),
        "bits256": case(q_len=256, mask=SCATTERED, blocks=True, decisions=_d(128, 128, test="bits")),
        "dim96_256": case(q_len=256, head_dim=96, decisions=_d(128, 128)),
        "dim80_256": case(q_len=256, head_dim=80, decisions=_d(128, 128)),
    }


def _matrix() -> dict[str, Case]:
    """mask x shape x dtype x grouped heads x decisions."""
    found: dict[str, Case] = {}
    sizes = {"1111": (1111, 1111), "1000": (1000, 1000), "300x1111": (300, 1111), "1111x300": (1111, 300), "1x1000": (1, 1000)}
    for mask_name, mask in {"dense": "", "causal": CAUSAL, "window": WINDOW, "two": TWO_SIDED, "dead": DEAD_ROWS}.items():
        for size_name, (q, k) in sizes.items():
            for dim, decisions in ((128, _d(128, 128)), (64, _d(192, 128)), (64, _d(128, 64, pingpong=0))):
                dtype = "bfloat16" if (len(found) % 3 == 1) else "float16"
                found[f"{mask_name}_{size_name}_d{dim}_{decisions['block_q']}x{decisions['block_k']}"] = case(
                    q_len=q, kv_len=k, head_dim=dim, mask=mask, dtype=dtype, decisions=decisions, batch=2, heads=4, kv_heads=(4, 2,
                    1)[len(found) % 3]
                )
    for mask_name, mask in {"window": WINDOW, "dead": DEAD_ROWS, "perhead": PER_HEAD, "scattered": SCATTERED, "random": RANDOM_BLOCKS,
                            "dilated": DILATED, "bigbird": BIGBIRD}.items():  # fmt: skip
        for q, k in ((1000, 1000), (1111, 777)):
            for test in ("predicate", "bits"):
                for dim, block_q, block_k in ((128, 128, 128), (64, 192, 64), (64, 128, 176)):
                    found[f"lists_{mask_name}_{q}x{k}_{test}_d{dim}_{block_q}x{block_k}"] = case(
                        q_len=q, kv_len=k, head_dim=dim, mask=mask, blocks=True, batch=2, heads=4, kv_heads=2,
                        dtype="bfloat16" if len(found) % 4 == 3 else "float16", decisions=_d(block_q, block_k, test=test))  # fmt: skip
    return found


#: head size, value size, rows, keys of a tile
DIMS = ((64, 64, 128, 192), (96, 96, 128, 128), (96, 96, 192, 80), (128, 128, 128, 176), (128, 128, 192, 80), (192, 192, 128, 80),
        (256, 256, 128, 80), (256, 256, 128, 64), (192, 128, 128, 112), (128, 64, 128, 128), (64, 128, 128, 128), (80, 80, 128, 128),
        (112, 112, 128, 128), (32, 32, 192, 128), (16, 16, 128, 128), (128, 256, 128, 64))  # fmt: skip


HOW = {
    "turn": _d(128, 128, overlap=0),
    "turn_alone": _d(128, 128, overlap=0, pingpong=0),
    "alone": _d(128, 128, pingpong=0),
    "one": _d(64, 128, pingpong=0),
    "one_turn": _d(64, 192, pingpong=0, overlap=0),
    "three_stages": _d(128, 64, stages=3),
    "four_stages": _d(128, 64, stages=4),
    "together": _d(128, 128, heads_together=4),
}


def _shapes() -> dict[str, Case]:
    """Head sizes, tile sizes, schedules, score maps."""
    found: dict[str, Case] = {}
    for dim, value, block_q, block_k in DIMS:
        for mask in ("", CAUSAL):
            name = f"dims{dim}x{value}_{block_q}x{block_k}_{'causal' if mask else 'dense'}"
            found[name] = case(head_dim=dim, value_dim=value, mask=mask, decisions=_d(block_q, block_k), heads=4, kv_heads=2, q_len=1000)
    for name, decisions in HOW.items():
        for mask in ("", WINDOW):
            found[f"how_{name}_{'window' if mask else 'dense'}"] = case(mask=mask, decisions=decisions, batch=2, heads=4)
    for name, score in {"softcap": SOFTCAP, "alibi": ALIBI}.items():
        for mask in ("", CAUSAL):
            found[f"score_{name}_{'causal' if mask else 'dense'}"] = case(head_dim=64, score=score, mask=mask, decisions=_d(128, 128),
            heads=4)
    return found


def _timed() -> dict[str, Case]:
    """Interleaved with peers: name up to the first '/' says the group."""
    found: dict[str, Case] = {}
    for size in (4096, 8192):
        big = {"batch": 4, "heads": 16, "q_len": size}
        for block_k, more in ((128, {}), (176, {}), (176, {"pingpong": 0}), (128, {"pingpong": 0})):
            found[f"dense D128 S{size}/{block_k}{'np' if more else ''}"] = case(**big, decisions=_d(128, block_k, **more))
        for name, decisions in {"128": _d(128, 128), "128x4": _d(128, 128, heads_together=4), "128x16": _d(128, 128, heads_together=16),
                                "128np": _d(128, 128, pingpong=0)}.items():  # fmt: skip
            found[f"causal D128 S{size}/{name}"] = case(**big, mask=CAUSAL, decisions=decisions)
        for name, decisions in {"192": _d(192, 128), "192np": _d(192, 128, pingpong=0), "128turn": _d(128, 192, overlap=0)}.items():
            found[f"dense D64 S{size}/{name}"] = case(**big, head_dim=64, decisions=decisions)
            found[f"causal D64 S{size}/{name}"] = case(**big, head_dim=64, mask=CAUSAL, decisions=decisions)
    big = {"batch": 4, "heads": 16, "q_len": 8192}
    masks = {"window1024": "(k <= q) & (q - k < 1024)", "window128+128": "(q - k <= 128) & (k - q <= 128)"}
    for name, mask in masks.items():
        for block_k in (128, 64):
            found[f"{name} D128 S8192/range{block_k}"] = case(**big, mask=mask, decisions=_d(128, block_k))
            found[f"{name} D128 S8192/lists{block_k}"] = case(**big, mask=mask, blocks=True, decisions=_d(128, block_k))
    return found


GROUPS = {"small": _small(), "matrix": _matrix(), "shapes": _shapes(), "timed": _timed()}
