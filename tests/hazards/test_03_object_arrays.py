"""Hazard 3: an array of objects is a container whose operators are those of its elements."""

import math

import numpy as np
import pytest
from cases_b import check, check_or_refuse

X = np.array([1.5, -0.5, 2.0])


def test_an_object_array_of_active_floats_in_arithmetic():
    def f(x):
        a = np.array([x, x * x, 2.0], dtype=object)
        b = (a * 3.0 + a[0]) ** 2
        return b[0] + b[1] + b[2]

    # (4x)^2 + (3xx + x)^2 + (6 + x)^2
    x = 1.5
    check(f, x, 32 * x + 2 * (3 * x * x + x) * (6 * x + 1) + 2 * (6 + x))


def test_reductions_and_products_of_object_arrays():
    def f(x):
        a = np.array([x, x * x, 2.0], dtype=object)
        return a.sum() * a.dot(a) + np.prod(a) + (a @ a) + a.max() + np.add.reduce(a) + a.cumsum()[1]

    x = 1.5
    s, d = x + x * x + 2, x * x + x**4 + 4
    ds, dd = 1 + 2 * x, 2 * x + 4 * x**3
    check(f, x, ds * d + s * dd + 6 * x**2 + dd + 2 * x + ds + 1 + 2 * x)


def test_ufuncs_on_object_arrays_call_methods_of_the_elements():
    class Angle:
        def __init__(self, v):
            self.v = v

        def sin(self):
            return math.sin(self.v) * self.v

        def __add__(self, other):
            return Angle(self.v + other.v)

    def f(x):
        a = np.array([Angle(x), Angle(x * x)], dtype=object)
        return np.sin(a).sum() + a.sum().v

    x = 0.8
    check_or_refuse(
        f, x, math.cos(x) * x + math.sin(x) + 2 * x * (math.cos(x * x) * x * x + math.sin(x * x)) + 1 + 2 * x
    )


def test_vectorize_and_frompyfunc_call_python_element_by_element():
    def one(v, k):
        return v * v * k if v > 0 else v

    def f(x):
        y = np.vectorize(one)(x, 2.0)
        z = np.frompyfunc(one, 2, 1)(x, 3.0)
        return y.sum() + z.sum()

    check(f, X, np.array([10 * 1.5, 2.0, 10 * 2.0]))


def test_vectorize_with_a_closure_over_an_active_number():
    def f(k):
        g = np.vectorize(lambda v: v * k, otypes=[float])
        return g(np.arange(4.0)).sum() * k

    check(f, 1.5, 2 * 6 * 1.5)


def test_to_object_and_back():
    def f(x):
        a = x.astype(object)
        a[1] = a[0] * a[2]
        return (a.astype(float) ** 2).sum() + np.array(a, dtype=float)[1] + np.array(a.tolist())[0]

    p = X[0] * X[2]
    check(f, X, np.array([2 * X[0] + 2 * p * X[2] + X[2] + 1, 0.0, 2 * X[2] + 2 * p * X[0] + X[0]]))


def test_slices_and_writes_of_object_arrays_only_move_references():
    def f(x):
        a = np.empty((2, 2), dtype=object)
        a[0, 0] = x
        a[0, 1] = [x * x]
        a[1] = 3.0
        b = a.T.copy()
        b[1, 0].append(x)
        a[1, :] = a[0, 0]
        return sum(a[0, 1]) + a[1, 1] + b[0, 0] + b.ravel()[0]

    check(f, 1.5, 2 * 1.5 + 1 + 3)


def test_sorting_and_searching_object_arrays():
    def f(x):
        a = np.array([x, -x, x * x], dtype=object)
        b = np.sort(a)
        a.sort()
        return b[0] * 100.0 + b[1] * 10.0 + b[2] + a[2] + np.argmax(a)

    check(f, 1.5, -100.0 + 10.0 + 2 * 2 * 1.5)


