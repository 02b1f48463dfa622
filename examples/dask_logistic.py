"""Logistic regression over Dask, on data that are larger than the memory of a worker.

    python examples/dask_logistic.py [parts] [rows in a part] [megabytes of a worker]

Each part is a file, which the worker that has the task reads and forgets; weights go there, and a value and a gradient
come back. It needs `distributed`. The data are `parts * rows * 168` bytes, by default half as much again as a worker
may have.
"""

import os
import sys
import tempfile

import numpy as np
from distributed import Client, LocalCluster

from plaingrad.distributed import value_and_grad

COLUMNS = 20


def write_parts(folder, parts, rows):
    """Files with rows and labels that a known vector of weights has made; (names, weights, bytes)."""
    weights = np.linspace(-1.0, 1.0, COLUMNS)
    names = []
    for number in range(parts):
        drawn = np.random.default_rng(number)
        x = drawn.standard_normal((rows, COLUMNS))
        labels = np.where(drawn.random(rows) < 1.0 / (1.0 + np.exp(-x @ weights)), 1.0, -1.0)
        names.append(os.path.join(folder, f"part-{number}.npy"))
        np.save(names[-1], np.column_stack([x, labels]))
    return names, weights, sum(map(os.path.getsize, names))


def loss(weights, name):
    """The mean negative log likelihood of the rows in a file."""
    import numpy as np  # in the worker

    data = np.load(name)
    return np.mean(np.logaddexp(0.0, -(data[:, :-1] @ weights) * data[:, -1]))


def fit(client, names, steps=25, rate=3.0):
    """Gradient descent with momentum; the weights, and the values on the way."""
    mean_loss = value_and_grad(loss, client, reduce="mean", retries=1, timeout=120.0)
    weights, velocity, values = np.zeros(COLUMNS), np.zeros(COLUMNS), []
    for _ in range(steps):
        value, slope = mean_loss(weights, names)
        velocity = 0.5 * velocity - rate * slope
        weights = weights + velocity
        values.append(value)
    return weights, values


def largest_worker():
    """The most memory that this process has had, in megabytes; runs in workers."""
    import resource
    import sys

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


def main(parts=24, rows=150_000, megabytes=400):
    """Write the data, fit, and print what was found."""
    with tempfile.TemporaryDirectory() as folder:
        names, true, size = write_parts(folder, parts, rows)
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, memory_limit=f"{megabytes}MiB", dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            weights, values = fit(client, names)
            most = max(client.run(largest_worker).values())
    print(
        f"data {size / 2**20:.1f} MiB in {parts} files; a worker may have {megabytes} MiB, had at most {most}"
    )
    print(f"loss {values[0]:.4f} before, {values[-1]:.4f} after {len(values)} steps")
    print(f"weights off by at most {np.max(np.abs(weights - true)):.4f}")
    return weights, values


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
