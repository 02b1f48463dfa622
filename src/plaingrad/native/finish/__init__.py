"""Passes on derived programs before they are compiled: single assignment, dead code, expressions.

In comes a derived program, out goes one that computes the same with less to compile. Called by `compile`.
"""
