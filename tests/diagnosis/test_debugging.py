"""`debug=True` stops at the line; `verify=True` compares with differences."""

import math
import pickle
import threading

import numpy as np
import pytest

import plaingrad
from plaingrad import NotFiniteError, VerificationError, grad

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def root(x):
    return np.sqrt(x) * 3.0


def masked(x):
    return np.where(x > 0.0, np.log(np.abs(x)), 0.0).sum()


OPERATORS = [
    lambda f, x: grad(f, debug=True)(x),
    lambda f, x: plaingrad.value_and_grad(f, debug=True)(x),
    lambda f, x: plaingrad.jacobian(f, debug=True)(x),
    lambda f, x: plaingrad.jacobian(f, mode="forward", debug=True)(x),
    lambda f, x: plaingrad.hessian(f, debug=True)(x),
    lambda f, x: plaingrad.derivative(f, debug=True)(x),
    lambda f, x: plaingrad.jvp(f, (x,), (1.0,), debug=True),
    lambda f, x: plaingrad.vjp(f, x, debug=True)[1](1.0),
    lambda f, x: plaingrad.hvp(f, (x,), (1.0,), debug=True),
    lambda f, x: plaingrad.vhp(f, (x,), (1.0,), debug=True),
    lambda f, x: plaingrad.linearize(f, x, debug=True)[1](1.0),
    lambda f, x: plaingrad.taylor(f, x, 1, debug=True),
    lambda f, x: plaingrad.taylor(f, x, 3, debug=True),
    lambda f, x: plaingrad.wirtinger(f, debug=True)(complex(x)),
    lambda f, x: plaingrad.sparse_jacobian(f, np.array([x]), debug=True),
    lambda f, x: plaingrad.sparse_jacobian(f, np.array([x]), mode="reverse", debug=True),
    lambda f, x: plaingrad.sparse_hessian(lambda x: f(x).sum(), np.array([x]), debug=True),
]


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_stops_at_the_line(operator):
    with pytest.raises(NotFiniteError) as caught:
        operator(root, 0.0)
    first = str(caught.value).splitlines()[0]
    assert f"{__file__}:{root.__code__.co_firstlineno + 1}" in first.replace("at ", str()) or "test_debugging.py" in first
    operator(root, 4.0)  # and is silent where all is finite


def test_values_are_those_without_debug():
    x = np.array([0.5, 1.5])
    f = lambda x: (np.sin(x) * x).sum()
    np.testing.assert_allclose(grad(f, debug=True)(x), grad(f)(x), rtol=1e-14)
    np.testing.assert_allclose(plaingrad.hessian(f, debug=True)(x), plaingrad.hessian(f)(x), rtol=1e-13)
    assert plaingrad.vjp(f, x, debug=True)[0] == f(x)
    twice = grad(lambda t: grad(lambda s: s**3, debug=True)(t), debug=True)
    assert twice(2.0) == pytest.approx(12.0)


def test_values_of_other_operators_are_those_without_debug():
    x, v = np.array([0.5, 1.5]), np.array([1.0, 2.0])
    f = lambda x: (np.sin(x) * x).sum()
    g = lambda x: x[1:] * np.exp(x[:-1])
    assert_close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13)
    assert_close(plaingrad.vhp(f, (x,), (v,), debug=True)[0], plaingrad.vhp(f, (x,), (v,))[0])
    y, f_jvp = plaingrad.linearize(f, x, debug=True)
    assert y == f(x)
    assert_close(f_jvp(v), plaingrad.jvp(f, (x,), (v,))[1])
    assert_close(plaingrad.taylor(f, x, 4, v, debug=True), plaingrad.taylor(f, x, 4, v))
    assert_close(plaingrad.wirtinger(abs, debug=True)(1.0 + 2.0j), plaingrad.wirtinger(abs)(1.0 + 2.0j))
    sparse, dense = plaingrad.sparse_jacobian(g, x, debug=True), plaingrad.jacobian(g)(x)
    assert_close(sparse.toarray(), dense)
    assert_close(plaingrad.sparse_hessian(f, x, debug=True).toarray(), plaingrad.hessian(f)(x))


