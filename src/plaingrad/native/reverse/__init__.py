"""Reverse mode: from a program to one that runs forward, keeping what the way back needs, and then backward.

In comes a lowered program, out goes a program, or the two programs of its sweeps. Called by `compile`.
"""
