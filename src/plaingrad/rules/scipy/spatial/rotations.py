"""`scipy.spatial.transform`: the compiled functions behind `Rotation`, as formulas of quaternions.

Values are SciPy's; the formulas say how they move. SciPy before 1.17 has compiled classes instead: `compiled_rotations`.
"""

from __future__ import annotations

import importlib
from inspect import signature
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.compiled import constant
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import (
    Parameters,
    Rules,
    bound,
    called,
    carrying,
    fresh,
    is_active,
    outside,
    refuse,
    solved,
    underived,
)
from plaingrad.rules.scipy.spatial import quaternions as quats
from plaingrad.rules.scipy.spatial.quaternions import inverse, matrix_of, product, turned, unit, vector_of


def backend(name: str) -> Any:
    """A compiled module, or None."""
    try:
        return importlib.import_module(f"scipy.spatial.transform.{name}")
    except ImportError:
        return None


ROTATION = backend("_rotation_cy")


def enter_formula(function: Any, formula: Any) -> None:
    """formula(value, arguments by name) has the derivative of the function's value."""
    parameters = Parameters(signature(function))

    def definition(*args: Any, **kwargs: Any) -> Any:
        value = called(function, (args, kwargs))
        return formula(value, **bound(parameters, args, kwargs))

    keep(Rule(function, "composed", definition=definition, source=f"{__file__}:1"))


def formulas(module: Any) -> Any:
    """The decorator that enters formulas by name."""

    def named(name: str) -> Any:
        def entered(formula: Any) -> Any:
            function = getattr(module, name, None)
            if function is not None:
                enter_formula(function, formula)
            return formula

        return entered

    return named


formula = formulas(ROTATION)


def moved(value: Any, y: Any) -> Any:
    """SciPy's value with the derivative of y."""
    value = fresh(np.asarray(value))
    return carrying(value, np.reshape(y, value.shape))


@outside
def signs(order: int, value: Any, y: Any) -> Any:
    """1 or -1: a quaternion and its opposite are the same rotation."""
    return np.where((np.reshape(value, y.shape) * y).sum(-1) < 0, -1.0, 1.0)[..., None]


def moved_quaternion(value: Any, y: Any) -> Any:
    """SciPy's quaternions with the derivative of y, which may have the other sign."""
    return moved(value, y * signs(np.asarray(value), y))


def numbers(x: Any) -> Any:
    """As floats."""
    return np.asarray(x) * 1.0


def radians(x: Any, degrees: bool) -> Any:
    """Angles as SciPy takes them."""
    return numbers(x) * (np.pi / 180.0) if degrees else numbers(x)


def rolled(q: Any, places: int, scalar_first: bool) -> Any:
    """With the scalar at the other end."""
    return np.roll(q, places, -1) if scalar_first else q


@formula("from_quat")
def from_quat(value, quat, normalize, copy, scalar_first):
    q = rolled(numbers(quat), -1, scalar_first)
    return moved(value, unit(q) if normalize else q)


@formula("from_rotvec")
def from_rotvec(value, rotvec, degrees):
    return moved_quaternion(value, quats.of_vector(radians(rotvec, degrees)))


@formula("from_mrp")
def from_mrp(value, mrp):
    r = numbers(mrp)
    a = quats.square(r)
    return moved_quaternion(value, np.concatenate([2.0 * r, 1.0 - a], -1) / (1.0 + a))


@outside
def nearest(order: int, q: Any, b: Any) -> Any:
    """The rotation matrix of q, and S = R^T B."""
    r = matrix_of(q)
    return r, np.swapaxes(r, -1, -2) @ b


@outside
def largest(order: int, m: Any) -> Any:
    """Which component of the quaternion a matrix gives best."""
    trace = m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2]
    return np.argmax(np.stack([m[..., 0, 0], m[..., 1, 1], m[..., 2, 2], trace], -1), -1)


@formula("from_matrix")
def from_matrix(value, matrix, assume_valid=False):
    """Of the nearest rotation; of a matrix that is said to be one, by its entries."""
    m = numbers(matrix)
    if assume_valid:
        return moved_quaternion(value, quats.of_orthogonal(m, largest(m)))
    q = np.reshape(fresh(np.asarray(value)), (*m.shape[:-2], 4))
    r, s = nearest(q, m)
    return moved(value, turned(q, quats.nearest_turn(r, m, s)))


