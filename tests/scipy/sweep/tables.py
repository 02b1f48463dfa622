"""The tables of the sweep, all of them."""

import importlib
import warnings

NAMES = "fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats variants_arrays variants_numbers".split()


def all_of(names=NAMES):
    """The table of each module of SciPy's."""
    found = []
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(f"tests.scipy.sweep.sweep_{name}")
        found += getattr(module, "TABLES", None) or [module.TABLE]
    return found
