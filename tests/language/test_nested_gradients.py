"""Gradients of programs that take gradients: every level keeps its own perturbation."""

import functools
import math
import threading

import numpy as np
import pytest
from cases_b import check

import plaingrad
from plaingrad import grad


def test_the_gradient_of_a_gradient_and_of_that():
    x = 0.7
    f = lambda x: math.sin(x) * x**3
    first = lambda x: math.cos(x) * x**3 + 3 * x**2 * math.sin(x)
    second = lambda x: -math.sin(x) * x**3 + 6 * x**2 * math.cos(x) + 6 * x * math.sin(x)
    third = lambda x: -math.cos(x) * x**3 - 9 * x**2 * math.sin(x) + 18 * x * math.cos(x) + 6 * math.sin(x)
    assert grad(f)(x) == pytest.approx(first(x), rel=1e-12)
    assert grad(grad(f))(x) == pytest.approx(second(x), rel=1e-12)
    assert grad(grad(grad(f)))(x) == pytest.approx(third(x), rel=1e-12)


def test_five_levels_of_a_polynomial_and_of_an_exponential():
    f = lambda x: x**6
    for order in range(1, 6):
        f = grad(f)
        assert f(1.1) == pytest.approx(math.perm(6, order) * 1.1 ** (6 - order), rel=1e-12)
    g = lambda x: math.exp(2.0 * x)
    for _ in range(4):
        g = grad(g)
    assert g(0.3) == pytest.approx(16 * math.exp(0.6), rel=1e-12)


def test_perturbation_confusion_of_a_product_with_an_inner_sum():
    # d/dx [x * d/dy (x + y)] = 1
    check(lambda x: x * grad(lambda y: x + y)(1.0), 3.0, 1.0)
    check(lambda x: x * grad(lambda y: x + y)(x), 3.0, 1.0)
    check(lambda x: x * grad(lambda y: x * y)(2.0), 3.0, 6.0)
    check(lambda x: x * grad(lambda y: x * y)(x), 3.0, 6.0)


def test_the_same_object_at_two_levels():
    # inner: d/dy x y y = 2 x y, at y = x: 2 x x
    check(lambda x: grad(lambda y: x * y * y)(x), 3.0, 12.0)
    # inner: d/dy (x + y) ** 3 at y = x: 3 (2 x) ** 2 = 12 x x
    check(lambda x: grad(lambda y: (x + y) ** 3)(x), 3.0, 72.0)
    # the same name and the same function at both levels
    def f(x):
        return x * x * x

    check(lambda x: x * grad(f)(x) + f(x), 2.0, 9 * 4.0 + 3 * 4.0)
    # y is x itself: d/dy [y] = 1 whatever x
    check(lambda x: grad(lambda y: y)(x) * x, 3.0, 1.0)
    check(lambda x: grad(lambda y: x)(x) * x + x, 3.0, 1.0)


def test_three_levels_that_use_one_another():
    # d/dx [ x * d/dy [ y * d/dz (x y z) ] ] at y = x, z = 1: d/dz = x y; d/dy (x y y) = 2 x y; x * 2 x x
    def f(x):
        return x * grad(lambda y: y * grad(lambda z: x * y * z)(1.0))(x)

    check(f, 2.0, 24.0)


def test_siskind_and_pearlmutters_amazing_bug():
    # A closure made under one derivative and applied under another.
    def shift(u):
        return lambda g: lambda x: g(x + u)

    derivative = lambda g: lambda x: grad(g)(x)
    d_shift = lambda g: lambda x: grad(lambda u: shift(u)(g)(x))(0.0)
    h = lambda x: x**4
    assert d_shift(h)(1.5) == pytest.approx(4 * 1.5**3, rel=1e-12)
    assert d_shift(d_shift(h))(1.5) == pytest.approx(12 * 1.5**2, rel=1e-12)
    assert derivative(d_shift(h))(1.5) == pytest.approx(12 * 1.5**2, rel=1e-12)
    assert d_shift(derivative(h))(1.5) == pytest.approx(12 * 1.5**2, rel=1e-12)


def test_a_value_saved_from_an_inner_level_is_only_the_outers_afterwards():
    def f(x):
        saved = []

        def inner(y):
            saved.append(x * y)
            saved.append(y)
            return y * y

        slope = grad(inner)(2.0)
        return saved[0] * saved[1] * slope

    # saved[0] = 2x, saved[1] = 2, slope = 4
    check(f, 3.0, 16.0)


