"""Hazard 2: two arrays may share memory although neither is a view of the other."""

import ctypes
from array import array

import numpy as np
from cases_b import check, check_or_refuse

X = np.array([1.5, -0.5, 2.0, 0.25])


def test_two_views_of_one_bytearray():
    def f(x):
        a = np.frombuffer(bytearray(x.nbytes))  # a bytearray that could be read otherwise is in test_02_borrowed_memory
        b = a.view()
        a[:] = x
        b[1] *= 3.0
        return (a * b).sum()

    check(f, X, 2 * X * np.array([1.0, 9.0, 1.0, 1.0]))


def test_views_at_two_offsets():
    def f(x):
        whole = np.frombuffer(bytearray(2 * x.nbytes))
        right = whole[4:]
        whole[2:6] = x
        right[:2] *= x[0]
        return whole.sum()

    # x0 + x1 + (x2 + x3) x0
    check(f, X, np.array([1 + X[2] + X[3], 1.0, X[0], X[0]]))


def test_arrays_through_memoryviews_of_one_array_and_of_memory_of_their_own():
    def own(n):
        return np.zeros(n)

    def python_array(n):
        return np.asarray(array("d", [0.0]) * n)

    def through(make):
        def f(x):
            a = make(x.size)
            b = np.asarray(memoryview(a).cast("B").cast("d"))
            a[: x.size] = x * x
            return (b[: x.size] * np.arange(1.0, 5.0)).sum()

        return f

    for make in (own, python_array):
        check(through(make), X, 2 * X * np.arange(1.0, 5.0))


def test_a_view_of_a_view_of_a_temporary():
    def f(x):
        v = (x * 2.0).reshape(2, 2).T[::-1, ::-1].ravel(order="F")[1:]
        return (v * np.array([1.0, 10.0, 100.0])).sum()

    # 2x as [[a, b], [c, d]]; T reversed both ways is [[d, b], [c, a]]; by columns: d, c, b, a
    check(f, X, 2 * np.array([100.0, 10.0, 1.0, 0.0]))


def test_a_view_keeps_the_memory_when_its_owner_is_forgotten():
    def f(x):
        a = x * 1.0
        v = a[1:]
        del a
        v *= 2.0
        base = v.base
        del v
        return (base * base).sum()

    check(f, X, 2 * X * np.array([1.0, 4.0, 4.0, 4.0]))


def test_nditer_hands_out_views_of_the_array_that_it_walks():
    def f(x):
        a = x.copy()
        with np.nditer([a], op_flags=[["readwrite"]]) as walk:
            for v in walk:
                v[...] = v * v
        return a.sum()

    check(f, X, 2 * X)


def test_nditer_over_two_arrays_allocates_the_result():
    def f(x):
        walk = np.nditer([x, x[::-1], None])
        for a, b, y in walk:
            y[...] = a * b + a
        return walk.operands[2].sum()

    check(f, X, 2 * X[::-1] + 1)


def test_flatiter_reads_and_writes_the_array():
    def f(x):
        a = (x * 1.0).reshape(2, 2)
        total = 0.0
        for v in a.flat:
            total = total + v * v
        a.flat[1] = x[0] * 5.0
        a.T.flat[3] = total
        return a.sum() + a.flat[2]

    # total = sum of squares; a = [[x0, 5 x0], [x2, total]]
    check(f, X, 2 * X + np.array([6.0, 0.0, 2.0, 0.0]))


def test_ndenumerate_and_ndindex():
    def f(x):
        a = x.reshape(2, 2)
        return sum(v * v * (i + 10 * j) for (i, j), v in np.ndenumerate(a)) + sum(
            a[i] * x[0] for i in np.ndindex(2, 2)
        )

    g = 2 * X * np.array([0.0, 10.0, 1.0, 11.0]) + X[0]
    g[0] += X.sum()
    check(f, X, g)


def test_memoryview_reads_are_right_or_refused():
    check_or_refuse(lambda x: memoryview(x)[1] * 2.0, X, np.array([0.0, 2.0, 0.0, 0.0]))
    check_or_refuse(lambda x: sum(x.data), X, np.ones(4))
    check_or_refuse(lambda x: x.data.tolist()[2] * x[0], X, np.array([X[2], 0.0, X[0], 0.0]))


