"""Functions between plaingrad and PyTorch: each is one entry for the other, and derivatives compose to any order.

Tensors, functions and modules of PyTorch may stand in a differentiated function without any of this.
"""

from plaingrad.torch.functions import function, inside

__all__ = ["function", "inside"]
