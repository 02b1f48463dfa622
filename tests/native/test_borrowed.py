"""Arrays in memory that NumPy does not own, as arguments of compiled functions and among their results."""

import mmap
from multiprocessing import shared_memory

import numpy as np
import plaingrad
import pytest

numba = pytest.importorskip("numba")

W = np.array([3.0, -2.0, 0.5, 7.0])
X = np.array([1.5, -0.5, 2.0, 0.25])


@numba.njit
def weighted(a, x):
    s = 0.0
    for i in range(a.size):
        s += a[i] * a[i] * x[i]
    return s


@numba.njit
def doubled(a):
    s = 0.0
    for i in range(a.size):
        a[i] = a[i] * 2
        s += a[i] * a[i]
    return s


@numba.njit
def ones(n):
    return np.ones(n)


def over_mmap():
    m = mmap.mmap(-1, 32)
    a = np.frombuffer(m)
    a[:] = W
    return a, m.close


def over_shared_memory():
    shm = shared_memory.SharedMemory(create=True, size=32)
    shm.unlink()
    a = np.ndarray(4, buffer=shm.buf)
    a[:] = W
    return a, shm.close


WRAPPED = [over_mmap, over_shared_memory]


@pytest.mark.parametrize("wrap", WRAPPED)
@pytest.mark.parametrize("tier", ["native", "plain", "auto"])
def test_nothing_keeps_the_memory_of_an_argument(wrap, tier):
    a, close = wrap()
    y, pullback = plaingrad.vjp(weighted, a, X, tier=tier)
    _, linear = plaingrad.linearize(weighted, a, X, tier=tier)
    assert np.allclose(plaingrad.grad(weighted, tier=tier)(a, X), 2 * W * X)
    assert np.allclose(plaingrad.hessian(weighted, tier=tier)(a, X), np.diag(2 * X))
    del a
    close()
    assert np.isclose(y, (W * W * X).sum())
    assert np.allclose(pullback(1.0)[0], 2 * W * X)
    assert np.allclose(pullback(1.0)[1], W * W)
    assert np.isclose(linear(W, X), 3 * (W * W * X).sum())
    assert np.isclose(plaingrad.grad(lambda t: pullback(t)[0].sum())(1.0), (2 * W * X).sum())


@pytest.mark.parametrize("wrap", WRAPPED)
def test_a_pullback_of_a_function_that_writes_such_an_argument_is_refused(wrap):
    a, close = wrap()
    with pytest.raises(plaingrad.AliasError, match="does not own"):
        plaingrad.vjp(doubled, a, tier="native")
    with pytest.raises(plaingrad.AliasError, match="argument 0"):
        plaingrad.vjp(doubled, a)
    assert np.array_equal(a, W)
    assert np.array_equal(plaingrad.grad(doubled, tier="native")(a), 8 * W)  # all of it within the call
    assert np.array_equal(a, 2 * W)


@pytest.mark.parametrize("wrap", WRAPPED)
def test_compiled_functions_inside_read_and_write_constants_there(wrap):
    def f(x):
        a, close = wrap()
        y = weighted(a, x) + (a * x).sum()
        y = y + doubled(a) * x[0]
        y = y + weighted(a, x) + (a * x).sum()
        del a
        close()
        return y

    g = W * W + W + 4 * W * W + 2 * W
    g[0] += 4 * (W * W).sum()
    assert np.allclose(plaingrad.grad(f)(X), g)
    assert np.isclose(plaingrad.jvp(f, (X,), (W,))[1], g @ W)


def test_arrays_that_compiled_code_returned_are_written_like_any_other():
    def f(x):
        a = ones(4)
        y = (a * x).sum()
        a[:] = x * x
        a[::2] *= 3.0
        return y + (a * W).sum()

    g = 1 + 2 * X * W * np.array([3.0, 1.0, 3.0, 1.0])
    assert np.allclose(plaingrad.grad(f)(X), g)
    assert np.isclose(plaingrad.jvp(f, (X,), (W,))[1], g @ W)
    assert np.allclose(plaingrad.hessian(f)(X), np.diag(2 * W * np.array([3.0, 1.0, 3.0, 1.0])))


def test_a_field_of_a_compiled_object_is_memory_with_two_names():
    @numba.experimental.jitclass([("values", numba.float64[:])])
    class Holder:
        def __init__(self, n):
            self.values = np.ones(n)

    def f(x):
        holder = Holder(4)
        a = holder.values
        a[:] = x
        return (holder.values * W).sum()

    with pytest.raises(plaingrad.PlaingradError):
        plaingrad.grad(f)(X)
