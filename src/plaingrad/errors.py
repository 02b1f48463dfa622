"""Every exception that plaingrad raises on purpose.

A message has four parts: what and where (the user's file and line), why, what to do, and where to read more.
"""

from __future__ import annotations


class PlaingradError(Exception):
    """Base of all errors raised by plaingrad."""


class MissingRuleError(PlaingradError, NotImplementedError):
    """A value that depends on the inputs reached code that has neither Python bytecode nor a rule."""


class AliasError(PlaingradError):
    """One array is reachable under two names, and one was written: an argument and a global, a row and a column."""


class ChangedSinceError(PlaingradError):
    """An array that a pullback needs was changed between the call and the pullback."""


class RoundTripError(PlaingradError):
    """A number that depends on the inputs left as text, bytes or digits and came back."""


class TruncationWarning(UserWarning):
    """A whole number that was made of a number that depends on the inputs became a time: the derivative ends there."""


class CheckpointError(PlaingradError, RuntimeError):
    """A checkpointed function did something else when it was run again, so its derivative cannot be known."""


class ArgumentError(PlaingradError, TypeError):
    """An argument to be differentiated has no tangent (a string, say), or does not exist."""


class NonScalarOutputError(PlaingradError, TypeError):
    """`grad` needs one real number; the function returned something else."""


class CotangentError(PlaingradError, ValueError):
    """A cotangent has the wrong structure, shape or dtype for the output it belongs to."""


class TangentError(PlaingradError, ValueError):
    """A tangent has the wrong structure, shape or dtype for the argument it belongs to."""


class NotHolomorphicError(PlaingradError, ValueError):
    """A complex derivative was asked for where it does not exist: the function is not holomorphic."""


class PatternError(PlaingradError, ValueError):
    """A sparsity pattern that was given leaves out entries of the derivative."""


class RuleError(PlaingradError):
    """A rule returned something that is no cotangent of its argument."""


class CheckError(PlaingradError, AssertionError):
    """In checked mode: a derivative did not do what a plain call does, or its two modes disagree."""


class UnsupportedPythonError(PlaingradError, RuntimeError):
    """This CPython version, or one of its instructions, is unknown to the rewriter."""


class NativeError(PlaingradError):
    """A function cannot be differentiated natively: Numba cannot compile it, or a construct in it has no rule."""
