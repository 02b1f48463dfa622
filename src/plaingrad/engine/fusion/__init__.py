"""Generated code for what runs most: hooks of scalar arithmetic, and runs of it recorded in one step.

In come a level's table, tape and sweep, or a run of arithmetic that the rewriter has found; out go functions
compiled from templates. Called when a level opens (`hot_hooks`) and by fused code at its first execution (`fused`).
"""