def test_a_closure_that_leaves_an_inner_level_and_is_called_later():
    def f(x):
        kept = []

        def inner(y):
            kept.append(lambda z: x * y * z)
            return x * y * y

        slope = grad(inner)(x)
        return kept[0](x) * 1.0 + slope

    # kept: x * x * x (y was x when inner ran); slope 2 x x
    check(f, 1.5, 3 * 1.5**2 + 4 * 1.5)


@pytest.mark.unchecked(reason="the generator is used up by one call")
def test_a_generator_started_in_the_outer_level_and_advanced_in_the_inner():
    def numbers(x):
        k = 1.0
        while True:
            k = k * x
            yield k

    def f(x):
        g = numbers(x)
        next(g)
        slope = grad(lambda y: y * y * next(g))(x)  # 2 y x x at y = x
        return slope + next(g)

    check(f, 1.5, 9 * 1.5**2)


def test_a_generator_started_in_the_inner_level_and_advanced_in_the_outer():
    def f(x):
        kept = []

        def inner(y):
            def walk():
                yield y * x
                yield y * x * x

            g = walk()
            kept.append(g)
            return next(g) * y

        slope = grad(inner)(2.0)  # 4 x
        return slope * next(kept[0])  # 4 x * 2 x x

    check(f, 1.5, 24 * 1.5**2)


def test_newtons_method_with_the_programs_own_gradient():
    def f(a):
        g = lambda t: t * t * t - a
        t = 1.0
        for _ in range(30):
            t = t - g(t) / grad(g)(t)
        return t

    # t = a ** (1/3)
    check(f, 5.0, 5.0 ** (-2 / 3) / 3)


def test_gradient_descent_unrolled():
    def f(rate):
        loss = lambda w: (w - 3.0) * (w - 3.0) * 0.5
        w = 0.0
        for _ in range(5):
            w = w - rate * grad(loss)(w)
        return w

    # w - 3 = -3 (1 - rate) ** 5
    check(f, 0.1, 15 * 0.9**4)


def test_a_hessian_vector_product_of_a_list():
    def loss(w):
        return w[0] ** 2 * w[1] + math.sin(w[1]) * w[2] + w[2] ** 3

    v = [0.5, -1.0, 2.0]

    def along(w):
        return sum(a * b for a, b in zip(grad(loss)(w), v, strict=True))

    a, b, c = w = [1.5, 0.7, 0.9]
    hessian = [[2 * b, 2 * a, 0.0], [2 * a, -math.sin(b) * c, math.cos(b)], [0.0, math.cos(b), 6 * c]]
    check(along, w, [sum(h * k for h, k in zip(row, v, strict=True)) for row in hessian])


def test_a_hessian_vector_product_of_an_array():
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])

    def loss(w):
        return w @ matrix @ w + (w**3).sum()

    v = np.array([0.5, -1.0])
    w = np.array([1.5, 0.7])
    check(lambda w: grad(loss)(w) @ v, w, 2 * matrix @ v + 6 * w * v)


def test_value_and_grad_and_vjp_inside():
    def f(x):
        value, slope = plaingrad.value_and_grad(lambda y: y**3 * x)(2.0)
        z, pullback = plaingrad.vjp(lambda y, k: y * y * k, x, 3.0)
        y_bar, k_bar = pullback(x)
        return value + slope + z + y_bar + k_bar

    # 8x + 12x + 3xx + x 6x + x xx
    x = 1.5
    check(f, x, 20 + 6 * x + 12 * x + 3 * x**2)


def test_an_inner_pullback_called_twice_with_active_cotangents():
    def f(x):
        _, pullback = plaingrad.vjp(lambda y: y * y, 3.0)
        return pullback(x)[0] + pullback(x * x)[0]

    check(f, 1.5, 6.0 + 12.0 * 1.5)


def test_an_inner_pullback_called_after_the_outer_level_closed():
    kept = []

    def f(x):
        y, pullback = plaingrad.vjp(lambda t: t * t * x, 2.0)
        kept.append(pullback)
        return y

    assert grad(f)(3.0) == 4.0
    assert kept[0](1.0)[0] == 12.0


def test_an_inner_pullback_made_in_one_level_and_called_in_another():
    def f(x):
        _, pullback = plaingrad.vjp(lambda t: t**3 * x, 2.0)  # 12 x
        return grad(lambda s: pullback(s * s)[0])(x)  # 24 x s at s = x

    check(f, 1.5, 48 * 1.5)


