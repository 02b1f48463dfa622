"""Diagnosis: what a derivative does, told by the user's lines: not finite, without influence, slow, large.

In comes a function with arguments; out come objects that print what was found. The functions run at levels of this
room's own (`observed`), which look at every operation; other levels know nothing of it. Called by users, by the command
line, by `debug=True` of the operators, and by `testing`.
"""

from plaingrad.diagnosis.debugging import debugged
from plaingrad.diagnosis.explanation import Explanation, explain
from plaingrad.diagnosis.profiling import Profile, profile
from plaingrad.diagnosis.tape_memory import TapeSize, tape_size

__all__ = ["Explanation", "Profile", "TapeSize", "debugged", "explain", "profile", "tape_size"]
