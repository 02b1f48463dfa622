"""A fit to columns of a data frame. Search: pandas. Page: docs/how-to/pandas.md."""

import numpy as np
import pandas as pd

from plaingrad import grad

frame = pd.DataFrame({"dose": [0.0, 1.0, 2.0, 4.0], "response": [1.0, 2.9, 5.1, 9.0]})


def misfit(p, frame):
    return float(((p["a"] + p["b"] * frame["dose"] - frame["response"]) ** 2).sum())


A = np.stack([np.ones(4), frame["dose"].to_numpy()], 1)
expected = 2.0 * A.T @ (A @ [1.0, 2.0] - frame["response"].to_numpy())
found = grad(misfit)({"a": 1.0, "b": 2.0}, frame)
assert np.allclose([found["a"], found["b"]], expected)