def test_argnums_of_the_inner_gradient_leave_the_other_arguments_to_the_outer():
    g = lambda a, b: a * a * b**3

    def f(x):
        by_a, by_b = grad(g, argnums=(0, 1))(x, x * x)
        return by_a + by_b * grad(g, argnums=1)(2.0, x)

    # by_a = 2 x x^6; by_b = 3 x^2 x^4 = 3 x^6; the last 12 x x
    x = 0.9
    check(f, x, 14 * x**6 + 36 * 8 * x**7)


def test_a_gradient_with_structure_used_in_the_outer():
    def loss(p):
        return p["a"] ** 2 * p["b"][0] + p["b"][1] ** 3

    def f(x):
        g = grad(loss)({"a": x, "b": [x * x, 2.0 * x]})
        return g["a"] * g["b"][0] + g["b"][1]

    # 2 x xx * xx + 3 (2x)^2
    x = 0.9
    check(f, x, 10 * x**4 + 24 * x)


def test_an_inner_gradient_of_a_method_of_an_object_with_active_attributes():
    class Spring:
        def __init__(self, k):
            self.k = k

        def energy(self, q):
            return 0.5 * self.k * q * q

        def force(self, q):
            return -grad(self.energy)(q)

    def f(k):
        spring, q, v, h = Spring(k), 1.0, 0.0, 0.5
        for _ in range(2):
            v = v + h * spring.force(q)
            q = q + h * v
        return q

    # q1 = 1 - k/4; v1 = -k/2; v2 = v1 - (k - kk/4)/2 = -k + kk/8; q2 = 1 - k/4 - k/2 + kk/16
    check(f, 0.8, -0.75 + 0.8 / 8)


def test_an_inner_gradient_in_a_comprehension_a_generator_and_a_map():
    def f(x):
        rows = [grad(lambda y: y**k * x)(2.0) for k in range(4)]  # x (0 + 1 + 4 + 12)
        lazily = sum(grad(lambda y: y * y * x)(float(k)) for k in range(3))  # x (0 + 2 + 4)
        mapped = sum(map(grad(lambda y: y * y * x), [x, 1.0]))  # 2xx + 2x
        return sum(rows) + lazily + mapped

    check(f, 1.5, 17 + 6 + 4 * 1.5 + 2)


def test_a_branch_that_depends_on_an_inner_gradient():
    def f(x):
        slope = grad(lambda y: y**3 - 3.0 * y * x)(1.0)  # 3 - 3 x
        return x * x if slope < 0 else slope

    check(f, 1.5, 3.0)
    check(f, 0.5, -3.0)


def test_an_inner_gradient_that_has_no_influence_or_is_constant():
    check(lambda x: grad(lambda y: 5.0)(x) + x, 1.5, 1.0)
    check(lambda x: grad(lambda y: 3.0 * y)(x) * x, 1.5, 3.0)
    check(lambda x: x if grad(lambda y: y * y)(2.0) == 4.0 else 0.0, 1.5, 1.0)


def test_memoised_inner_functions_do_not_leak_between_levels():
    @functools.lru_cache(maxsize=None)
    def square(t):
        return t * t

    check(lambda x: x * grad(lambda y: square(y) * square(x))(x) + square(x), 1.5, 8 * 1.5**3 + 3.0)


def test_stop_gradient_at_one_level_is_not_stopped_in_plain_arithmetic():
    def f(x):
        return grad(lambda y: plaingrad.stop_gradient(y) * y * x)(2.0)  # 2 x

    check(f, 1.5, 2.0)


def test_mutation_under_nested_levels():
    def f(x):
        log = [x]

        def inner(y):
            log.append(log[-1] * y)
            return log[-1] * y

        slope = grad(inner)(3.0) + grad(inner)(2.0)
        # first: x y y -> 6 x, log = [x, 3x]; second: 3 x y y -> 12 x, log = [x, 3x, 6x]
        return slope * log[-1]

    check(f, 1.5, 2 * 18 * 6 * 1.5)


def test_arrays_written_in_place_under_nested_levels():
    def f(x):
        a = np.zeros(3)
        a[0] = x

        def inner(y):
            a[1] = a[0] * y
            a[2] = a[1] * y
            return a[2] * y

        slope = grad(inner)(2.0)  # x y^3 -> 12 x
        return slope + a[1] * a[2]  # 2x * 4x

    check(f, 1.5, 12 + 16 * 1.5)


