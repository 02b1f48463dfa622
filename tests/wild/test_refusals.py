"""Code that takes numbers apart, or calls C without a rule: a right gradient or a refusal, never a wrong one."""

import ast
import json
import warnings

import numpy as np
import pytest

import plaingrad
from plaingrad.errors import PlaingradError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    fluids = pytest.importorskip("fluids")
    mpmath = pytest.importorskip("mpmath")
    openskill = pytest.importorskip("openskill.models")
    npf = pytest.importorskip("numpy_financial")
    pytest.importorskip("geomdl")
    from geomdl import knotvector


def through_mpmath(x):
    """mpmath takes the mantissa and the exponent of a float."""
    return float(mpmath.mpf(x) ** 2)


def through_the_digits(x):
    """The number goes into a program as text."""
    return ast.literal_eval(f"[{x!r}, 1]")[0] * 3.0


def through_json(x):
    return json.loads(json.dumps({"x": x}))["x"] * 2.0


def through_a_normalized_knot_vector(x):
    """geomdl rounds knots by formatting and parsing them."""
    return knotvector.normalize([0.0, 0.0, x, 1.0, 1.0])[2] * 2.0


def through_the_eigenvalues_of_a_companion_matrix(x):
    return npf.irr([-100.0, 30.0 * x, 40.0, 50.0])


def through_an_integrator_in_fortran(x):
    return fluids.integrate_drag_sphere(D=0.001 * x, rhop=2200.0, rho=1.2, mu=1.78e-5, t=0.5, V=30.0)


def through_a_special_function_of_scipy(x):
    return fluids.isothermal_gas(rho=11.3, fd=0.00185, P1=1e6 * (1 + x), P2=9e5, L=1000.0, D=0.5)


def through_a_package_compiled_by_mypyc(x):
    model = openskill.PlackettLuce()
    [[a], [b]] = model.rate([[model.rating(30.0 * x, 8.0)], [model.rating(25.0, 8.0)]])
    return a.mu


@pytest.mark.parametrize(
    "f",
    [
        through_mpmath,
        through_the_digits,
        through_json,
        through_a_normalized_knot_vector,
        through_the_eigenvalues_of_a_companion_matrix,
        through_an_integrator_in_fortran,
        through_a_special_function_of_scipy,
        through_a_package_compiled_by_mypyc,
    ],
    ids=lambda f: f.__name__,
)
def test_it_is_right_or_refused(f):
    x = 0.6180339887
    by_differences = (f(x + 1e-4) - f(x - 1e-4)) / 2e-4
    try:
        gradient = plaingrad.grad(f)(x)
    except PlaingradError as refusal:
        assert ".py:" in str(refusal), "a refusal names file and line"
    else:
        assert gradient == pytest.approx(by_differences, rel=1e-4)
    assert np.isfinite(f(x)), "after a refusal a plain call works as before"