def test_a_higher_coefficient_that_is_not_finite_is_named():
    def f(x):
        y = 1.0 + x
        return y + x**1.5

    assert np.isfinite(plaingrad.taylor(f, 0.0, 1)).all()
    with pytest.raises(NotFiniteError, match=r"x\*\*1\.5"):
        plaingrad.taylor(f, 0.0, 3, debug=True)


def test_the_value_is_named_before_the_cotangent():
    with pytest.raises(NotFiniteError, match=r"(?s)np\.log\(np\.abs\(x\)\).*a value becomes -inf at \[1\]"):
        grad(masked, debug=True)(np.array([1.0, 0.0]))


def test_nothing_is_left_behind_after_it_was_raised():
    derivative = grad(root, debug=True)
    for _ in range(2):
        with pytest.raises(NotFiniteError):
            derivative(0.0)
    assert grad(root)(4.0) == 0.75 and derivative(4.0) == pytest.approx(0.75)
    assert math.isinf(grad(root)(0.0))


def test_other_threads_are_not_looked_at():
    inside, done, found = threading.Event(), threading.Event(), []

    def slow(x):
        inside.set()
        done.wait(5)
        return root(x)

    def other():
        inside.wait(5)
        found.append(grad(root)(0.0))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(NotFiniteError):
        grad(slow, debug=True)(0.0)
    thread.join()
    assert found == [math.inf]


def test_it_can_be_pickled():
    again = pickle.loads(pickle.dumps(grad(root, debug=True)))
    with pytest.raises(NotFiniteError):
        again(0.0)


# -- verify --------------------------------------------------------------------------------------------------------


def wrong(x):
    return x**3


@plaingrad.rrule(wrong)
def wrong_rrule(x):
    return x**3, lambda z_bar: (2 * x * z_bar,)


def test_right_gradients_are_confirmed():
    p = {"a": np.array([1.0, 2.0]), "b": 0.5}
    f = lambda p, n: np.sum(p["a"] ** 2) * math.exp(p["b"]) * n
    found = grad(f, verify=True)(p, 3)
    assert found["b"] == grad(f)(p, 3)["b"]
    value, gradient = plaingrad.value_and_grad(lambda z: abs(z) ** 2, verify=True)(1.0 + 2.0j)
    assert gradient == pytest.approx(2.0 + 4.0j)
    assert grad(lambda x: (x * x, "aux"), has_aux=True, verify=True)(3.0) == (6.0, "aux")


def test_a_wrong_rule_is_named_with_argument_and_line():
    def f(a, b):
        return math.sin(a[1]) * wrong(b) + a[0]

    with pytest.raises(VerificationError) as caught:
        grad(f, (0, 1), verify=True)([1.0, 2.0], 1.5)
    text = str(caught.value)
    assert "argument 1" in text and "argument 0" not in text.partition("The rule")[0].partition("argument 1")[2]
    assert "The rule for" in text and "wrong(b)" in text and "test_debugging.py" in text
    with pytest.raises(AssertionError, match=r"argument 1.*(?s:.)*The rule for"):
        plaingrad.testing.check_grads(f, ([1.0, 2.0], 1.5))


def test_verifying_leaves_arguments_as_a_plain_call_does():
    def f(x):
        x *= 2.0
        return x @ x

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(grad(f, verify=True)(x), [8.0, 16.0])
    assert x.tolist() == [2.0, 4.0]


def test_a_program_that_swallows_the_error_does_not_go_on_with_another_derivative():
    def f(x):
        try:
            y = np.log(x)
            return y
        except Exception:
            return x

    with pytest.raises(NotFiniteError) as first:
        grad(f, debug=True)(0.0)
    try:  # another attempt, where the first error is handled
        raise first.value
    except NotFiniteError:
        with pytest.raises(NotFiniteError):
            grad(f, debug=True)(0.0)

    def g(x):
        try:
            return np.log(x)
        except Exception:
            raise ValueError("something else") from None

    with pytest.raises(NotFiniteError):
        grad(g, debug=True)(0.0)
