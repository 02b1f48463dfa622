"""plaingrad: exact, fast derivatives of ordinary Python."""

from plaingrad import rules as _rules
from plaingrad.api import (
    derivative,
    forwarddiff,
    grad,
    hessian,
    hook,
    hvp,
    jacobian,
    jvp,
    linearize,
    nestlevel,
    prefer_mode,
    show,
    value_and_grad,
    vhp,
    vjp,
    wirtinger,
)
from plaingrad.errors import (
    AliasError,
    ArgumentError,
    ChangedSinceError,
    CotangentError,
    MissingRuleError,
    NonScalarOutputError,
    NotHolomorphicError,
    PlaingradError,
    RoundTripError,
    RuleError,
    TangentError,
    UnsupportedPythonError,
)
from plaingrad.extend import linear_rule, nondifferentiable, rrule, scalar_rule, stop_gradient
from plaingrad.tangents import NoTangent, Tangent, Thunk, ZeroTangent

__version__ = "0.1.0"

__all__ = [
    "AliasError",
    "ArgumentError",
    "ChangedSinceError",
    "CotangentError",
    "MissingRuleError",
    "NoTangent",
    "NonScalarOutputError",
    "NotHolomorphicError",
    "PlaingradError",
    "RoundTripError",
    "RuleError",
    "Tangent",
    "TangentError",
    "Thunk",
    "UnsupportedPythonError",
    "ZeroTangent",
    "derivative",
    "forwarddiff",
    "grad",
    "hessian",
    "hook",
    "hvp",
    "jacobian",
    "jvp",
    "linear_rule",
    "linearize",
    "nestlevel",
    "nondifferentiable",
    "prefer_mode",
    "rrule",
    "scalar_rule",
    "show",
    "stop_gradient",
    "value_and_grad",
    "vhp",
    "vjp",
    "wirtinger",
]

del _rules
