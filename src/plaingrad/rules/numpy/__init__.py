"""Facts about NumPy's functions, methods and ufunc methods. Elementwise ufuncs are in `rules.elementwise`."""

from plaingrad.rules.numpy import creation, fourier, indexing, linalg, products, reductions, shapes, ufuncs

__all__ = ["creation", "fourier", "indexing", "linalg", "products", "reductions", "shapes", "ufuncs"]
