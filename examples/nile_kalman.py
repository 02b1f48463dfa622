"""The level of the Nile: a Kalman filter whose noises are found by maximum likelihood.

The flow of a year is a level that wanders, plus noise. The filter is a plain loop over years, as textbooks have it; its
likelihood is maximised by `minimize` with the gradient through the loop, and the Hessian gives standard errors. Then
the estimate itself is differentiated, through SciPy's minimizer: which years have decided what is noise?

Data: `data/nile.csv`, the volume of the Nile at Aswan from 1871 to 1970 in 10^8 m^3, as G. W. Cobb published it
(Biometrika 65, 1978, page 243); public domain according to statsmodels, whose file it is. Durbin and Koopman (Time
Series Analysis by State Space Methods, section 2.10) find the variances 15099 and 1469.1.

    python examples/nile_kalman.py
"""

from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import plaingrad
from differences import gap_of_gradient

HERE = Path(__file__).resolve().parent
VAGUE = 1e7  # the variance of the level before the first year
START = np.log([5000.0, 5000.0])


def filtered(logs: np.ndarray, flow: np.ndarray) -> tuple[list[float], list[float], float]:
    """The expected level after each year, its variance, and minus the log likelihood without the first year.

    Args:
        logs: logarithms of the variances of the noise, and of a year's change of the level.
    """
    noise, wandering = np.exp(logs)
    level, variance, total = 0.0, VAGUE, 0.0
    levels, variances = [], []
    for year in range(len(flow)):
        surprise, spread = flow[year] - level, variance + noise
        if year:
            total += 0.5 * (np.log(2 * np.pi * spread) + surprise**2 / spread)
        gain = variance / spread
        level += gain * surprise
        variance *= 1 - gain
        levels.append(level)
        variances.append(variance)
        variance += wandering
    return levels, variances, total


def misfit(logs: np.ndarray, flow: np.ndarray) -> float:
    """Minus the log likelihood."""
    return filtered(logs, flow)[2]


def estimate(flow: np.ndarray, start: np.ndarray = START) -> np.ndarray:
    """The logarithms of both variances, as a function of the record."""
    return minimize(
        plaingrad.value_and_grad(misfit), start, args=(flow,), jac=True, method="BFGS", tol=1e-8
    ).x


def log_ratio(flow: np.ndarray, start: np.ndarray) -> float:
    """The logarithm of (change of the level / noise), as it is estimated from the record."""
    noise, wandering = estimate(flow, start)
    return wandering - noise


def draw(path: Path, years: np.ndarray, flow: np.ndarray, logs: np.ndarray, moves: np.ndarray) -> None:
    """The record with its level, the likelihood around its top, and what each year does to the estimate."""
    from pictures import BROWN, GREY, TEAL, picture

    levels, variances, best = filtered(logs, flow)
    error = 2 * np.sqrt(variances)
    with picture(path, ncols=3, width=12.5, height=3.9, width_ratios=(1.5, 1, 1.3)) as (
        _,
        (record, top, right),
    ):
        record.plot(years, flow, "o", color=BROWN, markersize=4, markeredgecolor="white", label="a year")
        record.plot(years, levels, color=TEAL, linewidth=2, label="filtered level, two standard errors")
        record.fill_between(years, levels - error, levels + error, color=TEAL, alpha=0.2, linewidth=0)
        record.set(title="Flow of the Nile at Aswan", ylabel="10$^8$ m$^3$ a year", ylim=(350, 1500))
        record.legend(fontsize=9, loc="upper right")
        aside = np.linspace(-1.5, 1.5, 25)
        heights = [[best - misfit(logs + [dx, dy], flow) for dx in 0.5 * aside] for dy in aside]
        top.contourf(
            0.5 * aside + logs[0],
            aside + logs[1],
            heights,
            levels=np.linspace(-6, 0, 13),
            cmap="YlGnBu",
            extend="min",
        )
        angle, axes = (
            np.linspace(0, 2 * np.pi, 100),
            np.linalg.cholesky(np.linalg.inv(plaingrad.hessian(misfit)(logs, flow))),
        )
        top.plot(
            *(logs[:, None] + axes @ [np.cos(angle), np.sin(angle)]),
            "--",
            color="white",
            label="Hessian: one standard error",
        )
        top.legend(fontsize=8, labelcolor="white", loc="upper center")
        top.plot(*logs, "o", color="white", markeredgecolor="black", markersize=7)
        top.set(
            title="Log likelihood",
            xlabel="log variance of the noise",
            ylabel="log variance of a year's change",
        )
        right.bar(years, 100 * moves, color=[TEAL if move > 0 else BROWN for move in moves], width=0.9)
        right.axhline(0.0, color=GREY, linewidth=0.8)
        right.set(title="What a year does to the estimate", ylabel="% change / noise for 10$^8$ m$^3$ more")
        for axes in (record, right):
            axes.grid(axis="y")


def main(path: Path = HERE / "output" / "nile_kalman.png") -> np.ndarray:
    """Estimate, print, draw; returns both variances."""
    years, flow = np.loadtxt(HERE / "data" / "nile.csv", delimiter=",", skiprows=1).T
    start = plaingrad.grad(misfit)(START, flow)
    error = gap_of_gradient(lambda logs: misfit(logs, flow), START, start)
    logs = estimate(flow)
    deviations = np.sqrt(np.diag(np.linalg.inv(plaingrad.hessian(misfit)(logs, flow))))
    moves = plaingrad.grad(log_ratio)(flow, logs)
    rough = gap_of_gradient(lambda flow: log_ratio(flow, logs), flow, moves)
    print("The Nile: a Kalman filter's likelihood")
    print(f"  its gradient agrees with differences to {error:.0e}")
    for name, value, deviation in zip(("noise of a year", "change of the level"), np.exp(logs), deviations):
        print(f"  variance, {name:<20}{value:9.1f}  (factor {np.exp(deviation):.2f} either way)")
    year = int(years[np.argmax(np.abs(moves))])
    print(
        f"  the year that moves their ratio most is {year}; through the minimizer, differences: {rough:.0e}"
    )
    draw(path, years, flow, logs, moves)
    print(f"  {path}")
    return np.exp(logs)


if __name__ == "__main__":
    main()
