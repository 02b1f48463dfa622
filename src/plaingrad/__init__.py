"""plaingrad: exact, fast derivatives of ordinary Python."""

import os as _os
from importlib import import_module as _import_module
from typing import Any as _Any

from plaingrad import rules as _shipped  # noqa: F401
from plaingrad.api import (
    checkpoint,
    checkpoint_sequence,
    checkpointed,
    compiled_jacobian,
    derivative,
    forwarddiff,
    free_workspace,
    grad,
    hessian,
    hook,
    hvp,
    info,
    jacobian,
    jvp,
    linearize,
    nestlevel,
    prefer_mode,
    show,
    sparse_hessian,
    sparse_jacobian,
    sparsity,
    taylor,
    tiers_chosen,
    value_and_grad,
    vhp,
    vjp,
    why_not_native,
    wirtinger,
)
from plaingrad.errors import (
    AliasError,
    ArgumentError,
    ChangedSinceError,
    CheckError,
    CheckpointError,
    CotangentError,
    MissingRuleError,
    NativeError,
    NonScalarOutputError,
    NotHolomorphicError,
    PatternError,
    PlaingradError,
    RoundTripError,
    RuleError,
    TangentError,
    UnsupportedPythonError,
)
from plaingrad.extend import (
    build_frule,
    build_rrule,
    defined_as,
    frule,
    linear_rule,
    nondifferentiable,
    remove_rule,
    rrule,
    rules,
    scalar_rule,
    stop_gradient,
)
from plaingrad.tangents import (
    Dual,
    NoTangent,
    Tangent,
    Thunk,
    ZeroTangent,
    accumulate,
    project_to,
    tangent_type,
    unthunk,
    zero_tangent,
)

__version__ = "0.1.0"

__all__ = [
    "AliasError",
    "ArgumentError",
    "ChangedSinceError",
    "CheckError",
    "CheckpointError",
    "CotangentError",
    "Dual",
    "MissingRuleError",
    "NativeError",
    "NoTangent",
    "NonScalarOutputError",
    "NotHolomorphicError",
    "PatternError",
    "PlaingradError",
    "RoundTripError",
    "RuleError",
    "Tangent",
    "TangentError",
    "Thunk",
    "UnsupportedPythonError",
    "ZeroTangent",
    "accumulate",
    "build_frule",
    "build_rrule",
    "checkpoint",
    "checkpoint_sequence",
    "checkpointed",
    "compiled_jacobian",
    "defined_as",
    "derivative",
    "forwarddiff",
    "free_workspace",
    "frule",
    "grad",
    "hessian",
    "hook",
    "hvp",
    "info",
    "jacobian",
    "jvp",
    "linear_rule",
    "linearize",
    "nestlevel",
    "nondifferentiable",
    "prefer_mode",
    "project_to",
    "remove_rule",
    "rrule",
    "rules",
    "scalar_rule",
    "show",
    "sparse_hessian",
    "sparse_jacobian",
    "sparsity",
    "stop_gradient",
    "tangent_type",
    "taylor",
    "tiers_chosen",
    "unthunk",
    "value_and_grad",
    "vhp",
    "vjp",
    "why_not_native",
    "wirtinger",
    "zero_tangent",
]


def __getattr__(name: str) -> _Any:
    """`plaingrad.testing`, imported when it is asked for."""
    if name == "testing":
        return _import_module("plaingrad.testing")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "testing", *(name for name in globals() if name.startswith("__"))])


if _os.environ.get("PLAINGRAD_CHECK", "0") not in ("", "0"):
    from plaingrad.testing.checks import always as _always

    _always()
