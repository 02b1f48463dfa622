"""Longley's regression: how much do the results owe to the rounding of the data?

Longley (1967) regressed employment in the United States on six series that grow together, to show how bad programs
for least squares were. Beaton, Rubin and Barone (JASA 71, 1976, 158-168) added half a unit of the last printed
digit at random to each number, and showed that no program could do well: the data themselves do not say more. What
they found by simulation is here a derivative: the coefficients, by `np.linalg.lstsq`, differentiated with respect
to all 96 numbers of the table.

Data: `data/longley.csv`, 1947 to 1962, from the National Institute of Standards and Technology, which certifies the
coefficients to 15 digits; public domain according to statsmodels, whose file it is.

    python examples/longley.py
"""

from pathlib import Path

import numpy as np

import plaingrad
from differences import gap

HERE = Path(__file__).resolve().parent
NAMES = ("deflator", "product", "unemployed", "forces", "population", "year")
LAST_DIGIT = np.array([0.1, 1.0, 1.0, 1.0, 1.0, 0.0])  # years are not rounded


def coefficients(predictors: np.ndarray, employed: np.ndarray) -> np.ndarray:
    """The intercept and the six slopes, of columns that are brought to one size first."""
    middle, size = predictors.mean(axis=0), predictors.std(axis=0)
    design = np.column_stack([np.ones(len(employed)), (predictors - middle) / size])
    found = np.linalg.lstsq(design, employed, rcond=None)[0]
    slopes = found[1:] / size
    return np.concatenate([[found[0] - slopes @ middle], slopes])


def simulated(predictors: np.ndarray, employed: np.ndarray, times: int) -> np.ndarray:
    """Coefficients of tables whose numbers lie anywhere within the rounding: what was done in 1976."""
    rng = np.random.default_rng(1976)
    noise = lambda shape: rng.uniform(-0.5, 0.5, (times, *shape))
    tables, counts = noise(predictors.shape) * LAST_DIGIT + predictors, noise(employed.shape) + employed
    return np.array([coefficients(*one) for one in zip(tables, counts)])


def draw(path: Path, slopes: np.ndarray, spread: np.ndarray, found: np.ndarray, tries: np.ndarray) -> None:
    """Each coefficient's distribution, and what each number of the table does to one of them."""
    from pictures import BROWN, GREY, TEAL, picture

    with picture(path, ncols=4, width=13.5, height=3.4, width_ratios=(1, 1, 1, 1.5)) as (figure, axes):
        for k, panel in zip((1, 2, 5), axes):
            x = np.linspace(*(found[k] + 4 * spread[k] * np.array([-1, 1])), 200)
            panel.hist(tries[:, k], 40, density=True, color=BROWN, alpha=0.5, label="simulated")
            height = np.exp(-0.5 * ((x - found[k]) / spread[k]) ** 2) / (spread[k] * np.sqrt(2 * np.pi))
            panel.plot(x, height, color=TEAL, linewidth=2, label="by derivatives")
            panel.set(title=NAMES[k - 1], yticks=[], ylim=(0, 1.45 * height.max()))
            panel.locator_params(axis="x", nbins=3)
        axes[0].legend(fontsize=8, loc="upper left")
        shown = axes[3].imshow((slopes[2] * LAST_DIGIT).T, cmap="PuOr", aspect="auto")
        limit = np.abs(slopes[2] * LAST_DIGIT).max()
        shown.set_clim(-limit, limit)
        axes[3].set(title="product's coefficient, for a last digit", xlabel="year")
        axes[3].set(
            yticks=range(6), yticklabels=NAMES, xticks=range(0, 16, 5), xticklabels=range(1947, 1963, 5)
        )
        figure.colorbar(shown, ax=axes[3])
        axes[3].tick_params(colors=GREY)


def main(path: Path = HERE / "output" / "longley.png", times: int = 2000) -> np.ndarray:
    """Differentiate, simulate, print, draw; returns the coefficients."""
    table = np.loadtxt(HERE / "data" / "longley.csv", delimiter=",", skiprows=1)
    employed, predictors = table[:, 1], table[:, [2, 3, 4, 5, 6, 0]]
    found = coefficients(predictors, employed)
    slopes, by_counts = plaingrad.jacobian(coefficients, argnums=(0, 1))(predictors, employed)
    directions = np.random.default_rng(0).normal(size=(3, *predictors.shape)) * predictors.std(axis=0)
    moves = np.einsum("kij,dij->dk", slopes[1:], directions)
    error = gap(lambda x: coefficients(x, employed)[1:], predictors, moves, directions)
    variances = np.sum((slopes * LAST_DIGIT) ** 2, axis=(1, 2)) + np.sum(by_counts**2, axis=1)
    spread = np.sqrt(variances / 12)  # the variance of a number that is rounded to 1 is 1/12
    tries = simulated(predictors, employed, times)
    print("Longley's regression: what the last printed digits of the data are worth")
    print(f"  derivatives by all {predictors.size} numbers agree with differences to {error:.0e}")
    print(f"  {'':<12}{'coefficient':>18}{'rounding alone':>18}{'simulated':>14}")
    for name, value, by_slopes, deviation in zip(("intercept", *NAMES), found, spread, tries.std(axis=0)):
        print(f"  {name:<12}{value:>18.9g}{by_slopes:>18.3g}{deviation:>14.3g}")
    draw(path, slopes, spread, found, tries)
    print(f"  {path}")
    return found


if __name__ == "__main__":
    main()
