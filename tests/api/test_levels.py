"""Derivatives inside derivatives: programs from the literature on perturbation confusion, in every pair of modes.

- Siskind and Pearlmutter, "Perturbation Confusion and Referential Transparency" (IFL 2005).
- Manzyuk, Pearlmutter, Radul, Rush and Siskind, "Perturbation confusion in forward automatic differentiation of
  higher-order functions" (JFP 2019): the "amazing bug".
- Pearlmutter and Siskind, "Putting the automatic back into AD" (2008): nested optimisation.
"""

import itertools
import math
import threading

import numpy as np
import pytest

from plaingrad import (
    derivative,
    forwarddiff,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    linearize,
    stop_gradient,
    vjp,
    wirtinger,
)

MODES = {"forward": derivative, "reverse": grad}
PAIRS = list(itertools.product(MODES, MODES))
every_pair = pytest.mark.parametrize(
    ("outer", "inner"),
    [(MODES[a], MODES[b]) for a, b in PAIRS],
    ids=[f"{a} over {b}" for a, b in PAIRS],
)


# -- Siskind and Pearlmutter -------------------------------------------------------------------------------------------


@every_pair
def test_the_first_program_of_siskind_and_pearlmutter(outer, inner):
    # d/dx [x * d/dy (x + y) at y = 1] at x = 1 is 1; with confused perturbations it is 2
    assert outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0) == 1.0


@every_pair
def test_a_product_at_a_fixed_point_and_at_the_outer_variable(outer, inner):
    assert outer(lambda x: x * inner(lambda y: x * y)(2.0))(3.0) == 6.0
    assert outer(lambda x: x * inner(lambda y: x * y)(x))(3.0) == 6.0
    assert outer(lambda x: inner(lambda y: x * y * y)(x))(3.0) == 12.0
    assert outer(lambda x: inner(lambda y: (x + y) ** 3)(x))(3.0) == 72.0


@every_pair
def test_the_identity_and_a_constant_at_the_outer_variable(outer, inner):
    assert outer(lambda x: inner(lambda y: y)(x) * x)(3.0) == 1.0
    assert outer(lambda x: inner(lambda y: x)(x) * x + x)(3.0) == 1.0


@every_pair
def test_one_function_at_both_levels(outer, inner):
    def f(x):
        return x * x * x

    # x f'(x) + f(x) = 4 x^3
    assert outer(lambda x: x * inner(f)(x) + f(x))(2.0) == 48.0
    assert outer(lambda x: inner(lambda x: inner(lambda x: f(x) * x)(x))(x))(2.0) == 48.0  # (x^4)''' = 24 x


@every_pair
def test_three_levels_that_use_one_another(outer, inner):
    # d/dz (x y z) at z = 1 is x y; d/dy [y x y] at y = x is 2 x^2; d/dx [x 2 x^2] = 6 x^2
    f = lambda x: x * inner(lambda y: y * outer(lambda z: x * y * z)(1.0))(x)
    assert outer(f)(2.0) == 24.0


# -- the amazing bug ---------------------------------------------------------------------------------------------------


@every_pair
def test_the_amazing_bug_a_derivative_operator_made_by_differentiating_a_shift(outer, inner):
    def shift(u):
        return lambda g: lambda x: g(x + u)

    # D s 0, where s u g x = g (x + u), is the derivative operator; applied twice the bug gives 0 or g'
    by_shift = lambda d: lambda g: lambda x: d(lambda u: shift(u)(g)(x))(0.0)
    one, two = by_shift(outer), by_shift(inner)
    h = lambda x: x**4
    assert one(two(h))(1.5) == pytest.approx(12 * 1.5**2, rel=1e-14)
    assert one(one(h))(1.5) == pytest.approx(12 * 1.5**2, rel=1e-14)
    assert one(two(one(h)))(1.5) == pytest.approx(24 * 1.5, rel=1e-14)
    assert one(inner(h))(1.5) == inner(two(h))(1.5) == pytest.approx(12 * 1.5**2, rel=1e-14)
    assert one(two(math.exp))(1.0) == pytest.approx(math.e, rel=1e-14)


@every_pair
def test_a_closure_made_at_one_level_and_called_at_another(outer, inner):
    # g captures y of the inner level's point, and is called under the outer level
    def f(x):
        kept = []

        def body(y):
            kept.append(lambda z: y * z)  # y belongs to a level that is closed when this is called
            return y * y

        slope = inner(body)(x)  # 2 x
        return slope * kept[0](x)  # 2 x * x * x

    assert outer(f)(3.0) == pytest.approx(54.0)


@every_pair
def test_a_value_that_escapes_through_a_list(outer, inner):
    def f(x):
        box = []
        slope = inner(lambda y: (box.append(x * y), x * y * y)[1])(x)  # 2 x^2, and box holds x^2
        return box[0] * slope  # 2 x^4

    assert outer(f)(2.0) == pytest.approx(64.0)


