"""Survival after a heart transplant: Cox's regression in a dozen lines, by Newton's method.

How the risk of dying depends on age, without a word on how it depends on time since the operation: what is
maximised is the product, over deaths, of the chance that this patient was the one who died among those still under
observation. Written down as a function, it has a gradient and a Hessian: Newton's method finds the estimate, the
Hessian its errors, and the Jacobian of the survival curves their bands.

Data: 69 patients of R. Miller, "Least squares regression with censored data", Biometrika 63 (1976), 449-464, from
statsmodels, whose file is read (`pip install statsmodels`).

    python examples/transplants.py
"""

from pathlib import Path

import numpy as np

import plaingrad
from differences import gap, gap_of_gradient

HERE = Path(__file__).resolve().parent
MIDDLE = 45.0  # years of age
SHOWN = (30.0, 45.0, 60.0)
NAMES = ("ten years more", "their square")


def read() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Days until death or the end of observation, whether it was death, and age; the longest first."""
    import statsmodels.datasets.heart

    file = Path(statsmodels.datasets.heart.__file__).parent / "heart.csv"
    days, died, age = np.loadtxt(file, delimiter=",", skiprows=1).T
    order = np.argsort(-days, kind="stable")
    return days[order], died[order], age[order]


def covariates(age: np.ndarray) -> np.ndarray:
    """A row for each patient: decades above 45, and their square."""
    decades = (np.asarray(age) - MIDDLE) / 10.0
    return np.stack([decades, decades**2], axis=-1)


def at_risk(days: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """For each patient the sum of the weights of all who lived as long; days descend, ties share (Breslow)."""
    last = np.searchsorted(-days, -days, side="right") - 1
    return np.cumsum(weights)[last]


def misfit(beta: np.ndarray, days: np.ndarray, died: np.ndarray, age: np.ndarray) -> float:
    """Minus the log of Cox's partial likelihood."""
    z = covariates(age) @ beta
    return -np.sum(died * (z - np.log(at_risk(days, np.exp(z)))))


def newton(start: np.ndarray, args: tuple, steps: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Where the misfit is least, and its Hessian there."""
    beta = start
    for _ in range(steps):
        beta = beta - np.linalg.solve(
            plaingrad.hessian(misfit)(beta, *args), plaingrad.grad(misfit)(beta, *args)
        )
    return beta, plaingrad.hessian(misfit)(beta, *args)


def survival(
    beta: np.ndarray, days: np.ndarray, died: np.ndarray, age: np.ndarray, times: np.ndarray
) -> np.ndarray:
    """The share of patients of the ages that are shown who live longer than each time: Breslow's estimate."""
    hazards = died / at_risk(days, np.exp(covariates(age) @ beta))
    passed = (days <= times[:, None]).astype(float) @ hazards
    return np.exp(-np.outer(np.exp(covariates(np.array(SHOWN)) @ beta), passed))


def draw(
    path: Path, beta: np.ndarray, hessian: np.ndarray, data: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    """Survival at three ages with bands, and the risk as it depends on age."""
    from pictures import BROWN, GREY, PURPLE, TEAL, picture

    covariance = np.linalg.inv(hessian)
    times = np.linspace(0.0, 1500.0, 151)
    curves = survival(beta, *data, times)
    slopes = plaingrad.jacobian(survival)(beta, *data, times)
    errors = np.sqrt(np.einsum("ati,ij,atj->at", slopes, covariance, slopes))
    with picture(path, ncols=2, width_ratios=(1.5, 1)) as (_, (left, right)):
        for curve, error, age, colour in zip(curves, errors, SHOWN, (TEAL, BROWN, PURPLE)):
            left.plot(
                times, curve, color=colour, linewidth=2, drawstyle="steps-post", label=f"{age:.0f} years old"
            )
            left.fill_between(
                times, curve - error, curve + error, color=colour, alpha=0.18, step="post", linewidth=0
            )
        left.set(
            title="Alive after a transplant, one standard error of the effect of age",
            xlabel="days",
            ylim=(0, 1),
        )
        left.legend(fontsize=9)
        ages = np.linspace(15.0, 65.0, 101)
        rows = covariates(ages)
        risk, error = rows @ beta, np.sqrt(np.einsum("ai,ij,aj->a", rows, covariance, rows))
        right.fill_between(
            ages, np.exp(risk - 2 * error), np.exp(risk + 2 * error), color=TEAL, alpha=0.2, linewidth=0
        )
        right.plot(ages, np.exp(risk), color=TEAL, linewidth=2)
        right.plot(data[2], np.full(len(data[2]), 0.09), "|", color=BROWN, markersize=9)
        right.axhline(1.0, color=GREY, linewidth=0.8)
        right.set(title="Risk against that at 45", xlabel="age", yscale="log", ylim=(0.08, 12))


def main(path: Path = HERE / "output" / "transplants.png") -> np.ndarray:
    """Estimate, print, draw; returns the coefficients."""
    data = read()
    start = np.zeros(2)
    error = gap_of_gradient(
        lambda b: misfit(b, *data), start + 0.1, plaingrad.grad(misfit)(start + 0.1, *data)
    )
    beta, hessian = newton(start, data)
    rough = gap(lambda b: plaingrad.grad(misfit)(b, *data), beta, hessian, np.eye(2))
    print("Heart transplants: Cox's regression by Newton's method")
    print(f"  the gradient agrees with differences to {error:.0e}, the Hessian to {rough:.0e}")
    for name, value, deviation in zip(NAMES, beta, np.sqrt(np.diag(np.linalg.inv(hessian)))):
        print(f"  log risk for {name:<16}{value:7.3f} +- {deviation:.3f}")
    print(f"  gradient after eight steps: {np.abs(plaingrad.grad(misfit)(beta, *data)).max():.0e}")
    draw(path, beta, hessian, data)
    print(f"  {path}")
    return beta


if __name__ == "__main__":
    main()
