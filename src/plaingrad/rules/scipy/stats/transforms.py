"""Power transforms, means and statistics at the exponents where their formula is a limit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from scipy.stats import _morestats

from plaingrad.rules.scipy.implicit import called, carrying, fresh, is_active, refuse
from plaingrad.rules.scipy.stats.names import RULES, followed
from plaingrad.rules.scipy.stats.switches import expm1_over

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
