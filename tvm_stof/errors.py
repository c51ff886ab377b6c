"""Everything tvm_stof raises. Each text says what is wrong, the value got, what is accepted and the way out."""

from __future__ import annotations

from collections.abc import Iterable


def explain(what: str, *, got: object = None, accepted: object = None, way_out: str = "") -> str:
    """Compose an error text of the four parts every message of this package has.

    Examples
    --------
    >>> explain("heads must be a multiple of kv_heads", got="heads=6, kv_heads=4", accepted="kv_heads in 1, 2, 3, 6")
    'heads must be a multiple of kv_heads: got heads=6, kv_heads=4; accepted: kv_heads in 1, 2, 3, 6'
    """
    text = what
    if got is not None:
        text += f": got {got}"
    if accepted is not None:
        names = accepted if isinstance(accepted, str) or not isinstance(accepted, Iterable) else ", ".join(map(str, accepted))
        text += f"; accepted: {names}"
    if way_out:
        text += f". {way_out}"
    return text


class StofError(Exception):
    """Base of all errors of this package; every subclass is also the builtin that fits it."""


class CanonicalError(StofError, ValueError):
    """Data that is not the canonical form of any known object."""


class MaskError(StofError, ValueError):
    """A mask that cannot be built, parsed, traced or applied."""


class ScoreError(StofError, ValueError):
    """A score modification that cannot be built or applied."""


class ProblemError(StofError, ValueError):
    """A problem whose sizes, dtype or parts do not fit together."""


class CascadeRefused(StofError, ValueError):
    """A cascade of reductions that one pass cannot compute.

    Attributes
    ----------
    reduction : name of the reduction at fault.
    expression : its per-element function, as text.
    reason : one sentence.
    """

    def __init__(self, reduction: str, expression: str, reason: str) -> None:
        super().__init__(f"reduction {reduction!r} cannot be fused: {reason} (expression: {expression})")
        self.reduction, self.expression, self.reason = reduction, expression, reason


class UnsupportedPrimFunc(StofError, ValueError):
    """A PrimFunc with a construct the recogniser does not read; names the block and the construct."""


class UnsupportedTarget(StofError, ValueError):
    """A device this package has no emitter for, or a kernel that a device cannot run."""


class ArgumentError(StofError, TypeError):
    """An array given at call time with the wrong dtype, shape, layout or device."""


class RecordNotFound(StofError, LookupError):
    """No tuned record answers the problem on this device."""


class RecordError(StofError, ValueError):
    """A record that breaks the schema, or does not apply to its own problem."""


class StorageError(StofError, OSError):
    """A journal or schedule file that cannot be read, written or locked."""


class ReplayMismatch(StofError, ValueError):
    """A record that no longer gives what it gave when it was stored."""


class MissingDependency(StofError, ImportError):
    """An optional package is needed; the text has the command that installs it."""


class UsageError(StofError, ValueError):
    """A command or call whose arguments contradict each other."""