def test_a_user_rule_takes_gradients_in_its_pullback_and_is_differentiated_twice():
    def cube(x):
        return x * x * x

    @plaingrad.rrule(cube)
    def cube_rrule(x):
        def cube_pullback(y_bar):
            return (y_bar * 3.0 * grad(lambda t: t * t * t / 3.0)(x),)

        return x * x * x, cube_pullback

    assert grad(cube)(2.0) == pytest.approx(12.0, rel=1e-13)
    assert grad(grad(cube))(2.0) == pytest.approx(12.0, rel=1e-13)
    assert grad(grad(grad(cube)))(2.0) == pytest.approx(6.0, rel=1e-13)


def test_two_threads_take_different_gradients_of_one_function():
    def f(x):
        y = x
        for _ in range(50):
            y = y + grad(lambda t: t * t * x)(1.0) * 0.01
        return y * x

    results = {}

    def work(name, x):
        results[name] = [grad(f)(x) for _ in range(10)]

    threads = [threading.Thread(target=work, args=(i, float(i))) for i in range(1, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # f = x (x + 50 * 2x * 0.01) = 2 x x
    assert results == {i: [pytest.approx(4.0 * i, rel=1e-12)] * 10 for i in (1, 2)}


def test_a_thread_takes_a_gradient_inside_a_gradient():
    def f(x):
        out = []
        thread = threading.Thread(target=lambda: out.append(grad(lambda y: y**3 * x)(2.0)))
        thread.start()
        thread.join()
        return out[0] * x

    check(f, 1.5, 24 * 1.5)


def test_a_gradient_of_a_gradient_of_builtin_functions():
    assert grad(grad(math.sin))(0.5) == pytest.approx(-math.sin(0.5), rel=1e-13)
    assert grad(grad(math.exp))(0.5) == pytest.approx(math.exp(0.5), rel=1e-13)
    assert grad(grad(abs))(-2.0) == 0.0
    assert grad(lambda x: grad(pow)(x, 3.0))(2.0) == pytest.approx(12.0, rel=1e-13)


def test_second_derivatives_at_corners():
    assert grad(grad(lambda x: x**2))(0.0) == 2.0
    assert grad(grad(lambda x: x**1))(0.0) == 0.0
    assert grad(grad(lambda x: x**3))(0.0) == 0.0
    assert grad(grad(lambda x: x**2.0))(-1.5) == 2.0
    assert grad(grad(lambda x: abs(x) * x))(-1.5) == -2.0
    assert grad(grad(lambda x: max(x, 0.0) ** 2))(1.5) == 2.0
    assert grad(grad(lambda x: max(x, 0.0) ** 2))(-1.5) == 0.0


def test_the_rule_of_a_python_function_is_followed_for_the_value_that_an_inner_derivative_returns():
    def steep(x):
        return x * x

    plaingrad.scalar_rule(steep, lambda x, z: 5.0 * x)  # on purpose not the derivative of the body
    try:
        assert grad(lambda x: plaingrad.value_and_grad(steep)(x)[0])(2.0) == 10.0
        assert grad(lambda x: plaingrad.jvp(steep, (x,), (1.0,))[0])(2.0) == 10.0
        assert plaingrad.jvp(lambda x: plaingrad.value_and_grad(steep)(x)[0], (2.0,), (1.0,))[1] == 10.0
        assert grad(lambda x: plaingrad.taylor(steep, x, 1)[0])(2.0) == 10.0
        assert grad(grad(steep))(2.0) == 5.0
    finally:
        plaingrad.rulebook.uncover(steep)


@pytest.mark.parametrize("partial", [lambda x, z: 3 * x * x, lambda x, z: 3 * z / x], ids=["of x", "of z"])
def test_the_partial_that_a_user_gave_is_differentiated_too(partial):
    def cube(x):
        return float(np.float64(x) ** 3)

    plaingrad.scalar_rule(cube, partial)
    slope = lambda x: plaingrad.jvp(cube, (x,), (1.0,))[1]
    assert grad(grad(cube))(1.5) == pytest.approx(9.0)
    assert grad(slope)(1.5) == pytest.approx(9.0)
    assert plaingrad.jvp(slope, (1.5,), (1.0,))[1] == pytest.approx(9.0)
    assert plaingrad.jvp(grad(cube), (1.5,), (1.0,))[1] == pytest.approx(9.0)


def test_a_first_power_of_the_smallest_numbers_has_no_second_derivative():
    for x in (2e-313, -2e-313, 5e-324, 0.0, 1.5):
        assert plaingrad.grad(plaingrad.grad(lambda v: v**1))(x) == 0.0
        assert plaingrad.grad(plaingrad.grad(lambda v: v**1.0))(x) == 0.0
