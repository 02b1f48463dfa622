"""Elementwise functions at 10^6 points: a gradient beside the function and its slope, evaluated by hand.

python -m benchmarks.scipy --slopes
"""

import numpy as np
from scipy import special

import plaingrad
from benchmarks.ordinary.__main__ import least

MILLION = np.random.default_rng(1).uniform(0.1, 3.0, 1_000_000)
SLOPES = {
    "erf": lambda x: 2.0 / np.sqrt(np.pi) * np.exp(-x * x),
    "ndtr": lambda x: np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi),
    "gammaln": special.digamma,
    "digamma": lambda x: special.polygamma(1, x),
    "j0": lambda x: -special.j1(x),
    "i0": special.i1,
    "exp1": lambda x: -np.exp(-x) / x,
    "ellipk": lambda m: 0.5 * (special.ellipe(m) / (1.0 - m) - special.ellipk(m)) / m,
}


def measured(name: str, seconds: float) -> dict[str, float]:
    """Seconds of the function, of its slope, and of the gradient, which is compared with the slope first."""
    x, of, slope = (MILLION / 3.2 if name == "ellipk" else MILLION), getattr(special, name), SLOPES[name]

    def total(x):
        return np.sum(of(x))

    gradient = plaingrad.grad(total)
    np.testing.assert_allclose(gradient(x), slope(x), rtol=1e-9)
    calls = {"function": lambda: total(x), "slope": lambda: slope(x), "gradient": lambda: gradient(x)}
    return least(calls, seconds)


def main(seconds: float) -> int:
    """Print the table."""
    print(f"{'function':12}{'function, ms':>14}{'slope, ms':>14}{'gradient, ms':>14}{'gradient / both':>18}")
    for name in SLOPES:
        times = measured(name, seconds)
        cells = "".join(f"{1e3 * t:14.1f}" for t in times.values())
        print(f"{name:12}{cells}{times['gradient'] / (times['function'] + times['slope']):18.2f}", flush=True)
    return 0
