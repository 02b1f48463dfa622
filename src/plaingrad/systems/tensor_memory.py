"""Where tensors of PyTorch lie: in memory that NumPy may have as well, or that other tensors have."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def version_of(x: Any) -> int:
    """How often the memory of a tensor was written; a tensor of inference mode does not count."""
    return 0 if x.is_inference() else x._version


def numbers_of(x: Any) -> np.ndarray:
    """The numbers of a tensor as an array, in its memory where no mark is to be carried out."""
    return x.detach().resolve_conj().resolve_neg().numpy()


def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one type hold the same bytes: nan is nan, and -0.0 is not 0.0."""
    if a.flags.c_contiguous and b.flags.c_contiguous:
        return np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8))
    return a.tobytes() == b.tobytes()


def is_lent(x: Any) -> bool:
    """Whether `x` is a tensor in memory that is not, or not alone, PyTorch's: an array of NumPy may have it as well."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(x, torch.Tensor) or x.layout is not torch.strided:
        return False
    if x.device.type != "cpu" or not x.numel():
        return False
    try:
        return not x.untyped_storage().resizable()
    except (RuntimeError, NotImplementedError):  # a tensor of torch.func, without memory
        return False


def parts_in_memory(x: Any) -> tuple[Any, ...]:
    """The tensors of entries that a sparse tensor is made of; none of another one."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(x, torch.Tensor) or x.layout is torch.strided:
        return ()
    if x.layout is torch.sparse_coo:
        return (x.detach()._values(),)
    return () if x.layout is torch._mkldnn else (x.detach().values(),)


def memory_of(x: Any) -> int:
    """Where the memory of a tensor begins; 0 if it has none, or no plain one."""
    return x.untyped_storage().data_ptr() if x.layout is sys.modules["torch"].strided else 0
