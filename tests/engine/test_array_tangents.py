"""Arguments that are arrays in forward mode, and for Hessian-vector products, at levels that are opened by the core."""

import gc
import math
import threading
import weakref

import numpy as np
import pytest

import plaingrad
from plaingrad.errors import AliasError, TangentError

G = np.array([1.0, 2.0, 3.0])
BASE = np.arange(1.0, 13.0)


def locked(a):
    a.flags.writeable = False
    return a


LAYOUTS = {
    "own": np.array([[1.0, 2.0], [3.0, 4.0]]),
    "Fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3) + 1.0),
    "view": BASE[2:8],
    "reshaped": BASE.reshape(3, 4),
    "strided": BASE[::2],
    "negative": BASE[::-1],
    "transposed": BASE.reshape(3, 4).T,
    "empty": np.zeros(0),
    "empty matrix": np.zeros((0, 3)),
    "0-d": np.array(1.5),
    "float32": np.arange(4, dtype=np.float32),
    "complex": np.arange(3) + 1j,
    "swapped": np.arange(3.0).astype(">f8"),
    "unaligned": np.frombuffer(bytearray(25), dtype=np.uint8)[1:].view(np.float64),
    "repeated": np.broadcast_to(np.array([2.0]), (4,)),
    "read-only": locked(np.array([1.0, 2.0])),
    "nan": np.array([np.nan, np.inf, 1.0]),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name):
    x = LAYOUTS[name]
    before = x.copy()
    for x_dot in (np.ones_like(x), np.array(0.5 * np.ones_like(x), x.dtype, order="F"), np.ones(x.shape, x.dtype)[...]):
        with np.errstate(invalid="ignore"):
            y, y_dot = plaingrad.jvp(lambda a: np.sum(np.real(a * a)), (x,), (x_dot,))
            np.testing.assert_allclose(y, np.sum(np.real(x * x)))
            np.testing.assert_allclose(y_dot, np.sum(np.real(2.0 * x * x_dot)), rtol=1e-6)
            z, z_dot = plaingrad.jvp(lambda a: a[..., None] * a[..., None], (x,), (x_dot,))
            np.testing.assert_allclose(z_dot, (2.0 * x * x_dot)[..., None], rtol=1e-6)
            assert z_dot.shape == z.shape and z_dot.dtype == z.dtype
        np.testing.assert_array_equal(x, before)
        if x.dtype == np.float64:
            with np.errstate(invalid="ignore"):
                (found,) = plaingrad.hvp(lambda a: np.sum(a * a * a), (x,), (x_dot,))
            assert type(found) is np.ndarray and found.shape == x.shape
            np.testing.assert_allclose(found, 6.0 * x * x_dot)


def test_numbers_lists_and_arrays_together():
    def f(a, s, p):
        return np.sum(a * a) * s + p[0] * p[1] * a[0]

    x, dots = (np.array([1.0, 2.0]), 3.0, [0.5, 0.25]), (np.array([0.0, 1.0]), 2.0, [1.0, 0.0])
    for _ in range(3):
        y, y_dot = plaingrad.jvp(f, x, dots)
        assert (y, y_dot) == (15.125, 22.25)
        a, s, p = plaingrad.hvp(f, x, dots)
        assert a.tolist() == [4.25, 14.0] and s == 4.0 and p == [0.0, 1.0]
        assert plaingrad.jvp(f, x, (None, 2.0, None))[1] == 10.0
        assert plaingrad.hvp(f, x, (np.ones(2), None, None))[0].tolist() == [6.0, 6.0]


def test_the_value_may_be_the_argument_or_a_part_of_it():
    x, x_dot = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    for _ in range(2):
        y, y_dot = plaingrad.jvp(lambda a: a, (x,), (x_dot,))
        assert y is x and y_dot.tolist() == [3.0, 4.0] and y_dot is not x_dot
        y_dot[0] = 100.0
        assert x_dot.tolist() == [3.0, 4.0]
        y, y_dot = plaingrad.jvp(lambda a: a[1:], (x,), (x_dot,))
        assert y.tolist() == [2.0] and y_dot.tolist() == [4.0]
        y, y_dot = plaingrad.jvp(lambda a: {"a": a, "b": [a[0]]}, (x,), (x_dot,))
        assert y["a"] is x and y_dot["a"].tolist() == [3.0, 4.0] and y_dot["b"] == [3.0]
        assert plaingrad.jvp(lambda a: 7.0, (x,), (x_dot,)) == (7.0, 0.0)
        y, y_dot = plaingrad.jvp(lambda a: np.ones(2), (x,), (x_dot,))
        assert y_dot.tolist() == [0.0, 0.0]
        (found,) = plaingrad.hvp(lambda a: a[0] * 2.0, (x,), (x_dot,))
        assert found.tolist() == [0.0, 0.0]


def test_the_direction_stays_as_it_is():
    x, x_dot = np.array([1.0, 2.0]), np.array([3.0, 4.0])

    def f(a):
        a *= a
        a[0] = 5.0
        return a

    for _ in range(2):
        x[:] = 1.0, 2.0
        y, y_dot = plaingrad.jvp(f, (x,), (x_dot,))
        assert y is x and x.tolist() == [5.0, 4.0] and y_dot.tolist() == [0.0, 16.0]
        assert x_dot.tolist() == [3.0, 4.0]


