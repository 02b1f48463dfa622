"""A pumping test: what the ground around a well lets through, an inverse problem of a differential equation.

A well is pumped, and the water falls in two others. The drawdown s(r, t) around it follows

    S ds/dt = 1/r d/dr (r T(r) ds/dr) - s / c,     2 pi r T ds/dr = -Q at the well,

with a transmissivity T that may change with the distance, the storage S of the ground, and a leaking layer of
resistance c above it. All times and rings are one sparse system, solved by `spsolve`; the gradient with respect to all
52 unknowns costs one more solution with the same factors, the adjoint. A penalty keeps T smooth.

Data: `data/oude_korendijk.csv`, the pumping test at Oude Korendijk in the Netherlands (1964): 788 m^3 a day, drawdown
in m in piezometers at 30 m and 90 m, as tabulated in G. P. Kruseman and N. A. de Ridder, Analysis and Evaluation of
Pumping Test Data (ILRI 47, table 3.1); numbers of record. By Theis' curve they find T = 392 m^2/day and S = 1.7e-4.

    python examples/aquifer.py
"""

import time
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.sparse.linalg import spsolve

import plaingrad
from differences import gap_of_gradient

HERE = Path(__file__).resolve().parent
PUMPED = 788.0  # m^3 a day
DAY = 1440.0  # minutes
ERROR = 0.01  # metres: what a drawdown is taken to be known to
ROUGH = 0.1  # what log T is taken to change by from ring to ring
EDGES = np.geomspace(0.2, 8000.0, 51)  # of rings, in metres
MIDDLES = np.sqrt(EDGES[1:] * EDGES[:-1])
TIMES = np.concatenate([[0.0], np.geomspace(0.003, 900.0, 160)]) / DAY
START = np.log(np.concatenate([np.full(50, 300.0), [1e-4, 3000.0]]))  # T of the rings, S, c


def drawdown(logs: np.ndarray) -> np.ndarray:
    """A row for each of TIMES but the first, a column for each ring."""
    transmissivity, storage, resistance = np.exp(logs[:-2]), np.exp(logs[-2]), np.exp(logs[-1])
    area = np.pi * (EDGES[1:] ** 2 - EDGES[:-1] ** 2)
    half = (
        np.log(EDGES[1:] / EDGES[:-1]) / 2 / transmissivity
    )  # resistance from a middle to an edge, times 2 pi
    between = 2 * np.pi / (half[1:] + half[:-1])
    outer = 2 * np.pi * transmissivity[-1:] / np.log(EDGES[-1] / MIDDLES[-1])  # beyond it nothing falls
    flow = np.concatenate([between, outer]) + np.concatenate([[0.0], between])
    space = sparse.diags([-between, flow + area / resistance, -between], [-1, 0, 1])
    steps = np.diff(TIMES)
    later = sparse.diags([1 / steps, -1 / steps[1:]], [0, -1])
    system = sparse.kron(sparse.eye(len(steps)), space) + sparse.kron(later, sparse.diags(storage * area))
    pumped = np.zeros((len(steps), len(area)))
    pumped[:, 0] = PUMPED
    return np.reshape(spsolve(system.tocsc(), pumped.ravel(), permc_spec="NATURAL"), pumped.shape)


def at_wells(logs: np.ndarray, distances: np.ndarray, minutes: np.ndarray) -> np.ndarray:
    """The drawdown where and when it was measured, linear between logarithms."""
    field = drawdown(logs)
    column = np.log(distances / MIDDLES[0]) / np.log(MIDDLES[1] / MIDDLES[0])
    row = np.interp(np.log(minutes), np.log(TIMES[1:] * DAY), np.arange(len(TIMES) - 1))
    i, j = row.astype(int), column.astype(int)
    a, b = row - i, column - j
    near, far = (field[i, k] * (1 - a) + field[i + 1, k] * a for k in (j, j + 1))
    return near * (1 - b) + far * b


def misfit(logs: np.ndarray, distances: np.ndarray, minutes: np.ndarray, measured: np.ndarray) -> float:
    """Half the sum of squares of what was measured, and of how T changes."""
    misses = (at_wells(logs, distances, minutes) - measured) / ERROR
    return 0.5 * np.sum(misses**2) + 0.5 * np.sum((np.diff(logs[:-2]) / ROUGH) ** 2)


def fit(record: tuple[np.ndarray, ...], steps: int = 1000):
    """SciPy's result."""
    objective = plaingrad.value_and_grad(misfit)
    return minimize(objective, START, args=record, jac=True, method="L-BFGS-B", options={"maxiter": steps})