@every_pair
def test_curried_pairs_in_the_encoding_of_church(outer, inner):
    # the pair (x, d/dy (x y^2)(x)) as a function of a selector
    pair = lambda a, b: lambda select: select(a, b)
    f = lambda x: pair(x, inner(lambda y: x * y * y)(x))(lambda a, b: a * b)  # x * 2 x^2
    assert outer(f)(2.0) == 24.0


# -- nested optimisation -----------------------------------------------------------------------------------------------


@every_pair
def test_the_derivative_of_a_minimum_found_with_derivatives(outer, inner):
    def minimum(f, x):
        slope = inner(f)
        for _ in range(12):
            x = x - slope(x) / inner(slope)(x)
        return x

    # argmin over y of (y - a)^2 + y^4 / 4 solves y^3 + 2 y = 2 a, so dy/da = 2 / (3 y^2 + 2)
    at = lambda a: minimum(lambda y: (y - a) ** 2 + y**4 / 4, 1.0)
    y = at(1.5)
    assert y**3 + 2 * y == pytest.approx(3.0, rel=1e-14)
    assert outer(at)(1.5) == pytest.approx(2.0 / (3.0 * y * y + 2.0), rel=1e-12)


@every_pair
def test_a_saddle_point_by_gradients_inside_gradients(outer, inner):
    # min over x of max over y of (x^2 + x y - y^2): y = x / 2, value 5 x^2 / 4
    def best_y(x):
        y = 0.3
        for _ in range(3):
            y = y - inner(lambda y: x * x + x * y - y * y)(y) / -2.0
        return y

    value = lambda x: x * x + x * best_y(x) - best_y(x) ** 2
    assert outer(value)(2.0) == pytest.approx(5.0, rel=1e-13)


# -- arrays ------------------------------------------------------------------------------------------------------------


JACOBIANS = {mode: (lambda f, mode=mode: jacobian(f, mode=mode)) for mode in MODES}


@pytest.mark.parametrize(("outer", "inner"), PAIRS, ids=[f"{a} over {b}" for a, b in PAIRS])
def test_confusion_between_arrays(outer, inner):
    # g(x) = sum_i x_i * sum_j d/dy_j sum (x y^2) at y = x = sum(x) * sum(2 x^2)
    def g(x):
        return x.sum() * JACOBIANS[inner](lambda y: (x * y * y).sum())(x).sum()

    x = np.array([1.0, 2.0, 3.0])
    expected = 2.0 * (x * x).sum() + x.sum() * 4.0 * x
    np.testing.assert_allclose(JACOBIANS[outer](g)(x), expected, rtol=1e-14)


@pytest.mark.parametrize(("outer", "inner"), PAIRS, ids=[f"{a} over {b}" for a, b in PAIRS])
def test_an_inner_level_that_writes_into_an_array_of_the_outer_one(outer, inner):
    def g(x):
        buffer = np.zeros(3)

        def body(y):
            buffer[0] = y[0] * x[1]
            buffer[1] = buffer[0] * y[1]
            return buffer[1] * x[0]

        slope = JACOBIANS[inner](body)(x)  # x0 x1 y0 y1: (x0 x1 x1, x0 x1 x0) at y = x
        return slope[0] * buffer[1]  # x0 x1^2 * x0 x1^2

    x = np.array([2.0, 3.0])
    np.testing.assert_allclose(JACOBIANS[outer](g)(x), [2 * 2.0 * 81.0, 4.0 * 4 * 27.0], rtol=1e-13)


@pytest.mark.parametrize(("outer", "inner"), PAIRS, ids=[f"{a} over {b}" for a, b in PAIRS])
def test_levels_whose_variables_are_views_of_one_another(outer, inner):
    def g(x):
        row = x[0]
        return (JACOBIANS[inner](lambda y: (y * row * x[1]).sum())(row) * row).sum()  # sum x0^2 x1

    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    expected = np.array([2 * x[0] * x[1], x[0] ** 2])
    np.testing.assert_allclose(JACOBIANS[outer](g)(x), expected, rtol=1e-14)


# -- order -------------------------------------------------------------------------------------------------------------


def stacked(modes, f):
    for mode in modes:
        f = MODES[mode](f)
    return f


@pytest.mark.parametrize("order", range(1, 7))
def test_every_sequence_of_modes_to_order_6(order):
    f = lambda x: x * math.sin(x)
    expected = 0.7 * math.sin(0.7 + order * math.pi / 2) + order * math.sin(0.7 + (order - 1) * math.pi / 2)
    for modes in itertools.product(MODES, repeat=order):
        assert stacked(modes, f)(0.7) == pytest.approx(expected, rel=1e-11, abs=1e-12), modes


