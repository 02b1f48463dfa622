"""What derived programs call when they run: helpers, workspace, products, and how they are declared to Numba.

Compiled once a machine and linked into derived programs. Called by these; the rooms above refer to it by name.
"""
