"""The front end: from a Python function or dispatcher and argument types to a program.

Numba's typed intermediate representation is translated statement by statement, its graph becomes a tree, iteration
becomes counted loops. It also knows what functions read from outside and what compiled code means. Called by `compile`
and `lowering`.
"""
