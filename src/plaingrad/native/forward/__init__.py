"""Forward mode: from a program to one that computes tangents beside its values, one at a time or in chunks.

In comes a lowered program, or a derived one (for derivatives of higher order), out goes a program. Called by `compile`.
"""
