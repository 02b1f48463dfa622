"""plaingrad: exact, fast derivatives of ordinary Python."""

from plaingrad import rules as _rules
from plaingrad.api import grad, hook, nestlevel, show, value_and_grad, vjp
from plaingrad.errors import (
    AliasError,
    ArgumentError,
    ChangedSinceError,
    CotangentError,
    MissingRuleError,
    NonScalarOutputError,
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
    "PlaingradError",
    "RoundTripError",
    "RuleError",
    "Tangent",
    "TangentError",
    "Thunk",
    "UnsupportedPythonError",
    "ZeroTangent",
    "grad",
    "hook",
    "linear_rule",
    "nestlevel",
    "nondifferentiable",
    "rrule",
    "scalar_rule",
    "show",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]

del _rules