@formula("_from_matrix_orthogonal")
def from_matrix_orthogonal(value, matrix):
    m = numbers(matrix)
    return moved_quaternion(value, quats.of_orthogonal(m, largest(m)))


@formula("from_euler")
def from_euler(value, seq, angles, degrees):
    axes = np.eye(3)[["xyz".index(letter) for letter in seq.lower()]]
    return moved_quaternion(value, in_turn(axes, radians(angles, degrees), len(value) if np.ndim(value) > 1 else 1, seq.islower()))


@formula("from_davenport")
def from_davenport(value, axes, order, angles, degrees):
    rows = np.reshape(unit(numbers(axes)), (-1, 3))
    count = len(value) if np.ndim(value) > 1 else 1
    return moved_quaternion(value, in_turn(rows, radians(angles, degrees), count, order in ("e", "extrinsic")))


def in_turn(axes: Any, angles: Any, count: int, extrinsic: bool) -> Any:
    """One rotation after the other; in the fixed frame if `extrinsic`."""
    angles = np.reshape(angles, (-1, len(axes)))
    q: Any = None
    for k in range(len(axes)):
        half = angles[:, k, None] / 2.0
        one = np.concatenate([np.sin(half) * axes[k], np.cos(half)], -1)
        q = one if q is None else product(one, q) if extrinsic else product(q, one)
    return q


@formula("as_quat")
def as_quat(value, quat, canonical, scalar_first):
    return moved_quaternion(value, rolled(numbers(quat), 1, scalar_first))


@formula("as_matrix")
def as_matrix(value, quat):
    return moved(value, matrix_of(numbers(quat)))


@formula("as_rotvec")
def as_rotvec(value, quat, degrees):
    return moved(value, vector_of(numbers(quat)) * (180.0 / np.pi if degrees else 1.0))


@formula("as_mrp")
def as_mrp(value, quat):
    q = numbers(quat)
    q = q * np.where(q[..., 3:] < 0, -1.0, 1.0)
    return moved(value, q[..., :3] / (1.0 + q[..., 3:]))


@outside
def locked(order: int, middle: Any) -> Any:
    """nan where the outer angles are not determined, else 1."""
    return np.where((np.abs(middle) <= 1e-7) | (np.abs(middle - np.pi) <= 1e-7), np.nan, 1.0)


def three_angles(value: Any, parts: Any, extrinsic: bool, sign: Any, middle_sign: Any, degrees: bool) -> Any:
    """Euler angles; SciPy's differ by constants."""
    first, third, middle = parts
    known = locked(middle)
    outer = [first, third * sign] if extrinsic else [third * sign, first]
    y = np.stack([outer[0] * known, middle * middle_sign, outer[1] * known], -1)
    return moved(value, y * (180.0 / np.pi) if degrees else y)


@formula("as_euler")
def as_euler(value, quat, seq, degrees, suppress_warnings):
    q, extrinsic = numbers(quat), seq.islower()
    i, j, k = ("xyz".index(letter) for letter in (seq.lower() if extrinsic else seq.lower()[::-1]))
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    a, b, c, d = q[..., 3], q[..., i], q[..., j], q[..., k] * sign
    if not symmetric:
        a, b, c, d = a - c, b + d, c + a, d - b
    return three_angles(value, quats.outer_and_middle(a, b, c, d), extrinsic, 1 if symmetric else sign, 1.0, degrees)


@formula("as_davenport")
def as_davenport(value, quat, axes, order, degrees, suppress_warnings):
    if is_active(axes):
        refuse(ROTATION.as_davenport, "in the axes")
    q, extrinsic = numbers(quat), order in ("e", "extrinsic")
    n1, n2, n3 = unit(np.asarray(axes, float)) if extrinsic else unit(np.asarray(axes, float))[::-1]
    lamb = np.arctan2(n3 @ np.cross(n1, n2), n3 @ n1)
    flip = -1.0 if lamb < 0 else 1.0
    n2, lamb = n2 * flip, lamb * flip
    q = product(np.append(np.sin(lamb / 2.0) * n2, np.cos(lamb / 2.0)), q)
    v = q[..., :3]
    parts = quats.outer_and_middle(q[..., 3], v @ n1, v @ n2, v @ np.cross(n1, n2))
    return three_angles(value, parts, extrinsic, 1.0, flip, degrees)


