"""numpy-groupies: sums, products, extrema and variances by group."""

import numpy as np
import pytest

npg = pytest.importorskip("numpy_groupies")

GROUPS, X = np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 3.5, 2.2])


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "var", "std", "prod", "cumsum", "nansum", "first", "last"])
def test_groups_in_numpy(agrees, name):
    agrees(lambda v: (npg.aggregate_np(GROUPS, v, func=name) ** 2).sum(), X)


def test_a_function_of_ones_own(agrees):
    agrees(lambda v: npg.aggregate_np(GROUPS, v, func=lambda a: (a * a).sum()).sum(), X)
