"""Tangents and cotangents: the zeros, structural tangents, postponed ones, pairs, and the spaces they lie in."""

from plaingrad.tangents.project import project, unbroadcast
from plaingrad.tangents.spaces import (
    accumulate,
    explicit_tangent,
    has_tangent_space,
    project_to,
    zero_tangent,
)
from plaingrad.tangents.tangent_types import tangent_type
from plaingrad.tangents.types import Dual, NoTangent, Tangent, Thunk, ZeroTangent, is_zero, unthunk

__all__ = [
    "Dual",
    "NoTangent",
    "Tangent",
    "Thunk",
    "ZeroTangent",
    "accumulate",
    "explicit_tangent",
    "has_tangent_space",
    "is_zero",
    "project",
    "project_to",
    "tangent_type",
    "unbroadcast",
    "unthunk",
    "zero_tangent",
]
