"""Reductions that start from the true neutral element: ``te.max`` starts from the lowest finite number, which a row of -inf would show."""

from __future__ import annotations

from typing import Any

from tvm import te, tirx

#: max with -inf as its neutral element
maximum: Any = te.comm_reducer(lambda a, b: tirx.max(a, b), lambda dtype: tirx.const(float("-inf"), dtype), name="maximum")
