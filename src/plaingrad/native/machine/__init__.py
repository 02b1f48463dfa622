"""What is particular to this machine: its C library, and machine code kept in the folder of the disk cache.

In comes a key or a compiled function, out goes what was kept, if it may be trusted. Called by `runtime` and `compile`.
"""
