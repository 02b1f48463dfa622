"""What a gradient keeps: arrays that the way back reads, and nothing of those that it only looks for the place of."""

import gc
import math
import tracemalloc

import numpy as np
import plaingrad
import pytest
from plaingrad.engine.compiled import core
from plaingrad.engine.memory.compiled_steps import what_is_read
from plaingrad.rewrite import locals_read

compiled = pytest.mark.skipif(core is None, reason="steps of the compiled core")
RANDOM = np.random.default_rng(0)
N = 40_000  # elements: 320 kB


def arrays_at_peak(f, x):
    """How many arrays of the size of x are allocated at once by a gradient."""
    gradient = plaingrad.grad(f)
    gradient(x)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        gradient(x)
        return (tracemalloc.get_traced_memory()[1] - before) / x.nbytes
    finally:
        tracemalloc.stop()


def diffusion(u, steps=60):
    for _ in range(steps):
        u = np.concatenate((u[:1], u[1:-1] + 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2]), u[-1:]))
    return np.sum(u)


def diffusion_in_place(u, steps=60):
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return np.sum(u)


def sums(u, steps=60):
    total = 0.0
    for k in range(steps):
        total = total + (0.1 + 0.01 * k) * u[k : u.size - steps + k]
    return np.sum(total)


def sums_in_place(u, steps=60):
    total = np.zeros(u.size - steps)
    for k in range(steps):
        total += (0.1 + 0.01 * k) * u[k : u.size - steps + k]
    return np.sum(total)


def sines(u, steps=60):
    for _ in range(steps):
        u = np.sin(u) * 1.01 + 0.1
    return np.sum(u)


@compiled
@pytest.mark.parametrize("f", [diffusion, diffusion_in_place, sums, sums_in_place])
def test_of_linear_programs_no_array_is_kept(f):
    assert arrays_at_peak(f, RANDOM.normal(size=N)) < 12


@compiled
def test_of_sines_only_the_arguments_are_kept():
    assert arrays_at_peak(sines, RANDOM.normal(size=N)) < 60 + 12


@compiled
def test_of_products_each_factor_is_kept_once():
    def f(u):
        product = u
        for _ in range(40):
            product = product * u
        return np.sum(product)

    assert arrays_at_peak(f, np.full(N, 1.0)) < 40 + 12


# -- and the gradients are right, whatever form the places take -------------------------------------------------------


def reversed_views(u):
    return np.sum((u[::-1] + 2.0 * u) * u[::-1] - u[::-1] / 3.0)


def steps_of_two(u):
    return np.sum(np.tanh(u[::2]) * u[1::2] - 0.5 * u[::-2])


def columns(u):
    a = u.reshape(200, 200)
    b = a.T + a[:, ::-1] - 3.0 * a[:1, :]
    return np.sum(b * b) + np.sum(a[3:5, 7:].sum(axis=0))


def in_fortran_order(u):
    a = np.asfortranarray(u.reshape(200, 200)) * 1.0
    return np.sum((a[1:, :] - a[:-1, :]) ** 2) + np.sum(a.T[2:] + a.T[:-2])


def written(u):
    a = u * 1.5
    a[10:20_000] += 0.5 * a[20_000:39_990]
    a[:100] = a[100:200]
    a *= 2.0
    a[::7] -= u[::7]
    return np.sum(a * u)


def one_and_the_same_twice(u):
    a = u + u[::-1]
    b = a[5:] - a[:-5]
    return np.sum(b + b) + np.sum(a * 2.0)


def whole_and_part(u):
    a = u * u
    b = a + 1.0
    c = a[1:] + b[:-1]
    return np.sum(np.exp(-c)) + np.sum(a)


def broadcast(u):
    a = u.reshape(200, 200)
    return np.sum(a + a[0] - a[:, :1] * 0.5) + np.sum(a / 2.0 - a[4])


def joined(u):
    a = np.concatenate([u[100:], np.sin(u[:100])])
    b = np.stack([a, u[::-1]])
    c = np.vstack((b, a * 2.0))
    return np.sum(c * c)


