"""`scipy.optimize.least_squares` and `curve_fit` with Jacobians filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from plaingrad.api import jacobian
from plaingrad.optimize.minima import vector
from plaingrad.optimize.packing import is_vector, opened


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = None,
    *,
    args: Any = (),
    kwargs: Any = None,
    tier: Any = "auto",
    **options: Any,
) -> Any:
    """The x for which the residuals fun(x) are least, by `scipy.optimize.least_squares` with plaingrad's Jacobian.

    Args:
        fun: a vector of residuals by x, which has the structure of `x0`.
        x0: where to begin: an array, or a dictionary, dataclass, list, ... of real numbers and arrays.
        jac: their Jacobian by the vector, as in SciPy; None: plaingrad's.
        args: further arguments of `fun`.
        kwargs: further keyword arguments of `fun`.
        tier: of the derivatives, as in `plaingrad.jacobian`.
        options: everything else as in SciPy.

    Returns:
        SciPy's result; its `x` has the structure of `x0`.

    Examples:
        >>> import numpy as np
        >>> from plaingrad.optimize import least_squares
        >>> t = np.linspace(0.0, 1.0, 9)
        >>> y = 2.0 * np.exp(-t)
        >>> fit = least_squares(lambda p: p["a"] * np.exp(-p["rate"] * t) - y, {"a": 1.0, "rate": 0.0})
        >>> round(fit.x["rate"], 6)
        1.0
    """
    start, unpack = opened(x0)

    def of_vector(x: Any, *args: Any, **kwargs: Any) -> Any:
        return vector(fun(unpack(x), *args, **kwargs))

    def filled(x: Any, *args: Any, **kwargs: Any) -> Any:
        return jacobian(lambda x: of_vector(x, *args, **kwargs), tier=tier)(x)

    chosen = filled if jac is None else jac
    result = optimize.least_squares(of_vector, start, jac=chosen, args=args, kwargs=kwargs or {}, **options)
    result.x = unpack(result.x)
    return result


def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    *,
    jac: Any = None,
    tier: Any = "auto",
    **options: Any,
) -> Any:
    """(popt, pcov, ...) of `scipy.optimize.curve_fit` with plaingrad's Jacobian.

    Args:
        f: the model f(xdata, *parameters); if `p0` is a structure f(xdata, p), where p has that structure.
        xdata: as in SciPy.
        ydata: as in SciPy.
        p0: where to begin, as in SciPy, or a dictionary, dataclass, ... of real numbers and arrays.
        jac: as in SciPy; None: plaingrad's.
        tier: of the derivatives, as in `plaingrad.jacobian`.
        options: everything else as in SciPy.

    Examples:
        >>> import numpy as np
        >>> from plaingrad.optimize import curve_fit
        >>> t = np.linspace(0.0, 1.0, 9)
        >>> popt, pcov = curve_fit(lambda t, p: p["a"] + p["b"] * t, t, 1 + 2 * t, {"a": 0.0, "b": 0.0})
        >>> round(float(popt["b"]), 6)
        2.0
    """
    model, start, unpack = f, p0, None
    if p0 is not None and not is_vector(p0):
        start, unpack = opened(p0)
        model = lambda x, *p: f(x, unpack(np.stack(p)))

    def filled(x: Any, *p: Any) -> Any:
        return jacobian(lambda p: vector(model(x, *[p[k] for k in range(len(p))])), tier=tier)(
            np.array(p, dtype=float)
        )

    outcome = optimize.curve_fit(model, xdata, ydata, start, jac=filled if jac is None else jac, **options)
    return outcome if unpack is None else (unpack(outcome[0]), *outcome[1:])
