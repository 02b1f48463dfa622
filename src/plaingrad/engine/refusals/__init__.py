"""Refusals: errors that name the user's line, say why there is no derivative, and how to go on.

In comes what could not be followed; out goes an exception with the line to blame. Called wherever the engine gives
up.
"""
