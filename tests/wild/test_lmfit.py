"""lmfit: line shapes, models, parameters with bounds and expressions."""

import numpy as np
import pytest

pytest.importorskip("lmfit")
import lmfit  # noqa: E402
from lmfit import lineshapes  # noqa: E402

from plaingrad import grad  # noqa: E402

X = np.array([1.0, 2.0, 3.5, 2.2])


@pytest.mark.parametrize(
    "shape", [lineshapes.gaussian, lineshapes.lorentzian, lineshapes.pvoigt, lineshapes.moffat]
)
def test_line_shapes(agrees, shape):
    agrees(lambda a, c: shape(X, a, c, 0.7).sum(), 1.0, 0.4)


def test_a_model_is_evaluated(agrees):
    agrees(lambda a: lmfit.models.GaussianModel().eval(x=X, amplitude=a, center=0.4, sigma=0.7).sum(), 1.0)


def test_parameters_with_bounds_and_expressions(agrees):
    def bounded(a):
        parameters = lmfit.Parameters()
        parameters.add("a", value=a, min=0.0, max=5.0)
        parameters.add("b", expr="2 * a")
        return parameters["b"].value + parameters["a"].setup_bounds()

    agrees(bounded, 1.3)


def test_lineshapes_of_scipys_special_functions(agrees):
    agrees(lambda c, width: lineshapes.voigt(X, 1.0, c, width).sum(), 0.4, 0.7)


def test_a_fit_by_fortran(agrees):
    def fitted(y):
        parameters = lmfit.Parameters()
        parameters.add("a", value=1.0, min=0.0, max=5.0)
        parameters.add("b", value=0.1)
        result = lmfit.minimize(lambda p: p["a"].value * X + p["b"].value * X**2 - y, parameters)
        return 3.0 * result.params["a"].value + result.params["b"].value

    agrees(fitted, X * 1.3 + 0.1 * np.sin(5.0 * X))
    line = grad(
        lambda y: lmfit.minimize(lambda p: p["a"].value * X - y, lmfit.create_params(a=1.0)).params["a"].value
    )
    np.testing.assert_allclose(line(X * 1.3), X / (X @ X), rtol=1e-9)