def test_memoryview_writes_are_right_or_refused():
    def f(x):
        a = np.zeros(2)
        memoryview(a)[0] = x[1] * x[1]
        return a.sum()

    check_or_refuse(f, X, np.array([0.0, 2 * X[1], 0.0, 0.0]))

    def g(x):
        a = x.copy()
        m = a.data
        m[0] = 7.0  # an inactive write over an active element
        return (a * a).sum()

    check_or_refuse(g, X, 2 * X * np.array([0.0, 1.0, 1.0, 1.0]))


def test_raw_bytes_and_addresses_are_right_or_refused():
    check_or_refuse(lambda x: np.frombuffer(x.tobytes()).sum(), X, np.ones(4))
    check_or_refuse(lambda x: np.frombuffer(bytes(x)).sum(), X, np.ones(4))
    check_or_refuse(lambda x: np.frombuffer(bytearray(x)).sum(), X, np.ones(4))

    def by_address(x):
        y = np.zeros(4)
        ctypes.memmove(y.ctypes.data, x.ctypes.data, x.nbytes)
        return y.sum()

    check_or_refuse(by_address, X, np.ones(4))

    class Alias:
        def __init__(self, a):
            self.__array_interface__ = a.__array_interface__
            self.keep = a

    check_or_refuse(lambda x: (np.asarray(Alias(x)) * 2.0).sum(), X, np.full(4, 2.0))


def test_real_and_imaginary_parts_are_views_of_a_complex_array():
    def f(x):
        z = np.zeros(4, complex)
        z.real = x
        z.imag[:] = x * x
        z.view(float)[0] = 5.0
        return (z * z.conj()).real.sum()

    # |z|^2 = x^2 + x^4, without the first real part
    check(f, X, 2 * X * np.array([0.0, 1.0, 1.0, 1.0]) + 4 * X**3)


def test_fields_of_a_structured_array_share_its_memory():
    def f(x):
        table = np.zeros(4, dtype=[("a", float), ("b", float, (2,))])
        table["a"] = x
        table["b"][:, 1] = x * 3.0
        table[1]["a"] = x[0]
        return (table["a"] * table["b"][:, 1]).sum() + table[2]["a"]

    # sum of a_i 3 x_i with a_1 = x0, plus x2
    g = 6 * X
    g[1] = 3 * X[0]
    g[0] += 3 * X[1]
    g[2] += 1
    check_or_refuse(f, X, g)


def test_zero_dimensional_and_empty_views():
    def f(x):
        a = x.copy()
        v = a[1, ...]
        v[...] = x[0] * x[2]
        v *= 2.0
        return a.sum() + a[4:].sum()

    check(f, X, np.array([1 + 2 * X[2], 0.0, 1 + 2 * X[0], 1.0]))


def test_out_arguments_that_are_views_of_the_operand():
    def f(x):
        a = x.copy()
        np.multiply(a[:-1], a[1:], out=a[1:])
        np.add(a, a[::-1], out=a)
        np.exp(a[0], out=a[0:1].reshape(()))
        return (a * np.arange(1.0, 5.0)).sum()

    # NumPy computes each as if nothing overlapped: a = [x0, x0x1, x1x2, x2x3], then a + reversed a
    s, t = X[0] + X[2] * X[3], X[0] * X[1] + X[1] * X[2]
    assert np.isclose(f(X), np.exp(s) + 5 * t + 4 * s)
    k, m = np.exp(s) + 4, 5.0
    check(f, X, np.array([k + m * X[1], m * (X[0] + X[2]), m * X[1] + k * X[3], k * X[2]]))


def test_nditer_after_its_end_leaves_the_arrays_as_they_were_written():
    def f(x):
        y, a = np.zeros((2, 4)), np.empty((2, 2), object)
        with np.nditer([x, y], ["external_loop"], [["readonly"], ["writeonly"]]) as walk:
            for u, v in walk:
                v[...] = u * u
        for k in range(4):
            a[k // 2, k % 2] = [x[k], k]
        objects = sum(v.item()[0] * v.item()[1] for v in np.nditer(a.T, ["refs_ok"]))
        steps = np.nditer(y[:, ::-1].T, ["multi_index"], op_flags=["readwrite"])
        while not steps.finished:
            steps[0] = steps[0] * steps.multi_index[0]
            steps.iternext()
        return y.sum() + objects

    check(f, X, 4 * X * np.arange(4)[::-1] + np.arange(4))
