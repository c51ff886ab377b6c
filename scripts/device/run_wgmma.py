"""Launch the kernels of .gpu/ with ctypes and libcuda, on a machine with torch and a Hopper GPU and no TVM.

Usage: run_wgmma.py check [group ...] [--seed N] | time [TEXT] | list
Writes its figures to $OUT/wgmma_*.json where OUT is set.
"""

from __future__ import annotations

import ctypes as ct
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).resolve().parents[2] / ".gpu"
DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
CODES = {"float16": 6, "bfloat16": 9}
#: accepted relative Frobenius error of O: rounding of the weights and of the result
LIMIT = {"float16": 6e-4, "bfloat16": 5e-3}
cuda = ct.CDLL("libcuda.so.1")


def ok(code: int, what: str) -> None:
    """Raise on a driver error."""
    if code:
        raise RuntimeError(f"{what}: CUDA error {code}")


def tensor_map(m: dict[str, Any], tensor: torch.Tensor) -> tuple[Any, int]:
    """An encoded CUtensorMap: (memory to keep alive, aligned address)."""
    memory = (ct.c_ubyte * 256)()
    address = (ct.addressof(memory) + 63) // 64 * 64

    def numbers(kind: Any, values: list[int]) -> Any:
        return (kind * len(values))(*values)

    rank, pointer = len(m["dims"]), ct.c_void_p(tensor.data_ptr())
    extents = (numbers(ct.c_uint64, m["dims"]), numbers(ct.c_uint64, m["strides"]))
    shape = (*extents, numbers(ct.c_uint32, m["box"]), numbers(ct.c_uint32, [1] * rank))
    interleave, promotion, fill = ct.c_int(0), ct.c_int(2), ct.c_int(0)
    head = (ct.c_void_p(address), ct.c_int(CODES[m["dtype"]]), ct.c_uint32(rank), pointer)
    ok(cuda.cuTensorMapEncodeTiled(*head, *shape, interleave, ct.c_int(m["swizzle"]), promotion, fill), "tensor map")
    return memory, address


class Kernel:
    """One cubin and its prepared arrays."""

    def __init__(self, meta: dict[str, Any]) -> None:
        self.meta, self.function = meta, ct.c_void_p()
        module = ct.c_void_p()
        ok(cuda.cuModuleLoadData(ct.byref(module), (HERE / f"{meta['stem']}.cubin").read_bytes()), "load")
        ok(cuda.cuModuleGetFunction(ct.byref(self.function), module, meta["kernel"].encode()), "function")
        ok(cuda.cuFuncSetAttribute(self.function, 8, meta["shared"]), "shared memory")
        with np.load(HERE / f"{meta['stem']}.npz") as stored:
            arrays = {n: stored[n].view(np.int32) if stored[n].dtype == np.uint32 else stored[n] for n in meta["arrays"]}
        self.arrays = {n: torch.from_numpy(a).cuda() for n, a in arrays.items()}

    def bind(self, tensors: dict[str, torch.Tensor]) -> Callable[[], None]:
        """A call with these tensors."""
        meta, keep, values = self.meta, [], []
        every = {**tensors, **self.arrays}
        for name in meta["params"]:
            if name in meta["maps"]:
                memory, address = tensor_map(meta["maps"][name], every[meta["maps"][name]["tensor"]])
            else:
                memory = ct.c_uint64(every[name.removesuffix("_ptr")].data_ptr())
                address = ct.addressof(memory)
            keep.append(memory)
            values.append(address)
        packed = (ct.c_void_p * len(values))(*values)

        def go() -> None:
            stream = ct.c_void_p(torch.cuda.current_stream().cuda_stream)
            size = (meta["grid"], 1, 1, meta["threads"], 1, 1, meta["shared"])
            ok(cuda.cuLaunchKernel(self.function, *size, stream, packed, None), "launch")

        go.keep = (keep, every)  # type: ignore[attr-defined]
        return go


def tensors_of(meta: dict[str, Any], seed: int) -> dict[str, torch.Tensor]:
    """Fresh random inputs; outputs are NaN."""
    torch.manual_seed(seed)
    found = {}
    for t in meta["tensors"]:
        shape, dtype = tuple(t["shape"]), DTYPES[t["dtype"]]
        poisoned = torch.full(shape, math.nan, device="cuda", dtype=dtype)
        found[t["name"]] = poisoned if t["output"] else torch.randn(shape, device="cuda").to(dtype)
    return found


