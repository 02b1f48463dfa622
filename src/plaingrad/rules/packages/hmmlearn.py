"""Recursions of hidden Markov models, of hmmlearn: L. R. Rabiner, Proceedings of the IEEE 77 (1989), section III.

With A_ij the probability of a step from i to j, and b_t(j) that of what is observed at t in state j.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.packages.formulas import rules_by_formulas

MODULE = "hmmlearn._hmmc"


def log_of(s: Any) -> Any:
    """log s, and minus infinity, without a slope, where s is 0."""
    return np.where(s > 0, np.log(np.where(s > 0, s, 1.0)), -np.inf)


def log_times(exponents: Any, matrix: Any) -> Any:
    """log(exp(exponents) @ matrix), without overflow."""
    top = np.max(exponents)
    return exponents + 0.0 if top == -np.inf else log_of(np.exp(exponents - top) @ matrix) + top


def forward_log(value: Any, start: Any, steps: Any, log_b: Any) -> Any:
    """log a_t(j) = log(sum_i a_t-1(i) A_ij) + log b_t(j), and the log likelihood."""
    rows = [log_of(start) + log_b[0]]
    for t in range(1, len(log_b)):
        rows.append(log_times(rows[-1], steps) + log_b[t])
    return log_times(rows[-1], np.ones(len(start))), np.stack(rows)


def backward_log(value: Any, start: Any, steps: Any, log_b: Any) -> Any:
    """log c_t(i) = log(sum_j A_ij b_t+1(j) c_t+1(j))."""
    rows = [np.zeros(len(start))]
    for t in range(len(log_b) - 1, 0, -1):
        rows.append(log_times(rows[-1] + log_b[t], steps.T))
    return np.stack(rows[::-1])


def forward_scaling(value: Any, start: Any, steps: Any, b: Any) -> Any:
    """a_t(j) = sum_i a_t-1(i) A_ij b_t(j) scaled to the sum 1: the log likelihood, a and the scales."""
    rows, scales = [], []
    for t in range(len(b)):
        row = (start if t == 0 else rows[-1] @ steps) * b[t]
        scales.append(1.0 / row.sum())
        rows.append(row * scales[-1])
    scaling = np.stack(scales)
    return -np.log(scaling).sum(), np.stack(rows), scaling


def backward_scaling(value: Any, start: Any, steps: Any, b: Any, scaling: Any) -> Any:
    """c_t(i) = s_t sum_j A_ij b_t+1(j) c_t+1(j), with scales s."""
    rows = [np.ones(len(start)) * scaling[-1]]
    for t in range(len(b) - 1, 0, -1):
        rows.append((steps @ (b[t] * rows[-1])) * scaling[t - 1])
    return np.stack(rows[::-1])


FORMULAS = {
    f.__name__: f for f in (forward_log, backward_log, forward_scaling, backward_scaling)
}  # of the same names


def rules() -> Iterable[Rule]:
    """Of `hmmlearn._hmmc`; its other functions are refused."""
    yield from rules_by_formulas(sys.modules.get(MODULE), FORMULAS)