def test_writes_come_back_also_where_an_exception_ends_the_call():
    def f(a, fails=False):
        a[1] = a[0] * 3.0
        a *= 2.0
        if fails:
            raise KeyError("on the way")
        return a[0] * a[1]

    for _ in range(2):
        x = np.array([1.0, 5.0, 7.0])
        assert plaingrad.jvp(f, (x,), (np.array([1.0, 1.0, 1.0]),))[1] == 24.0
        assert x.tolist() == [2.0, 6.0, 14.0]
        x = np.array([1.0, 5.0, 7.0])
        with pytest.raises(KeyError):
            plaingrad.jvp(lambda a: f(a, True), (x,), (np.ones(3),))
        assert x.tolist() == [2.0, 6.0, 14.0]
        view = np.array([9.0, 1.0, 5.0])[1:]
        assert plaingrad.hvp(f, (view,), (np.array([1.0, 0.0]),))[0].tolist() == [24.0, 0.0]
        assert view.base.tolist() == [9.0, 2.0, 6.0]


def test_read_only_arguments_are_not_written():
    x = locked(np.array([1.0, 2.0]))

    def f(a):
        a[0] = 3.0
        return a

    for derive in (lambda: plaingrad.jvp(f, (x,), (np.ones(2),)), lambda: plaingrad.hvp(f, (x,), (np.ones(2),))):
        with pytest.raises(ValueError, match="read-only"):
            derive()


def test_an_array_with_two_names():
    def writes(a, b=None):
        a[0] = 2.0
        return np.sum(a) + np.sum(G if b is None else b)

    for _ in range(2):
        with pytest.raises(AliasError):
            plaingrad.jvp(writes, (G,), (np.ones(3),))
        with pytest.raises(AliasError):
            plaingrad.jvp(writes, (G, G), (np.ones(3), np.ones(3)))
        with pytest.raises(AliasError):
            plaingrad.hvp(writes, (G,), (np.ones(3),))
        assert G.tolist() == [1.0, 2.0, 3.0]
        # One that is read by another name is a constant there.
        assert plaingrad.jvp(lambda a: np.sum(a * G), (G,), (np.ones(3),))[1] == 6.0
        assert plaingrad.hvp(lambda a: np.sum(a * a * G), (G,), (np.ones(3),))[0].tolist() == [2.0, 4.0, 6.0]


def test_directions_that_do_not_fit():
    x = np.ones(3)
    for x_dot in (np.ones(2), np.ones((3, 1)), 1.0, np.ones(3, complex)):
        with pytest.raises(TangentError):
            plaingrad.jvp(np.sum, (x,), (x_dot,))
        with pytest.raises(TangentError):
            plaingrad.hvp(np.sum, (x,), (x_dot,))
    assert plaingrad.jvp(np.sum, (x,), (np.ones(3, int),))[1] == 3.0
    assert plaingrad.jvp(np.sum, (x,), (np.ones(3, np.float32),))[1] == 3.0


def test_inside_each_other():
    x, v = np.array([0.3, 0.7]), np.array([1.0, -2.0])
    f = lambda a: np.sum(np.sin(a) * a[0])
    (expected,) = plaingrad.hvp(f, (x,), (v,))
    h = 1e-5
    slope = plaingrad.grad(f)
    np.testing.assert_allclose(expected, (slope(x + h * v) - slope(x - h * v)) / (2 * h), rtol=1e-8)
    for _ in range(2):
        np.testing.assert_allclose(plaingrad.grad(lambda a: plaingrad.jvp(f, (a,), (v,))[1])(x), expected)
        np.testing.assert_allclose(plaingrad.jvp(plaingrad.grad(f), (x,), (v,))[1], expected)
        second = plaingrad.jvp(lambda a: plaingrad.jvp(f, (a,), (v,))[1], (x,), (v,))[1]
        assert second == pytest.approx(v @ expected, rel=1e-13)
        third = plaingrad.jvp(lambda a: plaingrad.hvp(f, (a,), (v,))[0], (x,), (v,))[1]
        up, down = (plaingrad.hvp(f, (x + s * h * v,), (v,))[0] for s in (1, -1))
        np.testing.assert_allclose(third, (up - down) / (2 * h), rtol=1e-7)


def test_threads():
    found = {}

    def work(k):
        x = np.array([0.1 * k, 1.0])
        for _ in range(20):
            y_dot = plaingrad.jvp(lambda a: np.sum(np.exp(a)), (x,), (np.array([1.0, 0.0]),))[1]
            (h,) = plaingrad.hvp(lambda a: np.sum(np.exp(a)), (x,), (np.array([1.0, 0.0]),))
        found[k] = y_dot, h[0], math.exp(0.1 * k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for y_dot, h, expected in found.values():
        assert y_dot == pytest.approx(expected, rel=1e-14) and h == pytest.approx(expected, rel=1e-14)


def test_nothing_is_kept():
    seen = []

    def derive():
        x, v = np.ones(3), np.ones(3)
        seen.extend(map(weakref.ref, (x, v)))
        y, y_dot = plaingrad.jvp(lambda a: a * a, (x,), (v,))
        seen.extend(map(weakref.ref, (y, y_dot, *plaingrad.hvp(lambda a: np.sum(a * a), (x,), (v,)))))

    for _ in range(3):
        derive()
    gc.collect()
    assert not any(ref() is not None for ref in seen)


def test_a_direction_that_is_zero_meets_no_infinite_curvature():
    h, _ = plaingrad.hvp(lambda x, y: math.sqrt(x) * y, (1e-220, 2.0), (0.0, 1.0))
    assert h == pytest.approx(0.5e110, rel=1e-14)
    _, h = plaingrad.hvp(lambda x, y: math.log(x) + y * y, (1e-200, 2.0), (0.0, 1.0))
    assert h == 2.0
