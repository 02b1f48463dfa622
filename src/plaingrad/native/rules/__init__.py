"""Derivatives of what programs call: scalar functions, and functions and methods of arrays.

In comes a statement that calls, and the transform that meets it, out go statements. Called by both modes and `loops`.
"""
