"""Radial basis functions: the matrices of `RBFInterpolator` in points, queries, smoothing and the shape parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import _rbfinterp_pythran

from plaingrad.define import _source_of
from plaingrad.rulebook import Rule
from plaingrad.rules.pushforwards import pushed, total
from plaingrad.rules.scipy.compiled import definitions, each, enter
from plaingrad.rules.scipy.forms import find, keep
from plaingrad.rules.scipy.implicit import called
from plaingrad.tangents import Thunk, unthunk

defined = definitions(_rbfinterp_pythran)


def logarithm(q: Any) -> Any:
    """log q, 0 at q = 0: it is multiplied by a power of q there."""
    return np.log(np.where(q == 0, 1.0, q))


def root(q: Any) -> Any:
    """sqrt(q) with the derivative 0 at q = 0: the point is its own neighbour there, and stays it."""
    return np.where(q == 0, 0.0, np.sqrt(np.where(q == 0, 1.0, q)))


# By q = r^2, which is smooth where points meet.
KERNELS = {
    "linear": lambda q: -root(q),
    "thin_plate_spline": lambda q: 0.5 * q * logarithm(q),
    "cubic": lambda q: q * root(q),
    "quintic": lambda q: -q * q * root(q),
    "multiquadric": lambda q: -np.sqrt(q + 1),
    "inverse_multiquadric": lambda q: 1 / np.sqrt(q + 1),
    "inverse_quadratic": lambda q: 1 / (q + 1),
    "gaussian": lambda q: np.exp(-q),
}


def squares(x: Any, y: Any) -> Any:
    """|x_i - y_j|^2, summed coordinate by coordinate: near points lose no digits."""
    z = np.zeros((len(x), len(y)))
    for k in range(x.shape[1]):
        d = x[:, None, k] - y[None, :, k]
        z += d * d
    return z


def products(x: Any, y: Any, z_bar: Any) -> tuple[Any, Any]:
    """Where z_bar goes: sums over j of 2 z_bar_ij (x_i - y_j), and the like for y, as matrix products about a centre."""
    centre = np.mean(y, 0)
    x, y = x - centre, y - centre
    x_bar = 2 * (np.sum(z_bar, 1)[:, None] * x - z_bar @ y)
    y_bar = 2 * (np.sum(z_bar, 0)[:, None] * y - np.transpose(z_bar) @ x)
    return x_bar, y_bar


def squares_rrule(x: Any, y: Any) -> Any:
    def squares_pullback(z_bar: Any) -> Any:
        both = Thunk(lambda: products(x, y, z_bar))
        return Thunk(lambda: unthunk(both)[0]), Thunk(lambda: unthunk(both)[1])

    return squares(x, y), squares_pullback


def squares_frule(x: Any, y: Any) -> Any:
    def squares_pushforward(dots: Any) -> Any:
        centre = np.mean(y, 0)
        u, v = x - centre, y - centre

        def of_x(x_dot: Any) -> Any:
            return 2 * (np.sum(x_dot * u, 1)[:, None] - x_dot @ np.transpose(v))

        def of_y(y_dot: Any) -> Any:
            return 2 * (np.sum(y_dot * v, 1)[None, :] - u @ np.transpose(y_dot))

        return total(
            pushed(lambda dot: each(of_x, dot, x), dots[0]), pushed(lambda dot: each(of_y, dot, y), dots[1])
        )

    return squares(x, y), squares_pushforward


enter(squares, squares_rrule, squares_frule)


def kernels(x: Any, y: Any, kernel: str) -> Any:
    """The kernel of the distances of points x from points y."""
    return KERNELS[kernel](squares(x, y))


@defined("_polynomial_matrix")
def monomials(x, powers):
    """The products of powers of coordinates."""
    out = np.ones((len(x), len(powers)))
    for axis in range(x.shape[1]):
        out = out * x[:, axis, None] ** powers[:, axis]
    return out


@defined("_build_system")
def build_system(y, d, smoothing, kernel, epsilon, powers):
    """[[K + smoothing, P], [P^T, 0]], [d, 0], and the shift and scale of the coordinates in P."""
    low, high = np.min(y, 0), np.max(y, 0)
    shift, scale = (high + low) / 2, (high - low) / 2
    scale = np.where(scale == 0, 1.0, scale)
    points = y * epsilon
    p = monomials((y - shift) / scale, powers)
    terms = len(powers)
    upper = np.concatenate([kernels(points, points, kernel) + np.diag(smoothing), p], 1)
    lower = np.concatenate([np.transpose(p), np.zeros((terms, terms))], 1)
    return np.concatenate([upper, lower]), np.concatenate([d, np.zeros((terms, d.shape[1]))]), shift, scale


@defined("_build_evaluation_coefficients")
def build_evaluation_coefficients(x, y, kernel, epsilon, powers, shift, scale):
    """Kernels and monomials at the queries."""
    return np.concatenate([kernels(x * epsilon, y * epsilon, kernel), monomials((x - shift) / scale, powers)], 1)


solving = find("_build_and_solve_system", ("scipy.interpolate._rbfinterp_np", "scipy.interpolate._rbfinterp"))


def build_and_solve_system(y, d, smoothing, kernel, epsilon, powers, *xp):
    """The coefficients; SciPy's own call says what is wrong with a singular system."""
    lhs, rhs, shift, scale = build_system(y, d, smoothing, kernel, epsilon, powers)
    try:
        return shift, scale, np.linalg.solve(lhs, rhs)
    except np.linalg.LinAlgError:
        called(solving, ((y, d, smoothing, kernel, epsilon, powers, *xp), {}))
        raise


if solving is not None:
    keep(Rule(solving, "composed", definition=build_and_solve_system, source=f"{__file__}:1"))


def thin_plate(self, r):
    """r^2 log r of `Rbf`, whose slope at 0 is 0 forwards, too."""
    return r**2 * logarithm(r)


Rbf = find("Rbf", ("scipy.interpolate._rbf",))
if Rbf is not None:
    keep(Rule(Rbf._h_thin_plate, "composed", definition=thin_plate, source=_source_of(thin_plate)))
