"""Complex numbers in the compiled core: three indices each, two entries of the tape for a partial derivative."""

import cmath
import math
import threading

import numpy as np
import pytest

import plaingrad


def powers(x, y):
    z = complex(x, y)
    return (z**3 * (2.0 - z) + 1.5 * z - z * x).real


def quotients(x, y):
    z = complex(x, 1.0) / (complex(0.5, y) - 2)
    w = 3.0 / z - z / 1.25 + x / z
    return w.imag * 2.0 + abs(w)


def negatives(x, y):
    z = -complex(x, y)
    z -= 1.0
    z *= complex(y, y)
    z += z
    return abs(z) - z.imag * z.real


def rules_between(x, y):
    z = cmath.exp(complex(x, y) * 0.5)  # a rule of Python's side, whose cotangent comes as an object
    w = z * z + cmath.sqrt(z) * z
    return abs(w * w.conjugate()) + cmath.phase(w)


def of_numpy(x, y):
    z = np.float64(x) * complex(0.5, y) + complex(np.float64(1.5), x)
    return abs(z * np.float64(y)) + z.real


def roots(x, y):
    z = complex(1.0, x)
    for _ in range(30):
        z = z - (z * z * z - y) / (3.0 * z * z)
    return z.real + z.imag


def parts_in_arrays(x, y):
    z = complex(x, y) * complex(0.5, x)
    a = np.array([abs(z), z.real, z.imag])  # whose elements give cotangents that are objects
    return float(a @ a[::-1]) + float(np.hypot(abs(z), z.real)) + math.fsum([abs(z), z.imag])


PROGRAMS = [parts_in_arrays, powers, quotients, negatives, rules_between, of_numpy, roots]
POINT = 0.7, 1.3


def slope(f, n, step=1e-5):
    """The derivative by argument `n`, by four evaluations."""
    along = [tuple(p + (k * step if m == n else 0.0) for m, p in enumerate(POINT)) for k in (1, -1, 2, -2)]
    near, far = f(*along[0]) - f(*along[1]), f(*along[2]) - f(*along[3])
    return (8 * near - far) / (12 * step)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_differences_in_every_mode(f):
    gradient = plaingrad.grad(f, argnums=(0, 1))
    expected = [slope(f, 0), slope(f, 1)]
    for _ in range(3):  # from the second time on at a level that is used again
        assert gradient(*POINT) == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert plaingrad.jvp(f, POINT, (0.3, -0.6))[1] == pytest.approx(
        0.3 * expected[0] - 0.6 * expected[1], rel=1e-7
    )


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivatives_agree(f):
    def by_first(x, y):
        return plaingrad.grad(f)(x, y)

    expected = slope(by_first, 0), slope(by_first, 1)
    found = plaingrad.grad(by_first, argnums=(0, 1))(*POINT)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)
    along = plaingrad.jvp(by_first, POINT, (1.0, 0.0))[1]
    assert along == pytest.approx(expected[0], rel=1e-6, abs=1e-7)


def test_a_complex_result_takes_a_complex_cotangent_twice():
    def f(x, z):
        return z * z * x - 2.0 / z

    z = complex(0.8, -0.3)
    value, pullback = plaingrad.vjp(f, 1.5, z)
    assert value == f(1.5, z)
    for y_bar in (1.0, 1j, 2.0 - 0.5j):
        for _ in range(2):
            x_bar, z_bar = pullback(y_bar)
            assert x_bar == pytest.approx((complex(y_bar) * (z * z).conjugate()).real)
            assert z_bar == pytest.approx(y_bar * (2.0 * z * 1.5 + 2.0 / z**2).conjugate())


def test_infinite_cotangents_of_real_factors_stay_where_they_are():
    def f(x):
        z = complex(x, 1.0) * 2.0
        return math.sqrt(z.real)

    assert plaingrad.grad(f)(0.0) == math.inf


def test_zero_and_overflow_are_those_of_the_rules():
    assert plaingrad.grad(lambda x: abs(complex(x, 4.0) * 1e-320))(3.0) == pytest.approx(
        0.6 * 1e-320, rel=1e-2
    )
    with pytest.raises(ZeroDivisionError):
        plaingrad.grad(lambda x: (complex(x, 1.0) / complex(0.0, 0.0)).real)(1.0)
    with pytest.raises(OverflowError):
        plaingrad.grad(lambda x: (complex(x, 1.0) * 10**400).real)(1.0)


def test_a_segment_takes_complex_numbers_from_outside():
    def f(x):
        z = complex(x, 2.0)

        return abs(plaingrad.checkpoint(lambda w: w * z * w, z * 0.5))

    z = complex(0.7, 2.0)
    assert plaingrad.grad(f)(0.7) == pytest.approx(0.25 * 3.0 * abs(z) ** 2 * 0.7 / abs(z))


def test_numbers_kept_alive_past_a_sweep_keep_their_parts():
    def f(x):
        kept = [complex(x, k) for k in range(50)]
        total = 0.0
        for k in range(3000):
            total = total + (kept[k % 50] * complex(0.0, 1.0)).imag * 0.5
        return total

    assert plaingrad.grad(f)(0.3) == pytest.approx(1500.0)


def test_threads_record_complex_numbers_at_one_level():
    def f(x):
        found = [None] * 4

        def work(k):
            z = complex(x, 1.0 + k)
            for _ in range(20):
                z = z * complex(0.6, 0.8)
            found[k] = abs(z)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return sum(found)

    assert plaingrad.grad(f)(2.0) == pytest.approx(sum(2.0 / math.hypot(2.0, 1.0 + k) for k in range(4)))


def f_of(x):
    z = complex(x, 1.0)
    return abs(z * z)


def test_the_tape_shows_complex_entries_as_triples():
    """What goes over the tape in Python's form has factors that are whole."""
    assert plaingrad.hessian(f_of)(0.5) == pytest.approx(2.0, rel=1e-9)
    inner = plaingrad.grad(lambda x: plaingrad.grad(f_of)(x) * x)
    assert inner(0.5) == pytest.approx(2.0)


def test_a_cotangent_that_is_an_object_reaches_the_parts():
    """`np.float64` is one to the core."""
    value, pullback = plaingrad.vjp(lambda x: abs(complex(x, 4.0)), 3.0)
    assert value == 5.0
    for y_bar in (2.0, np.float64(2.0), 2):
        assert pullback(y_bar) == (pytest.approx(1.2),)
    _, pullback = plaingrad.vjp(lambda x: complex(x, 4.0).real, 3.0)
    assert pullback(np.float64(2.0)) == (pytest.approx(2.0),)