@pytest.mark.parametrize(
    "modes",
    [["forward"] * 9, ["reverse"] * 9, ["forward", "reverse"] * 4, ["reverse", "forward"] * 4]
    + [["reverse"] * 4 + ["forward"] * 4, ["forward"] * 4 + ["reverse"] * 4],
    ids=["9 forward", "9 reverse", "reverse last", "forward last", "4 and 4", "4 and 4 turned"],
)
def test_order_8_and_9(modes):
    n = len(modes)
    assert stacked(modes, lambda x: math.exp(0.5 * x) * x)(0.3) == pytest.approx(
        math.exp(0.15) * (0.5**n * 0.3 + n * 0.5 ** (n - 1)), rel=1e-12
    )
    assert stacked(modes, lambda x: x**10)(1.1) == pytest.approx(
        math.perm(10, n) * 1.1 ** (10 - n), rel=1e-12
    )


@pytest.mark.parametrize("modes", list(itertools.product(MODES, repeat=3)), ids="-".join)
def test_order_3_through_control_flow_containers_and_classes(modes):
    class Horner:
        def __init__(self, coefficients):
            self.coefficients = coefficients

        def __call__(self, x):
            y = 0.0
            for c in reversed(self.coefficients):
                y = y * x + c
            return y

    def f(x):
        parts = {"p": Horner([1.0, 2.0, 3.0, 4.0])(x), "q": [x, x * x]}
        try:
            return parts["missing"]
        except KeyError:
            return parts["p"] + max(parts["q"])  # x > 1: x^2

    assert stacked(modes, f)(2.0) == 24.0


@pytest.mark.parametrize("modes", list(itertools.product(MODES, repeat=4)), ids="-".join)
def test_order_4_of_a_numpy_program(modes):
    a = np.array([0.5, 1.0, 1.5])
    f = lambda x: np.sum(np.sin(a * x) * np.exp(a))
    assert stacked(modes, f)(0.4) == pytest.approx(np.sum(a**4 * np.sin(0.4 * a) * np.exp(a)), rel=1e-12)


# -- operators inside operators ----------------------------------------------------------------------------------------


def test_every_operator_under_every_other():
    # each maps x to 3 x^2 by way of x^3
    operators = {
        "grad": lambda x: grad(lambda y: y**3)(x),
        "derivative": lambda x: derivative(lambda y: y**3)(x),
        "value_and_vjp": lambda x: vjp(lambda y: y**3, x)[1](1.0)[0],
        "jvp": lambda x: jvp(lambda y: y**3, (x,), (1.0,))[1],
        "linearize": lambda x: linearize(lambda y: y**3, x)[1](1.0),
        "jacobian forward": lambda x: jacobian(lambda y: y**3, mode="forward")(x),
        "jacobian reverse": lambda x: jacobian(lambda y: y**3, mode="reverse")(x),
        "hessian": lambda x: hessian(lambda y: y**4 / 4)(x),
        "hvp": lambda x: hvp(lambda y: y**4 / 4, (x,), (1.0,))[0],
        "forwarddiff": lambda x: grad(lambda y: forwarddiff(lambda y: y**3, y))(x),
        "wirtinger": lambda x: wirtinger(lambda z: z**3)(x + 0j)[0].real,
    }
    for name, inner in operators.items():
        assert inner(2.0) == pytest.approx(12.0, rel=1e-14), name
        for outer in (grad, derivative, jacobian, lambda f: lambda x: linearize(f, x)[1](1.0)):
            assert outer(inner)(2.0) == pytest.approx(12.0, rel=1e-14), name
            assert outer(lambda x: x * inner(x))(2.0) == pytest.approx(36.0, rel=1e-14), name
        assert (
            grad(derivative(inner))(2.0) == derivative(grad(inner))(2.0) == pytest.approx(6.0, rel=1e-13)
        ), name


def test_stop_gradient_holds_in_every_mode_and_at_every_level():
    f = lambda x: x * x * stop_gradient(x)
    assert grad(f)(3.0) == derivative(f)(3.0) == 18.0
    assert derivative(f, order=2)(3.0) == hessian(f)(3.0) == 6.0
    for a, b in itertools.product(MODES.values(), repeat=2):
        assert a(b(f))(3.0) == 6.0
        assert a(lambda x: b(lambda y: y * stop_gradient(x))(1.0))(3.0) == 0.0


def test_mixed_partial_derivatives_are_equal_in_any_order():
    f = lambda x, y: math.sin(x * y) + x**3 * y
    x, y = 0.7, 1.3
    expected = math.cos(x * y) - x * y * math.sin(x * y) + 3 * x * x
    for a, b in itertools.product(MODES.values(), repeat=2):
        assert a(lambda x: b(lambda y: f(x, y))(y))(x) == pytest.approx(expected, rel=1e-13)
        assert a(lambda y: b(lambda x: f(x, y))(x))(y) == pytest.approx(expected, rel=1e-13)


def test_levels_of_different_modes_in_eight_threads():
    wrong = []

    def work(k):
        for i in range(20):
            x = 1.0 + k + i / 20.0
            for outer, inner in itertools.product(MODES.values(), repeat=2):
                found = outer(lambda x: x * inner(lambda y: x * y * y * k)(x))(x)  # 2 k x^3
                if not math.isclose(found, 6.0 * k * x * x, rel_tol=1e-12, abs_tol=1e-12):
                    wrong.append((k, x, found))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
