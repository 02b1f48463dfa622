"""Arguments that are arrays, at levels that are opened by the core: copies while the function runs, written back after it."""

import gc
import math
import threading
import weakref

import numpy as np
import pytest

import plaingrad

G = np.array([1.0, 2.0, 3.0])


def layouts():
    base = np.arange(1.0, 13.0)
    yield "own", np.array([[1.0, 2.0], [3.0, 4.0]])
    yield "Fortran", np.asfortranarray(np.arange(6.0).reshape(2, 3) + 1.0)
    yield "view", base[2:8]
    yield "reshaped", base.reshape(3, 4)
    yield "strided", base[::2]
    yield "negative", base[::-1]
    yield "transposed", base.reshape(3, 4).T
    yield "empty", np.zeros(0)
    yield "empty matrix", np.zeros((0, 3))
    yield "0-d", np.array(1.5)
    yield "float32", np.arange(4, dtype=np.float32)
    yield "whole numbers", np.arange(4)
    yield "complex", np.arange(3) + 1j
    yield "swapped", np.arange(3.0).astype(">f8")
    yield "unaligned", np.frombuffer(bytearray(25), dtype=np.uint8)[1:].view(np.float64)
    yield "repeated", np.broadcast_to(np.array([2.0]), (4,))
    yield "read-only", locked(np.array([1.0, 2.0]))
    yield "nan", np.array([np.nan, np.inf, 1.0])


def locked(a):
    a.flags.writeable = False
    return a


@pytest.mark.parametrize("case", list(layouts()), ids=[name for name, _ in layouts()])
def test_layouts(case):
    _, x = case
    before = x.copy()
    f = lambda a: np.sum(np.real(a * a))
    for _ in range(2):
        with np.errstate(invalid="ignore"):
            y, slope = plaingrad.value_and_grad(f)(x)
        assert type(slope) is np.ndarray
        assert slope.shape == x.shape
        np.testing.assert_allclose(slope, 2.0 * np.conj(x), rtol=1e-6)
        np.testing.assert_array_equal(x, before)
        np.testing.assert_allclose(y, f(x))


def test_writes_come_back_also_where_an_exception_ends_the_call():
    def f(a, fails=False):
        a[1] = a[0] * 3.0
        a *= 2.0
        if fails:
            raise KeyError("on the way")
        return a[0] + a[1]

    for _ in range(2):
        x = np.array([1.0, 5.0, 7.0])
        assert plaingrad.grad(f)(x).tolist() == [8.0, 0.0, 0.0]
        assert x.tolist() == [2.0, 6.0, 14.0]
        x = np.array([1.0, 5.0, 7.0])
        with pytest.raises(KeyError):
            plaingrad.grad(f)(x, True)
        assert x.tolist() == [2.0, 6.0, 14.0]
        view = np.array([9.0, 1.0, 5.0])[1:]
        assert plaingrad.grad(f)(view).tolist() == [8.0, 0.0]
        assert view.base.tolist() == [9.0, 2.0, 6.0]


def test_read_only_arguments_are_not_written():
    def f(a):
        a[0] = 1.0
        return a[1]

    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            plaingrad.grad(f)(locked(np.array([1.0, 2.0])))


def test_the_same_memory_under_two_names():
    def reads(a):
        return np.sum(a * G)

    def writes(a):
        a[0] = 5.0
        return np.sum(a * G)

    def writes_global(a):
        G[0] = a[1]
        return np.sum(a)

    for _ in range(2):
        assert plaingrad.grad(reads)(G).tolist() == [1.0, 2.0, 3.0]
        for f in (writes, writes_global):
            with pytest.raises(plaingrad.AliasError):
                plaingrad.grad(f)(G)
        assert G.tolist() == [1.0, 2.0, 3.0]
        with pytest.raises(plaingrad.AliasError):
            plaingrad.grad(lambda a, b: a.__setitem__(0, 2.0) or np.sum(a * b), argnums=(0, 1))(G, G[:])


