"""Stores of the outputs once the results of a row are final."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import tirx

from ...cascade.program import FusedProgram
from ...expr import Expr
from ..lower import lower
from .loops import store, vectors
from .stages import RowState


def store_outputs(program: FusedProgram, buffers: Mapping[str, Any], at: Mapping[str, Any], state: RowState, row: Any, width: int) -> None:
    """tensor[at] = value of every output that is not streamed, for one row of ``state``; ``at`` has the grid positions."""
    for output in program.outputs:
        inner = output.axes[0] if output.axes else None
        dtype = program.tensor(output.tensor).dtype

        def write(c: Any, _: Any, output: Any = output, inner: Any = inner, dtype: str = dtype) -> None:
            def leaf(e: Expr, operands: tuple[Any, ...]) -> Any:
                if e.op == "index":
                    return c if inner is not None and e.args[0] == inner.name else at[e.args[0]]
                if e.op == "load":
                    return buffers[str(e.args[0])][operands]
                name = e.args[0]
                return state.scalars[name][row] if name in state.scalars else state.products[name][row, c]

            value = lower(output.value, leaf)
            where = [lower(a, leaf, "int32") for a in output.at]
            store(buffers[output.tensor], value if dtype == "float32" else tirx.Cast(dtype, value), *where)

        if inner is None:
            write(0, 0)
        else:
            vectors(inner.extent, width if inner.extent % width == 0 else 1, write)
