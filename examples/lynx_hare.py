"""Fit the hare and lynx model to the pelts that the Hudson's Bay Company bought from 1900 to 1920.

The model is `lotka_volterra.py`: plain Python which knows nothing about plaingrad. Here its misfit is handed to
SciPy's L-BFGS-B, once with the gradient from plaingrad and once with the differences that SciPy takes by itself. Then
the same is done with `lotka_volterra_numba.py`, the model as compiled code.

    python examples/lynx_hare.py
"""

import importlib.metadata
import math
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

import plaingrad
from lotka_volterra import Census, Parameters, misfit, read_record

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


@dataclass
class Way:
    """One way to fit: a misfit of the logarithms, its other arguments, and whose gradient is taken."""

    model: str
    gradient: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    @property
    def exact(self) -> bool:
        return self.gradient.startswith("plaingrad")

    def fit(self) -> Fit:
        """The best parameters by L-BFGS-B from GUESS."""
        start = np.log(astuple(GUESS))
        function = plaingrad.value_and_grad(self.function) if self.exact else self.function
        begun = time.perf_counter()
        found = minimize(function, start, self.arguments, "L-BFGS-B", jac=self.exact or None)
        seconds = time.perf_counter() - begun
        return Fit(Parameters(*np.exp(found.x).tolist()), float(found.fun), found.nit, found.nfev, seconds)


def misfit_of_logs(logs: np.ndarray, record: list[Census]) -> float:
    """The misfit as a function of the logarithms of the parameters: all of them stay positive."""
    return misfit(Parameters(*[math.exp(value) for value in logs]), record)


def ways(record: list[Census]) -> list[Way]:
    """In plain Python, and compiled where Numba is installed: with our gradient, and with SciPy's differences."""
    found = [
        Way("plain Python", gradient, misfit_of_logs, (record,))
        for gradient in ("plaingrad", "SciPy's differences")
    ]
    try:
        import lotka_volterra_numba
    except ImportError:
        return found
    columns = tuple(np.array([getattr(row, name) for row in record]) for name in ("year", "hare", "lynx"))
    return found + [
        Way("by Numba", gradient, lotka_volterra_numba.misfit_of_logs, columns)
        for gradient in ("plaingrad, native", "SciPy's differences")
    ]


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


def fit_all(chosen: list[Way], rounds: int = 5) -> list[list[Fit]]:
    """Several fits in each way, which take turns: the first prepares derivatives, and compiles."""
    fits: list[list[Fit]] = [[] for _ in chosen]
    for _ in range(rounds):
        for way, done in zip(chosen, fits):
            done.append(way.fit())
    return fits


def show_fits(chosen: list[Way], fits: list[list[Fit]]) -> None:
    """Print what each way cost the optimizer, and what it found."""
    print("\nThe fit, by SciPy's L-BFGS-B in the logarithms of the parameters:\n")
    print(
        f"  {'model':<14}{'gradient from':<21}{'iterations':>10}{'model runs':>12}"
        f"{'first fit':>12}{'again':>11}{'misfit':>11}"
    )
    for way, done in zip(chosen, fits):
        first, again = 1e3 * done[0].seconds, 1e3 * min(run.seconds for run in done[1:] or done)
        print(
            f"  {way.model:<14}{way.gradient:<21}{done[0].iterations:>10}{done[0].evaluations:>12}"
            f"{first:>9.0f} ms{again:>8.1f} ms{done[0].misfit:>11.7f}"
        )
    print("\n  The first fit rewrites or compiles what is new (compiled derivatives are kept on disk);")
    print(f"  `again` is the best of {max(len(done) for done in fits) - 1} more, taking turns.")
    if not any(way.model == "by Numba" for way in chosen):
        print("  Numba is not installed, so the native tier is left out.")
    found = fits[0][0].parameters
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
    chosen = ways(record)
    fits = fit_all(chosen)  # before all else, so that the first fit is the first derivative
    show_gradient(GUESS, record)
    show_fits(chosen, fits)
    try:
        importlib.metadata.version("matplotlib")  # colour-science puts a stand-in where there is none
    except importlib.metadata.PackageNotFoundError:
        print("\nMatplotlib is not installed, so no picture is drawn.")
    else:
        from lynx_hare_picture import picture

        path = output / "lynx_hare.png"
        picture(fits[0][0].parameters, GUESS, record, path)
        print(f"\nA picture of the fit and of its gradient is in {path}")
    return fits[0][0]


if __name__ == "__main__":
    main()
