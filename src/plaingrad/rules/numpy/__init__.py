"""Facts about NumPy's functions, methods and ufunc methods. Elementwise ufuncs are in `rules.elementwise`."""

from plaingrad.rules.numpy import (
    creation,
    dunders,
    entire,
    fourier,
    indexing,
    interpolation,
    linalg,
    masked,
    products,
    random_numbers,
    reductions,
    refused,
    shapes,
    ufuncs,
)  # fmt: skip
from plaingrad.rules.numpy.names import enter_implementations

enter_implementations()

__all__ = [
    "creation", "dunders", "entire", "fourier", "indexing", "interpolation", "linalg", "masked", "products", "random_numbers", "reductions", "refused", "shapes", "ufuncs",
]  # fmt: skip
