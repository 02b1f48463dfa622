"""The picture of the fit: the record and the model above, derivatives of the model and of its misfit below."""

import math
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import numpy as np

import plaingrad
from lotka_volterra import Census, Parameters, misfit, populations
from pictures import BROWN, GREY, PLAIN_STYLE, TEAL, plt

COLOURS = ("#a4622c", "#1b1b1b", "#1b6e78", "#6fb1a0", "#7a4f9a", "#d9a441")
DASHES = ("-", ":", "-", "-", "-", "-")  # predation and the first lynxes move the hares in the same way
NAMES = [field.name.replace("_", " ") for field in fields(Parameters)]
SLICE = (0, 2)  # hare_growth and lynx_death: together they make the period of the cycle
AROUND = 0.3  # how far the slice goes, in the logarithm of a parameter


def log_hares(logs: np.ndarray, years: list[float]) -> np.ndarray:
    """The logarithm of the hares at the given years, as a function of the logarithms of the parameters."""
    p = Parameters(*[math.exp(value) for value in logs])
    return np.array([math.log(hare) for hare, lynx in populations(p, years)])


def misfit_of_logs(logs: np.ndarray, record: list[Census]) -> float:
    """The misfit as a function of the logarithms of the parameters."""
    return misfit(Parameters(*[math.exp(value) for value in logs]), record)


def draw_years(axes: Any, record: list[Census], years: list[float], states: list[list[float]]) -> None:
    """Both populations over the years, with the pelts that were counted."""
    hares, lynxes = zip(*states)
    for name, colour, curve, marker in (("hare", BROWN, hares, "o"), ("lynx", TEAL, lynxes, "s")):
        axes.plot(years, curve, color=colour, linewidth=2, label=f"{name}, model")
        axes.plot(
            [row.year for row in record],
            [getattr(row, name) for row in record],
            marker,
            color=colour,
            markersize=5.5,
            markeredgecolor="white",
            label=f"{name}, pelts",
        )
    axes.set(title="Pelts a year and the fitted model", ylabel="thousands", ylim=(0, None))
    axes.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.1))


def draw_phase(axes: Any, record: list[Census], states: list[list[float]]) -> Any:
    """Lynxes against hares; the points, for a colour bar."""
    axes.plot(*zip(*states), color=GREY, linewidth=2)
    points = axes.scatter(
        [row.hare for row in record],
        [row.lynx for row in record],
        c=[row.year for row in record],
        cmap="viridis",
        s=34,
        edgecolors="white",
        linewidths=0.7,
        zorder=3,
    )
    axes.set(title="Lynxes against hares", xlabel="hares, thousands", ylabel="lynxes, thousands")
    axes.set(xlim=(0, None), ylim=(0, None))
    return points


def draw_sensitivities(axes: Any, logs: np.ndarray, years: list[float]) -> None:
    """A Jacobian: how each parameter moves the hares of each year."""
    jacobian = plaingrad.jacobian(log_hares)(logs, years)
    for name, colour, dashes, column in zip(NAMES, COLOURS, DASHES, jacobian.T):
        axes.plot(
            years, column, dashes, color=colour, linewidth=1.8, label=name, zorder=3 if dashes == ":" else 2
        )
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.set(title="Derivatives of the hares", ylabel="percent for one percent of a parameter")
    axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.08))


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


def picture(found: Parameters, record: list[Census], path: Path) -> None:
    """Draw the fit and its derivatives into a file."""
    first, last = record[0].year, record[-1].year
    years = np.linspace(first, last, 401).tolist()
    states = populations(found, years)
    logs = np.log(astuple(found))
    with plt.rc_context(PLAIN_STYLE):
        figure, ((over_years, phase), (moves, around)) = plt.subplots(
            2, 2, figsize=(12, 8.6), dpi=130, width_ratios=(1.9, 1), layout="constrained"
        )
        draw_years(over_years, record, years, states)
        points = draw_phase(phase, record, states)
        draw_sensitivities(moves, logs, years)
        draw_slice(around, logs, record)
        for axes in (over_years, moves):
            axes.set(xlim=(first - 0.5, last + 0.5), xticks=np.arange(first, last + 1, 5))
            axes.grid(axis="y", color="#e4e4e4", linewidth=0.8)
            axes.set_axisbelow(True)
        bar = figure.colorbar(points, ax=phase, ticks=[1900, 1910, 1920], shrink=0.8)
        bar.outline.set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        plt.close(figure)
