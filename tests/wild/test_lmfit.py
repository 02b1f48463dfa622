"""lmfit: line shapes, models, parameters with bounds and expressions."""

import numpy as np
import pytest

pytest.importorskip("lmfit")
import lmfit  # noqa: E402
from lmfit import lineshapes  # noqa: E402

X = np.array([1.0, 2.0, 3.5, 2.2])


@pytest.mark.parametrize("shape", [lineshapes.gaussian, lineshapes.lorentzian, lineshapes.pvoigt, lineshapes.moffat])
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


def test_a_fit_by_fortran_is_refused(refuses):
    def fitted(y):
        parameters = lmfit.Parameters()
        parameters.add("a", value=1.0)
        return lmfit.minimize(lambda p: p["a"].value * X - y, parameters).params["a"].value

    refuses(fitted, X * 1.3, called="lmfit.", says="scipy.optimize")