def mask_of(c: dict[str, Any], b: int, h: int) -> torch.Tensor | None:
    """The boolean mask of one head."""
    if not c["mask"]:
        return None
    q, k = torch.arange(c["q_len"], device="cuda")[:, None], torch.arange(c["kv_len"], device="cuda")[None]
    return eval(c["mask"], {"q": q, "k": k, "b": b, "h": h}) & torch.ones(c["q_len"], c["kv_len"], dtype=torch.bool, device="cuda")  # type: ignore[no-any-return]


def reference(c: dict[str, Any], t: dict[str, torch.Tensor], b: int, h: int) -> tuple[torch.Tensor, torch.Tensor]:
    """float64 output and log-sum-exp of one head; a row without keys gives 0 and -inf."""
    g = h // (c["heads"] // c["kv_heads"])
    x = t["q"][b, h].double() @ t["k"][b, g].double().T
    q, k = torch.arange(c["q_len"], device="cuda")[:, None], torch.arange(c["kv_len"], device="cuda")[None]
    x = eval(c["score"], {"x": x, "q": q, "k": k, "b": b, "h": h, "tanh": torch.tanh}) if c["score"] else x / math.sqrt(c["head_dim"])
    mask = mask_of(c, b, h)
    if mask is not None:
        x = x.masked_fill(~mask, -math.inf)
    lse = torch.logsumexp(x, -1)
    p = torch.exp(x - torch.where(lse == -math.inf, 0.0, lse)[:, None])
    return p @ t["v"][b, g].double(), lse


def verdict(meta: dict[str, Any], seed: int, heads: int = 64) -> tuple[bool, dict[str, Any]]:
    """Run twice on poisoned outputs and hold the result to the reference."""
    c = meta["case"]
    t = tensors_of(meta, seed)
    go = Kernel(meta).bind(t)
    go()
    torch.cuda.synchronize()
    first = {n: t[n].clone() for n in ("o", "lse")}
    t["o"].fill_(math.nan)
    t["lse"].fill_(math.nan)
    go()
    torch.cuda.synchronize()
    same = all(torch.equal(first[n], t[n]) for n in first)
    chosen = [(b, h) for b in range(c["batch"]) for h in range(c["heads"])]
    if len(chosen) > heads:
        chosen = [chosen[0], chosen[-1]]
    pairs = [(*reference(c, t, b, h), t["o"][b, h].double(), t["lse"][b, h].double()) for b, h in chosen]
    ro, rl, o, lse = (torch.stack(x) for x in zip(*pairs))
    dead = rl == -math.inf
    error = ((o - ro).norm() / ro.norm().clamp_min(1e-30)).item()
    lse_error = (lse - rl)[~dead].abs().max().item() if (~dead).any() else 0.0
    dead_o = o[dead].abs().max().item() if dead.any() else 0.0
    finite = bool(torch.isfinite(t["o"]).all()) and bool(torch.equal(dead, lse == -math.inf))
    good = error < LIMIT[c["dtype"]] and lse_error < 2e-3 and dead_o == 0.0 and finite and same
    largest = (o - ro).abs().max().item()
    return good, {"error": error, "largest": largest, "lse": lse_error, "dead": int(dead.sum()), "same": same, "finite": finite}


def check(metas: dict[str, Any], groups: list[str], seed: int) -> int:
    """Every kernel of the groups."""
    results, failed = {}, []
    for name, meta in metas.items():
        if groups and meta["group"] not in groups:
            continue
        begin = time.time()
        good, results[name] = verdict(meta, seed)
        if not good:
            failed.append(name)
        if not good or meta["group"] == "small":
            print("ok  " if good else "FAIL", name, results[name], f"{time.time() - begin:.2f}s", flush=True)
    worst = max(r["error"] for n, r in results.items() if metas[n]["case"]["dtype"] == "float16")
    print(f"{len(results)} checked, {len(failed)} failed: {failed}; worst float16 error {worst:.2e}", flush=True)
    write(f"check_{'_'.join(groups) or 'all'}_{seed}", results)
    return int(bool(failed))


def write(name: str, data: Any) -> None:
    """Figures for the caller's machine."""
    if os.environ.get("OUT"):
        (Path(os.environ["OUT"]) / f"wgmma_{name}.json").write_text(json.dumps(data, indent=1))


def state() -> str:
    """Clock, power, temperature."""
    return os.popen("nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu --format=csv,noheader").read().strip()