def small_parts(u):
    return np.sum(u[3:40] + u[4:41]) * np.sum(u[::500]) + np.sum(u[:0])


PROGRAMS = [
    diffusion, diffusion_in_place, sums, sums_in_place, sines, reversed_views, steps_of_two, columns, in_fortran_order,
    written, one_and_the_same_twice, whole_and_part, broadcast, joined, small_parts,
]  # fmt: skip


def complex_step(f, x, v):
    return f(x + 1e-30j * v).imag / 1e-30


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [N, 400], ids=["large", "small"])
def test_gradients_are_those_of_complex_steps(f, size):
    if size != N and f in (written, columns, in_fortran_order, broadcast, joined):
        pytest.skip("its shapes are those of the large array")

    def of_complex(u):  # arrays that the function makes itself are complex, too
        total = f.__globals__["np"]
        return f(u) if f not in (sums_in_place,) else sums(u)

    x, v = RANDOM.normal(size=size), RANDOM.normal(size=size)
    slope = complex_step(of_complex, x, v)
    assert math.isclose(plaingrad.grad(f)(x) @ v, slope, rel_tol=1e-9)
    assert math.isclose(plaingrad.jvp(f, (x,), (v,))[1], slope, rel_tol=1e-9)


@pytest.mark.parametrize("f", [reversed_views, steps_of_two, whole_and_part, written, joined], ids=lambda f: f.__name__)
def test_second_derivatives_are_those_of_differences(f):
    x, v = RANDOM.normal(size=N), RANDOM.normal(size=N)
    gradient, h = plaingrad.grad(f), 1e-5
    expected = (gradient(x + h * v) - gradient(x - h * v)) / (2 * h)
    (product,) = plaingrad.hvp(f, (x,), (v,))
    np.testing.assert_allclose(product, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(plaingrad.vhp(f, (x,), (v,))[0], expected, rtol=1e-5, atol=1e-6)


def test_a_pullback_is_right_each_time():
    x = RANDOM.normal(size=N)
    _, pullback = plaingrad.vjp(lambda u: np.concatenate((u[1:] - u[:-1], u[:1] * 3.0)), x)
    for _ in range(2):
        z_bar = RANDOM.normal(size=N)
        expected = np.zeros(N)
        expected[1:] += z_bar[:-1]
        expected[:-1] -= z_bar[:-1]
        expected[0] += 3.0 * z_bar[-1]
        np.testing.assert_allclose(pullback(z_bar)[0], expected, rtol=1e-12)


def test_it_is_known_what_a_formula_reads():
    assert locals_read((lambda m, x, z: m.cos(x)).__code__) == {"m", "x"}
    assert locals_read((lambda m, x, z: z if x > 0 else 0.0).__code__) == {"x", "z"}
    assert what_is_read(lambda m, x, z: m.cos(x)) == 1
    assert what_is_read(lambda m, x, z: 1.0 + z * z) == 2
    assert what_is_read(lambda m, x, z: z / x) == 3
    assert what_is_read(lambda m, x, z: 2.0) == 0
    assert what_is_read(math.sin) == 3  # nothing is known of it
    y = 2.0
    assert what_is_read(lambda m, x, z: (lambda: z)() * y) == 3


@compiled
def test_an_operation_on_numbers_takes_no_more_than_its_entry_and_its_cotangent():
    n = 200_000

    def sines(x):
        for _ in range(n):
            x = math.sin(x)
        return x

    gradient = plaingrad.grad(sines)
    gradient(0.5)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        gradient(0.5)
        assert (tracemalloc.get_traced_memory()[1] - before) / n < 25.0
    finally:
        tracemalloc.stop()


def test_nothing_of_a_gradient_is_held_after_it():
    n = 1_000_000

    def f(x):
        y = x[::2] * 2.0 + x[1::2]
        return np.sum(np.tanh(y) * y)

    gradient = plaingrad.grad(f)
    x = RANDOM.standard_normal(n)
    gradient(x[:1000].copy())
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(3):
            gradient(x)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 0.1 * x.nbytes
    finally:
        tracemalloc.stop()
