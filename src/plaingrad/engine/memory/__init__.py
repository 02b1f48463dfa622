"""Data of derivatives: memory of arrays, slots, the tape and the reverse pass over it, gradients in structures.

In come arrays, indices and steps; out go owners of memory, shadows of it, cotangents. It knows nothing of levels.
Called by every room above; much of it is rewritten to run at the level around (`REWRITABLE` in `calls.calls`).
"""
