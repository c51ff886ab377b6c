"""Build the kernels of ``wgmma_cases`` into .gpu/ (cubins, arrays, meta.json) for ``run_wgmma.py`` on a machine with a GPU and no TVM.

Usage: check_wgmma.py [group ...] [--only TEXT]
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from wgmma_cases import GROUPS, Case

from tvm_stof.cascade import FusedProgram, program_of
from tvm_stof.codegen.wgmma import Warpgroups
from tvm_stof.codegen.wgmma.cubin import Cubin, assemble, cuda_text, parameters
from tvm_stof.expr import Expr, call, const, index
from tvm_stof.problems.attention import Attention

OUT = Path(__file__).resolve().parents[2] / ".gpu"


class Term:
    """Records Python arithmetic as an expression tree."""

    def __init__(self, e: Expr) -> None:
        self.e = e


def _operator(op: str, swap: bool = False) -> Any:
    def method(self: Term, other: Any) -> Term:
        pair = (self.e, other.e if isinstance(other, Term) else const(other))
        return Term(call(op, *(pair[::-1] if swap else pair)))

    return method


for _name, _op in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floordiv", "mod": "mod",
                   "and": "and", "or": "or"}.items():  # fmt: skip
    setattr(Term, f"__{_name}__", _operator(_op))
    setattr(Term, f"__r{_name}__", _operator(_op, swap=True))
for _op in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Term, f"__{_op}__", _operator(_op))


def traced(text: str) -> Expr:
    """The expression tree of a mask or score text."""
    names = {"q": Term(index("i")), "k": Term(index("j")), "b": Term(index("b")), "h": Term(index("h")), "x": Term(Expr("prologue")),
             "tanh": lambda t: Term(call("tanh", t.e))}  # fmt: skip
    return eval(text, {"__builtins__": {}}, names).e  # type: ignore[no-any-return]


def program_for(c: Case) -> FusedProgram:
    """The fused program of a case: dense attention with its predicate, value map and dtype put in."""
    sizes = {k: c[k] for k in ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "value_dim")}
    program = program_of(Attention(**sizes, dtype="float16", return_lse=True))
    if c["mask"]:
        program = dataclasses.replace(program, predicate=traced(c["mask"]))
    if c["score"]:
        program = dataclasses.replace(program, value=_typed(traced(c["score"])))
    return program if c["dtype"] == "float16" else _with_dtype(program, c["dtype"])


def _typed(e: Expr) -> Expr:
    """Positions as float32 wherever they meet the score."""
    if e.op == "index" or (e.op == "sub" and all(a.op == "index" for a in e.operands())):
        return Expr("cast", ("float32", e))
    return e.rebuild(_typed)


def _with_dtype(program: FusedProgram, dtype: str) -> FusedProgram:
    tensors = tuple(dataclasses.replace(t, dtype=dtype) if t.dtype == "float16" else t for t in program.tensors)

    def cast(e: Expr) -> Expr:
        e = e.rebuild(cast)
        return Expr("cast", (dtype, e.args[1])) if e.op == "cast" and e.args[0] == "float16" else e

    outputs = tuple(dataclasses.replace(o, value=cast(o.value)) for o in program.outputs)
    return dataclasses.replace(program, tensors=tensors, outputs=outputs)


def block_lists(c: Case) -> tuple[dict[str, np.ndarray[Any, Any]], list[int]]:
    """Arrays as ``codegen.visitors.block_arrays`` makes them, from the whole mask (small cases) or block by block."""
    block_q, block_k = c["decisions"]["block_q"], c["decisions"]["block_k"]
    rows, cols = -(-c["q_len"] // block_q), -(-c["kv_len"] // block_k)
    code = compile(c["mask"], "mask", "eval")
    by_b, by_h = (bool(re.search(rf"\b{n}\b", c["mask"])) for n in "bh")
    groups = [(b, h) for b in range(c["batch"] if by_b else 1) for h in range(c["heads"] if by_h else 1)]
    row_ptr, col, whole, tile, tiles, known = [0], [], [], [], [], {}
    bits = c["decisions"].get("test") == "bits"
    for b, h in groups:
        for r in range(rows):
            q = np.arange(r * block_q, min((r + 1) * block_q, c["q_len"]), dtype=np.int64)[:, None]
            k = np.arange(cols * block_k, dtype=np.int64)[None]
            keep = np.zeros((block_q, cols * block_k), bool)
            keep[: len(q)] = eval(code, {"q": q, "k": k, "b": b, "h": h}) & (k < c["kv_len"])
            for j in range(cols):
                part = keep[:, j * block_k : (j + 1) * block_k]
                if not part.any():
                    continue
                full = bool(part[: len(q)].all())
                col.append(j)
                whole.append(full)
                key = part.tobytes() if bits and not full else None
                if key is not None and key not in known:
                    known[key] = len(tiles)
                    tiles.append(part.astype(np.uint8))
                tile.append(known.get(key, 0))
            row_ptr.append(len(col))
    arrays: dict[str, Any] = {"row_ptr": np.array(row_ptr, np.int32), "col": np.array(col or [0], np.int32), "whole": np.array(whole or
    [0], np.uint8)}
    if bits:
        arrays["tile"] = np.array(tile or [0], np.int32)
        arrays["tiles"] = np.array(tiles) if tiles else np.zeros((1, block_q, block_k), np.uint8)
    return arrays, [(c["heads"] if by_h else 1) * by_b, int(by_h)]


def build(name: str, c: Case, old: dict[str, Any] | None) -> tuple[dict[str, Any], Cubin | None]:
    """Emit and compile one case: its meta data, and the machine code (None where text and case are the old ones)."""
    program = program_for(c)
    lists, strides = block_lists(c) if c["blocks"] else ({}, [])
    emitter = Warpgroups(program, c["decisions"], program.tensors, lists, strides)
    kernel = emitter.emit()
    text = cuda_text(kernel.module)
    sha = hashlib.sha256(text.encode()).hexdigest()
    if old is not None and old["sha"] == sha and old["case"] == json.loads(json.dumps(c)):
        return old, None
    cubin = assemble(text)
    stem = re.sub(r"\W+", "_", name)
    (OUT / f"{stem}.cubin").write_bytes(cubin.code)
    names = list(emitter.lists)
    np.savez(OUT / f"{stem}.npz", **dict(zip(names, kernel.prepared)))
    entry, params = parameters(text)
    maps = {n: dataclasses.asdict(boxed.map(tile)) for n, (boxed, tile) in emitter.moved.items()}
    meta = {"stem": stem, "kernel": entry, "params": params, "maps": maps, "grid": emitter.grid, "threads": emitter.plan.threads,
            "shared": emitter.plan.shared_bytes, "case": c, "arrays": names, "tensors": [dataclasses.asdict(t) for t in program.tensors],
            "registers": cubin.registers, "sha": sha}  # fmt: skip
    return meta, cubin


def main(arguments: list[str]) -> int:
    """Build what was asked for; 1 where the compiler spilled or serialised."""
    only = arguments[arguments.index("--only") + 1] if "--only" in arguments else ""
    wanted = [a for a in arguments if a in GROUPS] or list(GROUPS)
    OUT.mkdir(exist_ok=True)
    path = OUT / "meta.json"
    metas = json.loads(path.read_text()) if path.exists() else {}
    bad = 0
    for group in wanted:
        for name, c in GROUPS[group].items():
            if only not in name:
                continue
            meta, cubin = build(name, c, metas.get(name))
            metas[name] = {**meta, "group": group}
            if cubin is None:
                continue
            bad += not cubin.clean
            print("ok " if cubin.clean else "BAD", name, "" if cubin.clean else f"{cubin.spills} {cubin.serialised}", flush=True)
            path.write_text(json.dumps(metas, indent=1))
    print(f"{len(metas)} kernels, {sum(f.stat().st_size for f in OUT.iterdir()) / 2**20:.1f} MiB in {OUT}, {bad} not clean")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
