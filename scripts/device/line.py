"""The whole line on this machine's GPU, small first: tune a few problems, load them, call them on torch tensors, capture a graph.

    python scripts/device/line.py OUT [--trials 8]

Every step prints as it ends, so that a hang shows where it is.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

import tvm_stof
from tvm_stof import masks, reference, testing
from tvm_stof.problems import Attention


def problems() -> dict[str, Attention]:
    """Names and problems, the smallest first."""
    small = {"heads": 4, "head_dim": 64, "dtype": "float16", "return_lse": True}
    return {
        "tiny": Attention(q_len=256, **small),
        "causal odd": Attention(batch=2, q_len=1111, mask=masks.parse("causal"), **small),
        "window": Attention(q_len=1000, kv_heads=2, mask=masks.parse("causal & window(200)"), **small),
        "bigbird": Attention(q_len=1024, mask=masks.parse("bigbird(64)"), **small),
        "unequal": Attention(q_len=300, kv_len=1111, mask=masks.parse("causal"), **small),
    }


def step(what: str, start: float) -> float:
    """Print what has ended, and how long it took."""
    print(f"{what:40s} {time.time() - start:6.2f} s", flush=True)
    return time.time()


def line(name: str, problem: Attention, logs: Path, trials: int) -> None:
    """Tune, load, call, capture."""
    now = time.time()
    found = tvm_stof.tune(problem, device="cuda", trials=trials, logs=logs, progress=False)
    outcomes = sorted({t.outcome for t in found.trials})
    assert found.best is not None, [t.message for t in found.trials][:3]
    print(name, found.best.decisions, f"{1e6 * (found.best.seconds_median or 0):.1f} us", outcomes, flush=True)
    for t in found.trials:
        if t.outcome != "ok":
            print("   ", t.outcome, t.message[:300], dict(t.decisions), flush=True)
    now = step("  tuned", now)
    module = tvm_stof.load(problem, device="cuda", records=logs)
    now = step("  loaded (built)", now)
    module = tvm_stof.load(problem, device="cuda", records=logs)
    now = step("  loaded (cached)", now)
    arrays = testing.inputs(problem, 99)
    given = [torch.from_numpy(arrays[s.name]).cuda() for s in problem.inputs()]
    o, lse = module(*given)
    torch.cuda.synchronize()
    now = step("  called", now)
    verdict = reference.compare(problem, arrays, {"o": o.cpu().numpy(), "lse": lse.cpu().numpy()})
    assert verdict.ok, verdict.message
    out = (torch.empty_like(o), torch.empty_like(lse))
    module(*given, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        module(*given, out=out)
    for t in out:
        t.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out[0], o)
    assert torch.equal(out[1], lse)
    start = time.perf_counter()
    for _ in range(200):
        module(*given, out=out)
    host = (time.perf_counter() - start) / 200
    torch.cuda.synchronize()
    step(f"  checked; {1e6 * host:.1f} us of host a call", now)


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--trials", type=int, default=8)
    given = parser.parse_args()
    failed = {}
    for name, problem in problems().items():
        try:
            line(name, problem, given.out / "logs", given.trials)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"[:1500]
            print("FAILED", name, failed[name], flush=True)
    (given.out / "line.json").write_text(json.dumps({"failed": failed, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
