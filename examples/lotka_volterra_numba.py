"""The model of `lotka_volterra.py` once more, as somebody with Numba writes it: numbers and arrays, compiled.

It knows nothing about derivatives either. The steps are the same; a state is two numbers instead of a list, the record
three arrays instead of objects.
"""

import math

import numba
import numpy as np

from lotka_volterra import EXTINCT, LONGEST_STEP


@numba.njit
def rates_of_change(hare, lynx, p):
    """(hare', lynx')."""
    return p[0] * hare - p[1] * hare * lynx, p[3] * hare * lynx - p[2] * lynx


@numba.njit
def runge_kutta_step(hare, lynx, step, p):
    """The populations one step later."""
    h1, l1 = rates_of_change(hare, lynx, p)
    h2, l2 = rates_of_change(hare + step / 2 * h1, lynx + step / 2 * l1, p)
    h3, l3 = rates_of_change(hare + step / 2 * h2, lynx + step / 2 * l2, p)
    h4, l4 = rates_of_change(hare + step * h3, lynx + step * l3, p)
    return hare + step / 6 * (h1 + 2 * h2 + 2 * h3 + h4), lynx + step / 6 * (l1 + 2 * l2 + 2 * l3 + l4)


@numba.njit
def log_residual(model, counted):
    """log(model / counted)."""
    if model <= 0.0:
        return EXTINCT
    return math.log(model / counted)


@numba.njit
def misfit_of_logs(logs, years, hares, lynxes):
    """Half the sum of the squared log residuals; the parameters in the order of `Parameters`."""
    p = np.exp(logs)
    time, hare, lynx = years[0], p[4], p[5]
    total = 0.0
    for k in range(len(years)):
        year = years[k]
        while time < year:
            step = LONGEST_STEP
            if time + step > year:
                step = year - time
                time = year
            else:
                time += step
            hare, lynx = runge_kutta_step(hare, lynx, step, p)
        total += log_residual(hare, hares[k]) ** 2 + log_residual(lynx, lynxes[k]) ** 2
    return 0.5 * total
