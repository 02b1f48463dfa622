"""Passes on the user's program before it is differentiated: `prepare` has their order.

In comes a program from the front end, out goes one in which callees are inlined, and lists, tuples, rows and keys have
become numbers and arrays. Called by `compile`, and for the effects of callees by `analysis`.
"""
