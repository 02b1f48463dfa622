"""Three centuries of sunspots: a stochastic cycle, whose likelihood and derivatives are compiled.

The square root of a year's count is a mean, noise, and a cycle that turns by a fixed angle each year while it is
pushed at random (A. C. Harvey, Forecasting, Structural Time Series Models and the Kalman Filter, 1989, section
2.3). The likelihood is a loop over years, made fast by `numba.njit`. plaingrad notices that, and its gradient and
Hessian are compiled, too. They give the estimate, and how well the record determines the period.

Data: `data/sunspots.csv`, yearly counts from 1700 to 2008, National Geophysical Data Center; public domain
according to statsmodels, whose file it is.

    python examples/sunspots.py
"""

import math
import time
from pathlib import Path

import numba
import numpy as np
from scipy.optimize import minimize

import plaingrad
from differences import gap_of_gradient

HERE = Path(__file__).resolve().parent
START = np.array([math.log(10.0), 2.0, 1.0, -2.0, 6.0])
AHEAD = 22


@numba.njit
def filtered(p, roots, ahead, means, spreads):
    """Minus the log likelihood; the expected root of each year's count and its deviation are written down.

    p: log of the period in years; damping and both variances on scales without bounds; the mean.
    """
    turn, keep = 2.0 * math.pi / math.exp(p[0]), 1.0 / (1.0 + math.exp(-p[1]))
    c, s = keep * math.cos(turn), keep * math.sin(turn)
    push, noise, mean = math.exp(p[2]), math.exp(p[3]), p[4]
    x, y, xx, xy, yy = 0.0, 0.0, push / (1.0 - keep * keep), 0.0, push / (1.0 - keep * keep)
    total = 0.0
    for k in range(len(roots) + ahead):
        spread = xx + noise
        means[k], spreads[k] = mean + x, math.sqrt(spread)
        if k < len(roots):
            surprise = roots[k] - mean - x
            total += 0.5 * (math.log(2.0 * math.pi * spread) + surprise * surprise / spread)
            a, b = xx / spread, xy / spread
            x, y = x + a * surprise, y + b * surprise
            xx, xy, yy = xx - a * xx, xy - a * xy, yy - b * xy
        x, y = c * x + s * y, c * y - s * x
        # P -> T P T' + push, T turning by the angle and damping
        pxx = c * c * xx + 2.0 * c * s * xy + s * s * yy + push
        pxy = c * c * xy + c * s * (yy - xx) - s * s * xy
        yy = c * c * yy - 2.0 * c * s * xy + s * s * xx + push
        xx, xy = pxx, pxy
    return total


@numba.njit
def misfit(p, roots):
    """Minus the log likelihood."""
    return filtered(p, roots, 0, np.empty(len(roots)), np.empty(len(roots)))


def estimate(roots: np.ndarray):
    """SciPy's result."""
    return minimize(plaingrad.value_and_grad(misfit), START, args=(roots,), jac=True, method="BFGS", tol=1e-7)


def draw(path: Path, p: np.ndarray, hessian: np.ndarray, years: np.ndarray, roots: np.ndarray) -> None:
    """The last century with predictions, the years ahead, and the likelihood of periods."""
    from pictures import BROWN, GREY, TEAL, picture

    means, spreads = np.empty(len(years) + AHEAD), np.empty(len(years) + AHEAD)
    filtered(p, roots, AHEAD, means, spreads)
    all_years, top = np.append(years, years[-1] + 1 + np.arange(AHEAD)), means + 2 * spreads
    with picture(path, ncols=2, width_ratios=(2.6, 1)) as (_, (left, right)):
        left.fill_between(
            all_years, np.maximum(means - 2 * spreads, 0) ** 2, top**2, color=TEAL, alpha=0.2, linewidth=0
        )
        left.plot(all_years, means**2, color=TEAL, linewidth=1.6, label="predicted, two standard deviations")
        left.plot(years, roots**2, ".", color=BROWN, label="counted")
        left.axvline(years[-1] + 0.5, color=GREY, linestyle=":")
        left.set(
            title="Sunspots, predicted from the years before",
            ylabel="a year",
            xlim=(1900, all_years[-1]),
            ylim=(0, 260),
        )
        left.legend(loc="upper left", ncols=2, fontsize=9)
        logs = np.linspace(-0.12, 0.12, 81)
        best = misfit(p, roots)
        # Where the period is off, the other parameters follow: the Hessian says how.
        others = -np.linalg.solve(hessian[1:, 1:], hessian[1:, 0])
        moved = lambda d: p + d * np.concatenate([[1.0], others])
        sharp = hessian[0, 0] + hessian[0, 1:] @ others
        right.plot(
            np.exp(p[0] + logs),
            [best - misfit(moved(d), roots) for d in logs],
            color=TEAL,
            linewidth=2,
            label="log likelihood",
        )
        right.plot(np.exp(p[0] + logs), -0.5 * sharp * logs**2, "--", color=BROWN, label="by the Hessian")
        right.set(title="How well the period is known", xlabel="years", ylim=(-8, 0.5))
        right.legend(fontsize=9, loc="lower center")


def main(path: Path = HERE / "output" / "sunspots.png") -> float:
    """Estimate, print, draw; returns the period in years."""
    years, counts = np.loadtxt(HERE / "data" / "sunspots.csv", delimiter=",", skiprows=1).T
    roots = np.sqrt(counts)
    begun = time.perf_counter()
    slope = plaingrad.grad(misfit)(START, roots)
    compiling = time.perf_counter() - begun
    error = gap_of_gradient(lambda p: misfit(p, roots), START, slope)
    begun = time.perf_counter()
    found = estimate(roots)
    fitting = time.perf_counter() - begun
    hessian = plaingrad.hessian(misfit)(found.x, roots)
    deviation = math.sqrt(np.linalg.inv(hessian)[0, 0])
    period = math.exp(found.x[0])
    print("Sunspots: a stochastic cycle, by compiled derivatives")
    print(f"  the gradient agrees with differences to {error:.0e}")
    print(f"  {compiling:.1f} s to compile (kept on disk), {1e3 * fitting:.0f} ms for {found.nfev} gradients")
    print(f"  a period of {period:.2f} +- {period * deviation:.2f} years")
    draw(path, found.x, hessian, years, roots)
    print(f"  {path}")
    return period


if __name__ == "__main__":
    main()
