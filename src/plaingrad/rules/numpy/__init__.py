"""Facts about NumPy's functions, methods and ufunc methods. Elementwise ufuncs are in `rules.elementwise`."""

from plaingrad import rulebook
from plaingrad.rules.numpy import (
    creation,
    decompositions,
    diagonals,
    dunders,
    einsum,
    entire,
    factors,
    indexing,
    interpolation,
    joining,
    linalg,
    norms,
    order_statistics,
    products,
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

# NumPy imports these modules of its own when a program asks for them; together they take a fourth of its time.
WAITING = {
    "fourier": ("numpy.fft",),
    "masked": ("numpy.ma", "numpy.ma.core"),
    "random_numbers": ("numpy.random._generator", "numpy.random.mtrand"),
}


def wait() -> None:
    """Let the rulebook enter the rules of transforms, masked arrays and random numbers when these are met."""
    rulebook.files_when_met(__name__, WAITING)


__all__ = [
    "creation", "decompositions", "diagonals", "dunders", "einsum", "entire", "factors", "indexing",
    "interpolation", "joining", "linalg", "norms", "order_statistics", "products",
    "reductions", "refused", "shapes", "sorting", "ufuncs", "walks", "writing",
]  # fmt: skip
