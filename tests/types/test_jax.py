"""JAX functions inside plain ones, and plain ones inside JAX, to second order."""

import math

import numpy as np
import pytest

from plaingrad import ArgumentError, MissingRuleError, grad, hessian, hvp, jvp

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
from plaingrad.jax import function, inside  # noqa: E402


@pytest.fixture(autouse=True)
def in_64_bits():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


X = np.array([0.3, -1.2, 2.0])


def test_a_jax_function_is_one_step_of_a_plain_program():
    g = inside(jax.jit(lambda x, y: jnp.sin(x) * y))

    def f(x):
        total = 0.0
        for k in range(3):
            total = total + g(x * k, x) ** 2
        return total

    def plain(x):
        return sum((math.sin(x * k) * x) ** 2 for k in range(3))

    assert math.isclose(f(0.7), plain(0.7), rel_tol=1e-15)
    assert math.isclose(grad(f)(0.7), grad(plain)(0.7), rel_tol=1e-12)
    assert math.isclose(jvp(f, (0.7,), (1.0,))[1], grad(plain)(0.7), rel_tol=1e-12)
    assert math.isclose(grad(grad(f))(0.7), grad(grad(plain))(0.7), rel_tol=1e-12)
    assert math.isclose(jvp(grad(f), (0.7,), (1.0,))[1], grad(grad(plain))(0.7), rel_tol=1e-12)


def test_arrays_go_through_jax_and_back():
    g = inside(lambda x, n: (jnp.cumsum(x**n), jnp.prod(x)))
    z = X.copy()

    def f(x):
        sums, product = g(x, 2)
        return (sums * x).sum() + product

    def plain(x):
        return (np.cumsum(x**2) * x).sum() + np.prod(x)

    np.testing.assert_allclose(grad(f)(X), grad(plain)(X), rtol=1e-12)
    np.testing.assert_allclose(hessian(f)(X), hessian(plain)(X), rtol=1e-12, atol=1e-14)
    assert type(f(X)) is type(plain(X)) and (X == z).all()


def test_a_plain_function_is_one_step_of_a_jax_program():
    def plain(x, v):
        total = 0.0
        for w in v:
            total = total + math.exp(w * x) if w > 0 else total - w * x
        return total

    g = function(plain)

    def truth(x, v):
        return jnp.sum(jnp.where(v > 0, jnp.exp(v * x), -v * x))

    v = jnp.asarray(X)
    for of in (lambda x: g(x, v) ** 2, jax.jit(lambda x: g(x, v) ** 2)):
        assert math.isclose(of(0.4), truth(0.4, v) ** 2, rel_tol=1e-12)
        assert math.isclose(jax.grad(of)(0.4), jax.grad(lambda x: truth(x, v) ** 2)(0.4), rel_tol=1e-12)
    np.testing.assert_allclose(jax.grad(g, 1)(0.4, v), jax.grad(truth, 1)(0.4, v), rtol=1e-12)
    second = jax.grad(jax.grad(g))(0.4, v)
    assert math.isclose(second, jax.grad(jax.grad(truth))(0.4, v), rel_tol=1e-12)
    xs = jnp.array([0.1, 0.2])
    np.testing.assert_allclose(
        jax.vmap(jax.grad(g), (0, None))(xs, v), [jax.grad(truth)(x, v) for x in xs], rtol=1e-12
    )


def test_a_plain_function_may_return_arrays_to_jax():
    g = function(lambda x: np.outer(x, x), lambda x: jax.ShapeDtypeStruct((3, 3), x.dtype))
    weights = jnp.arange(9.0).reshape(3, 3)
    truth = jax.grad(lambda x: jnp.sum(weights * jnp.outer(x, x)))(jnp.asarray(X))
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(weights * g(x)))(jnp.asarray(X)), truth, rtol=1e-12)


def test_jax_functions_and_arrays_are_differentiated_without_a_word():
    assert math.isclose(grad(lambda x: float(jnp.sin(x)))(1.5), math.cos(1.5), rel_tol=1e-12)
    assert grad(lambda x: float(x * jnp.ones(3).sum()))(1.5) == 3.0

    def f(x):
        y = x * x
        y += jnp.sin(x) / x[0]
        return (y[1:] @ y[:-1]) * x.max()

    x, v = jnp.array([1.0, 2.5, 3.0]), jnp.array([0.3, -0.2, 0.7])
    d = grad(f)(x)
    np.testing.assert_allclose(d, jax.grad(f)(x), rtol=1e-12)
    np.testing.assert_allclose(jvp(f, (x,), (v,))[1], jax.grad(f)(x) @ v, rtol=1e-12)
    np.testing.assert_allclose(hvp(f, (x,), (v,))[0], jax.jvp(jax.grad(f), (x,), (v,))[1], rtol=1e-11)
    assert d.dtype == x.dtype and type(d) is type(x)
    np.testing.assert_allclose(
        grad(lambda v: jnp.asarray(v).sum().item() ** 2)(X), [2.2, 2.2, 2.2], rtol=1e-12
    )


def test_what_is_not_followed_in_jax_is_refused():
    x = jnp.array([1.0, 2.5])
    for f in (lambda x: x.at[0].set(2.0).sum(), lambda x: np.sin(x).sum(), lambda x: np.from_dlpack(x).sum()):
        with pytest.raises(MissingRuleError):
            grad(f)(x)
    with pytest.raises(ArgumentError):
        inside(jnp.sum)([1.0, 2.0])


def test_autograd_inside_is_differentiated_as_the_python_that_it_is():
    autograd = pytest.importorskip("autograd")
    f = autograd.grad(lambda y: y**3)
    assert math.isclose(grad(f)(1.5), 9.0) and math.isclose(grad(grad(f))(1.5), 6.0)


def test_what_the_body_of_a_loop_of_jax_has_captured_is_not_taken_for_a_constant():
    for f in (
        lambda c: jax.lax.fori_loop(0, 3, lambda i, v: v + c, jnp.array(0.0)),
        lambda c: jax.lax.fori_loop(0, 3, body_fun=lambda i, v: v + c, init_val=jnp.array(0.0)),
    ):
        for derivative in (grad(f), lambda c, f=f: jvp(f, (c,), (c,))):
            with pytest.raises(MissingRuleError, match="captured"):
                derivative(jnp.array(2.0))


def test_functions_of_jax_that_take_numbers_out_of_arrays_are_refused_unless_they_return_whole_ones():
    x = jnp.array([3.0, 1.0, 2.0])
    for f in (lambda x: jnp.unique(x).sum(), lambda x: jnp.union1d(x, x).sum()):
        with pytest.raises(MissingRuleError, match="takes numbers out"):
            jvp(f, (x,), (x,))
    weigh = lambda x: jnp.nonzero(x > 1.5)[0].sum() * x[0]
    assert jvp(weigh, (x,), (x,))[1] == 6.0
    assert jvp(lambda x: jnp.unique(x, size=3)[2], (x,), (x,))[1] == 3.0
