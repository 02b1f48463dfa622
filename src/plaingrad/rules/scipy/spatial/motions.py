"""The compiled functions behind `RigidTransform`, as formulas of matrices of four rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, fresh, refuse
from plaingrad.rules.scipy.spatial import quaternions as quats
from plaingrad.rules.scipy.spatial.quaternions import (
    exponential,
    inverse,
    logarithm,
    matrix_of,
    product,
    vector_of,
)
from plaingrad.rules.scipy.spatial.rotations import (
    backend,
    formulas,
    largest,
    largest_eigenvector,
    moved,
    nearest,
    numbers,
    rolled,
    signs,
)

MOTION = backend("_rigid_transform_cy")
formula = formulas(MOTION)


def parts(matrix: Any) -> tuple[Any, Any]:
    """Rotation matrix and translation."""
    m = numbers(matrix)
    return m[..., :3, :3], m[..., :3, 3]


def joined(r: Any, t: Any) -> Any:
    """The matrix of a rotation and a translation."""
    upper = np.concatenate([r, t[..., None]], -1)
    last = np.zeros((*upper.shape[:-2], 1, 4)) + np.array([0.0, 0.0, 0.0, 1.0])
    return np.concatenate([upper, last], -2)


def quaternion_of(r: Any) -> Any:
    """Of a rotation matrix."""
    return quats.of_orthogonal(r, largest(r))


def exp(x: Any) -> Any:
    """The motion of a twist."""
    r, t = x[..., :3], x[..., 3:]
    return joined(matrix_of(quats.of_vector(r)), (exponential(r) @ t[..., None])[..., 0])


def log(matrix: Any) -> Any:
    """The twist of a motion."""
    r, t = parts(matrix)
    v = vector_of(quaternion_of(r))
    return np.concatenate([v, (logarithm(v) @ t[..., None])[..., 0]], -1)


@formula("from_matrix")
def from_matrix(value, matrix, normalize, copy):
    """The rotation is the nearest one."""
    m = numbers(matrix)
    if not normalize:
        return moved(value, m)
    z = np.reshape(fresh(np.asarray(value)), m.shape)
    r, t = parts(m)
    q = quaternion_of(z[..., :3, :3])
    r0, s = nearest(q, r)
    return moved(value, joined(r0 + r0 @ quats.skew(quats.nearest_turn(r0, r, s)), t))


@formula("from_rotation")
def from_rotation(value, quat):
    r = matrix_of(numbers(quat))
    return moved(value, joined(r, r[..., 0] * 0.0))


@formula("from_translation")
def from_translation(value, translation):
    t = numbers(translation)
    return moved(value, joined(np.zeros((*t.shape, 3)) + np.eye(3), t))


@formula("from_exp_coords")
def from_exp_coords(value, exp_coords):
    return moved(value, exp(numbers(exp_coords)))


@formula("as_exp_coords")
def as_exp_coords(value, matrix):
    return moved(value, log(matrix))


def normal_dual(q: Any) -> tuple[Any, Any]:
    """Real and dual part, the one of length 1 and the other at right angles."""
    real, dual = q[..., :4], q[..., 4:]
    size = np.sqrt(quats.square(real))
    real, dual = real / size, dual / size
    return real, dual - real * (real * dual).sum(-1)[..., None]


@formula("normalize_dual_quaternion")
def normalize_dual_quaternion(value, dual_quat):
    return moved(value, np.concatenate(normal_dual(numbers(dual_quat)), -1))


@formula("from_dual_quat")
def from_dual_quat(value, dual_quat, scalar_first):
    q = numbers(dual_quat)
    q = np.concatenate([rolled(q[..., :4], -1, scalar_first), rolled(q[..., 4:], -1, scalar_first)], -1)
    real, dual = normal_dual(q)
    return moved(value, joined(matrix_of(real), 2.0 * product(dual, inverse(real))[..., :3]))


@formula("as_dual_quat")
def as_dual_quat(value, matrix, scalar_first):
    r, t = parts(matrix)
    real = quaternion_of(r)
    dual = product(np.concatenate([t, t[..., :1] * 0.0], -1), real) / 2.0
    y = np.concatenate([rolled(real, 1, scalar_first), rolled(dual, 1, scalar_first)], -1)
    return moved(value, y * signs(np.asarray(value), y))


@formula("compose_transforms")
def compose_transforms(value, tf_matrix, other_tf_matrix):
    return moved(value, numbers(tf_matrix) @ numbers(other_tf_matrix))


def inverted(matrix: Any) -> Any:
    """The opposite motion."""
    r, t = parts(matrix)
    back = np.swapaxes(r, -1, -2)
    return joined(back, -(back @ t[..., None])[..., 0])


@formula("inv")
def inv(value, matrix):
    return moved(value, inverted(matrix))


@formula("apply")
def apply(value, matrix, vector, inverse):
    r, t = parts(inverted(matrix) if inverse else matrix)
    return moved(value, (r @ numbers(vector)[..., None])[..., 0] + t)


@formula("pow")
def power(value, matrix, n):
    return moved(value, exp(n * log(matrix)))


@formula("mean")
def mean(value, matrix, weights, axis=None):
    """Of rotations the eigenvector with the largest eigenvalue, of translations the mean."""
    if axis not in (None, 0, (0,), -1, (-1,)):
        refuse(MOTION.mean, "along other axes than all")
    r, t = parts(matrix)
    q = quaternion_of(r)
    w = q if weights is None else numbers(weights)[:, None] * q
    vector = largest_eigenvector(np.swapaxes(w, 0, 1) @ q)
    middle = t.mean(0) if weights is None else numbers(weights) @ t / numbers(weights).sum()
    return moved(value, joined(matrix_of(vector), middle))


@formula("setitem")
def setitem(result, /, matrix, indexer, value):
    y = numbers(matrix)
    y[indexer] = numbers(value)
    return moved(result, y)


@formula("_create_transformation_matrix")
def create_transformation_matrix(value, translations, rotation_matrices, single):
    return moved(value, joined(numbers(rotation_matrices), numbers(translations)))


for rule in Rules():
    keep(rule)
