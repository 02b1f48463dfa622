"""Interpolation of scattered points: linear on simplices, Clough and Tocher's cubics on triangles, the nearest point.

The triangulation is structure, and so is the simplex in which a query lies. Alfeld, A trivariate Clough-Tocher scheme (1984)
has the cubics; the gradients at the points make the curvature along all edges least, which is a sparse linear system.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from plaingrad.define import _source_of
from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.compiled import constant
from plaingrad.rules.scipy.forms import find, keep
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, is_active, mover, plainly, refuse
from plaingrad.rules.scipy.interpolate.basis import sparsely
from plaingrad.rules.scipy.interpolate.grids import coordinates, points_of

RULES = Rules()
SAME = 1e-4  # of SciPy's values; the gradients at points are found to 1e-6 only
BASE, LINEAR, CUBIC = [
    getattr(points_of, name) for name in ("NDInterpolatorBase", "LinearNDInterpolator", "CloughTocher2DInterpolator")
]


@mover
def with_facts(interpolant: Any, facts: dict[str, Any]) -> Any:
    """The interpolant with other attributes."""
    vars(interpolant).update(facts)
    return interpolant


@plainly
def simplices(interpolant: Any, xi: Any, tolerance: Any) -> Any:
    """The number of the simplex of each query, -1 outside; queries are scaled."""
    return interpolant.tri.find_simplex(np.ascontiguousarray(xi), tol=100 * np.finfo(float).eps * tolerance)


@plainly
def edges_of(tri: Any) -> tuple[Any, Any]:
    """(i, j) of all edges in both directions."""
    starts, ends = tri.vertex_neighbor_vertices
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts)), np.asarray(ends)


def is_tracked(interpolant: Any) -> bool:
    return is_active((interpolant.points, interpolant.values))


# -- made --------------------------------------------------------------------------------------------------------------


def scaled(points: Any, rescale: Any) -> tuple[Any, dict[str, Any]]:
    """Points moved and scaled to the unit cube if asked for, and how."""
    if not rescale:
        return points, {}
    offset = np.mean(points, 0)
    scale = np.max(points, 0) - np.min(points, 0)
    scale = np.where(scale > 0, scale, 1.0)
    return (points - offset) / scale, {"scale": scale, "offset": offset}


def made(cls: Any, points: Any, values: Any, rescale: Any, args: Any) -> Any:
    """An interpolant whose points and values have derivatives."""
    interpolant = called(cls, ((points, values, *args), {}))
    if is_active(args):
        refuse(cls, "`fill_value` depends on the differentiated inputs")
    if not is_active((points, values)):
        return interpolant
    facts: dict[str, Any] = {}
    if is_active(points):
        facts["points"], more = scaled(coordinates(points), rescale)
        facts |= more
    values = np.asarray(values)
    exact = np.result_type(values, float)  # compiled code reads double precision only
    facts["values"] = np.reshape(values.astype(exact), (len(values), -1))
    return with_facts(interpolant, facts)


def linear(points, values, fill_value=np.nan, rescale=False):
    return made(LINEAR, points, values, rescale, (fill_value, rescale))


def cubic(points, values, fill_value=np.nan, tol=1e-6, maxiter=400, rescale=False):
    return made(CUBIC, points, values, rescale, (fill_value, tol, maxiter, rescale))


# -- evaluated ---------------------------------------------------------------------------------------------------------


def shares(corners: Any, x: Any) -> Any:
    """Barycentric coordinates of x (m, d) in simplices with these corners (m, d + 1, d)."""
    d = x.shape[1]
    matrix = np.swapaxes(corners[:, :d] - corners[:, d:], 1, 2)
    b = np.linalg.solve(matrix, (x - corners[:, d])[:, :, None])[:, :, 0]
    return np.concatenate([b, 1 - np.sum(b, 1, keepdims=True)], 1)


def evaluated(interpolant, *args, **options):
    """The values at queries; since SciPy 1.18 with the tolerance at which one is inside of a simplex."""
    function = type(interpolant)
    found = called(BASE.__call__, ((interpolant, *args), options))
    xi = coordinates(args, interpolant.points.shape[1])
    if not is_tracked(interpolant) and not is_active(xi):
        return found
    flat = np.reshape(xi, (-1, xi.shape[-1]))
    if interpolant.scale is not None:
        flat = (flat - interpolant.offset) / interpolant.scale
    place = simplices(interpolant, flat, options.get("simplex_tolerance", 1.0))
    inside = np.flatnonzero(place >= 0)
    place, at = place[inside], flat[inside]
    corners = interpolant.tri.simplices[place]
    b = shares(interpolant.points[corners], at)
    if isinstance(interpolant, CUBIC):
        z = cubics(interpolant, place, corners, b)
    else:
        z = np.sum(b[:, :, None] * interpolant.values[corners], 1)
    z = np.concatenate([z, np.zeros((1, z.shape[1]))])[row_of(inside, len(flat))]
    if not is_near(z, found, inside):
        refuse(function, "its values are not what its formula says; are there flat triangles?")
    return carrying(fresh(found), np.reshape(z, np.shape(found)))


def row_of(inside: Any, count: int) -> Any:
    """For each query its place among those inside, or the last."""
    rows = np.full(count, len(inside))
    rows[inside] = np.arange(len(inside))
    return rows


def is_near(z: Any, found: Any, inside: Any) -> bool:
    """Whether these are SciPy's values where queries are inside."""
    found = np.reshape(found, np.shape(z))[inside]
    difference = np.abs(z[inside] - found)
    return not np.any(difference > SAME * np.max(np.abs(found), initial=1e-300))


