"""Facts about functions, as rows. Importing this package enters them into the rulebook."""

from plaingrad import rulebook
from plaingrad.rules import (
    bottleneck,
    concurrency,
    elementwise,
    internals,
    matplotlib,
    mpmath_matrices,
    packages,
    pydantic,
    special,
)
from plaingrad.rules import numbers as rules_of_numbers
from plaingrad.rules import numpy as numpy_rules
from plaingrad.rules import pandas as pandas_rules
from plaingrad.rules import python as python_rules
from plaingrad.rules import scipy as scipy_rules

# Last: until then every function of C that gets a rule would be looked up among those that wait. To import asyncio takes
# half as long as to import NumPy.
rulebook.when_met("_asyncio", concurrency.rules_of_asyncio)
bottleneck.wait()
matplotlib.wait()
mpmath_matrices.wait()
numpy_rules.wait()
packages.wait()
pandas_rules.wait()
pydantic.wait()
python_rules.wait()
rules_of_numbers.wait()
scipy_rules.wait()

__all__ = ["bottleneck", "concurrency", "elementwise", "internals", "matplotlib", "mpmath_matrices", "numpy_rules", "packages", "pandas_rules", "pydantic", "python_rules", "scipy_rules", "special"]
