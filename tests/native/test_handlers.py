"""`try` in functions that Numba compiles: the derivative of the way that was taken."""

import math

import numpy as np
import pytest

pytest.importorskip("numba")

import numba
from numpy.testing import assert_allclose

import plaingrad
from plaingrad.errors import NativeError
from tests.native import uncompiled


@numba.njit
def checked(x):
    if x < 1.0:
        raise ValueError("small")
    return x * x


@numba.njit
def halves(x, n):
    for k in range(n):
        x = 0.5 * x
        if x < 0.3 and k > 1:
            raise ValueError
    return x * x


@numba.njit
def written(a, x):
    a[0] = 3.0 * x
    a[1] = checked(x) + a[0]
    a[0] = 5.0 * x * x


@numba.njit
def forgiving(x, less=0.5):
    try:
        return checked(x - less)
    except Exception:
        return math.sin(x)


@numba.njit
def one_after_another(x, n):
    y = 3.0 * x
    try:
        y = checked(x)
        if y > 5.0:
            raise ValueError
        z = y + 1.0 / (x - 2.0)
    except Exception:
        z = 2.0 * x
    return z * y


@numba.njit
def in_loops(x, n):
    s = 0.0
    for i in range(n):
        try:
            s += halves(x * i, i)
        except:  # noqa: E722
            s = s * x
            if i == 3:
                continue
            s += math.cos(x)
        else:
            s += x
        if s > 40.0:
            break
    return s


@numba.njit
def one_in_another(x, n):
    s = x
    try:
        for i in range(n):
            try:
                s = s * checked(s - i)
            except Exception:
                s = s + forgiving(x)
            s = s / (n - 1 - i + 0.0)
        s = s * 100.0
    except Exception:
        s = s * s
    return s


@numba.njit
def after_writes(x, n):
    a = np.ones(2)
    try:
        written(a, x)
    except Exception:
        a[1] = a[0] * x
    return a[0] * a[1]


@numba.njit
def of_matrices(x, n):
    a = np.array([[x, 1.0], [1.0, x]])
    try:
        factor = np.linalg.cholesky(a)
        b = np.linalg.solve(a, factor[1])
    except Exception:
        return -x * x
    return factor[1, 1] * b[0] + np.sum(b)


@numba.njit
def of_shapes(x, n):
    a = x * np.arange(1.0, n)
    try:
        b = a * np.ones(3)
        c = b @ np.arange(3.0) + a.max()
    except Exception:
        c = 4.0 * np.sum(a)
    return c * x


@numba.njit
def of_lists(x, n):
    values = [x, x * x, 1.0 / x**-2]
    s = 0.0
    for i in range(n):
        try:
            s += values[i] * (x - 2.0) ** -2
        except Exception:
            s += x**3
    return s


PROGRAMS = [
    one_after_another,
    in_loops,
    one_in_another,
    after_writes,
    of_matrices,
    of_shapes,
    of_lists,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_the_way_that_was_taken_is_differentiated(f):
    plain = f.py_func
    for x, n in ((0.45, 5), (1.6, 2), (2.0, 4), (2.7, 4), (1.2, 0)):
        value, found = uncompiled.gradient(f, (x, n))
        wanted, slope = plaingrad.value_and_grad(plain)(x, n)
        assert_allclose(value, wanted, rtol=1e-13, err_msg=f"{x}, {n}")
        assert_allclose(found[0], slope, rtol=1e-12, err_msg=f"{x}, {n}")
        assert_allclose(uncompiled.slope(f, (x, n), (1.0, 0)), slope, rtol=1e-12, err_msg=f"{x}, {n}")


def test_compiled_as_well():
    assert plaingrad.value_and_grad(forgiving, tier="native")(2.5) == (forgiving(2.5), 4.0)
    assert plaingrad.value_and_grad(forgiving, tier="native")(1.2) == (math.sin(1.2), math.cos(1.2))


@numba.njit
def uncaught(x):
    try:
        y = checked(x)
    except Exception:
        y = 0.5
    if y == 0.5:
        raise KeyError("none")
    return checked(y - 3.0)


def test_what_no_handler_catches_is_raised():
    for x, kind in ((0.3, KeyError), (1.2, ValueError)):
        with pytest.raises(kind):
            uncompiled.gradient(uncaught, (x,))
    assert uncompiled.gradient(uncaught, (3.0,))[1][0] == pytest.approx(72.0)


@numba.njit
def falls(x, n):
    try:
        return x * falls(x, n - 1) if n else x
    except Exception:
        return x


@numba.njit
def with_least_squares(x):
    try:
        return np.linalg.lstsq(np.eye(2) * x, np.ones(2))[0][0]
    except Exception:
        return x


@numba.njit(error_model="numpy")
def with_other_options(x):
    try:
        return checked(x)
    except Exception:
        return x


def of_python(x):
    try:
        return math.log(x)
    except Exception:
        return x


@pytest.mark.parametrize(
    ("f", "args", "words"),
    [
        (falls, (2.0, 3), "`falls`, which calls itself inside of a `try`, at "),
        (with_least_squares, (2.0,), "`lstsq`, inside of a `try` that catches what it raises, at "),
        (with_other_options, (2.0,), "compiled with other options, inside of a `try` at "),
        (of_python, (2.0,), "`try` at "),
    ],
)
def test_what_is_not_known_to_raise_is_refused_with_its_line(f, args, words):
    line = getattr(f, "py_func", f).__code__.co_firstlineno + (2 if f is of_python else 3)
    with pytest.raises(NativeError, match="try") as caught:
        plaingrad.grad(f, tier="native")(*args)
    assert words in str(caught.value)
    assert f"{__file__}:{line}" in str(caught.value)