@formula("compose_quat")
def compose_quat(value, p, q):
    return moved(value, product(numbers(p), numbers(q)))


@formula("inv")
def inv(value, quat):
    return moved(value, inverse(numbers(quat)))


@formula("magnitude")
def magnitude(value, quat):
    q = numbers(quat)
    return moved(value, 2.0 * np.arctan2(quats.length(q[..., :3]), np.abs(q[..., 3])))


@formula("apply")
def apply(value, quat, vectors, inverse):
    m = matrix_of(numbers(quat))
    m = np.swapaxes(m, -1, -2) if inverse else m
    return moved(value, (m @ numbers(vectors)[..., None])[..., 0])


@formula("pow")
def power(value, quat, n):
    return moved_quaternion(value, quats.of_vector(n * vector_of(numbers(quat))))


@formula("mean")
def mean(value, quat, weights, axis=None):
    """The eigenvector with the largest eigenvalue."""
    q = numbers(quat)
    if axis not in (None, 0, (0,), -1, (-1,)):
        refuse(ROTATION.mean, "along other axes than all")
    w = q if weights is None else numbers(weights)[:, None] * q
    return moved_quaternion(value, largest_eigenvector(np.swapaxes(w, 0, 1) @ q))


@outside
def largest_eigenpair(order, m):
    """The largest eigenvalue of a symmetric matrix, its eigenvector, and the Jacobian of the equations of both."""
    values, vectors = np.linalg.eigh(m)
    top, vector = values[-1], vectors[:, -1]
    n = np.shape(m)[0]
    below = np.concatenate([vector, np.zeros(1)])[None]
    return top, vector, np.concatenate([np.concatenate([m - top * np.eye(n), -vector[:, None]], 1), below], 0)


def largest_eigenvector(m):
    """The eigenvector, by the equations (M - s) v = 0 and v.v = 1: other eigenvalues may be equal to each other."""
    top, vector, jacobian = largest_eigenpair(m)
    residual = np.concatenate([m @ vector - top * vector, np.zeros(1)])
    return solved(np.concatenate([vector, np.array([top])]), residual, jacobian)[:-1]


@formula("reduce")
def reduce(value, quat, left, right):
    reduced, i, j = value
    q = numbers(quat)
    if right is not None:
        q = product(q, np.reshape(numbers(right), (-1, 4))[j])
    if left is not None:
        q = product(np.reshape(numbers(left), (-1, 4))[i], q)
    return moved_quaternion(reduced, q), i, j


@formula("setitem")
def setitem(result, /, quat, value, indexer):
    y = numbers(quat)
    y[indexer] = numbers(value)
    return moved(result, y)


@formula("align_vectors")
def align_vectors(value, a, b, weights, return_sensitivity):
    """R^T sum(w a b^T) is symmetric; of one pair the shortest turn from b to a."""
    q0, rssd, sensitivity = value
    a, b = np.reshape(numbers(a), (-1, 3)), np.reshape(numbers(b), (-1, 3))
    q = np.reshape(fresh(np.asarray(q0)), (4,))
    if len(a) == 1:
        aa, bb = unit(a[0]), unit(b[0])
        y = unit(np.concatenate([np.cross(bb, aa), 1.0 + (aa * bb).sum()[None]]))
        return moved_quaternion(q0, y), moved(rssd, np.abs(quats.length(a) - quats.length(b))), sensitivity
    w = None if weights is None else numbers(weights)
    if w is not None and not np.all(np.isfinite(w)):
        refuse(ROTATION.align_vectors, "with an infinite weight")
    both = np.swapaxes(a if w is None else a * w[:, None], 0, 1) @ b
    r, s = nearest(q, both)
    q = turned(q, quats.nearest_turn(r, both, (s + s.T) / 2.0))
    off = a - b @ matrix_of(q).T
    off = off if w is None else off * np.sqrt(w)[:, None]
    rest = None if sensitivity is None else underived(np.asarray(sensitivity), both, "the sensitivity of `align_vectors`")
    return moved(q0, q), moved(rssd, np.linalg.norm(off)), rest


if ROTATION is not None:
    constant(ROTATION.approx_equal)
for rule in Rules():
    keep(rule)
