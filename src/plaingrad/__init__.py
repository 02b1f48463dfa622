"""plaingrad: exact, fast derivatives of ordinary Python."""

import os as _os
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from plaingrad.collecting import AtRest as _AtRest

with _AtRest():  # else it would look through everything that was just made, thirty times
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
        grad_wrt,
        hessian,
        hook,
        hvp,
        info,
        jacfwd,
        jacobian,
        jacrev,
        jvp,
        linearize,
        nestlevel,
        prefer_mode,
        ravel,
        show,
        sparse_hessian,
        sparse_jacobian,
        sparsity,
        taylor,
        tiers_chosen,
        tree_leaves,
        tree_map,
        updated,
        value_and_grad,
        vhp,
        vjp,
        vmap,
        watch,
        why_not_native,
        wirtinger,
    )
    from plaingrad.api.other_names import MODULES as _MODULES
    from plaingrad.api.other_names import said_of as _said_of
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
        NotFiniteError,
        NotHolomorphicError,
        PatternError,
        PlaingradError,
        RoundTripError,
        RuleError,
        TangentError,
        TapeMemoryError,
        UnsupportedPythonError,
        VerificationError,
    )
    from plaingrad.extend import (
        build_frule,
        build_rrule,
        defined_as,
        frule,
        linear_rule,
        nondifferentiable,
        number_class,
        primitives,
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

if _TYPE_CHECKING:
    from plaingrad.diagnosis import explain, profile, tape_size

_OF_DIAGNOSIS = ("explain", "profile", "tape_size")  # imported when they are asked for

__version__ = "0.2.0"

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
    "NotFiniteError",
    "NotHolomorphicError",
    "PatternError",
    "PlaingradError",
    "RoundTripError",
    "RuleError",
    "Tangent",
    "TangentError",
    "TapeMemoryError",
    "Thunk",
    "UnsupportedPythonError",
    "VerificationError",
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
    "explain",
    "forwarddiff",
    "free_workspace",
    "frule",
    "grad",
    "grad_wrt",
    "hessian",
    "hook",
    "hvp",
    "info",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linear_rule",
    "linearize",
    "nestlevel",
    "nondifferentiable",
    "number_class",
    "prefer_mode",
    "primitives",
    "profile",
    "project_to",
    "ravel",
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
    "tape_size",
    "taylor",
    "tiers_chosen",
    "tree_leaves",
    "tree_map",
    "unthunk",
    "updated",
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
    "watch",
    "why_not_native",
    "wirtinger",
    "zero_tangent",
]


def __getattr__(name: str) -> _Any:
    """A module that is imported when it is asked for; for names of other packages, what to use instead."""
    if name in _MODULES:
        return _import_module(f"plaingrad.{name}")
    if name in _OF_DIAGNOSIS:
        return getattr(_import_module("plaingrad.diagnosis"), name)
    raise AttributeError(_said_of(name), name=name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))])


if _os.environ.get("PLAINGRAD_CHECK", "0") not in ("", "0"):
    from plaingrad.testing.checks import always as _always

    _always()
