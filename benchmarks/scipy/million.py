"""A heat equation in a million cells: seconds and memory of a solution and of its gradient in all conductivities.

Each is taken in a process of its own, whose largest memory is what the system says, less that of the process before
the solution. `plain` is one call of `spsolve`, assembling included; `gradient` is of the mean temperature.
"""

import json
import resource
import subprocess
import sys
import time

import numpy as np
from scipy.sparse import linalg

import plaingrad
from benchmarks.scipy.heat import heat_equation

SIDE = 1000


def mean_temperature(k):
    """The mean of the solution of -div(k grad u) + u / 10 = 1 in a square, no flow over its edges."""
    heat = np.linspace(0.0, 2.0, k.size)
    return np.mean(linalg.spsolve(heat_equation(k), heat, permc_spec="MMD_AT_PLUS_A") ** 2)


def measured(what):
    """Seconds, bytes, and a number to compare: in this process."""
    k = 1.0 + 0.5 * np.sin(np.arange(SIDE * SIDE) * 0.01)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    found = mean_temperature(k) if what == "plain" else plaingrad.grad(mean_temperature)(k)
    seconds = time.perf_counter() - begun
    peak = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    error = None
    if what == "check":
        along = np.random.default_rng(0).normal(size=k.size)
        sides = [mean_temperature(k + step * along) for step in (1e-4, -1e-4)]
        error = abs((sides[0] - sides[1]) / 2e-4 / (found @ along) - 1.0)
    return {"seconds": seconds, "bytes": peak, "error": error}


def main():
    """Print the table; the gradient is compared with differences."""
    found = {}
    for what in ("plain", "gradient", "check"):
        command = [sys.executable, "-m", "benchmarks.scipy.million", what]
        found[what] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    plain, gradient = found["plain"], found["gradient"]
    print(
        f"{SIDE * SIDE:,} unknowns; the gradient agrees with differences to {found['check']['error']:.0e}\n"
    )
    print(f"{'':10}{'seconds':>10}{'GB':>8}")
    for what, row in (("spsolve", plain), ("gradient", gradient)):
        print(f"{what:10}{row['seconds']:10.1f}{row['bytes'] / 1e9:8.2f}")
    ratios = (gradient["seconds"] / plain["seconds"], gradient["bytes"] / plain["bytes"])
    print("{:10}{:10.2f}{:8.2f}".format("ratio", *ratios))
    return 0


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1])))
