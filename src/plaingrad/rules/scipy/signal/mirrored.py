"""`symiirorder1`, `symiirorder2` and the spline filters on them: where their recursions begin. What follows is Python.

The signal is mirrored at its ends, so the first states are sums of the signal times the response to a pulse. SciPy ends its
sums where the next number is below `precision`: in the signal the derivative is that of SciPy's sums, whose weights it gives
away for pulses; in the filter's parameters it is that of the whole sums. Formulas: Unser et al., IEEE Transactions on Signal
Processing 41 (1993), page 834.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.signal import _spline

from plaingrad.rules.scipy.compiled import definitions
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, is_active, outside, refuse

defined = definitions(_spline)
BACKWARD = getattr(_spline, "symiirorder2_ic_bwd", None)
FEW = 512  # as many weights are looked for first
AT_ENDS = 1e-14  # how near to 0 or pi an angle has a formula of its own


@outside
def weights(order: int, function: Any, like: Any, parameters: Any) -> Any:
    """What each number at the near end counts in SciPy's sums."""
    n, count = like.shape[-1], min(FEW, like.shape[-1])
    while True:
        try:
            found = function(np.eye(count, dtype=like.real.dtype), *parameters)
        except ValueError:  # the sums have not ended yet
            found = None
        if count == n or (found is not None and not found[-1 if function is not BACKWARD else 0].any()):
            return found
        count = min(2 * count, n)


def summed(function: Any, x: Any, parameters: Any) -> Any:
    """The sums for each row."""
    w = weights(function, x, parameters)
    near = x[..., : len(w)] if function is not BACKWARD else x[..., x.shape[-1] - len(w) :]
    return near @ w


@defined("symiirorder1_ic")
def symiirorder1_ic(input, z1, precision=-1.0):
    """x[0] + the sum of z1^(k+1) x[k]."""
    f, x = _spline.symiirorder1_ic, np.asarray(input)
    value = called(f, ((input, z1, precision), {}))
    if is_active(z1):
        k = np.arange(1, x.shape[-1] + 1)
        sums = x[..., :1] + (x * z1**k).sum(-1)[..., None]
    else:
        sums = summed(f, x, (z1, precision))
    return carrying(fresh(value), np.reshape(sums, np.shape(value)))


@outside
def kind_of_angle(order: int, omega: Any) -> int:
    """0 at 0, 1 at pi, 2 between."""
    return 0 if abs(omega) < AT_ENDS else 1 if abs(omega - np.pi) < AT_ENDS else 2


def forward_response(k: Any, r: Any, omega: Any) -> Any:
    """To a pulse, of cs / (1 - 2 r cos(omega) / z + r^2 / z^2); 0 for k < 0."""
    kind = kind_of_angle(omega)
    n = np.maximum(k, 0)
    cs = 1 - 2 * r * np.cos(omega) + r * r
    shape = np.sin(omega * (n + 1)) / np.sin(omega) if kind == 2 else (n + 1.0) * (1 - 2 * (n % 2) * kind)
    return np.where(k < 0, 0.0, cs * r**n * shape)


def symmetric_response(k: Any, r: Any, omega: Any) -> Any:
    """To a pulse, of the same filter forwards and backwards."""
    kind, n, s = kind_of_angle(omega), np.abs(k), r * r
    cs = 1 - 2 * r * np.cos(omega) + s
    if kind == 2:
        size = cs * cs * (1 + s) / (1 - s) / (1 - 2 * s * np.cos(2 * omega) + s * s)
        slope = (1 - s) / (1 + s) / np.tan(omega)
        return size * r**n * (np.cos(omega * n) + slope * np.sin(omega * n))
    size = cs * cs * (1 + s) / (1 - s) ** 3
    return size * r**n * (1 + (1 - s) / (1 + s) * n) * (1 - 2 * (n % 2) * kind)


def second_order(function: Any, input: Any, r: Any, omega: Any, precision: Any, formula: Any) -> Any:
    """Two results for each row."""
    value, x = called(function, ((input, r, omega, precision), {})), np.asarray(input)
    if not is_active(r) and not is_active(omega):
        sums = summed(function, x, (r, omega, precision))
    else:
        kind = kind_of_angle(omega)
        if kind == 1 or kind == 0 and is_active(omega):
            refuse(function, "its poles meet where the angle is 0 or pi")
        sums = np.stack(formula(x, np.arange(x.shape[-1])), -1)
    return carrying(fresh(value), np.reshape(sums, np.shape(value)))


@defined("symiirorder2_ic_fwd")
def symiirorder2_ic_fwd(input, r, omega, precision=-1.0):
    """The first two results, the second from the second number."""

    def formula(x: Any, k: Any) -> Any:
        here, next_one, after = [forward_response(k + i, r, omega) for i in (0, 1, 2)]
        first = (x * next_one).sum(-1) + here[0] * x[..., 0]
        return first, (x * after).sum(-1) + here[0] * x[..., 1] + here[1] * x[..., 0]

    return second_order(_spline.symiirorder2_ic_fwd, input, r, omega, precision, formula)


@defined("symiirorder2_ic_bwd")
def symiirorder2_ic_bwd(input, r, omega, precision=-1.0):
    """The last two results, from the end."""

    def formula(x: Any, k: Any) -> Any:
        at = [symmetric_response(k + i, r, omega) for i in (-1, 0, 1, 2)]
        x = x[..., ::-1]
        return (x * (at[1] + at[2])).sum(-1), (x * (at[0] + at[3])).sum(-1)

    return second_order(BACKWARD, input, r, omega, precision, formula)


for rule in Rules():
    keep(rule)
