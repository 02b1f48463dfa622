"""Qhull's geometry: `ConvexHull`, `Delaunay`, `Voronoi`, `HalfspaceIntersection`. What is a neighbour of what is constant.

Qhull finds simplices; their volumes, normals and circumcentres are formulas of the corners.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import spatial

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.compiled import constant
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, carrying, fresh, is_active, outside, refuse, underived

CLOSE = 1e-6  # the most that a formula may differ from what Qhull found, of its size


@outside
def found(order: int, kind: Any, args: Any, kwargs: Any) -> Any:
    """The object, as a constant."""
    return kind(*args, **kwargs)


@outside
def check(order: int, kind: Any, value: Any, formula: Any) -> None:
    """Refuse where the formula is not what was found: joggled or degenerate input."""
    size = 1.0 + np.max(np.abs(value), initial=0.0)
    if not np.all(np.abs(value - formula) <= CLOSE * size):
        refuse(kind, "what was found is not determined by the corners: points that were joggled, or lie degenerate")


def matching(kind: Any, value: Any, formula: Any) -> Any:
    """What Qhull found, with the derivative of the formula."""
    check(kind, value, formula)
    return carrying(fresh(value), formula)


def entered(kind: Any, moved: Any) -> None:
    """Enter a class; moved(object, points) gives it what has derivatives."""

    def definition(points: Any, *args: Any, **kwargs: Any) -> Any:
        made = found(kind, (points, *args), kwargs)
        if is_active(points):
            moved(made, np.asarray(points) * 1.0)
        return made

    keep(Rule(kind, "composed", definition=definition, source=f"{__file__}:1"))


def at(points: Any, made: Any) -> None:
    """The points themselves, and their bounds."""
    made._points = points
    made.min_bound, made.max_bound = points.min(0), points.max(0)


@outside
def centre(order: int, points: Any) -> Any:
    """A point inside."""
    return points.mean(0)


def convex_hull(made: Any, points: Any) -> None:
    """Each facet with a point c inside is a simplex: a with (corners - c) a = 1 is its normal over its distance from c."""
    kind, dim = spatial.ConvexHull, made.ndim
    inside = centre(points)
    corners = points[made.simplices] - inside
    a = np.linalg.solve(corners, np.ones((*corners.shape[:2], 1)))[..., 0]
    size = np.sqrt((a * a).sum(1))
    volumes = np.abs(np.linalg.det(corners)) / math.factorial(dim)
    normal = a / size[:, None]
    offset = -(normal @ inside + 1.0 / size)
    made.volume = matching(kind, made.volume, volumes.sum())
    made.area = matching(kind, made.area, (volumes * size).sum() * dim)
    made.equations = matching(kind, made.equations, np.concatenate([normal, offset[:, None]], 1))
    at(points, made)


@outside
def flat_simplices(order: int, made: Any) -> Any:
    """Barycentric transforms as Qhull has them, and which simplices have none."""
    transform = made.transform
    return transform, np.any(np.isnan(transform), (1, 2))


def delaunay(made: Any, points: Any) -> None:
    """Barycentric coordinates are T (x - r), with the last corner r, and T inverse to the edges that end there."""
    transform, flat = flat_simplices(made)
    corners = points[made.simplices]
    edges = np.swapaxes(corners[:, :-1] - corners[:, -1:], 1, 2)
    edges = np.where(flat[:, None, None], np.eye(made.ndim), edges)
    formula = np.concatenate([np.linalg.inv(edges), corners[:, -1:]], 1)
    made._transform = carrying(fresh(transform), formula)
    for name in ("equations", "paraboloid_scale", "paraboloid_shift"):
        setattr(made, name, underived(getattr(made, name), points, f"`scipy.spatial.Delaunay.{name}`"))
    at(points, made)


@outside
def generators(order: int, made: Any, points: Any) -> Any:
    """For each vertex as many points around it as determine it, and those that are none."""
    around: list[set[int]] = [set() for _ in made.vertices]
    for pair, vertices in zip(np.asarray(made.ridge_points).tolist(), made.ridge_vertices, strict=True):
        for vertex in vertices:
            if vertex >= 0:
                around[vertex].update(pair)
    chosen = []
    for one in around:
        places = sorted(one)
        while len(places) > made.ndim + 1:  # as many lie on one sphere: those that span the most
            edges = points[places[1:]] - points[places[0]]
            drop = int(np.argmin(np.abs(edges).sum(1))) + 1
            places.pop(drop)
        chosen.append(places)
    if any(len(places) != made.ndim + 1 for places in chosen):
        refuse(spatial.Voronoi, "its vertices are not determined by the points around them")
    return np.array(chosen, int).reshape(len(chosen), made.ndim + 1)


def voronoi(made: Any, points: Any) -> None:
    """A vertex v has the same distance from its points: 2 (p_k - p_0) v = |p_k|^2 - |p_0|^2."""
    corners = points[generators(made, points)]
    first = corners[:, :1]
    edges = corners[:, 1:] - first
    v = np.linalg.solve(edges, (edges * edges).sum(-1)[..., None] / 2.0)[..., 0] + first[:, 0]
    made.vertices = matching(spatial.Voronoi, made.vertices, v)
    at(points, made)


def halfspaces(halfspaces: Any, interior_point: Any, *args: Any, **kwargs: Any) -> Any:
    """A corner lies on the planes of its facet: n x = -b."""
    kind = spatial.HalfspaceIntersection
    made = found(kind, (halfspaces, interior_point, *args), kwargs)
    planes = np.asarray(halfspaces) * 1.0
    if not is_active((planes, interior_point)):
        return made
    dim = made.ndim
    chosen = np.array([facet[:dim] for facet in made.dual_facets], int)
    rows = planes[chosen]
    x = np.linalg.solve(rows[..., :dim], -rows[..., dim:])[..., 0]
    made.intersections = matching(kind, made.intersections, x)
    for name in ("dual_points", "dual_equations", "dual_volume", "dual_area"):
        setattr(made, name, underived(getattr(made, name), planes, f"`scipy.spatial.HalfspaceIntersection.{name}`"))
    return made


entered(spatial.ConvexHull, convex_hull)
entered(spatial.Delaunay, delaunay)
entered(spatial.Voronoi, voronoi)
keep(Rule(spatial.HalfspaceIntersection, "composed", definition=halfspaces, source=f"{__file__}:1"))
constant(spatial.tsearch, spatial.Delaunay.find_simplex)

for rule in Rules():
    keep(rule)
