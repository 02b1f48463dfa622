"""Facts about functions, as rows. Importing this package enters them into the rulebook."""

from plaingrad.rules import concurrency, elementwise, internals, special
from plaingrad.rules import numpy as numpy_rules
from plaingrad.rules import python as python_rules

__all__ = ["concurrency", "elementwise", "internals", "numpy_rules", "python_rules", "special"]
