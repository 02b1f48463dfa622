"""Distances and rotations."""

import numpy as np
from scipy.spatial import distance, transform

from benchmarks.ordinary.program import program

RANDOM = np.random.default_rng(11)
POINTS = RANDOM.normal(size=(1000, 3))
OTHERS = RANDOM.normal(size=(1000, 3))


@program("cdist, 1000 x 1000", POINTS, goal=4)
def cdist(x):
    return np.sum(np.exp(-distance.cdist(x, OTHERS)))


@program("pdist, 1000", POINTS, goal=4)
def pdist(x):
    return np.sum(np.exp(-distance.pdist(x)))


@program("squared distances, 1000 x 1000", POINTS, goal=4)
def squared(x):
    return np.sum(np.exp(-distance.cdist(x, OTHERS, "sqeuclidean")))


@program("Rotation of 10^3 points by 10^3 vectors", POINTS, goal=4)
def rotation(v):
    return np.sum(transform.Rotation.from_rotvec(v).apply(OTHERS) ** 3)
