"""`scipy.spatial.distance`: SciPy computes distances, and they move as `pairs` says."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import distance

from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, is_active, outside, refuse
from plaingrad.rules.scipy.spatial.pairs import apart, full, half, is_close, middle, moved

RULES = Rules()
PLAIN = ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "canberra", "braycurtis")
SCALED = ("seuclidean", "mahalanobis", "cosine", "correlation", "jensenshannon")


@outside
def metric_of(order: int, metric: Any) -> Any:
    """Its name; None for a function of the program; "" for one that is constant between its steps."""
    aliases, metrics = getattr(distance, "_METRIC_ALIAS", {}), getattr(distance, "_METRICS", {})
    if callable(metric):
        name = getattr(metric, "__name__", "")
        found = metrics.get(name) if getattr(distance, name, None) is metric else None
        if found is None:
            return None
    else:
        name = str(metric).lower()
        found = aliases.get(name.removeprefix("test_"))
    name = found.canonical_name if found is not None else name
    return name if name in (*PLAIN, *SCALED) else ""


def average(x: Any, w: Any) -> Any:
    """Of the features of each point."""
    return x.mean(1) if w is None else x @ w / w.sum()


def angle(kind: str, x: Any, y: Any, w: Any) -> Any:
    """1 - x.y / |x| |y|, of deviations from the means where it is a correlation."""
    if kind == "correlation":
        x, y = x - average(x, w)[:, None], y - average(y, w)[:, None]
    xw, yw = (x, y) if w is None else (x * w, y * w)
    lengths = np.sqrt((xw * x).sum(1))[:, None] * np.sqrt((yw * y).sum(1))[None, :]
    return 1.0 - xw @ y.T / lengths


def between(function: Any, kind: str, value: Any, x: Any, y: Any, options: dict[str, Any], every: Any) -> Any:
    """The matrix `value` of distances, with its derivative; `every`: all points, for what is estimated from them."""
    w, p = options.get("w"), options.get("p", 2)
    w = None if w is None else np.asarray(w) * 1.0
    if kind == "minkowski" and not is_active(p):
        kind = {1: "cityblock", 2: "euclidean", np.inf: "chebyshev"}.get(p, kind)
    if kind in PLAIN:
        return moved(kind, value, x, y, w, p)
    if kind in ("cosine", "correlation"):
        return carrying(value, angle(kind, x, y, w))
    if kind == "jensenshannon":
        return moved(kind, value, x / x.sum(1)[:, None], y / y.sum(1)[:, None], None, 2)
    if kind == "seuclidean":
        v = options.get("V")
        v = np.var(every(), axis=0, ddof=1) if v is None else np.asarray(v)
        return moved("euclidean", value, x, y, 1.0 / v if w is None else w / v, 2)
    vi = options.get("VI")
    vi = np.linalg.inv(np.atleast_2d(np.cov(every().T))) if vi is None else np.asarray(vi)
    return moved("mahalanobis", value, x, y, vi, 2)


def written(z: Any, out: Any) -> Any:
    """Into the array that the program gave for it."""
    if out is None:
        return z
    out[...] = z
    return out


def options_of(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the metric, by name."""
    return {**{name: given[name] for name in ("p", "w", "V", "VI") if given.get(name) is not None}, **given["kwargs"]}


def has_steps(function: Any, kind: Any, options: dict[str, Any]) -> bool:
    """Whether distances are constant between their steps."""
    if kind != "":
        return False
    if is_active(options.get("w")):
        refuse(function, "weights of a metric that counts")
    return True


def without(call: Any) -> Any:
    """The call without a place for its result."""
    args, kwargs = call
    return args, {name: kwargs[name] for name in kwargs if name != "out"}


@RULES.defined(distance.cdist)
def cdist(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Of every point of XA from every one of XB."""
    options, kind = options_of(given), metric_of(given["metric"])
    if kind is None:
        metric, xa, xb = given["metric"], np.asarray(given["XA"]), np.asarray(given["XB"])
        flat = [metric(u, v, **options) for u in xa for v in xb]
        return written(np.reshape(np.stack([np.asarray(z) * 1.0 for z in flat]), (len(xa), len(xb))), given["out"])
    value = fresh(called(function, without(call)))
    if has_steps(function, kind, options) or value.size == 0:
        return written(value, given["out"])
    x, y = np.asarray(given["XA"]) * 1.0, np.asarray(given["XB"]) * 1.0
    return written(between(function, kind, value, x, y, options, lambda: np.concatenate([x, y])), given["out"])


@RULES.defined(distance.pdist)
def pdist(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Of all pairs of points, i before j."""
    options, kind = options_of(given), metric_of(given["metric"])
    x = np.asarray(given["X"])
    if kind is None:
        metric, n = given["metric"], len(x)
        flat = [metric(x[i], x[j], **options) for i in range(n) for j in range(i + 1, n)]
        return written(np.stack([np.asarray(z) * 1.0 for z in flat]), given["out"])
    value = fresh(called(function, without(call)))
    if has_steps(function, kind, options) or value.size == 0:
        return written(value, given["out"])
    x = x * 1.0
    if kind in ("euclidean", "sqeuclidean") and not is_close(value, x, kind):
        w = options.get("w")
        return written(apart(kind, value, x, None if w is None else np.asarray(w) * 1.0), given["out"])
    z = between(function, kind, full(value), x, x, options, lambda: x)
    return written(carrying(value, middle(z)), given["out"])


@RULES.defined(distance.squareform)
def squareform(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """A condensed matrix as a full one, or the other way round."""
    value = called(function, call)
    x = np.asarray(given["X"])
    if value.size == 0 or not is_active(x):
        return value
    return full(x) if x.ndim == 1 else half(x)


@RULES.defined(distance.directed_hausdorff)
def directed_hausdorff(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """(distance, i, j): that of the two points that were found."""
    outcome = called(function, call)
    u, v = np.asarray(given["u"]), np.asarray(given["v"])
    i, j = outcome[1], outcome[2]
    return carrying(fresh(outcome[0]), np.linalg.norm(u[i] - v[j])), i, j


for rule in RULES:
    keep(rule)