def timed(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of every call, interleaved, L2 flushed before each."""
    flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    marks: dict[str, list[Any]] = {n: [] for n in functions}
    for f in functions.values():
        for _ in range(3):
            f()
    torch.cuda.synchronize()
    for _ in range(rounds):
        for name, f in functions.items():
            flush.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            f()
            end.record()
            marks[name].append((begin, end))
    torch.cuda.synchronize()
    return {n: sorted(a.elapsed_time(b) for a, b in m) for n, m in marks.items()}


def peers(c: dict[str, Any], t: dict[str, torch.Tensor]) -> dict[str, Callable[[], Any]]:
    """Whatever of cuDNN, FlashAttention-4 and flex this machine has for the mask."""
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    found: dict[str, Callable[[], Any]] = {}
    q, k, v = t["q"], t["k"], t["v"]
    if c["mask"] in ("", "k <= q"):

        def cudnn() -> Any:
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return F.scaled_dot_product_attention(q, k, v, is_causal=bool(c["mask"]), enable_gqa=c["heads"] != c["kv_heads"])

        found["cudnn"] = cudnn
    try:
        from flash_attn.cute import flash_attn_func

        window = {"": {}, "k <= q": {"causal": True}, "(k <= q) & (q - k < 1024)": {"window_size": (1023, 0)},
                  "(q - k <= 128) & (k - q <= 128)": {"window_size": (128, 128)}}.get(c["mask"])  # fmt: skip
        if window is not None:
            swapped = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
            found["fa4"] = lambda: flash_attn_func(*swapped, **window)
    except ImportError:
        pass
    if os.environ.get("FLEX") and c["mask"]:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        code = compile(c["mask"], "mask", "eval")

        def keep(b: Any, h: Any, i: Any, j: Any) -> Any:
            return eval(code, {"q": i, "k": j, "b": b, "h": h})

        block = create_block_mask(keep, 1, 1, c["q_len"], c["kv_len"], device="cuda")
        compiled = torch.compile(flex_attention)
        found["flex"] = lambda: compiled(q, k, v, block_mask=block)
    return found


def time_all(metas: dict[str, Any], wanted: str) -> int:
    """Groups of kernels against each other and the peers."""
    print(torch.__version__, "cudnn", torch.backends.cudnn.version(), torch.cuda.get_device_name(), state(), flush=True)
    groups: dict[str, list[str]] = {}
    for name, meta in metas.items():
        if meta["group"] == "timed" and wanted in name:
            groups.setdefault(name.split("/")[0], []).append(name)
    results: dict[str, Any] = {}
    for title, names in groups.items():
        c = metas[names[0]]["case"]
        t = tensors_of(metas[names[0]], 1)
        for name in names:
            good, details = verdict(metas[name], 2, heads=1)
            if not good:
                print("FAIL", name, details, flush=True)
        functions = {n.split("/")[1]: Kernel(metas[n]).bind(t) for n in names}
        others = peers(c, t)
        times = timed({**functions, **others}, 40 if c["q_len"] <= 4096 else 30)
        mask = mask_of(c, 0, 0)
        share = 1.0 if mask is None else mask.double().mean().item()
        flops = 2 * c["batch"] * c["heads"] * c["q_len"] * c["kv_len"] * (c["head_dim"] + c["value_dim"]) * share
        medians = {n: statistics.median(v) for n, v in times.items()}
        best = min((medians[n] for n in others), default=None)
        for name, ms in sorted(medians.items(), key=lambda x: x[1]):
            rate = flops / ms / 1e9
            low, high = times[name][len(times[name]) // 4], times[name][3 * len(times[name]) // 4]
            ratio = f"{best / ms:.3f} x best peer" if best and name not in others else ""
            print(f"{title:26s} {name:10s} {ms * 1e3:9.1f} us [{low * 1e3:.1f}..{high * 1e3:.1f}] {rate:6.1f} TFLOP/s {ratio}", flush=True)
            results[f"{title}/{name}"] = {"ms": ms, "tflops": rate, "quartiles": [low, high]}
        print("   ", state(), flush=True)
    write("time", results)
    return 0


def main(arguments: list[str]) -> int:
    """See the module's text."""
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    metas = json.loads((HERE / "meta.json").read_text())
    what, rest = arguments[0], arguments[1:]
    seed = int(rest[rest.index("--seed") + 1]) if "--seed" in rest else 0
    if what == "check":
        return check(metas, [a for a in rest if not a.startswith("--") and not a.isdigit()], seed)
    return time_all(metas, rest[0] if rest else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
