"""Questions about a program, which change nothing: activity, memory, effects of callees, shapes.

In comes a program, out go facts about it. Called by the passes and by both modes.
"""