def test_several_arguments():
    f = lambda a, c, b, p: np.sum(a * b) * c + p[0] * np.sum(b)
    a, b = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    for _ in range(2):
        found = plaingrad.grad(f, argnums=(2, 0, 1, 3))(a, 2.0, b, [4.0, 1])
        assert [x.tolist() if isinstance(x, np.ndarray) else x for x in found] == [
            [6.0, 8.0],
            [6.0, 10.0],
            13.0,
            [8.0, None],
        ]
        assert plaingrad.grad(f)(a, 2.0, b, [4.0, 1]).tolist() == [6.0, 10.0]
        same = plaingrad.grad(lambda x, y: np.sum(x * y), argnums=(0, 1))(a, a)
        assert [x.tolist() for x in same] == [[1.0, 2.0], [1.0, 2.0]]


def test_an_argument_that_is_returned_is_the_callers_own():
    x = np.array([1.0, 2.0])
    for _ in range(2):
        y, pullback = plaingrad.vjp(lambda a: a, x)
        assert y is x
        assert pullback(np.array([3.0, 4.0]))[0].tolist() == [3.0, 4.0]
        (value, aux), _ = plaingrad.value_and_grad(lambda a: (a[0] * a[1], [a]), has_aux=True)(x)
        assert value == 2.0
        assert aux[0] is x


def test_gradients_are_new_memory():
    x = np.array([1.0, 2.0])
    first = plaingrad.grad(lambda a: np.sum(a))(x)
    second = plaingrad.grad(lambda a: np.sum(a))(x)
    first[0] = 100.0
    assert (second.tolist(), x.tolist()) == ([1.0, 1.0], [1.0, 2.0])
    assert plaingrad.grad(lambda a: 3.0)(x).tolist() == [0.0, 0.0]


def test_no_number_comes_back():
    x = np.array([1.0, 2.0])
    for _ in range(2):
        for f in (lambda a: a, lambda a: None, lambda a: a * 1j):
            with pytest.raises(plaingrad.NonScalarOutputError):
                plaingrad.grad(f)(x)
        assert plaingrad.grad(lambda a: np.sum(a * a))(x).tolist() == [2.0, 4.0]


def test_nested():
    f = lambda a: np.sum(a * a * a) * a[0]
    x = np.array([1.0, 2.0])
    h = np.array([[12.0, 12.0], [12.0, 12.0]])
    v = np.array([0.5, -1.0])
    for _ in range(2):
        np.testing.assert_allclose(plaingrad.hessian(f)(x), h, rtol=1e-13)
        np.testing.assert_allclose(plaingrad.hvp(f, (x,), (v,))[0], h @ v, rtol=1e-13)
        inner = plaingrad.grad(f)
        np.testing.assert_allclose(plaingrad.jvp(inner, (x,), (v,))[1], h @ v, rtol=1e-13)
        np.testing.assert_allclose(plaingrad.grad(lambda a: np.sum(inner(a) * v))(x), h @ v, rtol=1e-13)

        def writes(t):
            a = np.array([t, 2.0 * t])
            bar = plaingrad.grad(lambda b: b.__setitem__(0, b[1] * t) or b[0] * b[1])(a)
            return a[0] + bar[1]

        # a[0] becomes 2 t * t; the gradient by b[1] is 2 b[1] t = 4 t * t
        assert plaingrad.jvp(writes, (3.0,), (1.0,))[1] == pytest.approx(4 * 3.0 + 8 * 3.0)
        assert plaingrad.grad(writes)(3.0) == pytest.approx(4 * 3.0 + 8 * 3.0)


def test_numpys_error_handling_stays():
    for _ in range(2):
        with np.errstate(divide="raise"):
            with pytest.raises(FloatingPointError):
                plaingrad.grad(lambda a: np.sum(a / 0.0))(np.array([1.0]))
            assert np.geterr()["divide"] == "raise"
            plaingrad.grad(lambda a: np.sum(np.sqrt(a)))(np.array([0.0, 1.0]))
            assert np.geterr()["divide"] == "raise"


def test_nothing_is_kept():
    for _ in range(3):
        x = np.array([1.0, 2.0])
        plaingrad.grad(lambda a: np.sum(a * a))(x)
        reference = weakref.ref(x)
        del x
        gc.collect()
        assert reference() is None


def test_threads():
    x = np.array([1.0, 2.0, 3.0])
    wrong = []

    def work(k):
        for _ in range(60):
            slope = plaingrad.grad(lambda a: np.sum(a * a) * math.sin(k))(x)
            if not np.allclose(slope, 2 * x * math.sin(k), rtol=1e-14):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
