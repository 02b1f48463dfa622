"""Present values and internal rates of return, of pyxirr."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.packages.formulas import rules_by_formulas

MODULE = "pyxirr._pyxirr"


def flows(amounts: Any) -> Any:
    """The amounts as a vector."""
    return amounts if isinstance(amounts, np.ndarray) else np.array(list(amounts))


def npv(value: Any, rate: Any, amounts: Any, *, start_from_zero: bool = True) -> Any:
    """sum_k a_k / (1 + r)^k."""
    a = flows(amounts)
    return (a / (1.0 + rate) ** (np.arange(a.size) + (0 if start_from_zero else 1))).sum()


def nfv(value: Any, rate: Any, nper: Any, amounts: Any) -> Any:
    """The same at the end of `nper` periods."""
    return npv(value, rate, amounts) * (1.0 + rate) ** nper


def irr(value: Any, amounts: Any, *, guess: Any = None, silent: bool = False) -> Any:
    """The rate at which the present value is 0: a Newton step from it."""
    a = flows(amounts)
    k = np.arange(a.size)
    terms = a / (1.0 + value) ** k
    return value + terms.sum() * (1.0 + value) / (k * terms).sum()


def rules() -> Iterable[Rule]:
    """Of the functions of amounts at equal times; those of dates are refused."""
    yield from rules_by_formulas(sys.modules.get(MODULE), {"npv": npv, "nfv": nfv, "irr": irr})
