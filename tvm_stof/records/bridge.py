"""Between a record and MetaSchedule, one record at a time: decisions <-> annotated definition <-> TuningRecord JSON <-> replayed schedule.

Decisions of a fused family stand as annotations ``stof.<name>`` on the definition's output block (on the root block, TVM's copy-on-write
would write into the user's own module). A sampled text is its index, with the texts beside it under ``stof.<name>.texts``. Nothing here
needs a rule or a search.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm.ir import IRModule
from tvm.s_tir import SBlock, Schedule
from tvm.s_tir.meta_schedule.arg_info import ArgInfo
from tvm.s_tir.meta_schedule.database import TuningRecord, Workload
from tvm.target import Target
from tvm.tirx import PrimFunc, Var, decl_buffer
from tvm_ffi.structural import structural_map, structural_walk

from .. import canonical
from ..codegen.kernel import Kernel
from ..definitions import definition
from ..errors import RecordError, explain
from ..problems import Problem

Decisions = dict[str, int | str]
Trace = list[Any]
PREFIX = "stof."
TEXTS = ".texts"
#: What MetaSchedule's own database writes for a candidate that failed.
FAILED_SECONDS = 1e10


def output_block(module: IRModule) -> str:
    """Name of the block decisions stand on: the definition's last one."""
    names: list[str] = []
    structural_walk(module["main"].body, (SBlock, lambda block: names.append(str(block.name_hint))))
    inner = [name for name in names if name != "root"]
    if not inner:
        raise RecordError(explain("a definition without blocks cannot carry decisions", got=names))
    return inner[-1]


def decisions(module: IRModule) -> Decisions:
    """The decisions a module is annotated with; empty for a plain or stock-scheduled definition."""
    found: dict[str, Any] = {}

    def visit(block: Any) -> None:
        found.update({str(k)[len(PREFIX) :]: v for k, v in block.annotations.items() if str(k).startswith(PREFIX)})

    structural_walk(module["main"].body, (SBlock, visit))
    texts = {k[: -len(TEXTS)]: str(v).split("|") for k, v in found.items() if k.endswith(TEXTS)}
    plain = {k: v for k, v in found.items() if not k.endswith(TEXTS)}
    return {k: texts[k][int(v)] if k in texts else str(v) if isinstance(v, str) else int(v) for k, v in plain.items()}


def annotate(module: IRModule, chosen: Mapping[str, int | str]) -> Schedule:
    """A schedule of the definition that carries these decisions as constants."""
    schedule = Schedule(module)
    block = schedule.get_sblock(output_block(module))
    for name, value in chosen.items():
        schedule.annotate(block, PREFIX + name, value)
    return schedule


def to_trace(trace: Any, module: IRModule, seconds: Sequence[float] | None, target: Mapping[str, Any]) -> Trace:
    """Plain JSON of the TuningRecord that MetaSchedule would store for this trace (failed candidates included)."""
    record = TuningRecord(trace, _workload(module), list(seconds or [FAILED_SECONDS]), Target(dict(target)), arguments(module))
    trace_json: Trace = plain(record.as_json())
    return trace_json


def plain(data: Any) -> Any:
    """TVM's JSON with its integers as Python's."""
    return json.loads(json.dumps(data, default=lambda v: v.value))


def arguments(module: IRModule) -> list[Any]:
    """The argument descriptions MetaSchedule keeps with a record."""
    return list(ArgInfo.from_prim_func(module["main"]))


def tuning_record(trace: Trace, module: IRModule) -> TuningRecord:
    """The TuningRecord of stored JSON, on a definition built now; RecordError when it does not fit."""
    try:
        return TuningRecord.from_json(trace, _workload(module))
    except Exception as error:
        raise RecordError(explain("a trace that TVM does not read", got=_first_line(error))) from error


def apply(trace: Trace, module: IRModule) -> Schedule:
    """Replay a stored trace on a definition; RecordError when an instruction does not apply."""
    schedule = Schedule(module)
    try:
        tuning_record(trace, module).trace.apply_to_schedule(schedule, remove_postproc=False)
    except RecordError:
        raise
    except Exception as error:
        raise RecordError(explain("a trace that does not apply to its problem's definition", got=_first_line(error))) from error
    return schedule


def replay(problem: Problem, chosen: Mapping[str, int | str], trace: Trace | None) -> Schedule:
    """The schedule a record means, from its problem alone.

    Raises RecordError when the trace does not apply, or says other decisions than the record does.
    """
    module = definition(problem)
    if trace is None:
        return Schedule(module) if chosen.get("family") == "unfused" else annotate(module, chosen)
    schedule = apply(trace, module)
    found = decisions(schedule.mod) or {"family": "unfused"}
    if found != dict(chosen):
        raise RecordError(explain("trace and decisions disagree", got=f"trace {found}", accepted=f"decisions {dict(chosen)}"))
    return schedule


def unfused_kernel(problem: Problem, module: IRModule) -> Kernel:
    """A scheduled (or plain) definition as a kernel.

    Stored mask bits move behind the outputs, where prepared arrays stand; parameters ask for no more than their element's own alignment
    (TVM would assume 64 bytes, and fault on a NumPy array).
    """
    func = module["main"]
    count = len(problem.inputs())
    extra = len(func.params) - count - len(problem.outputs())
    params = [(p, decl_buffer(p.shape, p.dtype, p.name, data_alignment=_item_size(p))) for p in func.params]

    def loosen(var: Any) -> Any:
        return next((new for old, new in params if old.same_as(var)), var)

    loose = [new for _, new in params]
    moved = [*loose[:count], *loose[count + extra :], *loose[count : count + extra]]
    body = structural_map(func.body, (Var, loosen))
    prepared = (_mask_bits(problem),) if extra else ()
    return Kernel(IRModule({"main": PrimFunc(moved, body, func.ret_type, attrs=func.attrs)}), prepared)


def _item_size(buffer: Any) -> int:
    return int(np.dtype(str(buffer.dtype)).itemsize)


def _mask_bits(problem: Any) -> npt.NDArray[np.uint8]:
    """uint8 [groups, q_len, kv_len], a group for each (b, h) the mask differs for."""
    mask = problem.bound_mask
    heads = range(problem.heads if "h" in mask.depends_on else 1)
    batch = range(problem.batch if "b" in mask.depends_on else 1)
    q, k = np.arange(problem.q_len)[:, None], np.arange(problem.kv_len)[None, :]
    full = (problem.q_len, problem.kv_len)
    return np.stack([np.broadcast_to(mask(q, k, b, h), full) for b in batch for h in heads]).astype(np.uint8)


def trace_digest(trace: Trace | None) -> str | None:
    """SHA-256 of the instructions and their decisions alone, so that the same candidate measured twice has one digest."""
    return None if trace is None else canonical.key(trace[0])


def source_digest(module: IRModule) -> str:
    """SHA-256 of a generated module's TVMScript text: equal text on every machine and Python."""
    return hashlib.sha256(module.script().encode("utf-8")).hexdigest()


@functools.lru_cache(maxsize=16)
def _workload(module: IRModule) -> Workload:
    return Workload(module)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
