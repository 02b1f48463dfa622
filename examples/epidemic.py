"""An influenza at a boarding school: a differential equation fitted to fourteen days of sick boys.

`solve_ivp` integrates Kermack and McKendrick's equations, `least_squares` fits two rates and the number of boys who
brought the illness. Both are SciPy's; plaingrad fills in the Jacobian, through the solver. At the fit it says how
certain the rates are, and what an immune part of the school would have changed: the day of the peak is an event of
the solver, and the time of an event has a derivative.

Data: `data/flu_1978.csv`, the boys in bed at a school in the north of England, from the note "Influenza in a boarding
school", British Medical Journal, 4 March 1978, page 587; of 763 boys 512 fell ill. The note has them as a picture; the
counts are those that textbooks have read off it.

    python examples/epidemic.py
"""

from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

import plaingrad
from differences import gap
from plaingrad.optimize import least_squares

HERE = Path(__file__).resolve().parent
BOYS = 763


@dataclass
class Illness:
    """Infections a day by one boy in bed among the healthy, recoveries a day, and boys ill on day 0."""

    contact: float
    recovery: float
    start: float


def change(day: float, state: np.ndarray, contact: float, recovery: float) -> list[float]:
    """What a day adds to the healthy and to the ill."""
    healthy, ill = state
    infected = contact * healthy * ill / BOYS
    return [-infected, infected - recovery * ill]


def course(p: Illness, days: np.ndarray, immune: float = 0.0) -> np.ndarray:
    """The boys in bed on the given days, if a share of the school is immune."""
    start = [(1.0 - immune) * BOYS - p.start, p.start]
    rates = (p.contact, p.recovery)
    return solve_ivp(change, (0.0, days[-1]), start, t_eval=days, args=rates, rtol=1e-7, atol=1e-6).y[1]


def peak(p: Illness, immune: float) -> np.ndarray:
    """The day on which most boys are in bed, and how many they are."""

    def turns(day: float, state: np.ndarray, contact: float, recovery: float) -> float:
        return contact * state[0] / BOYS - recovery

    turns.terminal = True
    start = [(1.0 - immune) * BOYS - p.start, p.start]
    rates = (p.contact, p.recovery)
    found = solve_ivp(change, (0.0, 60.0), start, events=turns, args=rates, rtol=1e-9, atol=1e-9)
    return np.array([found.t_events[0][0], found.y_events[0][0, 1]])


def fit(days: np.ndarray, in_bed: np.ndarray):
    """SciPy's result, of which x is an Illness."""
    return least_squares(lambda p: course(p, days) - in_bed, Illness(2.0, 0.5, 1.0))


def covariance(p: Illness, days: np.ndarray, in_bed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the parameters, from the Jacobian at the fit; and that Jacobian."""
    slopes = plaingrad.jacobian(lambda values: course(Illness(*values), days))(np.array(astuple(p)))
    misses = course(p, days) - in_bed
    return np.linalg.inv(slopes.T @ slopes) * (misses @ misses) / (len(days) - 3), slopes


def draw(path: Path, p: Illness, spread: np.ndarray, days: np.ndarray, in_bed: np.ndarray) -> None:
    """The fit with its uncertainty, and how each parameter moves it."""
    from pictures import BROWN, GREY, PURPLE, TEAL, picture

    fine = np.linspace(0.0, 15.0, 151)
    values = np.array(astuple(p))
    slopes = plaingrad.jacobian(lambda values: course(Illness(*values), fine))(values)
    curve, error = course(p, fine), np.sqrt(np.sum(slopes @ spread * slopes, axis=1))
    with picture(path, ncols=2) as (_, (left, right)):
        left.fill_between(fine, curve - 2 * error, curve + 2 * error, color=TEAL, alpha=0.2, linewidth=0)
        left.plot(fine, curve, color=TEAL, linewidth=2, label="model, two standard errors")
        left.plot(days, in_bed, "o", color=BROWN, markersize=6, markeredgecolor="white", label="boys in bed")
        left.plot(fine, course(p, fine, 0.1), "--", color=GREY, label="with a tenth of them immune")
        left.set(
            title="Influenza at a boarding school, 1978", xlabel="day", ylabel="boys in bed", ylim=(0, None)
        )
        left.legend(loc="upper right", fontsize=9)
        for name, colour, column in zip(
            ("contact", "recovery", "start"), (BROWN, TEAL, PURPLE), (slopes * values).T
        ):
            right.plot(fine, column / 100, color=colour, linewidth=1.8, label=name)
        right.axhline(0.0, color=GREY, linewidth=0.8)
        right.set(
            title="Its derivatives, through solve_ivp", xlabel="day", ylabel="boys for 1 % of a parameter"
        )
        right.legend(fontsize=9)
        for axes in (left, right):
            axes.grid(axis="y")


def main(path: Path = HERE / "output" / "epidemic.png") -> Illness:
    """Fit, print, draw; returns the fit."""
    days, in_bed = np.loadtxt(HERE / "data" / "flu_1978.csv", delimiter=",", skiprows=1).T
    found = fit(days, in_bed)
    p, values = found.x, np.array(astuple(found.x))
    spread, slopes = covariance(p, days, in_bed)
    error = gap(lambda values: course(Illness(*values), days), values, slopes.T, np.eye(3))
    print("Influenza at a boarding school: solve_ivp inside least_squares")
    print(f"  {found.nfev} evaluations, {found.njev} Jacobians; these agree with differences to {error:.0e}")
    for name, value, deviation in zip(("contact", "recovery", "start"), values, np.sqrt(np.diag(spread))):
        print(f"  {name:<10}{value:8.3f} +- {deviation:.3f}")
    number, slope = plaingrad.value_and_grad(lambda values: values[0] / values[1])(values)
    print(f"  boys that one infects at first: {number:.2f} +- {np.sqrt(slope @ spread @ slope):.2f}")
    (day, most), moves = peak(p, 0.0), plaingrad.jacobian(lambda immune: peak(p, immune))(0.0)
    rough = gap(lambda immune: peak(p, immune[0]), np.zeros(1), moves[None], np.eye(1))
    print(
        f"  peak on day {day:.2f} with {most:.0f} in bed; each percent that is immune moves it"
        f" by {moves[0] / 100:+.3f} days and {moves[1] / 100:+.1f} boys (differences: {rough:.0e})"
    )
    draw(path, p, spread, days, in_bed)
    print(f"  {path}")
    return p


if __name__ == "__main__":
    main()
