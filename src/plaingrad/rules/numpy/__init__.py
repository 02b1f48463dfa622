"""Facts about NumPy's functions, methods and ufunc methods. Elementwise ufuncs are in `rules.elementwise`."""

from plaingrad.rules.numpy import (
    creation,
    decompositions,
    diagonals,
    dunders,
    einsum,
    entire,
    factors,
    fourier,
    indexing,
    interpolation,
    joining,
    linalg,
    masked,
    norms,
    order_statistics,
    products,
    random_numbers,
    reductions,
    refused,
    shapes,
    sorting,
    ufuncs,
    walks,
    writing,
)  # fmt: skip
from plaingrad.rules.numpy.names import enter_implementations

enter_implementations()

__all__ = [
    "creation", "decompositions", "diagonals", "dunders", "einsum", "entire", "factors", "fourier", "indexing",
    "interpolation", "joining", "linalg", "masked", "norms", "order_statistics", "products", "random_numbers",
    "reductions", "refused", "shapes", "sorting", "ufuncs", "walks", "writing",
]  # fmt: skip
