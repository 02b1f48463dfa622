"""The rings of the space shuttle: Hamiltonian Monte Carlo by hand, with the gradient of a posterior density.

Before its last launch, on a morning of 31 degrees Fahrenheit, the shuttle Challenger and its sisters had flown 23
times and their boosters had been looked at: how many of the six field joints had damaged rings? A logistic curve
says how likely that is at a temperature. Its two parameters are sampled; what a user writes is the log density and
twelve lines of leapfrog. The posterior has two parameters only, so that a grid can say whether the sampler is
right.

Data: `data/challenger.csv`, temperature at the joints and the number of damaged ones of 23 flights, from the Report
of the Presidential Commission on the Space Shuttle Challenger Accident (1986), a work of the United States'
government. Dalal, Fowlkes and Hoadley (JASA 84, 1989, 945-957) find the most likely curve 5.085 - 0.1156 degrees.

    python examples/challenger.py
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

import plaingrad
from differences import gap_of_gradient

HERE = Path(__file__).resolve().parent
RINGS = 6
LAUNCH = 31.0  # degrees Fahrenheit on 28 January 1986
SPREAD = 10.0  # of the prior, which says next to nothing


def log_odds(p: np.ndarray, fahrenheit: np.ndarray) -> np.ndarray:
    """Of damage; p is the value at 70 degrees, and what ten degrees more add."""
    return p[0] + p[1] * (fahrenheit - 70.0) / 10.0


def log_density(p: np.ndarray, fahrenheit: np.ndarray, damaged: np.ndarray) -> float:
    """Of the posterior, up to a constant: binomial counts, and wide normal priors."""
    z = log_odds(p, fahrenheit)
    return np.sum(damaged * z - RINGS * np.logaddexp(0.0, z)) - 0.5 * np.sum((p / SPREAD) ** 2)


def sampled(
    density: Callable[..., float],
    start: np.ndarray,
    args: tuple,
    count: int,
    step: float = 0.25,
    jumps: int = 8,
) -> tuple[np.ndarray, float]:
    """Hamiltonian Monte Carlo: the samples, and the share of proposals that were taken."""
    rng = np.random.default_rng(1986)
    density_and_slope = plaingrad.value_and_grad(density)
    x, (height, slope), taken = start, density_and_slope(start, *args), 0
    samples = np.empty((count, len(start)))
    for k in range(count):
        momentum = rng.normal(size=len(x))
        y, y_height, y_slope, p = x, height, slope, momentum
        for _ in range(jumps):
            p = p + 0.5 * step * y_slope
            y = y + step * p
            y_height, y_slope = density_and_slope(y, *args)
            p = p + 0.5 * step * y_slope
        if np.log(rng.random()) < y_height - height + 0.5 * (momentum @ momentum - p @ p):
            x, height, slope, taken = y, y_height, y_slope, taken + 1
        samples[k] = x
    return samples, taken / count


def on_a_grid(
    fahrenheit: np.ndarray, damaged: np.ndarray, n: int = 160
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both axes, and the posterior's weight of every place between them."""
    first, second = np.linspace(-5.5, -1.0, n), np.linspace(-3.5, 1.5, n)
    heights = np.array([[log_density(np.array([a, b]), fahrenheit, damaged) for a in first] for b in second])
    weights = np.exp(heights - heights.max())
    return first, second, weights / weights.sum()


def draw(path: Path, samples: np.ndarray, grid: tuple, fahrenheit: np.ndarray, damaged: np.ndarray) -> None:
    """The flights with curves of the posterior, and the posterior with the samples."""
    from pictures import BROWN, GREY, TEAL, picture

    fine = np.linspace(28.0, 85.0, 115)
    curves = 1.0 / (1.0 + np.exp(-np.array([log_odds(p, fine) for p in samples[::10]])))
    low, middle, high = np.quantile(curves, [0.05, 0.5, 0.95], axis=0)
    jitter = np.random.default_rng(0).uniform(-0.012, 0.012, len(damaged))
    with picture(path, ncols=2, width_ratios=(1.6, 1)) as (_, (left, right)):
        left.fill_between(fine, low, high, color=TEAL, alpha=0.2, linewidth=0, label="90 % of the posterior")
        left.plot(fine, curves[:40].T, color=TEAL, alpha=0.15, linewidth=0.8)
        left.plot(fine, middle, color=TEAL, linewidth=2, label="median")
        left.plot(
            fahrenheit, damaged / RINGS + jitter, "o", color=BROWN, markeredgecolor="white", label="a flight"
        )
        left.axvline(LAUNCH, color=GREY, linestyle=":")
        left.text(LAUNCH + 0.5, 0.03, "28 January 1986", color=GREY, fontsize=9)
        left.set(
            title="Damaged joints of six", xlabel="degrees Fahrenheit", ylabel="share", ylim=(-0.03, 1.03)
        )
        left.legend(fontsize=9)
        right.plot(*samples.T, ".", color=BROWN, markersize=2, alpha=0.5)
        right.contour(*grid, 7, colors=TEAL, linewidths=1.2)
        right.set(
            title="Samples, and the density on a grid", xlabel="log odds at 70", ylabel="for ten degrees more"
        )


def main(path: Path = HERE / "output" / "challenger.png", count: int = 1500) -> np.ndarray:
    """Sample, compare with the grid, print, draw; returns the samples' means and deviations."""
    fahrenheit, damaged = np.loadtxt(HERE / "data" / "challenger.csv", delimiter=",", skiprows=1).T
    start = np.array([-2.5, -1.0])
    slope = plaingrad.grad(log_density)(start, fahrenheit, damaged)
    error = gap_of_gradient(lambda p: log_density(p, fahrenheit, damaged), start, slope)
    samples, taken = sampled(log_density, start, (fahrenheit, damaged), count)
    grid = on_a_grid(fahrenheit, damaged)
    first, second = np.meshgrid(*grid[:2])
    print("The rings of the Challenger: Hamiltonian Monte Carlo")
    print(f"  the gradient agrees with differences to {error:.0e}; {taken:.0%} of the proposals taken")
    for name, column, axis in zip(
        ("log odds at 70 degrees", "for ten degrees more"), samples.T, (first, second)
    ):
        mean = np.sum(axis * grid[2])
        deviation = np.sqrt(np.sum((axis - mean) ** 2 * grid[2]))
        print(
            f"  {name:<24}{column.mean():7.3f} +- {column.std():.3f}   on the grid {mean:7.3f} +- {deviation:.3f}"
        )
    chances = 1.0 / (1.0 + np.exp(-log_odds(samples.T, LAUNCH)))
    low, high = np.quantile(chances, [0.05, 0.95])
    print(f"  at {LAUNCH:.0f} degrees a joint fails with a chance of {low:.0%} to {high:.0%}")
    draw(path, samples, grid, fahrenheit, damaged)
    print(f"  {path}")
    return np.array([samples.mean(axis=0), samples.std(axis=0)])


if __name__ == "__main__":
    main()
