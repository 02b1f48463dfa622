"""Power transforms, means and statistics at the exponents where their formula is a limit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from scipy.stats import _morestats, _stats_py

from plaingrad.rules.scipy.implicit import at_roots, called, carrying, fresh, is_active, refuse
from plaingrad.rules.scipy.stats.names import RULES, followed
from plaingrad.rules.scipy.stats.switches import CLOSE, NODES, WEIGHTS, expm1_over

transform = getattr(_morestats, "_yeojohnson_transform", None)


def yeo_johnson(x: Any, lmbda: Any) -> Any:
    """Box-Cox of 1 + x above 0, and with 2 - lambda of 1 - x below."""
    above = x >= 0
    up = expm1_over(np.log1p(np.where(above, x, 0.0)), lmbda)
    down = -expm1_over(np.log1p(np.where(above, 0.0, -x)), 2.0 - lmbda)
    return np.where(above, up, down)


if transform is not None:
    plain_transform = followed(transform)

    @RULES.defined(transform)
    def yeojohnson_transform(function: Any, call: Any, given: dict[str, Any]) -> Any:
        """SciPy takes logarithms at 0 and 2, whose derivative by lambda is not 0."""
        args, kwargs = call
        lmbda = given["lmbda"]
        if not is_active(lmbda) or fresh(float(lmbda)) not in (0.0, 2.0):
            return plain_transform(*args, **kwargs)
        y = yeo_johnson(np.asarray(given["x"], float), np.asarray(lmbda))
        return carrying(fresh(called(function, call)), y)


plain_likelihood = followed(stats.boxcox_llf)


@RULES.defined(stats.boxcox_llf)
def boxcox_llf(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """The profile likelihood; SciPy takes logarithms at 0."""
    args, kwargs = call
    lmb = given["lmb"]
    if not is_active(lmb) or fresh(float(lmb)) != 0.0:
        return plain_likelihood(*args, **kwargs)
    if given.get("keepdims") or given.get("nan_policy", "propagate") != "propagate":
        refuse(function, "it is asked for with `keepdims` or `nan_policy` at lambda = 0")
    data = np.asarray(given["data"], float)
    axis = given.get("axis", 0)
    logs = np.log(np.reshape(data, (-1,)) if axis is None else np.moveaxis(data, axis, 0))
    spread = np.var(expm1_over(logs, np.asarray(lmb)), axis=0)
    y = (lmb - 1) * logs.sum(0) - logs.shape[0] / 2 * np.log(spread)
    return carrying(fresh(called(function, call)), y)


def expm1_over_slope(x: Any, c: Any) -> Any:
    """The derivative of expm1(c x) / c in c."""
    near = np.abs(c * x) < CLOSE
    t = np.where(near, c * x, 0.0)
    series = x * x * (WEIGHTS * NODES * np.exp(t[..., None] * NODES)).sum(-1)
    far = (x * np.exp(np.where(near, 0.0, c * x)) - expm1_over(x, c)) / np.where(near, 1.0, c)
    return np.where(near, series, far)


def score(logs: Any, jacobian: Any, transformed: Any, slope: Any) -> Any:
    """The slope of the profile likelihood: that of its Jacobian less that of n/2 log var."""
    centred = transformed - transformed.mean()
    return jacobian - logs.size * (centred * slope).mean() / (centred * centred).mean()


def box_cox_score(x: Any, lmbda: Any) -> Any:
    """Of Box and Cox's transform."""
    logs = np.log(x)
    return score(logs, logs.sum(), expm1_over(logs, lmbda), expm1_over_slope(logs, lmbda))


def yeo_johnson_score(x: Any, lmbda: Any) -> Any:
    """Of Yeo and Johnson's."""
    above = x >= 0
    logs = np.log1p(np.abs(x))
    signed = np.where(above, logs, -logs)
    power = np.where(above, lmbda, 2.0 - lmbda)
    return score(logs, signed.sum(), yeo_johnson(x, lmbda), expm1_over_slope(logs, power))


def best_exponent(function: Any, equation: Any) -> None:
    """Enter a search for the exponent of greatest likelihood: the score vanishes there."""
    plain = followed(function)

    @RULES.defined(function)
    def found(function: Any, call: Any, given: dict[str, Any]) -> Any:
        args, kwargs = call
        if given.get("method", "mle") != "mle" or not is_active(given["x"]):
            return plain(*args, **kwargs)
        best = fresh(called(function, call))
        if np.ndim(best):
            refuse(function, "it is asked for several samples at once")
        x = np.reshape(np.asarray(given["x"], float), (-1,))
        return at_roots(function, lambda lmbda: equation(x, np.asarray(lmbda))[()], best)


best_exponent(stats.boxcox_normmax, box_cox_score)
best_exponent(stats.yeojohnson_normmax, yeo_johnson_score)


def refusing_exponents(function: Any, name: str, *exponents: float) -> None:
    """Enter a function that leaves its parameter `name` out of the formula at some values."""
    plain = followed(function)

    @RULES.defined(function)
    def limited(function: Any, call: Any, given: dict[str, Any]) -> Any:
        args, kwargs = call
        exponent = given.get(name, given.get("kwds", {}).get(name))
        if is_active(exponent) and fresh(float(exponent)) in exponents:
            refuse(function, f"SciPy leaves {name} out of the formula where it is {fresh(float(exponent)):g}")
        return plain(*args, **kwargs)


refusing_exponents(stats.power_divergence, "lambda_", 0.0, -1.0)
refusing_exponents(stats.pmean, "p", 0.0)


# -- variances within limits: SciPy puts nan beyond them ---------------------------------------------------------------


def kept(given: dict[str, Any]) -> tuple[Any, Any, Any]:
    """(data with the axis in front, whether each is within limits, how many are)."""
    a, axis = np.asarray(given["a"]), given["axis"]
    a = np.reshape(a, (-1,)) if axis is None else np.moveaxis(a, axis, 0)
    inside = np.ones(a.shape, bool)
    for limit, closed, sign in zip(given["limits"], given["inclusive"], (1.0, -1.0), strict=True):
        if limit is not None:
            gap = sign * (fresh(a * 1.0) - limit)
            inside &= (gap >= 0) if closed else (gap > 0)
    return a * 1.0, inside, inside.sum(0)


def within_limits(function: Any, of_variance: Any) -> None:
    """Enter a function of the variance within limits and of the number there."""
    plain = followed(function)

    @RULES.defined(function)
    def limited(function: Any, call: Any, given: dict[str, Any]) -> Any:
        args, kwargs = call
        options = given.get("kwds", given.get("kwargs", {}))
        unusual = options or given.get("keepdims") or given.get("nan_policy", "propagate") != "propagate"
        if given["limits"] is None or unusual or not is_active(given["a"]):
            return plain(*args, **kwargs)
        a, inside, n = kept(given)
        mean = np.where(inside, a, 0.0).sum(0) / n
        variance = np.where(inside, (a - mean) ** 2, 0.0).sum(0) / (n - given["ddof"])
        return carrying(fresh(called(function, call)), of_variance(variance, n))


within_limits(_stats_py.tvar, lambda variance, n: variance)
within_limits(_stats_py.tstd, lambda variance, n: np.sqrt(variance))
within_limits(_stats_py.tsem, lambda variance, n: np.sqrt(variance / n))
