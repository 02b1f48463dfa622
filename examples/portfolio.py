"""Markowitz's own portfolio: nine stocks, limits on each, and how the optimum moves with what is believed of them.

SLSQP finds the shares with the least variance for an expected return, none negative and none above a limit. plaingrad
differentiates the optimum itself with respect to the expected returns, by the conditions that hold there: what is at
a bound stays there. It also says what a bit more of expected return costs, and which year of the record counts most.

Data: `data/markowitz_1959.csv`, returns of nine stocks from 1937 to 1954, dividends included, of the table in chapter
2 of H. M. Markowitz, Portfolio Selection (1959); numbers of record. Their means are those that the book gives.

    python examples/portfolio.py
"""

from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import plaingrad
from differences import gap

HERE = Path(__file__).resolve().parent
LIMIT = 0.35  # the largest share
TARGET = 0.13  # expected return a year


def portfolio(means: np.ndarray, covariance: np.ndarray, target: float):
    """SciPy's result: x are the shares, fun is the variance."""
    constraints = [
        {"type": "eq", "fun": lambda shares: np.sum(shares) - 1.0},
        {"type": "ineq", "fun": lambda shares: means @ shares - target},
    ]
    n = len(means)
    return minimize(
        lambda shares: shares @ covariance @ shares,
        np.full(n, 1.0 / n),
        method="SLSQP",
        bounds=[(0.0, LIMIT)] * n,
        constraints=constraints,
        options={"ftol": 1e-20, "maxiter": 300},
    )


def shares_of(returns: np.ndarray, target: float) -> np.ndarray:
    """The shares that are best for the means and covariances of a record."""
    return portfolio(np.mean(returns, axis=0), np.cov(returns.T), target).x


def draw(path: Path, names: list[str], means: np.ndarray, covariance: np.ndarray, slopes: np.ndarray) -> None:
    """The shares along the frontier, and how each moves with each expected return."""
    from pictures import BROWN, GREY, picture, plt

    targets = np.linspace(0.095, 0.175, 41)
    found = [portfolio(means, covariance, target) for target in targets]
    order = np.argsort(means)
    with picture(path, ncols=3, width=13, height=4.4, width_ratios=(0.9, 1.2, 1.25)) as (
        figure,
        (frontier, mix, moves),
    ):
        risk = np.sqrt([result.fun for result in found])
        frontier.plot(100 * risk, 100 * targets, color=BROWN, linewidth=2)
        one = portfolio(means, covariance, TARGET)
        price = plaingrad.grad(lambda target: np.sqrt(portfolio(means, covariance, target).fun))(TARGET)
        ends = np.array([-0.02, 0.02])
        frontier.plot(
            100 * (np.sqrt(one.fun) + price * ends), 100 * (TARGET + ends), "--", color=GREY, linewidth=1
        )
        frontier.plot(
            100 * np.sqrt(one.fun), 100 * TARGET, "o", color=BROWN, markeredgecolor="white", markersize=8
        )
        frontier.set(
            title="Frontier, and its slope", xlabel="standard deviation, %", ylabel="expected return, %"
        )
        frontier.grid()
        colours = plt.get_cmap("tab20c")(np.linspace(0, 0.95, len(names)))
        shares = 100 * np.array([result.x for result in found])[:, order]
        mix.stackplot(
            100 * targets,
            shares.T,
            labels=[names[k] for k in order],
            colors=colours,
            edgecolor="white",
            linewidth=0.4,
        )
        mix.axvline(100 * TARGET, color="black", linewidth=0.8)
        mix.set(
            title=f"Shares, none above {LIMIT:.0%}", xlabel="expected return, %", ylabel="%", ylim=(0, 100)
        )
        mix.set_xlim(100 * targets[0], 100 * targets[-1])
        handles, labels = mix.get_legend_handles_labels()
        mix.legend(handles[::-1], labels[::-1], fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        part = slopes[np.ix_(order, order)]
        size = np.max(np.abs(part))
        image = moves.imshow(part, cmap="BrBG", vmin=-size, vmax=size, aspect="auto")
        moves.set_xticks(range(len(names)), [names[k] for k in order], rotation=60, ha="right", fontsize=8)
        moves.set_yticks(range(len(names)), [names[k] for k in order], fontsize=8)
        moves.set(
            title=f"Sensitivity at {TARGET:.0%}", xlabel="if 1 % more is expected of", ylabel="share of"
        )
        bar = figure.colorbar(image, ax=moves, shrink=0.8, label="percent of the portfolio")
        bar.outline.set_visible(False)


def main(path: Path = HERE / "output" / "portfolio.png") -> np.ndarray:
    """Solve, print, draw; returns the shares."""
    file = HERE / "data" / "markowitz_1959.csv"
    names = file.read_text().splitlines()[0].split(",")[1:]
    years, returns = np.split(np.loadtxt(file, delimiter=",", skiprows=1), [1], axis=1)
    means, covariance = returns.mean(axis=0), np.cov(returns.T)
    best = portfolio(means, covariance, TARGET)
    slopes = plaingrad.jacobian(lambda means: portfolio(means, covariance, TARGET).x)(means)
    error = gap(lambda means: portfolio(means, covariance, TARGET).x, means, slopes.T, np.eye(len(means)))
    print(f"Markowitz's nine stocks: the least variance for {TARGET:.0%} a year, no share above {LIMIT:.0%}")
    for name, share, slope in zip(names, best.x, np.diag(slopes)):
        if share > 1e-6:
            print(f"  {name:<18}{share:7.1%}   {slope:+6.1f} % for each percent that is expected of it more")
    print(f"  standard deviation {np.sqrt(best.fun):.1%}; derivatives agree with differences to {error:.0e}")
    price = plaingrad.grad(lambda target: np.sqrt(portfolio(means, covariance, target).fun))(TARGET)
    print(f"  a percent more of expected return costs {price:.2f} % of standard deviation")
    free = int(np.argmax(np.where((best.x > 1e-6) & (best.x < LIMIT - 1e-6), best.x, 0.0)))
    by_record = plaingrad.grad(lambda returns: shares_of(returns, TARGET)[free])(returns)
    year = int(years[np.argmax(np.abs(by_record).sum(axis=1)), 0])
    print(f"  the year that decides most about the share of {names[free]} is {year}")
    draw(path, names, means, covariance, slopes)
    print(f"  {path}")
    return best.x


if __name__ == "__main__":
    main()