constant(row_of, is_near)


def gradients(points: Any, tri: Any, values: Any) -> Any:
    """The gradients at the points, (n, 2, d), with which the curvature along all edges is least.

    At each point i the sum over its edges e = x_j - x_i of (4 e.g_i + 2 e.g_j - 6 (f_j - f_i)) e / |e|^3 vanishes.
    """
    if np.iscomplexobj(values):
        return gradients(points, tri, values.real) + 1j * gradients(points, tri, values.imag)
    n = len(points)
    i, j = edges_of(tri)
    e = points[j] - points[i]
    weight = np.sum(e * e, 1) ** -1.5
    outer = e[:, :, None] * e[:, None, :] * weight[:, None, None]
    own, other = block(i, i), block(i, j)
    entries = np.concatenate([np.reshape(4 * outer, (-1,)), np.reshape(2 * outer, (-1,))])
    right = 6 * weight[:, None, None] * e[:, :, None] * (values[j] - values[i])[:, None, :]
    total = np.zeros((n, 2, values.shape[1]))
    np.add.at(total, i, right)
    places = np.concatenate([own[0], other[0]]), np.concatenate([own[1], other[1]])
    return np.reshape(sparsely(2 * n, *places, entries, np.reshape(total, (2 * n, -1))), (n, 2, -1))


def block(i: Any, j: Any) -> tuple[Any, Any]:
    """Rows and columns of the 2 by 2 blocks (i, j)."""
    shape = (len(i), 2, 2)
    rows = np.broadcast_to((2 * i[:, None] + np.arange(2))[:, :, None], shape)
    columns = np.broadcast_to((2 * j[:, None] + np.arange(2))[:, None, :], shape)
    return np.reshape(rows, (-1,)), np.reshape(columns, (-1,))


constant(block)


def towards(points: Any, tri: Any, place: Any, corners: Any) -> list[Any]:
    """For each edge of each triangle how the slope across it varies: along the line to the neighbour's centre."""
    result = []
    for k in range(3):
        neighbour = tri.neighbors[place, k]
        none = neighbour < 0
        centre = np.mean(points[tri.simplices[np.where(none, place, neighbour)]], 1)
        c = shares(points[corners], centre)
        first, second = c[:, (k + 2) % 3], c[:, (k + 1) % 3]
        below = np.where(none, 1.0, 2 - 3 * first - 3 * second)  # without a neighbour it is 0, or rounding
        g = (2 * first + second - 1) / below
        result.append(np.where(none, -0.5, g)[:, None])
    return result


