"""Carbon dioxide at Mauna Loa: a Gaussian process whose eleven hyperparameters are found by maximum likelihood.

The kernel is that of Rasmussen and Williams (Gaussian Processes for Machine Learning, section 5.4.3): a trend, a year's
rhythm that slowly changes, irregularities, and noise. The marginal likelihood is what a user of SciPy writes, with
`cho_factor` and `cho_solve`; its gradient goes through both. Fitted to the months until 1985, the process says what
comes until 2001, with its uncertainty, and is compared with what came. (Fitted until 1989 it expects too much: growth
slowed for some years after Pinatubo's eruption of 1991.)

Data: `data/co2.csv`, monthly means in ppm by volume of the weekly averages of air at Mauna Loa (C. D. Keeling and
T. P. Whorf, Scripps Institution of Oceanography, published by the Carbon Dioxide Information Analysis Center of Oak
Ridge National Laboratory, 2004); public domain according to statsmodels, in whose file the weeks are.

    python examples/mauna_loa.py
"""

import time
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

import plaingrad
from differences import gap_of_gradient

HERE = Path(__file__).resolve().parent
LAST = 1986.0  # the year before which months are used
NAMES = (
    "trend, size", "trend, years", "rhythm, size", "rhythm, years", "rhythm, shape", "irregular, size",
    "irregular, years", "irregular, mixture", "weather, size", "weather, years", "noise, size",
)  # fmt: skip
START = np.log([50.0, 50.0, 2.0, 80.0, 1.5, 0.5, 1.0, 1.0, 0.2, 0.2, 0.2])


def kernel(logs: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The covariances of the months s and t, without the noise of a month."""
    p = np.exp(logs)
    apart = s[:, None] - t[None, :]
    square = apart**2
    trend = p[0] ** 2 * np.exp(-0.5 * square / p[1] ** 2)
    rhythm = p[2] ** 2 * np.exp(-0.5 * square / p[3] ** 2 - 2.0 * np.sin(np.pi * apart) ** 2 / p[4] ** 2)
    irregular = p[5] ** 2 * (1.0 + square / (2.0 * p[7] * p[6] ** 2)) ** -p[7]
    weather = p[8] ** 2 * np.exp(-0.5 * square / p[9] ** 2)
    return trend + rhythm + irregular + weather


def misfit(logs: np.ndarray, t: np.ndarray, y: np.ndarray) -> float:
    """Minus the log of the marginal likelihood."""
    factor = cho_factor(kernel(logs, t, t) + np.exp(2.0 * logs[10]) * np.eye(len(t)), lower=True)
    log_determinant = 2.0 * np.sum(np.log(np.diag(factor[0])))
    return 0.5 * (y @ cho_solve(factor, y) + log_determinant + len(t) * np.log(2.0 * np.pi))


def predicted(
    logs: np.ndarray, t: np.ndarray, y: np.ndarray, later: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The expected values at other times, and their standard deviations with the noise of a month."""
    noise = np.exp(2.0 * logs[10])
    factor = cho_factor(kernel(logs, t, t) + noise * np.eye(len(t)), lower=True)
    across = kernel(logs, later, t)
    variance = np.sum(np.exp(2.0 * logs[[0, 2, 5, 8, 10]])) - np.sum(
        across * cho_solve(factor, across.T).T, axis=1
    )
    return across @ cho_solve(factor, y), np.sqrt(variance)


def fit(t: np.ndarray, y: np.ndarray, steps: int = 200):
    """SciPy's result: the logarithms of the hyperparameters."""
    objective = plaingrad.value_and_grad(misfit)
    return minimize(objective, START, args=(t, y), jac=True, method="L-BFGS-B", options={"maxiter": steps})


def draw(path: Path, logs: np.ndarray, times: np.ndarray, ppm: np.ndarray, mean: float) -> None:
    """The record with the prediction, its rhythm from close by, and what each hyperparameter is worth."""
    from pictures import BROWN, GREY, TEAL, picture

    known = times < LAST
    t, y = times[known], ppm[known] - mean
    fine = np.linspace(LAST - 4.0, 2008.0, 700)
    curve, error = predicted(logs, t, y, fine)
    with picture(path, ncols=2, width_ratios=(1.2, 1)) as (_, (whole, near)):
        for axes in (whole, near):
            axes.fill_between(
                fine, mean + curve - 2 * error, mean + curve + 2 * error, color=TEAL, alpha=0.25, linewidth=0
            )
            axes.plot(
                fine,
                mean + curve,
                color=TEAL,
                linewidth=1.5,
                label="Gaussian process, two standard deviations",
            )
            axes.plot(times[known], ppm[known], ".", color=GREY, markersize=3, label="months that it knows")
            axes.plot(
                times[~known], ppm[~known], ".", color=BROWN, markersize=4, label="months that came later"
            )
            axes.axvline(LAST, color=GREY, linewidth=0.8)
            axes.grid(axis="y")
        whole.set(title="Carbon dioxide at Mauna Loa", ylabel="ppm", xlim=(1957, 2008))
        near.set(
            title="Sixteen years that were predicted",
            xlim=(LAST - 2, 2002.2),
            ylim=(339, 377),
            xticks=[1985, 1990, 1995, 2000],
        )
        whole.legend(fontsize=9, loc="upper left")


def read() -> tuple[np.ndarray, np.ndarray]:
    """The middle of each month in years, and its mean."""
    year, month, ppm = np.loadtxt(HERE / "data" / "co2.csv", delimiter=",", skiprows=1).T
    return year + (month - 0.5) / 12.0, ppm


def main(path: Path = HERE / "output" / "mauna_loa.png", steps: int = 200, every: int = 1) -> np.ndarray:
    """Fit, print, draw; returns the logarithms of the hyperparameters.

    Args:
        steps: the most iterations of L-BFGS-B.
        every: 2 takes every second month, and so on.
    """
    times, ppm = (column[::every] for column in read())
    known = times < LAST
    mean = ppm[known].mean()
    t, y = times[known], ppm[known] - mean
    error = gap_of_gradient(lambda logs: misfit(logs, t, y), START, plaingrad.grad(misfit)(START, t, y))
    begun = time.perf_counter()
    found = fit(t, y, steps)
    seconds = time.perf_counter() - begun
    logs = found.x
    curve, deviation = predicted(logs, t, y, times[~known])
    misses = ppm[~known] - mean - curve
    print(f"Carbon dioxide at Mauna Loa: a Gaussian process on {len(t)} months")
    print(f"  the gradient agrees with differences to {error:.0e}")
    print(
        f"  log likelihood {-misfit(START, t, y):.1f} -> {-found.fun:.1f}, {found.nfev} gradients in {seconds:.1f} s"
    )
    for name, value in zip(NAMES, np.exp(logs)):
        print(f"  {name:<20}{value:9.3g}")
    within = np.mean(np.abs(misses) < 2 * deviation)
    print(
        f"  of {len(misses)} months that came later, {within:.0%} are within two standard deviations;"
        f" root mean square error {np.sqrt(np.mean(misses**2)):.2f} ppm"
    )
    draw(path, logs, times, ppm, mean)
    print(f"  {path}")
    return logs


if __name__ == "__main__":
    main()
