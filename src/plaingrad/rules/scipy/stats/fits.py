"""Fits by likelihood (`dist.fit`), followed, and refused where SciPy's answer is no maximum.

With a free `loc` the likelihood of some distributions grows without bound as `loc` comes near the smallest number, or as
`loc` and `scale` grow together. SciPy then stops a rounding error away from the number, or at some huge `loc`: what it gives
says more about its search than about the data, and derivatives are differences of numbers that cancel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import _continuous_distns, rv_continuous

from plaingrad.rules.scipy.implicit import is_active, outside, refuse
from plaingrad.rules.scipy.stats.names import RULES, followed

AT_NUMBER = 1e-9  # how near to the smallest number `loc` lies, of their spread, without being it
FAR = 1e6  # the most that `loc` and `scale` are, of that spread


@outside
def check(order: int, function: Any, found: Any, data: Any, fixed: frozenset[str]) -> None:
    """Refuse what is no maximum of the likelihood."""
    x = np.ravel(np.asarray(data, float))
    if not x.size or not np.all(np.isfinite(x)):
        return
    loc, scale = (float(part) for part in found[-2:])
    spread = float(np.max(x) - np.min(x)) or abs(float(x[0])) or 1.0
    if "loc" not in fixed and 0 < np.min(x) - loc <= AT_NUMBER * spread:
        refuse(function, "the likelihood is unbounded as `loc` comes near the smallest number; give `floc`")
    off = 0.0 if "loc" in fixed else max(abs(loc - float(np.min(x))), abs(loc - float(np.max(x))))
    if off > FAR * spread or "scale" not in fixed and scale > FAR * (spread + abs(float(np.max(np.abs(x))))):
        refuse(function, "the likelihood has no maximum: it grows as `loc` and `scale` do; give `floc` or `fscale`")


def is_given(kwargs: dict[str, Any], *names: str) -> bool:
    """Whether one of these is."""
    return any(kwargs.get(name) is not None for name in names)


def entered(function: Any) -> None:
    """Enter one `fit`."""
    plain = followed(function)

    def fit(function: Any, call: Any, given: dict[str, Any]) -> Any:
        args, kwargs = call
        found = plain(*args, **kwargs)
        data = given["data"]
        by_moments = str(kwargs.get("method", "mle")).lower() == "mm"
        if is_active(found) and isinstance(data, (np.ndarray, list, tuple)) and not by_moments:
            fixed = [name for name in ("loc", "scale") if is_given(kwargs, f"f{name}", f"fix_{name}")]
            check(function, found, data, frozenset(fixed))
        return found

    RULES.defined(function)(fit)


CLASSES = {rv_continuous, *(type(one) for one in vars(_continuous_distns).values() if isinstance(one, rv_continuous))}
for _fit in {id(vars(c)["fit"]): vars(c)["fit"] for c in CLASSES if "fit" in vars(c)}.values():
    entered(_fit)
