"""Derived programs made, compiled by Numba, kept in memory and on disk.

In comes a function with argument types and the name of a derivative; out goes a compiled function. Called by the
border.
"""
