"""Every real row once and twice through the engine: the rules' own arithmetic is differentiated too."""

import math
import operator

import numpy as np
import pytest
from tests.rules.agreement import difference

from plaingrad import grad, rulebook
from plaingrad.rules import elementwise
from plaingrad.tangents import is_zero, unthunk

ROWS = [
    rule
    for rule in rulebook.rules()
    if rule.kind == "scalar"
    and rule.source.split(":")[0] == elementwise.__file__
    and not hasattr(rule.function, "__objclass__")
    and getattr(rule.function, "__module__", None) != "cmath"
]


def slope_by_rule(rule, args, i):
    """The partial in argument i, as the rule itself gives it."""
    cotangents = rule.rrule(*args)[1](1.0)
    x_bar = unthunk(cotangents[i]) if i < len(cotangents) else 0.0
    return 0.0 if is_zero(x_bar) else float(x_bar)


@pytest.mark.parametrize("rule", ROWS, ids=lambda rule: f"{type(rule.function).__name__}-{rule.function.__name__}")
def test_first_and_second_derivatives_through_the_engine(rule):
    f = rule.function
    for sample in list(zip(*rule.domain))[:3]:
        args = tuple(float(x) for x in sample)
        for i, x in enumerate(args):

            def in_argument(t, i=i, args=args):
                return f(*args[:i], t, *args[i + 1 :])

            def slope(t, i=i, args=args):
                return slope_by_rule(rule, (*args[:i], t, *args[i + 1 :]), i)

            assert grad(in_argument)(x) == pytest.approx(slope(x), rel=1e-12)
            assert grad(grad(in_argument))(x) == pytest.approx(difference(slope, x), rel=1e-8, abs=1e-8)


UFUNCS = [rule for rule in ROWS if isinstance(rule.function, np.ufunc)]


@pytest.mark.parametrize("rule", UFUNCS, ids=lambda rule: rule.function.__name__)
def test_gradients_of_arrays_through_the_engine(rule):
    columns = [np.array(column, float) for column in zip(*zip(*rule.domain))]
    for i in range(len(columns)):
        gradient = grad(lambda *arrays: rule.function(*arrays).sum(), argnums=i)(*columns)
        expected = [slope_by_rule(rule, tuple(map(float, sample)), i) for sample in zip(*columns)]
        np.testing.assert_allclose(gradient, expected, rtol=1e-12)
        if columns[i].size > 1 and len(columns) > 1:  # broadcast
            mixed = [c[:, None] if k == i else c for k, c in enumerate(columns)]
            gradient = grad(lambda *arrays: rule.function(*arrays).sum(), argnums=i)(*mixed)
            assert gradient.shape == mixed[i].shape
            scalars = [float(c[0]) if k != i else c for k, c in enumerate(columns)]
            expected = [slope_by_rule(rule, tuple(float(c[at]) if k == i else c for k, c in enumerate(scalars)), i) for at in range(columns[i].size)]
            gradient = grad(lambda *arrays: rule.function(*arrays).sum(), argnums=i)(*scalars)
            np.testing.assert_allclose(gradient, expected, rtol=1e-12)


def test_a_third_derivative_of_a_power_at_zero():
    assert grad(grad(grad(lambda x: x**3)))(0.0) == 6.0
    assert grad(grad(lambda x: x**2.0))(0.0) == 2.0
    assert grad(grad(lambda x: x**1.0))(0.0) == 0.0
    assert math.isinf(grad(lambda x: x**0.5)(0.0))


COMPLEX = [
    rule
    for rule in rulebook.rules()
    if rule.kind == "scalar"
    and rule.source.split(":")[0] == elementwise.__file__
    and (
        (getattr(rule.function, "__module__", None) == "cmath" and rule.function.__name__ != "rect")
        or rule.function in (abs, operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pos, operator.pow)
        or (isinstance(rule.function, np.ufunc) and any(t.startswith("D" * rule.function.nin + "->") for t in rule.function.types))
    )
    and getattr(rule.function, "__name__", "") not in ("maximum", "minimum", "fmax", "fmin", "clip")
]


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("rule", COMPLEX, ids=lambda rule: f"{type(rule.function).__name__}-{rule.function.__name__}")
def test_gradients_in_complex_arguments_through_the_engine(rule, array):
    f = rule.function
    if array and not isinstance(f, np.ufunc):
        return
    n = f.nin if isinstance(f, np.ufunc) else len(rule.partials) if f.__name__ != "log" else 1
    args = (0.4 + 0.3j, -1.2 + 0.7j)[:n]
    for i, x in enumerate(args):

        def real_valued(t, i=i):
            z = f(*args[:i], t, *args[i + 1 :])
            return (z * (0.3 - 2j)).real if not array else np.real(z * (0.3 - 2j)).sum()

        found = grad(real_valued)(np.array([x, x]) if array else x)
        truth = complex(difference(real_valued, x, 1.0), difference(real_valued, x, 1j))
        np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("power", [operator.pow, pow, math.pow, np.power, lambda x, y: (np.array([x]) ** np.array([y]))[0], lambda x, y: (np.array([x]) ** y)[0]])
def test_the_slope_of_a_power_knows_its_exponent_also_where_that_is_2_or_0(power):
    # t^t: z (log t + 1)^2 + z / t. d2/dxdy x^y: x^(y-1) (1 + y log x)
    assert grad(grad(lambda t: power(t, t)))(2.0) == pytest.approx(4 * ((math.log(2) + 1) ** 2 + 0.5), rel=1e-13)
    for y in (2.0, 0.0, 3.0):
        mixed = 1.7 ** (y - 1) * (1 + y * math.log(1.7))
        assert grad(lambda y: grad(lambda x: power(x, y))(1.7))(y) == pytest.approx(mixed, rel=1e-13)
        assert grad(lambda x: grad(lambda y: power(x, y))(y))(1.7) == pytest.approx(mixed, rel=1e-13)


@pytest.mark.parametrize("part", ["real", "imag"])
def test_parts_of_numpy_complex_numbers_twice(part):
    from plaingrad import jvp

    def f(t):
        return float(getattr(np.array([t * t + 1j * t**3])[0], part) * t)

    def slope(t):
        return jvp(f, (t,), (1.0,))[1]

    want = 6 * 1.5 if part == "real" else 12 * 1.5**2  # t^3 or t^4, twice
    assert grad(grad(f))(1.5) == pytest.approx(want, rel=1e-13)
    assert jvp(slope, (1.5,), (1.0,))[1] == pytest.approx(want, rel=1e-13)
    assert grad(slope)(1.5) == pytest.approx(want, rel=1e-13)
    assert jvp(grad(f), (1.5,), (1.0,))[1] == pytest.approx(want, rel=1e-13)
