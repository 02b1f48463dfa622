"""Bundle adjustment: where cameras stood and what points they saw. The Jacobian of ADBench's problem BA, sparse.

A camera has eleven numbers: a rotation vector (3), its centre (3), focal length, principal point (2) and radial
distortion (2). Observation i of point i mod m by camera i mod n has a weight and a feature, the place of the point in
the picture; its two residuals are the weighted distance between that place and the projected point. A third residual
for each observation draws its weight to 1 or -1.

The two residuals of an observation depend on fifteen numbers, so the Jacobian has fifteen entries a row. They are the
Jacobian of a small function, compiled once by `plaingrad.compiled_jacobian` and called in a compiled loop over the
observations, which writes them where they belong.

    python examples/adbench/ba.py [FILE]
"""

import math
import sys
import timeit
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np

import plaingrad

DATA = Path(__file__).resolve().parents[1] / "data" / "adbench" / "ba1_n49_m7776_p31843.txt"
CAMERA, POINT = 11, 3  # numbers of each
INPUTS = CAMERA + POINT + 1  # of the residuals of one observation: camera, point, weight


class Scene(NamedTuple):
    """n cameras, m points, p observations.

    Attributes:
        cameras: (n, 11).
        points: (m, 3).
        weights: (p,).
        features: (p, 2).
    """

    cameras: np.ndarray
    points: np.ndarray
    weights: np.ndarray
    features: np.ndarray


class Sparse(NamedTuple):
    """A matrix by its rows that are not zero (CSR): `scipy.sparse.csr_array((data, indices, indptr), shape)`."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    shape: tuple[int, int]


def read(path: Path | str) -> Scene:
    """A problem: `n m p`, then one camera, one point, one weight and one feature, which all the others are equal to."""
    numbers = Path(path).read_text().split()
    n, m, p = map(int, numbers[:3])
    values = np.array([float(x) for x in numbers[3:]])
    camera, point, weight, feature = np.split(values, (CAMERA, CAMERA + POINT, INPUTS))
    return Scene(
        np.tile(camera, (n, 1)), np.tile(point, (m, 1)), np.tile(weight, p), np.tile(feature, (p, 1))
    )


@numba.njit
def rotated(r0, r1, r2, x0, x1, x2):
    """The vector x, rotated around the axis r by the angle |r| (formula of Rodrigues)."""
    square = r0 * r0 + r1 * r1 + r2 * r2
    if square == 0.0:  # the rotation by a small angle, to first order
        return x0 + r1 * x2 - r2 * x1, x1 + r2 * x0 - r0 * x2, x2 + r0 * x1 - r1 * x0
    angle = math.sqrt(square)
    cosine, sine = math.cos(angle), math.sin(angle)
    a0, a1, a2 = r0 / angle, r1 / angle, r2 / angle
    along = (a0 * x0 + a1 * x1 + a2 * x2) * (1.0 - cosine)
    return (
        x0 * cosine + (a1 * x2 - a2 * x1) * sine + a0 * along,
        x1 * cosine + (a2 * x0 - a0 * x2) * sine + a1 * along,
        x2 * cosine + (a0 * x1 - a1 * x0) * sine + a2 * along,
    )


@numba.njit
def projected(camera, x0, x1, x2):
    """Where the camera sees the point."""
    y0, y1, y2 = rotated(camera[0], camera[1], camera[2], x0 - camera[3], x1 - camera[4], x2 - camera[5])
    u, v = y0 / y2, y1 / y2
    square = u * u + v * v
    scale = camera[6] * (1.0 + camera[9] * square + camera[10] * square * square)
    return u * scale + camera[7], v * scale + camera[8]


@numba.njit
def distance(inputs, feature):
    """The two residuals of an observation; inputs: camera, point and weight, one after the other."""
    u, v = projected(inputs, inputs[11], inputs[12], inputs[13])
    return inputs[14] * (u - feature[0]), inputs[14] * (v - feature[1])


slopes = plaingrad.compiled_jacobian(distance, np.ones(INPUTS), np.ones(2))


@numba.njit
def gather(inputs, cameras, points, weights, i):
    """inputs = camera, point and weight of observation i."""
    camera, point = i % cameras.shape[0], i % points.shape[0]
    for j in range(CAMERA):
        inputs[j] = cameras[camera, j]
    for j in range(POINT):
        inputs[CAMERA + j] = points[point, j]
    inputs[CAMERA + POINT] = weights[i]


@numba.njit
def residuals(cameras, points, weights, features):
    """2 p weighted distances, then p times 1 - weight^2."""
    p = weights.size
    out = np.empty(3 * p)
    inputs = np.empty(INPUTS)
    for i in range(p):
        gather(inputs, cameras, points, weights, i)
        out[2 * i], out[2 * i + 1] = distance(inputs, features[i])
        out[2 * p + i] = 1.0 - weights[i] * weights[i]
    return out


@numba.njit
def entries(cameras, points, weights, features):
    """(residuals, the entries of their Jacobian row by row)."""
    p = weights.size
    out = np.empty(3 * p)
    data = np.empty(2 * p * INPUTS + p)
    rows = data[: 2 * p * INPUTS].reshape(p, 2, INPUTS)
    inputs = np.empty(INPUTS)
    for i in range(p):
        gather(inputs, cameras, points, weights, i)
        out[2 * i], out[2 * i + 1] = slopes(inputs, features[i], rows[i])
        out[2 * p + i] = 1.0 - weights[i] * weights[i]
        data[2 * p * INPUTS + i] = -2.0 * weights[i]
    return out, data


def pattern(scene: Scene) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """(indices, indptr, shape) of the Jacobian in cameras, points and weights, in this order."""
    n, m, p = len(scene.cameras), len(scene.points), scene.weights.size
    i = np.arange(p)[:, None]
    camera = CAMERA * (i % n) + np.arange(CAMERA)
    point = CAMERA * n + POINT * (i % m) + np.arange(POINT)
    weight = CAMERA * n + POINT * m + i
    columns = np.concatenate([camera, point, weight], axis=1)
    indices = np.concatenate([np.repeat(columns, 2, axis=0).ravel(), weight.ravel()])
    indptr = np.concatenate([np.arange(2 * p) * INPUTS, 2 * p * INPUTS + np.arange(p + 1)])
    return indices, indptr, (3 * p, CAMERA * n + POINT * m + p)


def jacobian(scene: Scene) -> tuple[np.ndarray, Sparse]:
    """(residuals, their Jacobian in cameras, points and weights)."""
    values, data = entries(*scene)
    return values, Sparse(data, *pattern(scene))


def main(arguments: list[str] | None = None) -> tuple[np.ndarray, Sparse]:
    """Print and return the residuals and the Jacobian for a file of ADBench's."""
    paths = sys.argv[1:] if arguments is None else arguments
    scene = read(paths[0] if paths else DATA)
    values, found = jacobian(scene)  # compiles
    milliseconds = 1e3 * min(timeit.repeat(lambda: entries(*scene), number=1, repeat=5))
    print(
        f"|residuals| {math.sqrt(values @ values):.10g}, |Jacobian| {math.sqrt(found.data @ found.data):.10g}, "
        f"{found.shape[0]} x {found.shape[1]}, {found.data.size} entries, {milliseconds:.2f} ms"
    )
    return values, found


if __name__ == "__main__":
    main()
