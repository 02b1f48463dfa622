"""The studentized range, whose integrals SciPy evaluates in compiled code: sums over nodes, in q, k and the degrees of freedom.

With s the deviation that is estimated, and r = q s,

    cdf = int g(s) P(q s) ds,  P(r) = k int phi(z) (Phi(z + r) - Phi(z))^(k - 1) dz,  g the density of sqrt(chi^2_df / df)

Both integrands are analytic and fall off, in z and in log s, so trapezoidal sums converge faster than any power.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special, stats

from plaingrad.rules.scipy.implicit import called, carrying, fresh, is_active, outside, plainly, refuse
from plaingrad.rules.scipy.stats.names import methods

MANY = 100_000  # degrees of freedom, from which on SciPy takes the deviation as known
EDGE, STEP = 9.0, 0.125  # of z
FALL = 42.0  # terms of e^-FALL and less are left out
SAME = 1e-8  # the most that sums may be off SciPy's values
SMALL = 1e-300
Z = np.arange(-EDGE, EDGE + STEP / 2, STEP)
HEIGHTS = np.exp(-Z * Z / 2) / np.sqrt(2 * np.pi)


@plainly
def places(df: float) -> tuple[Any, float]:
    """(log s, step): all y with df ((e^2y - 1) / 2 - y) < FALL, which is what the density falls by from its largest."""
    if df >= MANY:
        return np.zeros(1), 1.0
    fall = FALL / df
    low = 1.6 * np.sqrt(fall) if fall < 0.1 else 0.5 + fall
    high = np.log1p(2.0 * fall + 3.0 * np.sqrt(fall)) / 2.0
    step = min(0.1, 0.25 / np.sqrt(2.0 * df))
    return np.arange(-np.ceil(low / step), np.ceil(high / step) + 1.0) * step, step


def log_density(y: Any, df: Any) -> Any:
    """Of log s."""
    return df / 2 * np.log(df) + df * y - df * np.exp(2 * y) / 2 - special.gammaln(df / 2) - (df / 2 - 1) * np.log(2.0)


def between(r: Any) -> Any:
    """Phi(z + r) - Phi(z) for every r and z, by the tail that has no cancellation."""
    low, high = Z[None, :], r[:, None] + Z[None, :]
    right = special.ndtr(-low) - special.ndtr(-high)
    left = special.ndtr(high) - special.ndtr(low)
    return np.maximum(np.where(low > 0, right, left), SMALL)


def probability(q: Any, k: Any, df: Any, y: Any, step: float) -> Any:
    """The cdf as a sum over nodes y = log s."""
    r = q * np.exp(y)
    inner = k * STEP * (np.exp((k - 1.0) * np.log(between(r))) * HEIGHTS).sum(1)
    return inner[0] if len(y) == 1 else step * (np.exp(log_density(y, df)) * inner).sum()


def density(q: Any, k: Any, df: Any, y: Any, step: float) -> Any:
    """Its derivative in q."""
    s = np.exp(y)
    r = q * s
    shifted = np.exp(-((r[:, None] + Z[None, :]) ** 2) / 2) / np.sqrt(2 * np.pi)
    powers = np.exp((k - 2.0) * np.log(between(r)))
    inner = k * (k - 1.0) * STEP * (powers * shifted * HEIGHTS).sum(1)
    return inner[0] if len(y) == 1 else step * (np.exp(log_density(y, df)) * s * inner).sum()


@outside
def checked(order: int, function: Any, z: Any, value: float) -> None:
    """Refuse where the sum is not SciPy's integral."""
    if not np.abs(z - value) <= SAME * (1.0 + np.abs(value)):
        refuse(function, f"a sum over nodes gives {float(z):.10g}, not {value:.10g}")


def enter(name: str, formula: Any) -> None:
    """Enter a method of (q, k, df) by its formula for one of each."""
    instance = getattr(stats, "studentized_range", None)

    @methods(instance, name)
    def method(function: Any, call: Any, given: dict[str, Any]) -> Any:
        values = fresh(np.asarray(called(function, call)) * 1.0)
        if not is_active(call[0][1:]):
            return values[()]
        arrays = np.broadcast_arrays(*[np.asarray(arg) * 1.0 for arg in call[0][1:]])
        parts = []
        for index in np.ndindex(values.shape):
            q, k, df = [array[index] for array in arrays]
            if not q > 0 or not np.isfinite(q):
                parts.append(values[index])
                continue
            y, step = places(float(df))
            z = formula(q, k, df, y, step)
            checked(getattr(instance, name.strip("_")), z, values[index])
            parts.append(z)
        return carrying(values[()], np.reshape(np.stack(parts), values.shape)[()]) if parts else values[()]


enter("_cdf", probability)
enter("_pdf", density)