def cubics(interpolant: Any, place: Any, corners: Any, b: Any) -> Any:
    """The cubic at barycentric coordinates b, by its Bernstein coefficients on the three parts of each triangle."""
    points, values, tri = interpolant.points, interpolant.values, interpolant.tri
    slopes = gradients(points, tri, values)
    p, f, g = points[corners], values[corners], slopes[corners]

    def along(k: int, other: int) -> Any:
        """The coefficient next to corner k on the edge to another."""
        e = p[:, other] - p[:, k]
        return f[:, k] + np.sum(g[:, k] * e[:, :, None], 1) / 3

    edge = {(k, o): along(k, o) for k in range(3) for o in range(3) if k != o}
    near = [(f[:, k] + edge[k, (k + 1) % 3] + edge[k, (k + 2) % 3]) / 3 for k in range(3)]
    turn = towards(points, tri, place, corners)
    across = []
    for k in range(3):  # over the edge from s to o, opposite to corner k
        s, o = (k + 1) % 3, (k + 2) % 3
        jump = -f[:, s] + 3 * edge[s, o] - 3 * edge[o, s] + f[:, o]
        across.append((turn[k] * jump - f[:, s] + 2 * edge[s, o] - edge[o, s] + near[o] + near[s]) / 2)
    inner = [(across[(k + 1) % 3] + across[(k + 2) % 3] + near[k]) / 3 for k in range(3)]
    middle = (inner[0] + inner[1] + inner[2]) / 3
    least = np.min(b, 1, keepdims=True)
    u = [b[:, k : k + 1] - least for k in range(3)]
    v = 3 * least
    z = v**3 * middle
    for k in range(3):
        s, o = (k + 1) % 3, (k + 2) % 3
        z = z + u[k] ** 3 * f[:, k] + 3 * u[k] ** 2 * v * near[k] + 3 * u[k] * v**2 * inner[k]
        z = z + 3 * u[k] ** 2 * (u[s] * edge[k, s] + u[o] * edge[k, o]) + 6 * u[s] * u[o] * v * across[k]
    return z


for _function, _definition in ((LINEAR, linear), (CUBIC, cubic), (BASE.__call__, evaluated)):
    keep(Rule(_function, "composed", definition=_definition, source=_source_of(_definition)))


# -- nearest -----------------------------------------------------------------------------------------------------------

NEAREST = find("NearestNDInterpolator", ("scipy.interpolate._ndgriddata",))


@plainly
def nearest(interpolant: Any, args: Any, options: Any) -> tuple[Any, Any]:
    """The number of the nearest point of each query, and where there is one."""
    twin = copy.copy(interpolant)
    twin.values = np.arange(len(interpolant.points), dtype=float)
    found = np.asarray(NEAREST.__call__(twin, *args, **options))
    return np.where(np.isnan(found), 0, found).astype(int), ~np.isnan(found)


@RULES.defined(NEAREST.__init__)
def nearest_made(function: Any, call: Any, given: dict[str, Any]) -> None:
    called(function, call)
    with_facts(given["self"], {"values": np.asarray(given["y"])})


@RULES.defined(NEAREST.__call__)
def nearest_evaluated(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Points and queries have the derivative 0: which is nearest is structure."""
    interpolant = given["self"]
    found = called(function, call)
    if not is_active(interpolant.values):
        return fresh(found)
    number, is_there = nearest(interpolant, given["args"], given.get("query_options", {}))
    z = interpolant.values[number]
    there = np.reshape(is_there, np.shape(is_there) + (1,) * (np.ndim(z) - np.ndim(is_there)))
    return carrying(fresh(found), np.where(there, z, 0.0))
