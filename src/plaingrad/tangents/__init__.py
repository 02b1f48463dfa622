"""Tangents and cotangents: the zeros, structural tangents, postponed ones, and projection onto a primal's space."""

from plaingrad.tangents.project import project, unbroadcast
from plaingrad.tangents.types import NoTangent, Tangent, Thunk, ZeroTangent, is_zero, unthunk

__all__ = ["NoTangent", "Tangent", "Thunk", "ZeroTangent", "is_zero", "project", "unbroadcast", "unthunk"]
