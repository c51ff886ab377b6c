"""Tuned kernels against torch on this CPU, as one JSON file.

    tvm-stof tune --sweep scripts/bench_cpu.toml
    python scripts/bench_cpu.py --out tuning_logs/<device>/bench_cpu.json [--only causal,softmax_1024] [--rounds 3]

Needs torch (the ``torch`` extra) and a C++ compiler for flex_attention. All contestants of a case get the same tensors; every output is
compared with the float64 oracle before anything is timed. Contestants then take turns in blocks of calls, with a pause and warm-up calls
before each: torch's OpenMP threads spin on for a while after a call and would spoil TVM's next one, and the other way round. What counts is
a ratio within one run; nothing is written that was not measured in it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import tvm_stof
from tvm_stof import masks, reference, targets
from tvm_stof.errors import StofError, UsageError, explain
from tvm_stof.problems import Attention, Problem, Softmax
from tvm_stof.targets.probe import Machine

Call = Callable[[], Any]
LENGTH, HEADS, DIM = 2048, 8, 64
MASKS = {
    "dense": "dense",
    "causal": "causal",
    "causal_window_256": "causal & window(256)",
    "bigbird_64": "bigbird(64)",
    "causal_strided_128": "causal & strided(128)",
}
SOFTMAX = "softmax_1024"
PAUSE, WARM_UP = 0.3, 5
#: what any correct float32 contestant stays under on these inputs; ours is held to its computed budget instead
PEER_ERROR = 1e-4


@dataclass
class Case:
    """One problem: our kernel, the peers, and how to get at our output."""

    name: str
    problem: Problem
    inputs: tuple[Any, ...]
    out: Any
    module: Any
    peers: dict[str, Call]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help=f"of {', '.join([*MASKS, SOFTMAX])}; all by default")
    parser.add_argument("--rounds", type=int, default=3, help="turns of every contestant")
    parser.add_argument("--calls", type=int, default=20, help="timed calls in a turn")
    parser.add_argument("--records", type=Path, nargs="*", help="where to look for records; schedules and tuning_logs by default")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(targets.current_device().threads)
    wanted = [n.strip() for n in options.only.split(",") if n.strip()] or [*MASKS, SOFTMAX]
    try:
        with torch.no_grad():
            modules = {name: tvm_stof.load(problem(name), records=options.records) for name in wanted}
            results = [run(case(name, module), options.rounds, options.calls) for name, module in modules.items()]
    except StofError as error:
        print(error, file=sys.stderr)
        return 2
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"command": shlex.join(sys.argv), **environment(), "cases": results}, indent=1) + "\n")
    return 0


def environment() -> dict[str, Any]:
    """What the figures depend on beside the problems."""
    device, machine = targets.current_device(), Machine()
    packages = {name: metadata.version(name) for name in ("torch", "apache-tvm", "apache-tvm-ffi", "numpy")}
    return {
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"), "versions": {"tvm_stof": tvm_stof.__version__, **packages},
        "python": platform.python_version(), "platform": platform.platform(), "cpu_model": machine.model(), "governor": machine.governor(),
        "device": device.to_data(), "torch_threads": torch.get_num_threads(), "load_average": [round(x, 2) for x in os.getloadavg()],
    }  # fmt: skip


def problem(name: str) -> Problem:
    """The problem of a case."""
    if name == SOFTMAX:
        return Softmax(rows=1024, cols=1024)
    if name not in MASKS:
        raise UsageError(explain("unknown case", got=name, accepted=[*MASKS, SOFTMAX]))
    return Attention(heads=HEADS, q_len=LENGTH, head_dim=DIM, mask=masks.parse(MASKS[name]))


def case(name: str, module: Any) -> Case:
    """The case of a name, for our kernel."""
    inputs = tuple(torch.randn(spec.shape) for spec in module.problem.inputs())
    (output,) = module.problem.outputs()
    if name == SOFTMAX:
        (x,), theirs = inputs, torch.empty(output.shape)
        peers: dict[str, Call] = {"torch.softmax(out=)": lambda: torch.softmax(x, -1, out=theirs)}
    else:
        peers = attention_peers(name, module.problem, *inputs)
    return Case(name, module.problem, inputs, torch.empty(output.shape), module, peers)


def attention_peers(name: str, problem: Attention, q: Any, k: Any, v: Any) -> dict[str, Call]:
    """What torch offers for a mask: its own flag or a dense mask in SDPA, and compiled flex_attention in both usual block sizes."""
    if name == "dense":
        return {"sdpa": lambda: F.scaled_dot_product_attention(q, k, v)}
    at = torch.arange(LENGTH).numpy()
    allowed = torch.as_tensor(problem.bound_mask(at[:, None], at[None])).broadcast_to(LENGTH, LENGTH).contiguous()
    peers: dict[str, Call] = {"sdpa_dense_mask": lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)}
    if name == "causal":
        peers = {"sdpa_is_causal": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), **peers}
    rule = flex_rule(name, allowed)
    i, j = torch.arange(LENGTH)[:, None], torch.arange(LENGTH)[None]
    if not torch.equal(rule(None, None, i, j).broadcast_to(allowed.shape), allowed):
        raise SystemExit(f"{name}: flex_attention would be given another mask")
    torch._dynamo.reset()  # its cache holds few variants of one function and would run the others uncompiled
    for side in (64, 128):
        block_mask = create_block_mask(rule, None, None, LENGTH, LENGTH, device="cpu", BLOCK_SIZE=side)
        peers[f"flex_compiled_{side}"] = compiled_flex(q, k, v, block_mask)
    return peers


def compiled_flex(q: Any, k: Any, v: Any, block_mask: Any) -> Call:
    """flex_attention compiled for this block mask alone."""
    call = torch.compile(flex_attention, dynamic=False)
    call(q, k, v, block_mask=block_mask)
    return lambda: call(q, k, v, block_mask=block_mask)


def flex_rule(name: str, allowed: Any) -> Callable[..., Any]:
    """The mask in flex's own language: index arithmetic, and a look-up of blocks for the random part of BigBird."""
    blocks = allowed[::64, ::64].contiguous()
    rules: dict[str, Callable[..., Any]] = {
        "causal": lambda b, h, i, j: i >= j,
        "causal_window_256": lambda b, h, i, j: (i >= j) & (i - j <= 256),
        "bigbird_64": lambda b, h, i, j: blocks[i // 64, j // 64],
        "causal_strided_128": lambda b, h, i, j: (i >= j) & ((i - j < 128) | ((i - j) % 128 == 0)),
    }
    return rules[name]


def run(case: Case, rounds: int, calls: int) -> dict[str, Any]:
    """Check everyone, then time everyone in turns."""
    names = [t.name for t in case.problem.inputs()]
    expected = reference.expect(case.problem, {n: x.numpy() for n, x in zip(names, case.inputs)})
    (output,) = expected.values
    case.module(*case.inputs, out=case.out)
    found = expected.compare({output: case.out.numpy()})
    if not found.ok:
        raise SystemExit(f"{case.name}: ours is wrong: {found.message}")
    errors = {peer: float(abs(call().numpy() - expected.values[output]).max()) for peer, call in case.peers.items()}
    if not all(error < PEER_ERROR for error in errors.values()):
        raise SystemExit(f"{case.name}: a peer computes something else: {errors}")
    contestants: dict[str, Call] = {"ours": lambda: case.module(*case.inputs, out=case.out), **case.peers}
    times: dict[str, list[float]] = {n: [] for n in contestants}
    for _ in range(rounds):
        for contestant, call in contestants.items():
            times[contestant] += block(call, calls)
    figures = {n: summary(t) for n, t in times.items()}
    mine = figures.pop("ours")
    best = min(figures, key=lambda n: figures[n]["median_ms"])
    ratios = {n: round(f["median_ms"] / mine["median_ms"], 3) for n, f in figures.items()}
    print(f"{case.name:20} ours {mine['median_ms']:.3f} ms; " + ", ".join(f"{n} {r:.2f} x" for n, r in ratios.items()), flush=True)
    return {
        "name": case.name, "problem": case.problem.to_data(), "origin": case.module.origin, "decisions": case.module.decisions,
        "error": found.to_data(), "peer_errors": errors, "ours": mine, "peers": figures, "best_peer": best, "ratios": ratios,
    }  # fmt: skip


def block(call: Call, calls: int) -> list[float]:
    """Times of one turn."""
    time.sleep(PAUSE)
    for _ in range(WARM_UP):
        call()
    taken = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return taken


def summary(times: list[float]) -> dict[str, Any]:
    low, median, high = (1e3 * t for t in statistics.quantiles(times, n=4))
    return {"median_ms": median, "middle_half_ms": [low, high], "min_ms": 1e3 * min(times), "calls": len(times)}


if __name__ == "__main__":
    sys.exit(main())
