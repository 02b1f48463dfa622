"""Hares and lynxes: a model in plain Python, which knows nothing about derivatives.

Only the standard library is imported here. The populations follow Lotka and Volterra,

    hare' = hare_growth * hare - predation * hare * lynx
    lynx' = lynx_growth * hare * lynx - lynx_death * lynx,

integrated by the classical Runge-Kutta method of fourth order.
"""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

LONGEST_STEP = 0.15  # years
EXTINCT = 10.0  # the log residual of a population that a wild guess of the rates has wiped out


@dataclass
class Parameters:
    """Four rates a year and the two populations, in thousands, when the record begins."""

    hare_growth: float
    predation: float
    lynx_death: float
    lynx_growth: float
    hare_start: float
    lynx_start: float


@dataclass
class Census:
    """One row of the record: thousands of pelts in a year."""

    year: float
    hare: float
    lynx: float


def read_record(path: Path) -> list[Census]:
    """The rows of a CSV file with the columns year, hare and lynx."""
    with open(path, newline="") as file:
        return [Census(**{name: float(text) for name, text in row.items()}) for row in csv.DictReader(file)]


def rates_of_change(state: list[float], p: Parameters) -> list[float]:
    """[hare', lynx'] at a state [hare, lynx]."""
    hare, lynx = state
    return [
        p.hare_growth * hare - p.predation * hare * lynx,
        p.lynx_growth * hare * lynx - p.lynx_death * lynx,
    ]


def moved(state: list[float], slope: list[float], step: float) -> list[float]:
    """state + step * slope."""
    return [value + step * rate for value, rate in zip(state, slope)]


def runge_kutta_step(state: list[float], step: float, p: Parameters) -> list[float]:
    """The state one step later."""
    k1 = rates_of_change(state, p)
    k2 = rates_of_change(moved(state, k1, step / 2), p)
    k3 = rates_of_change(moved(state, k2, step / 2), p)
    k4 = rates_of_change(moved(state, k3, step), p)
    return [value + step / 6 * (a + 2 * b + 2 * c + d) for value, a, b, c, d in zip(state, k1, k2, k3, k4)]


def populations(p: Parameters, years: list[float]) -> list[list[float]]:
    """The states [hare, lynx] at the given years; the first year is the start."""
    time, state = years[0], [p.hare_start, p.lynx_start]
    states = [state]
    for year in years[1:]:
        while time < year:
            step = LONGEST_STEP
            if time + step > year:
                step = year - time  # the last step ends on the year itself
                time = year
            else:
                time += step
            state = runge_kutta_step(state, step, p)
        states.append(state)
    return states


def log_residual(model: float, counted: float) -> float:
    """log(model / counted): pelts are counted with relative errors."""
    if model <= 0.0:
        return EXTINCT
    return math.log(model / counted)


def misfit(p: Parameters, record: list[Census]) -> float:
    """Half the sum of the squared log residuals of both species."""
    states = populations(p, [row.year for row in record])
    total = 0.0
    for (hare, lynx), row in zip(states, record):
        total += log_residual(hare, row.hare) ** 2 + log_residual(lynx, row.lynx) ** 2
    return 0.5 * total
