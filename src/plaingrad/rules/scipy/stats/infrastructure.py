"""The distributions of SciPy 1.15 and later (`make_distribution`, `Normal`, `truncate`, ...): what they integrate."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from plaingrad.rules.scipy.implicit import called, carrying, fresh, is_active
from plaingrad.rules.scipy.stats.integrals import integral, probability
from plaingrad.rules.scipy.stats.names import RULES, followed


def found() -> Any:
    """The class that has `_quadrature`, or None in an older SciPy."""
    try:
        module = importlib.import_module("scipy.stats._distribution_infrastructure")
    except ImportError:
        return None
    classes = [getattr(module, name, None) for name in ("UnivariateDistribution", "ContinuousDistribution")]
    return next((c for c in classes if c is not None and "_quadrature" in vars(c)), None)


def element_by_element(given: dict[str, Any], value: Any) -> Any:
    """The integrals between limits or over supports, or None."""
    self, integrand, limits = given["self"], given["integrand"], given["limits"]
    params, args = given["params"] or {}, tuple(given["args"] or ())
    low, high = self._support(**params) if limits is None else limits
    names, of = list(params), integral if limits is None else probability
    arrays = np.broadcast_arrays(*[np.asarray(x) for x in (low, high, *args, *params.values())])
    if arrays[0].shape != np.shape(value):
        return None

    def f(x: Any, *values: Any) -> Any:
        return integrand(x, *values[: len(args)], **dict(zip(names, values[len(args) :], strict=True)))

    parts = []
    for index in np.ndindex(arrays[0].shape):
        a, b, *values = [array[index] for array in arrays]
        y = of(f, tuple(values), a, b, value[index])
        if y is None:
            return None
        parts.append(y)
    return np.reshape(np.stack(parts), np.shape(value)) if parts else value


def enter(owner: Any) -> None:
    """Enter `_quadrature`; sums, logarithms, and what has no nodes of ours are followed."""
    plain = followed(owner._quadrature)

    @RULES.defined(owner._quadrature)
    def quadrature(function: Any, call: Any, given: dict[str, Any]) -> Any:
        args, kwargs = call
        if given["log"] or not hasattr(given["self"], "_pdf_dispatch") or discrete(given["self"]):
            return plain(*args, **kwargs)
        value = fresh(np.asarray(called(function, call)))
        y = element_by_element(given, value)
        if y is None or not is_active(y):
            return plain(*args, **kwargs)
        return carrying(value, y) if value.ndim else carrying(value[()], y[()])


def discrete(distribution: Any) -> bool:
    """Whether it is one of counts."""
    return any(c.__name__ == "DiscreteDistribution" for c in type(distribution).__mro__)


_owner = found()
if _owner is not None:
    enter(_owner)
