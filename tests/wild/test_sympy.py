"""sympy: Python code that lambdify writes and compiles, against the derivative that sympy finds."""

import warnings

import numpy as np
import pytest

import plaingrad

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    sympy = pytest.importorskip("sympy")

X, Y = sympy.symbols("x y")
EXPRESSIONS = [
    sympy.sin(X * Y) ** 3 / (1 + X**2),
    sympy.exp(-X) * sympy.log(Y + 2) + sympy.sqrt(X**2 + Y**2),
    sympy.Piecewise((X**2 * Y, X > 1), (sympy.cos(X) + Y, True)),
    sympy.atan2(Y, X) + sympy.Max(X, Y) ** 2 + sympy.tanh(X - Y),
]


@pytest.mark.parametrize("modules", ["math", "numpy"])
@pytest.mark.parametrize("cse", [False, True])
@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_generated_code(expression, modules, cse):
    f = sympy.lambdify((X, Y), expression, modules, cse=cse)
    at = {X: 0.7, Y: 1.3}
    expected = [float(expression.diff(symbol).subs(at)) for symbol in (X, Y)]
    assert plaingrad.grad(lambda x, y: f(x, y) * 1.0, (0, 1))(0.7, 1.3) == pytest.approx(expected)


def test_generated_code_on_arrays():
    f = sympy.lambdify((X, Y), EXPRESSIONS[0], "numpy")
    slope = sympy.lambdify((X, Y), EXPRESSIONS[0].diff(X), "numpy")
    x, y = np.linspace(0.1, 2.0, 5), np.linspace(1.0, -1.0, 5)
    np.testing.assert_allclose(plaingrad.grad(lambda x: f(x, y).sum())(x), slope(x, y), rtol=1e-12)


def test_a_matrix_of_expressions(agrees):
    f = sympy.lambdify((X, Y), sympy.Matrix([[X * Y, sympy.sin(X)], [Y**2, X + Y]]), "numpy")
    agrees(lambda x, y: (f(x, y) ** 2).sum(), 0.7, 1.3)
