"""Derivatives of derivatives with native steps in them: right in every order, or refused."""

import math
import threading

import numpy as np
import pytest

from plaingrad import derivative, grad, hessian, hvp, jacobian, jvp, linearize, value_and_grad, vhp, vjp

numba = pytest.importorskip("numba")

X = np.linspace(0.3, 1.0, 3)
V = np.array([1.0, -0.5, 0.2])


def of_python(x):
    s = 0.0
    for i in range(x.size):
        s += math.sin(x[i]) * x[i - 1] ** 2
    return s * s


def several(x, c):
    return x * c, np.sum(x * x) * c


compiled, compiled_several = numba.njit(of_python), numba.njit(several)
HESSIAN = hessian(of_python, tier="plain")(X)
GRADIENT = grad(of_python, tier="plain")(X)


def squared(a):
    return np.sum(a * a)


# -- a linear map that was made in a plain call, inside of a derivative ----------------------------------------------------


@pytest.mark.parametrize("tier", ["auto", "native"])
def test_a_pullback_is_linear_in_its_cotangent(tier):
    _, pullback = vjp(compiled, X, tier=tier)
    np.testing.assert_allclose(jvp(lambda s: pullback(s)[0], (0.5,), (2.0,))[1], 2.0 * GRADIENT, rtol=1e-13)
    np.testing.assert_allclose(vjp(lambda s: pullback(s)[0], 0.5)[1](V)[0], GRADIENT @ V, rtol=1e-13)
    found = grad(lambda s: squared(pullback(s)[0]))(0.5)
    np.testing.assert_allclose(found, GRADIENT @ GRADIENT, rtol=1e-13)
    second = derivative(lambda s: squared(pullback(s)[0]), order=2)(0.5)
    np.testing.assert_allclose(second, 2.0 * GRADIENT @ GRADIENT, rtol=1e-12)


@pytest.mark.parametrize("tier", ["auto", "native"])
def test_a_linear_map_of_a_numba_function_has_derivatives(tier):
    _, push = linearize(compiled, X, tier=tier)
    np.testing.assert_allclose(push(V), GRADIENT @ V, rtol=1e-13)
    np.testing.assert_allclose(grad(push)(np.zeros(3)), GRADIENT, rtol=1e-13)
    np.testing.assert_allclose(jvp(push, (X,), (V,))[1], GRADIENT @ V, rtol=1e-13)
    expected = 2.0 * np.outer(GRADIENT, GRADIENT)
    np.testing.assert_allclose(hessian(lambda v: push(v) ** 2)(V), expected, rtol=1e-12)


@pytest.mark.parametrize("tier", ["auto", "native"])
def test_the_linear_map_of_a_native_gradient_is_the_hessian(tier):
    _, push = linearize(grad(compiled, tier=tier), X)
    np.testing.assert_allclose(push(V), HESSIAN @ V, rtol=1e-12)
    np.testing.assert_allclose(grad(lambda v: squared(push(v)))(V), 2.0 * HESSIAN @ HESSIAN @ V, rtol=1e-12)
    _, push = linearize(value_and_grad(compiled, tier=tier), X)
    y_dot, x_dot = push(V)
    np.testing.assert_allclose(y_dot, GRADIENT @ V, rtol=1e-12)
    np.testing.assert_allclose(x_dot, HESSIAN @ V, rtol=1e-12)


def test_linearize_follows_numba_functions_in_the_middle_of_plain_code():
    push = linearize(lambda x: np.sin(compiled(x * 2.0) * x), X)[1]
    expected = jvp(lambda x: np.sin(of_python(x * 2.0) * x), (X,), (V,), tier="plain")[1]
    np.testing.assert_allclose(push(V), expected, rtol=1e-12)
    for k in (0, 1):
        push = linearize(lambda x, k=k: compiled_several(x * 2.0, x[0])[k], X)[1]
        expected = jvp(lambda x, k=k: several(x * 2.0, x[0])[k], (X,), (V,), tier="plain")[1]
        np.testing.assert_allclose(push(V), expected, rtol=1e-12)


def test_the_map_of_a_structure_is_transposed_with_its_structure():
    def f(p, c):
        return p["a"] * p["b"][0] * c, p["b"][1] ** 2

    args = {"a": X, "b": [2.0, 3.0]}, 0.5
    dots = {"a": V, "b": [1.0, -1.0]}, 2.0
    maps = [linearize(f, *args, tier=tier)[1] for tier in ("native", "plain")]
    for push in maps:
        np.testing.assert_allclose(push(*dots)[1], -6.0)
        found = grad(lambda a, b, c, push=push: np.sum(push({"a": a, "b": [b, None]}, c)[0]), (0, 1, 2))(V, 1.0, 2.0)
        np.testing.assert_allclose(found[0], np.full(3, 1.0))
        np.testing.assert_allclose(found[1:], (0.5 * np.sum(X), 2.0 * np.sum(X)))


# -- derivatives taken inside of others ------------------------------------------------------------------------------------