def spread(logs: np.ndarray, record: tuple[np.ndarray, ...]) -> np.ndarray:
    """The standard errors of the logarithms, from the Jacobian of all residuals."""
    slopes = plaingrad.jacobian(lambda logs: at_wells(logs, *record[:2]) / ERROR)(logs)
    smooth = np.diff(np.eye(len(logs) - 2), axis=0) / ROUGH
    precision = slopes.T @ slopes + 1e-6 * np.eye(len(logs))
    precision[:-2, :-2] += smooth.T @ smooth
    return np.sqrt(np.diag(np.linalg.inv(precision)))


def draw(path: Path, logs: np.ndarray, errors: np.ndarray, record: tuple[np.ndarray, ...]) -> None:
    """Drawdowns with the model; the transmissivity by distance, with its uncertainty."""
    from pictures import BROWN, GREY, TEAL, picture

    distances, minutes, measured = record
    fine = np.geomspace(0.1, 890.0, 200)
    with picture(path, ncols=2, width_ratios=(1.2, 1)) as (_, (left, right)):
        for distance, colour in ((30.0, BROWN), (90.0, TEAL)):
            here = distances == distance
            left.plot(fine, at_wells(logs, np.full(200, distance), fine), color=colour, linewidth=2)
            left.plot(
                minutes[here],
                measured[here],
                "o",
                color=colour,
                markersize=5,
                markeredgecolor="white",
                label=f"piezometer at {distance:.0f} m",
            )
        left.set(title="Pumping test at Oude Korendijk", xscale="log", xlabel="minutes", ylabel="drawdown, m")
        left.legend()
        low, high = (np.exp(logs + side * errors)[:-2] for side in (-2, 2))
        right.fill_between(MIDDLES, low, high, color=TEAL, alpha=0.2, linewidth=0)
        right.plot(MIDDLES, np.exp(logs[:-2]), color=TEAL, linewidth=2, label="found, two standard errors")
        right.axhline(392.0, color=GREY, linestyle="--", linewidth=1, label="textbook, one number (Theis)")
        for distance, colour in ((30.0, BROWN), (90.0, TEAL)):
            right.axvline(distance, color=colour, linewidth=0.8)
        right.set(title="Transmissivity of the ground", xscale="log", xlim=(1, 3000), ylim=(0, 1000))
        right.set(xlabel="distance from the pumped well, m", ylabel="m$^2$ a day")
        right.legend(loc="upper left", fontsize=9)
        for axes in (left, right):
            axes.grid()


def main(path: Path = HERE / "output" / "aquifer.png", steps: int = 1000) -> np.ndarray:
    """Invert, print, draw; returns the logarithms of all unknowns."""
    record = tuple(np.loadtxt(HERE / "data" / "oude_korendijk.csv", delimiter=",", skiprows=1).T)
    slope = plaingrad.grad(misfit)(START, *record)
    error = gap_of_gradient(lambda logs: misfit(logs, *record), START, slope)
    seconds = []
    for call in (misfit, plaingrad.grad(misfit)):
        begun = time.perf_counter()
        call(START, *record)
        seconds.append(time.perf_counter() - begun)
    found = fit(record, steps)
    logs, errors = found.x, spread(found.x, record)
    misses = at_wells(logs, *record[:2]) - record[2]
    print("A pumping test: transmissivity of 50 rings, storage and leakage by spsolve and its adjoint")
    print(
        f"  {len(MIDDLES) * (len(TIMES) - 1):,} unknowns of the equation;"
        f" the gradient agrees with differences to {error:.0e}"
    )
    print(f"  a run takes {1e3 * seconds[0]:.0f} ms, one with the gradient {1e3 * seconds[1]:.0f} ms")
    print(
        f"  misfit {misfit(START, *record):.0f} -> {found.fun:.1f} in {found.nit} iterations;"
        f" root mean square {1e3 * np.sqrt(np.mean(misses**2)):.1f} mm"
    )
    for distance in (30.0, 90.0):
        ring = int(np.argmin(np.abs(MIDDLES - distance)))
        print(
            f"  transmissivity at {distance:.0f} m {np.exp(logs[ring]):8.0f} m^2/day, to {errors[ring]:.0%}"
        )
    print(
        f"  storage {np.exp(logs[-2]):.2e}, to {errors[-2]:.0%};"
        f" resistance of the layer above {np.exp(logs[-1]):.0f} days, to {errors[-1]:.0%}"
    )
    draw(path, logs, errors, record)
    print(f"  {path}")
    return logs


if __name__ == "__main__":
    main()
