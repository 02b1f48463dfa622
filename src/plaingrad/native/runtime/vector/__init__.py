"""Vectors: several numbers at once, in the registers of the processor, with the bits of the C library.

Called by the helpers of derived programs and by loops that compute several iterations at once.
"""
