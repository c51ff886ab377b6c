"""Tuned kernels against torch on this CPU, as one JSON file.

    python scripts/bench_cpu.py --out tuning_logs/<device>/bench_cpu.json [--only attention,softmax] [--rounds 5]

Needs torch (the ``torch`` extra) and records of the problems (``tvm-stof tune --sweep scripts/bench_cpu.toml``). Both sides get the same
inputs; outputs are compared
before anything is timed. Contestants take turns in blocks of calls with a pause before each block, because torch's OpenMP threads spin
for a while after a call and
would spoil TVM's next one (and the other way round). Every figure is a ratio within one run.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import tvm_stof
from tvm_stof import masks
from tvm_stof.problems import Attention, Problem, Softmax
from tvm_stof.targets import current_device

Call = Callable[[], Any]
LENGTH, HEADS, DIM = 2048, 8, 64
ATTENTION = {
    "dense": "dense",
    "causal": "causal",
    "causal_window_256": "causal & window(256)",
    "bigbird": "bigbird(64)",
    "strided_128": "causal & strided(128)",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="attention,softmax")
    parser.add_argument("--rounds", type=int, default=5, help="turns of every contestant")
    parser.add_argument("--calls", type=int, default=12, help="timed calls in a turn")
    parser.add_argument("--records", type=Path, nargs="*", help="where to look for records; schedules and tuning_logs by default")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(current_device().threads)
    cases: list[dict[str, Any]] = []
    with torch.no_grad():
        if "attention" in options.only:
            cases += [attention(name, text, options) for name, text in ATTENTION.items()]
        if "softmax" in options.only:
            cases.append(softmax(options))
    report = {"command": " ".join(sys.argv), "time": datetime.now(timezone.utc).isoformat(timespec="seconds"), "environment":
    environment(), "cases": cases}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    for case in cases:
        best = case["best_peer"]
        theirs, ours = case["peers_ms"][best]["median"], case["ours_ms"]["median"]
        print(f"{case['name']:20} ours {ours:.3f} ms, {best} {theirs:.3f} ms, ratio {case['ratio']:.2f}")


def environment() -> dict[str, Any]:
    device = current_device()
    return {"device": device.name, "threads": device.threads, "python": platform.python_version(), "torch": torch.__version__,
            "tvm_stof": tvm_stof.__version__, "tvm": version("apache-tvm"), "cpu": cpu_model(), "platform": platform.platform()}  # fmt: skip


def version(package: str) -> str:
    from importlib import metadata

    return metadata.version(package)


def cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def attention(name: str, text: str, options: argparse.Namespace) -> dict[str, Any]:
    mask = masks.parse(text)
    problem = Attention(heads=HEADS, q_len=LENGTH, head_dim=DIM, mask=mask)
    q, k, v = (torch.randn(1, HEADS, LENGTH, DIM) for _ in range(3))
    module = tvm_stof.load(problem, records=options.records)
    out = torch.empty_like(q)
    allowed = problem.bound_mask(torch.arange(LENGTH)[:, None].numpy(), torch.arange(LENGTH)[None].numpy())
    dense = torch.as_tensor(allowed).broadcast_to(LENGTH, LENGTH).contiguous()
    peers: dict[str, Call] = {}
    if name == "dense":
        peers["sdpa"] = lambda: F.scaled_dot_product_attention(q, k, v)
    elif name == "causal":
        peers["sdpa"] = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        peers["sdpa_mask"] = lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=dense)
    if name != "dense":
        torch._dynamo.reset()
        compiled = torch.compile(flex_attention)
        block_mask = create_block_mask(lambda b, h, i, j: dense[i, j], None, None, LENGTH, LENGTH, device="cpu")
        if name in FLEX:
            block_mask = create_block_mask(FLEX[name], None, None, LENGTH, LENGTH, device="cpu")
        peers["flex_compiled"] = lambda: compiled(q, k, v, block_mask=block_mask)
    return compare(name, problem, module, lambda: module(q, k, v, out=out), out, peers, options)


#: mask functions in flex's own language, where it has index arithmetic for them (a look-up in a stored mask otherwise)
FLEX: dict[str, Callable[..., Any]] = {
    "causal": lambda b, h, i, j: i >= j,
    "causal_window_256": lambda b, h, i, j: (i >= j) & (i - j < 256),
}


def softmax(options: argparse.Namespace) -> dict[str, Any]:
    problem = Softmax(rows=1024, cols=1024)
    x = torch.randn(1024, 1024)
    out, theirs = torch.empty_like(x), torch.empty_like(x)
    module = tvm_stof.load(problem, records=options.records)
    peers: dict[str, Call] = {"torch_out": lambda: torch.softmax(x, -1, out=theirs)}
    return compare("softmax_1024", problem, module, lambda: module(x, out=out), out, peers, options)


def compare(
    name: str, problem: Problem, module: Any, ours: Call, out: torch.Tensor, peers: dict[str, Call], options: argparse.Namespace
) -> dict[str, Any]:
    ours()
    for peer, call in peers.items():
        worst = float((call() - out).abs().max())
        if not worst < 1e-4:
            raise SystemExit(f"{name}: {peer} and ours differ by {worst}")
    contestants = {"ours": ours, **peers}
    times: dict[str, list[float]] = {n: [] for n in contestants}
    for _ in range(options.rounds):
        for contestant, call in contestants.items():
            times[contestant] += block(call, options.calls)
    figures = {n: summary(t) for n, t in times.items()}
    mine = figures.pop("ours")
    best = min(figures, key=lambda n: figures[n]["median"])
    return {
        "name": name, "problem": problem.to_data(), "origin": module.origin, "decisions": module.decisions, "ours_ms": mine, "peers_ms":
        figures,
        "best_peer": best, "ratio": figures[best]["median"] / mine["median"],
        "ratios": {n: f["median"] / mine["median"] for n, f in figures.items()},
    }  # fmt: skip


def block(call: Call, calls: int) -> list[float]:
    time.sleep(0.3)
    for _ in range(5):
        call()
    taken = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return taken


def summary(times: list[float]) -> dict[str, float]:
    low, median, high = statistics.quantiles(times, n=4)
    return {"median": median * 1e3, "low_quartile": low * 1e3, "high_quartile": high * 1e3, "min": min(times) * 1e3, "calls": len(times)}


if __name__ == "__main__":
    main()