def test_object_arrays_of_arrays_and_of_user_numbers():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def __mul__(self, other):
            return Pair(self.a * other, self.b * other)

        __rmul__ = __mul__

        def __add__(self, other):
            return Pair(self.a + other.a, self.b * other.b)

    def f(x):
        a = np.empty(2, dtype=object)
        a[0], a[1] = Pair(x, x), Pair(1.0, x * x)
        total = (a * x).sum()
        return total.a + total.b

    # a0 = (xx, xx), a1 = (x, xxx): total.a = xx + x, total.b = x^5
    check(f, 1.5, 2 * 1.5 + 1 + 5 * 1.5**4)

    def g(x):
        rows = np.empty(2, dtype=object)
        rows[0], rows[1] = x * 2.0, x[:2]
        return (rows[0] * 3.0).sum() + (rows * 2.0)[1].sum()

    check(g, X, np.array([8.0, 8.0, 6.0]))


def test_where_choose_and_concatenate_on_object_arrays():
    def f(x):
        a = np.array([x, 2.0 * x], dtype=object)
        b = np.concatenate([a, a[::-1]])
        c = np.where(np.array([True, False, True, False]), b, 0.0)
        return c.sum() + b[2] * b[3]

    # b = x, 2x, 2x, x; c = x + 2x; plus 2xx
    check_or_refuse(f, 1.5, 3 + 4 * 1.5)


def of_floats(x):
    return np.array([x, x * x])


def constants():
    return np.array([1.5, 2.0], dtype=object)


def written(write):
    """The program that lets `write` change an array of constants, and weighs its elements."""

    def f(x):
        a = constants()
        write(a, x)
        return a[0] * 1.0 + a[1] * 2.0

    return f


# array of objects and array of floats, the program, its derivative
MIXED = {
    "a number by ufunc": (lambda x: np.add(constants(), x).sum(), lambda x: 2),
    "by ufunc": (lambda x: np.multiply(constants(), of_floats(x)).sum(), lambda x: 1.5 + 4 * x),
    "objects second": (lambda x: np.divide(of_floats(x), constants()).sum(), lambda x: 1 / 1.5 + x),
    "outer": (lambda x: np.multiply.outer(constants(), of_floats(x)).sum(), lambda x: 3.5 * (1 + 2 * x)),
    "joined": (lambda x: np.concatenate([of_floats(x), np.array([x], object)]).sum(), lambda x: 2 + 2 * x),
    "appended": (lambda x: np.append(constants(), x).sum() * x, lambda x: 3.5 + 2 * x),
    "stacked": (lambda x: np.stack([constants(), of_floats(x)])[1, 1], lambda x: 2 * x),
    "chosen": (lambda x: np.where(np.array([True, False]), of_floats(x), constants()).sum(), lambda x: 1),
    "a number chosen": (lambda x: np.where(np.array([True, False]), x, constants()).sum(), lambda x: 1),
    "made like": (lambda x: np.full_like(constants(), x).sum(), lambda x: 2),
    "slice": (written(lambda a, x: a.__setitem__(slice(None), of_floats(x))), lambda x: 1 + 4 * x),
    "list of places": (written(lambda a, x: a.__setitem__([1, 0], of_floats(x))), lambda x: 2 + 2 * x),
    "out": (written(lambda a, x: np.add(of_floats(x), 1.0, out=a)), lambda x: 1 + 4 * x),
    "copyto": (written(lambda a, x: np.copyto(a, of_floats(x))), lambda x: 1 + 4 * x),
    "put": (written(lambda a, x: a.put([1], x)), lambda x: 2),
    "flat": (written(lambda a, x: a.flat.__setitem__(slice(None), of_floats(x))), lambda x: 1 + 4 * x),
    "added at": (written(lambda a, x: np.add.at(a, [0, 0], x)), lambda x: 2),
    "made of arrays": (lambda x: np.array([of_floats(x), of_floats(x)], object).sum(), lambda x: 2 + 4 * x),
    "filled with an array": (lambda x: np.full(2, of_floats(x), object).sum(), lambda x: 1 + 2 * x),
}


@pytest.mark.parametrize("name", MIXED)
def test_floats_that_go_into_arrays_of_objects_keep_their_derivatives(name):
    f, slope = MIXED[name]
    refused = ("added at", "made of arrays", "filled with an array")
    (check_or_refuse if name in refused else check)(f, 1.3, slope(1.3))
