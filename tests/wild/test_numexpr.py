"""numexpr: expressions as text, compiled for a virtual machine in C."""

import numpy as np
import pytest

import plaingrad

numexpr = pytest.importorskip("numexpr")

X = np.array([1.0, 2.0, 3.5])


def test_constants(agrees):
    agrees(lambda x: x * float(numexpr.evaluate("sum(a * 2)", {"a": X})), 2.0)


def test_active_arrays_are_refused():
    def doubled(v):
        return numexpr.evaluate("v * 2").sum()

    for attempt in (plaingrad.grad(doubled), lambda v: plaingrad.jvp(doubled, (v,), (v,))):
        with pytest.raises(plaingrad.MissingRuleError, match=r"`numexpr\..*test_numexpr\.py:\d+"):
            attempt(X)
    assert doubled(X) == 13.0


def test_active_numbers_in_the_text_are_refused():
    with pytest.raises(plaingrad.errors.PlaingradError, match=r"test_numexpr\.py:\d+"):
        plaingrad.grad(lambda x: float(numexpr.evaluate(f"{x} * 2")))(1.5123)