NESTS = {
    "gradient of a gradient": lambda f, t: grad(lambda x: squared(grad(f, tier=t)(x)))(X),
    "Hessian of a gradient": lambda f, t: hessian(lambda x: squared(grad(f, tier=t)(x)))(X),
    "Jacobian of a gradient": lambda f, t: jacobian(grad(f, tier=t))(X),
    "Jacobian of a Hessian": lambda f, t: jacobian(hessian(f, tier=t))(X),
    "Jacobian of a Jacobian": lambda f, t: jacobian(jacobian(f, tier=t))(X),
    "hvp of an hvp": lambda f, t: hvp(lambda x: squared(hvp(f, (x,), (V,), tier=t)[0]), (X,), (V,))[0],
    "gradient through an hvp": lambda f, t: grad(lambda x: squared(hvp(f, (x,), (V,), tier=t)[0]))(X),
    "gradient through an hvp by its direction": lambda f, t: grad(
        lambda v: squared(hvp(f, (X,), (v,), tier=t)[0])
    )(V),
    "gradient through a vhp": lambda f, t: grad(lambda x: squared(vhp(f, (x,), (V,), tier=t)[0]))(X),
    "gradient through a pullback": lambda f, t: grad(lambda x: squared(vjp(f, x, tier=t)[1](2.0)[0]))(X),
    "gradient through a tangent": lambda f, t: grad(lambda x: jvp(f, (x,), (V,), tier=t)[1])(X),
    "gradient through linearize": lambda f, t: grad(lambda x: linearize(f, x, tier=t)[1](V))(X),
    "tangent of a tangent": lambda f, t: jvp(lambda x: jvp(f, (x,), (V,), tier=t)[1], (X,), (V,))[1],
    "Taylor of a gradient": lambda f, t: derivative(lambda s: np.sum(grad(f, tier=t)(X * s)), order=3)(1.0),
    "a gradient at every point": lambda f, t: grad(
        lambda x: sum(np.sum(grad(f, tier=t)(x * k)) for k in (1.0, 2.0))
    )(X),
    "a captured variable": lambda f, t: grad(lambda a: np.sum(grad(lambda b: f(b * a))(X)))(2.0),
}


@pytest.mark.parametrize("tier", ["auto", "native"])
@pytest.mark.parametrize("name", NESTS)
def test_nests_are_those_of_the_plain_tier(name, tier):
    found, expected = NESTS[name](compiled, tier), NESTS[name](of_python, "plain")
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def cubic_sine(x):
    return math.sin(x) * x**3


def third(x):
    return (6.0 - 9.0 * x**2) * math.sin(x) + (18.0 * x - x**3) * math.cos(x)


@pytest.mark.parametrize("f", [numba.njit(cubic_sine), cubic_sine], ids=["compiled", "python"])
@pytest.mark.parametrize("tier", ["auto", "native"])
def test_a_derivative_of_derivatives_may_be_asked_for_in_the_native_tier(f, tier):
    for take in (grad, derivative):
        found = take(take(take(f, tier=tier), tier=tier), tier=tier)(0.7)
        np.testing.assert_allclose(found, third(0.7), rtol=1e-12)
    found = grad(derivative(grad(f, tier=tier), tier=tier), tier=tier)(0.7)
    np.testing.assert_allclose(found, third(0.7), rtol=1e-12)
    assert vjp(grad(f, tier=tier), 0.7, tier=tier)[1](1.0)[0] == pytest.approx(derivative(f, 2)(0.7), rel=1e-12)
    assert jvp(grad(f, tier=tier), (0.7,), (1.0,), tier=tier)[1] == pytest.approx(
        derivative(f, 2)(0.7), rel=1e-12
    )


def test_code_that_takes_derivatives_is_compiled():
    found = grad(lambda x: squared(grad(compiled)(x)), tier="native")(X)
    np.testing.assert_allclose(found, 2.0 * HESSIAN @ GRADIENT, rtol=1e-10)


def test_nested_derivatives_in_two_threads_do_not_mix():
    expected = {
        k: grad(lambda x, k=k: k * squared(grad(of_python, tier="plain")(x)), tier="plain")(X) for k in (1, 2)
    }
    expected_push = {k: k * HESSIAN @ V for k in (1, 2)}
    wrong = []

    def work(k):
        for _ in range(20):
            found = grad(lambda x: k * squared(grad(compiled)(x)))(X)
            pushed = linearize(lambda x: k * grad(compiled)(x), X)[1](V)
            if not np.allclose(found, expected[k], 1e-10) or not np.allclose(pushed, expected_push[k], 1e-10):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def large_ones(x):
    """A result that is assigned at two ends: what is given back at the first is not used where the second is reached."""
    s = 0.0
    i = 0
    while i < x.size:
        t = x[i]
        i += 1
        if t > 0.5:
            s += t**2
            if i >= x.size:
                return s * 3
    return s


@pytest.mark.parametrize(
    "x, slopes", [([0.6, 0.4, -0.3], [2.0, 0.0, 0.0]), ([0.6, 0.4, 0.9], [6.0, 0.0, 6.0]), ([0.1], [0.0])]
)
def test_second_derivatives_of_a_program_that_returns_at_two_ends(x, slopes):
    x = np.array(x)
    np.testing.assert_array_equal(hvp(large_ones, (x,), (np.ones_like(x),), tier="native")[0], slopes)
    np.testing.assert_array_equal(hessian(large_ones, tier="native")(x), np.diag(slopes))
