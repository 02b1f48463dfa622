"""What an option on an average price is worth, and its sensitivities, by Monte Carlo over processes.

    python examples/monte_carlo.py [paths]

Each task draws paths of its own from a seed and returns a mean; the gradient goes back through the same tasks, which
run again in the pool. For an option on the geometric mean there is a closed form to compare with (Kemna and Vorst,
1990).
"""

import concurrent.futures
import math
import sys
from dataclasses import dataclass

import numpy as np

import plaingrad

STEPS, STRIKE, YEARS = 50, 100.0, 1.0
TASKS = 8


@dataclass
class Market:
    """What the price depends on."""

    spot: float = 100.0
    volatility: float = 0.3
    rate: float = 0.04


def mean_payoff(market, seed, paths):
    """The mean of what is paid at the end of the year, in today's money, over paths drawn from a seed."""
    drawn = np.random.default_rng(seed).standard_normal((paths, STEPS))
    drift = (market.rate - 0.5 * market.volatility**2) * YEARS / STEPS
    logs = np.cumsum(drift + market.volatility * math.sqrt(YEARS / STEPS) * drawn, axis=1)
    averages = market.spot * np.exp(np.mean(logs, axis=1))
    return math.exp(-market.rate * YEARS) * np.mean(np.maximum(averages - STRIKE, 0.0))


def price(market, pool, paths, tasks=TASKS):
    """The mean over all tasks, each of which runs in one of the pool's processes."""
    futures = [pool.submit(mean_payoff, market, seed, paths) for seed in range(tasks)]
    return sum(future.result() for future in futures) / tasks


def closed_form(market):
    """The same price, of infinitely many paths."""
    times = (STEPS + 1) / (2.0 * STEPS)
    middle = math.log(market.spot) + (market.rate - 0.5 * market.volatility**2) * YEARS * times
    variance = market.volatility**2 * YEARS * times * (2.0 * STEPS + 1) / (3.0 * STEPS)
    d1 = (middle - math.log(STRIKE) + variance) / math.sqrt(variance)
    forward = math.exp(middle + 0.5 * variance)
    paid = forward * normal(d1) - STRIKE * normal(d1 - math.sqrt(variance))
    return math.exp(-market.rate * YEARS) * paid


def normal(d):
    """The distribution function of the standard normal distribution."""
    return 0.5 * math.erfc(-d / math.sqrt(2.0))


def main(paths=20_000, tasks=TASKS):
    """Print both; (price, gradient) by Monte Carlo and by the formula."""
    market = Market()
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        drawn = plaingrad.value_and_grad(lambda market: price(market, pool, paths, tasks))(market)
    exact = plaingrad.value_and_grad(closed_form)(market)
    print(f"{tasks} tasks of {paths} paths in 2 processes")
    print(f"{'':12}{'Monte Carlo':>12}{'closed form':>13}")
    print(f"{'price':12}{drawn[0]:12.4f}{exact[0]:13.4f}")
    for name in ("spot", "volatility", "rate"):
        print(f"by {name:9}{getattr(drawn[1], name):12.4f}{getattr(exact[1], name):13.4f}")
    return drawn, exact


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
