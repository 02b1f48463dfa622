"""Interpolators, in values and in queries."""

import numpy as np
from scipy import interpolate

from benchmarks.ordinary.program import program

RANDOM = np.random.default_rng(6)
KNOTS = np.linspace(0.0, 10.0, 1000)
VALUES = RANDOM.normal(size=1000)
QUERIES = RANDOM.uniform(0.0, 10.0, 100_000)
GRID = np.linspace(0.0, 1.0, 100)
TABLE = RANDOM.normal(size=(100, 100))
PLACES = (
    RANDOM.integers(0, 99, (50_000, 2)) + RANDOM.uniform(0.2, 0.8, (50_000, 2))
) / 99.0  # inside of cells
CENTRES = RANDOM.uniform(0.0, 1.0, (300, 2))
HEIGHTS = RANDOM.normal(size=300)


@program("CubicSpline in 1000 values, 10^5 queries", VALUES, goal=4)
def cubic(y):
    return np.sum(interpolate.CubicSpline(KNOTS, y)(QUERIES) ** 2)


@program("CubicSpline in 10^5 queries", QUERIES, goal=4)
def cubic_queries(x):
    return np.sum(interpolate.CubicSpline(KNOTS, VALUES)(x) ** 2)


@program("PchipInterpolator in 1000 values, 10^5 queries", VALUES, goal=4)
def pchip(y):
    return np.sum(interpolate.PchipInterpolator(KNOTS, y)(QUERIES) ** 2)


@program("make_interp_spline in 1000 values, 10^5 queries", VALUES, goal=4)
def spline(y):
    return np.sum(interpolate.make_interp_spline(KNOTS, y, k=3)(QUERIES) ** 2)


@program("RegularGridInterpolator in 100 x 100 values", TABLE, goal=4)
def regular(values):
    return np.sum(interpolate.RegularGridInterpolator((GRID, GRID), values)(PLACES) ** 2)


@program("RegularGridInterpolator in 50,000 places", PLACES, goal=4)
def regular_places(places):
    return np.sum(interpolate.RegularGridInterpolator((GRID, GRID), TABLE)(places) ** 2)


@program("RBFInterpolator in 300 values, 2000 places", HEIGHTS, goal=4)
def radial(values):
    return np.sum(interpolate.RBFInterpolator(CENTRES, values)(PLACES[:2000]) ** 2)
