"""Fit the hare and lynx model to the pelts that the Hudson's Bay Company bought from 1900 to 1920.

The model is `lotka_volterra.py`: plain Python which knows nothing about plaingrad. Here its misfit is handed to
SciPy's L-BFGS-B, once with the gradient from plaingrad and once with the differences that SciPy takes by itself.

    python examples/lynx_hare.py
"""

import math
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import plaingrad
from lotka_volterra import Census, Parameters, misfit, populations, read_record

HERE = Path(__file__).resolve().parent
RECORD = HERE / "data" / "lynx_hare.csv"
OUTPUT = HERE / "output"
GUESS = Parameters(
    hare_growth=0.5, predation=0.05, lynx_death=0.5, lynx_growth=0.05, hare_start=30.0, lynx_start=4.0
)
UNITS = ("1/year", "1/(1000 lynxes year)", "1/year", "1/(1000 hares year)", "1000 hares", "1000 lynxes")


@dataclass
class Fit:
    """What one run of the optimizer found, and what it cost."""

    parameters: Parameters
    misfit: float
    iterations: int
    evaluations: int
    seconds: float


def misfit_of_logs(logs: np.ndarray, record: list[Census]) -> float:
    """The misfit as a function of the logarithms of the parameters: all of them stay positive."""
    return misfit(Parameters(*[math.exp(value) for value in logs]), record)


def fit(record: list[Census], exact_gradient: bool) -> Fit:
    """The best parameters by L-BFGS-B from GUESS."""
    start = np.log(astuple(GUESS))
    begun = time.perf_counter()
    if exact_gradient:
        found = minimize(plaingrad.value_and_grad(misfit_of_logs), start, (record,), "L-BFGS-B", jac=True)
    else:
        found = minimize(misfit_of_logs, start, (record,), "L-BFGS-B")
    seconds = time.perf_counter() - begun
    return Fit(Parameters(*np.exp(found.x).tolist()), float(found.fun), found.nit, found.nfev, seconds)


def central_differences(p: Parameters, record: list[Census], step: float = 1e-5) -> Parameters:
    """The gradient of the misfit by two evaluations a parameter, the step relative to its size."""
    slopes = []
    for index, value in enumerate(astuple(p)):
        sides = []
        for sign in (1, -1):
            moved = list(astuple(p))
            moved[index] = value * (1 + sign * step)
            sides.append(misfit(Parameters(*moved), record))
        slopes.append((sides[0] - sides[1]) / (2 * step * value))
    return Parameters(*slopes)


def picture(found: Parameters, record: list[Census], path: Path) -> None:
    """Draw the record and the fitted populations: over the years, and one against the other."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    first, last = record[0].year, record[-1].year
    years = np.linspace(first, last, 401).tolist()
    hares, lynxes = zip(*populations(found, years))
    brown, teal, grey = "#a4622c", "#1b6e78", "#5f5f5f"
    style = {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": grey,
        "axes.labelcolor": grey,
        "xtick.color": grey,
        "ytick.color": grey,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
    }
    with plt.rc_context(style):
        figure, (over_years, phase) = plt.subplots(
            1, 2, figsize=(11, 4.4), dpi=150, width_ratios=(1.9, 1), layout="constrained"
        )
        for name, color, curve, marker in (("hare", brown, hares, "o"), ("lynx", teal, lynxes, "s")):
            counted = [getattr(row, name) for row in record]
            over_years.plot(years, curve, color=color, linewidth=2, label=f"{name}, model")
            over_years.plot(
                [row.year for row in record],
                counted,
                marker,
                color=color,
                markersize=5.5,
                markeredgecolor="white",
                label=f"{name}, pelts",
            )
        over_years.set(title="Pelts a year and the fitted model", ylabel="thousands", ylim=(0, None))
        over_years.set(xlim=(first - 0.5, last + 0.5), xticks=np.arange(first, last + 1, 5))
        over_years.grid(axis="y", color="#e4e4e4", linewidth=0.8)
        over_years.set_axisbelow(True)
        over_years.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.1))

        phase.plot(hares, lynxes, color=grey, linewidth=2)
        points = phase.scatter(
            [row.hare for row in record],
            [row.lynx for row in record],
            c=[row.year for row in record],
            cmap="viridis",
            s=34,
            edgecolors="white",
            linewidths=0.7,
            zorder=3,
        )
        phase.set(title="Lynxes against hares", xlabel="hares, thousands", ylabel="lynxes, thousands")
        phase.set(xlim=(0, None), ylim=(0, None))
        bar = figure.colorbar(points, ax=phase, ticks=[1900, 1910, 1920], shrink=0.8)
        bar.outline.set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        plt.close(figure)


def show_gradient(p: Parameters, record: list[Census]) -> None:
    """Print the gradient at p beside central differences, a line for each field of the dataclass."""
    value, gradient = plaingrad.value_and_grad(misfit)(p, record)
    differences = central_differences(p, record)
    print(f"The gradient at a first guess, where the misfit is {value:.4f}:\n")
    print(f"  {'parameter':<13}{'guess':>8}{'plaingrad':>17}{'central diff.':>17}{'rel. diff.':>12}")
    for field in fields(p):
        exact, rough = getattr(gradient, field.name), getattr(differences, field.name)
        error = abs(exact - rough) / max(abs(exact), 1e-300)
        guess = getattr(p, field.name)
        print(f"  {field.name:<13}{guess:>8g}{exact:>17.9f}{rough:>17.9f}{error:>12.0e}")


def show_fits(fits: dict[str, Fit]) -> None:
    """Print what each way of getting a gradient cost the optimizer, and what it found."""
    print("\nThe fit, by SciPy's L-BFGS-B in the logarithms of the parameters:\n")
    print(f"  {'gradient from':<22}{'iterations':>11}{'evaluations':>13}{'time':>11}{'misfit':>12}")
    for name, run in fits.items():
        print(
            f"  {name:<22}{run.iterations:>11}{run.evaluations:>13}"
            f"{1e3 * run.seconds:>8.0f} ms{run.misfit:>12.7f}"
        )
    found = next(iter(fits.values())).parameters
    print("\nThe fitted parameters:\n")
    for field, unit in zip(fields(found), UNITS):
        value = getattr(found, field.name)
        rounded = f"{value:#.2g}".rstrip(".")  # the record tells no more than two digits
        print(f"  {field.name:<13}{rounded:>8}  {unit:<22}({value:.5f})")


def main(output: Path = OUTPUT) -> Fit:
    """Fit, print, draw; returns the fit that was made with our gradient."""
    record = read_record(RECORD)
    print("Hares and lynxes: Lotka-Volterra fitted to 21 years of pelts")
    print("------------------------------------------------------------\n")
    show_gradient(GUESS, record)
    fits = {
        "plaingrad": fit(record, exact_gradient=True),
        "SciPy's differences": fit(record, exact_gradient=False),
    }
    show_fits(fits)
    path = output / "lynx_hare.png"
    picture(fits["plaingrad"].parameters, record, path)
    print(f"\nA picture of the fit is in {path}")
    return fits["plaingrad"]


if __name__ == "__main__":
    main()
