"""The picture of the fit: the record, the guess and the fit, the misfit around it, and derivatives as bands."""

import math
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import numpy as np

import plaingrad
from lotka_volterra import Census, Parameters, misfit, populations
from pictures import BROWN, GREY, PLAIN_STYLE, TEAL, plt

NAMES = [field.name.replace("_", " ") for field in fields(Parameters)]
SLICE = (0, 2)  # hare_growth and lynx_death: together they make the period of the cycle
BAND = 0.1  # how much larger and smaller a parameter is at the sides of its band
AROUND = 0.3  # how far the slice goes, in the logarithm of a parameter


def log_populations(logs: np.ndarray, years: list[float]) -> np.ndarray:
    """The logarithms of hares and lynxes at the given years, by the logarithms of the parameters: shape (years, 2)."""
    p = Parameters(*[math.exp(value) for value in logs])
    return np.array([[math.log(hare), math.log(lynx)] for hare, lynx in populations(p, years)])


def misfit_of_logs(logs: np.ndarray, record: list[Census]) -> float:
    """The misfit as a function of the logarithms of the parameters."""
    return misfit(Parameters(*[math.exp(value) for value in logs]), record)


def draw_years(
    axes: Any, record: list[Census], years: list[float], fit: list[list[float]], guess: list[list[float]]
) -> None:
    """Both populations over the years, as first guessed and as fitted, with the pelts that were counted."""
    for k, (name, colour, marker) in enumerate((("hare", BROWN, "o"), ("lynx", TEAL, "s"))):
        axes.plot(
            years, [state[k] for state in guess], ":", color=colour, linewidth=1.4, label=f"{name}, guess"
        )
        axes.plot(years, [state[k] for state in fit], color=colour, linewidth=2, label=f"{name}, fit")
        axes.plot(
            [row.year for row in record],
            [getattr(row, name) for row in record],
            marker,
            color=colour,
            markersize=5.5,
            markeredgecolor="white",
            label=f"{name}, pelts",
        )
    axes.set(title="Pelts a year, the first guess and the fit", ylabel="thousands a year", ylim=(0, None))
    axes.legend(frameon=False, ncols=6, loc="upper center", bbox_to_anchor=(0.5, -0.08), columnspacing=1.2)


def draw_bands(all_axes: Any, logs: np.ndarray, years: list[float], fit: list[list[float]]) -> None:
    """What the derivatives mean: where the curves go when a parameter is a little larger or smaller.

    A panel for each parameter. The band is the fit, moved along its derivative by that parameter: a column of the
    Jacobian of the curves. Where it is wide, the record says much about the parameter.
    """
    slopes = plaingrad.jacobian(log_populations)(logs, years)  # percent for a percent
    for k, (axes, name) in enumerate(zip(all_axes, NAMES)):
        for animal, colour in enumerate((BROWN, TEAL)):
            curve = np.array([state[animal] for state in fit])
            more = curve * np.exp(slopes[:, animal, k] * math.log(1 + BAND))
            less = curve * np.exp(slopes[:, animal, k] * math.log(1 - BAND))
            axes.fill_between(years, less, more, color=colour, alpha=0.3, linewidth=0)
            axes.plot(years, curve, color=colour, linewidth=0.9)
            axes.plot(years, more, color=colour, linewidth=1.2, linestyle="--")
        axes.set(title=f"{name} \N{PLUS-MINUS SIGN} {BAND:.0%}", ylim=(0, 1.25 * max(map(max, fit))))


def draw_slice(axes: Any, logs: np.ndarray, record: list[Census]) -> None:
    """The misfit around the fit in two of its parameters, and the way down that its gradient shows."""
    first, second = SLICE
    gradient = plaingrad.grad(misfit_of_logs)

    def at(dx: float, dy: float) -> np.ndarray:
        place = logs.copy()
        place[first] += dx
        place[second] += dy
        return place

    fine = np.linspace(-AROUND, AROUND, 31)
    heights = [[misfit_of_logs(at(dx, dy), record) for dx in fine] for dy in fine]
    axes.contourf(fine, fine, np.log(heights), 14, cmap="YlGnBu_r", alpha=0.75)
    coarse = np.linspace(-0.88 * AROUND, 0.88 * AROUND, 9)
    slopes = np.array([[gradient(at(dx, dy), record)[[first, second]] for dx in coarse] for dy in coarse])
    down = -slopes / np.linalg.norm(slopes, axis=2, keepdims=True)
    axes.quiver(
        coarse, coarse, down[..., 0], down[..., 1], angles="xy", scale=17, width=0.006, color="#333333"
    )
    axes.plot(0.0, 0.0, "o", color="white", markeredgecolor="#333333", markersize=7)
    ticks, marks = [math.log(0.8), 0.0, math.log(1.25)], ["0.8 fit", "fit", "1.25 fit"]
    axes.set(
        title="Misfit, and minus its gradient", xlabel=NAMES[first], ylabel=NAMES[second], aspect="equal"
    )
    axes.set(xticks=ticks, yticks=ticks, xticklabels=marks, yticklabels=marks)


def picture(found: Parameters, guess: Parameters, record: list[Census], path: Path) -> None:
    """Draw the guess, the fit and its derivatives into a file."""
    first, last = record[0].year, record[-1].year
    years = np.linspace(first, last, 401).tolist()
    fit = populations(found, years)
    logs = np.log(astuple(found))
    with plt.rc_context(PLAIN_STYLE):
        figure = plt.figure(figsize=(12, 9.4), dpi=130, layout="constrained")
        above, below = figure.subfigures(2, 1, height_ratios=(1, 1.12))
        over_years, around = above.subplots(1, 2, width_ratios=(2.1, 1))
        draw_years(over_years, record, years, fit, populations(guess, years))
        draw_slice(around, logs, record)
        bands = below.subplots(2, 3, sharex=True, sharey=True)
        draw_bands(bands.flat, logs, years, fit)
        below.suptitle(
            "What the derivatives of the curves say: the fit with one parameter more (dashed) or less",
            x=0.01,
            ha="left",
            fontsize=11,
        )
        below.supylabel("thousands a year", color=GREY, fontsize=10)
        for axes in (over_years, *bands.flat):
            axes.set(xlim=(first - 0.5, last + 0.5), xticks=np.arange(first, last + 1, 5))
            axes.grid(axis="y", color="#e4e4e4", linewidth=0.8)
            axes.set_axisbelow(True)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        plt.close(figure)
