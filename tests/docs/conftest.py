"""Examples show arrays as NumPy prints them by default, whatever a library that was imported has set."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def numpys_own_print_options():
    with np.printoptions(
        precision=8, threshold=1000, edgeitems=3, linewidth=75, suppress=False, floatmode="maxprec", legacy=False
    ):
        yield
