"""Whole derivatives natively where there are complex numbers: inside, in the arguments, in the result."""

import cmath

import numpy as np
import pytest

import plaingrad
from plaingrad import derivative, grad, hessian, hvp, jacobian, jvp, linearize, vhp, vjp, wirtinger

numba = pytest.importorskip("numba")

from plaingrad.native.border import call  # noqa: E402
from tests.native import comparison  # noqa: E402

X = np.array([0.3, 0.7, -0.4])
V = np.array([1.0, 0.5, -0.3])
Z = np.array([0.3 + 0.2j, 0.1 - 0.5j])


INSIDE = {
    "abs": lambda x: abs(complex(x[0], x[1])),
    "square of abs": lambda x: abs(complex(x[0], x[1])) ** 2 + x[2],
    "abs of an array": lambda x: np.sum(np.abs(x * (1.0 + 0.5j) + x * x * 1j)),
    "product": lambda x: (complex(x[0], x[1]) * complex(x[2], x[1])).imag,
    "quotient": lambda x: (complex(x[0], x[1]) / complex(x[2], x[1])).imag,
    "conjugate": lambda x: (complex(x[0], x[1]).conjugate() * complex(x[2], x[1]) ** 2).imag,
    "functions": lambda x: (cmath.exp(1j * complex(x[0], x[1])) * cmath.sin(complex(x[2], x[0]))).real,
    "branches": lambda x: cmath.phase(complex(x[0], x[1])) + cmath.log(complex(x[2], x[1])).imag,
    "whole power": lambda x: (complex(x[0], x[1]) ** 3).imag,
    "complex power": lambda x: (complex(x[0], x[1]) ** complex(x[2], x[0])).imag,
    "real power": lambda x: (complex(x[0], x[1]) ** x[2]).imag,
    "power of a real number": lambda x: (x[0] ** complex(x[2], x[0])).imag,
    "powers of an array": lambda x: np.sum(((x * (1 + 2j)) ** 2.5).real),
    "array": lambda x: np.sum((np.exp(x * (1.0 + 0.5j)) * np.conj(x * 1j + x * x)).real),
}


def differences(f, x, v):
    """The Hessian times v, from plain gradients."""
    gradient = grad(f, tier="plain")
    h = 1e-5
    return (gradient(x + h * v) - gradient(x - h * v)) / (2 * h)


@pytest.mark.parametrize("name", INSIDE)
def test_second_derivatives_of_real_functions_with_complex_numbers_inside(name, in_python):
    f = INSIDE[name]
    expected = hessian(f, tier="plain")(X)
    np.testing.assert_allclose(expected @ V, differences(f, X, V), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(hessian(f, tier="native")(X), expected, rtol=1e-11, atol=1e-12)
    for product in (hvp, vhp):
        np.testing.assert_allclose(
            product(f, (X,), (V,), tier="native")[0], expected @ V, rtol=1e-11, atol=1e-12
        )


def test_compiled_second_derivatives_are_the_same():
    for f in (INSIDE["abs"], INSIDE["functions"]):
        expected = hessian(f, tier="plain")(X)
        np.testing.assert_allclose(hessian(f, tier="native")(X), expected, rtol=1e-11, atol=1e-13)


def spiral(x):
    z = complex(x[0], x[1])
    for _ in range(3):
        z = z * z * 0.5 + cmath.exp(1j * z) * 0.3
    return abs(z) ** 2 + z.real * x[2]


def in_branches(x):
    z = 1.0 + 0j
    w = 0j
    k = 0
    while k < 5:
        if x[0] > 0.1 * k:
            w = w + z * x[1]
        else:
            w = w * x[2] - 1j * z
        z = z * complex(x[0], x[1])
        k += 1
    return abs(w) + w.imag


def from_real(x):
    z = 0j
    for i in range(3):
        z = z + x[i]
    z = z * x[0] + x[1]
    return z.real + (z * 1j * x[2]).imag


@numba.njit
def unfolded(z, k):
    if k == 0:
        return z
    return z * unfolded(z * 0.5, k - 1) + 1j


def recursive(x):
    return abs(unfolded(complex(x[0], x[1]), 3)) * x[2]


def times_constants(x):
    c = np.array([1.0 + 2j, 0.5j, 2.0])
    s = 0j
    for i in range(3):
        s += c[i] * x[i] * x[i]
    return abs(s)


def either(x):
    z = complex(x[0], x[1]) if x[2] < 0 else complex(x[1], 0.0)
    return (z * z * x[2]).real


def with_complex_results(x):
    return complex(x[0], x[1]) * x[2], x[0], cmath.exp(1j * x[1])


def into_an_array(x):
    out = np.empty(3)
    for i in range(3):
        z = complex(x[i], x[0]) ** 2
        out[i] = z.imag + z.conjugate().real
    return out


@pytest.mark.parametrize(
    "f", [spiral, in_branches, from_real, times_constants, either, into_an_array], ids=lambda f: f.__name__
)
def test_chunks_of_tangents_go_through_complex_numbers(f, in_python):
    assert call.derived("columns4", f, call.signature_of((X,)), (0,)).calls  # there is such a program
    np.testing.assert_allclose(
        jacobian(f, tier="native")(X), jacobian(f, tier="plain")(X), rtol=1e-12, atol=1e-14
    )


def test_compiled_chunks_are_the_same():
    for f in (in_branches, recursive):
        np.testing.assert_allclose(
            jacobian(f, tier="native")(X), jacobian(f, tier="plain")(X), rtol=1e-12, atol=1e-14
        )
    found, expected = (jacobian(with_complex_results, tier=tier)(X) for tier in ("native", "plain"))
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-13)


def at_a_branch_point(x):
    z = complex(x[0], x[1])
    if x[2] > 0.0:
        z = complex(0.0, 0.0)
    return abs(z) * x[1] + cmath.sqrt(z).real * x[2] + (x[0] / z).imag if x[2] < 0.0 else cmath.sqrt(z).real + x[2]


def test_complex_numbers_that_stand_still_at_infinite_slopes():
    for x in (X, np.array([0.5, -0.25, 0.75]), np.array([0.5, -0.25, -0.75])):
        found = jacobian(at_a_branch_point, tier="native", mode="forward")(x)
        np.testing.assert_allclose(
            found, jacobian(at_a_branch_point, tier="plain", mode="forward")(x), rtol=1e-13, atol=1e-15
        )
        assert np.isfinite(found).all()


def test_a_compiled_jacobian_of_a_function_with_complex_numbers_inside():
    jac = plaingrad.compiled_jacobian(into_an_array, X)
    out = np.empty((3, 3))
    numba.njit(lambda x, out: jac(x, out))(X, out)
    np.testing.assert_allclose(out, jacobian(into_an_array, tier="plain")(X), rtol=1e-13)


@pytest.mark.parametrize("f", [spiral, in_branches, either], ids=lambda f: f.__name__)
def test_second_derivatives_go_through_loops_and_branches(f, in_python):
    np.testing.assert_allclose(
        hessian(f, tier="native")(X), hessian(f, tier="plain")(X), rtol=1e-11, atol=1e-13
    )


def test_the_second_derivative_of_abs_is_zero_at_zero_and_along_the_ray(in_python):
    def size(x):
        return abs(complex(x[0], x[1]))

    np.testing.assert_array_equal(hessian(size, tier="native")(np.zeros(2)), np.zeros((2, 2)))
    x = np.array([3.0, 4.0])
    np.testing.assert_allclose(hvp(size, (x,), (x,), tier="native")[0], 0.0, atol=1e-15)
    turned = np.array([-4.0, 3.0])
    np.testing.assert_allclose(hvp(size, (x,), (turned,), tier="native")[0], turned / 5.0, rtol=1e-14)


def both(take):
    return take("native"), take("plain")


def assert_same(take):
    found, expected = both(take)
    assert type(found) is type(expected)
    parts = (found, expected) if isinstance(found, (tuple, list)) else ([found], [expected])
    for a, b in zip(*parts, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert type(a) is type(b)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


OF_COMPLEX = {
    "holomorphic": (lambda z: z * z * z + cmath.exp(z), 0.3 + 0.2j),
    "real": (lambda z: (z * z.conjugate()).real + z.imag, 0.3 + 0.2j),
    "of an array": (lambda z: np.exp(z) * z, Z),
    "real, of an array": (lambda z: np.sum((z * np.conj(z)).real) + z[0].imag, Z),
    "complex64": (lambda z: z * z, Z.astype(np.complex64)),
    "of a real number": (lambda x: x * 1j + cmath.exp(1j * x), 0.3),
    "of a real array": (lambda x: x * (2.0 + 1j) + x[0], X),
    "empty": (lambda z: z * 2.0, Z[:0]),
}


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
@pytest.mark.parametrize("name", OF_COMPLEX)
def test_jacobians_keep_the_conventions_of_the_plain_tier(name, mode, in_python):
    f, x = OF_COMPLEX[name]
    if name == "complex64":
        found, expected = both(lambda tier: jacobian(f, mode=mode, tier=tier)(x))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        return
    assert_same(lambda tier: jacobian(f, mode=mode, tier=tier)(x))


def test_a_function_without_complex_derivative_is_refused_and_has_wirtinger_derivatives(in_python):
    def turned(z):
        return z * z.conjugate() * z

    for tier in ("native", "plain"):
        with pytest.raises(plaingrad.NotHolomorphicError):
            jacobian(turned, tier=tier)(0.3 + 0.2j)
        with pytest.raises(plaingrad.NotHolomorphicError):
            derivative(turned, tier=tier)(0.3 + 0.2j)
    z = 0.3 + 0.2j
    for mode in ("forward", "reverse", "auto"):
        found = wirtinger(turned, mode=mode, tier="native")(z)
        np.testing.assert_allclose(found, (2 * z * z.conjugate(), z * z), rtol=1e-14)


@pytest.mark.parametrize("name", ["holomorphic", "real", "of an array", "real, of an array"])
def test_wirtinger_derivatives_are_those_of_the_plain_tier(name, in_python):
    f, z = OF_COMPLEX[name]
    assert_same(lambda tier: wirtinger(f, tier=tier)(z))


def test_wirtinger_of_a_real_argument_is_refused_in_both_tiers():
    for tier in ("native", "plain"):
        with pytest.raises(plaingrad.ArgumentError):
            wirtinger(lambda x: x * 2.0, tier=tier)(1.0)


def test_hessians_by_complex_arguments(in_python):
    def size(z):
        return (z * z.conjugate()).real * 0.5

    assert_same(lambda tier: hessian(size, tier=tier)(0.3 + 0.2j))
    assert_same(lambda tier: hvp(size, (0.3 + 0.2j,), (1.0 + 2j,), tier=tier))
    for tier in ("native", "plain"):
        with pytest.raises(plaingrad.NotHolomorphicError):
            hessian(lambda z: z.real**2, tier=tier)(0.3 + 0.2j)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_complex_functions_of_any_order(order, in_python):
    def f(z):
        return z * z * z + cmath.exp(z)

    z = 0.3 + 0.2j
    expected = (3 * z * z, 6 * z, 6)[order - 1] + cmath.exp(z)
    assert derivative(f, order=order, tier="native")(z) == pytest.approx(expected, rel=1e-13)
    of_real = derivative(lambda x: cmath.exp(1j * x), order=order, tier="native")(0.3)
    assert of_real == pytest.approx(1j**order * cmath.exp(0.3j), rel=1e-13)


def test_complex_numbers_beside_arrays_have_tangents_too(in_python):
    def f(z, a):
        return z * a * z

    for tier in ("native", "plain"):
        y, push = linearize(f, 0.5 + 1j, X, tier=tier)
        np.testing.assert_allclose(push(1j, V), 2j * (0.5 + 1j) * X + (0.5 + 1j) ** 2 * V, rtol=1e-14)
        np.testing.assert_allclose(jvp(f, (0.5 + 1j, X), (1j, V), tier=tier)[1], push(1j, V), rtol=1e-14)
        np.testing.assert_allclose(vjp(f, 0.5 + 1j, X, tier=tier)[0], y)


def test_the_cotangent_of_a_real_number_taken_from_a_complex_one_is_real():
    def f(x, a):
        c = complex(x, a[0])
        c -= (c * complex(2, 0.2)).imag
        return abs(c + 4.0) + a[20]

    a = np.full(21, 0.7)
    to_x, to_a = plaingrad.grad(f, argnums=(0, 1), tier="native")(0.3, a)
    d = complex(0.3, 0.7) - 1.46 + 4.0  # with (c (2 + 0.2j)).imag = 0.2 x + 2 y
    np.testing.assert_allclose(to_x, d.real * 0.8 / abs(d), rtol=1e-14)
    np.testing.assert_allclose(to_a[0], (d.imag - 2.0 * d.real) / abs(d), rtol=1e-14)


def added(C, c):
    C += (c * c).real


def subtracted(C, c):
    C[1:] -= c.imag


def multiplied(C, c):
    C[::-1] *= (c * c).imag


def divided(C, c):
    C /= (c * c).real


def filled(C, c):
    C[:2] = c.imag * 1.5


def stored(C, c):
    C[1] = c.real - (c * (1j + C[0])).imag


def powered(C, c):
    C[0] = c.imag**2j + 1j**c.real


@pytest.mark.parametrize("change", [added, subtracted, multiplied, divided, filled, stored, powered])
def test_real_parts_that_go_into_complex_arrays_have_real_cotangents(change):
    def f(C, c):
        C = C + 0.0
        change(C, c)
        return np.sum(np.abs(C * (0.7 + 0.2j)) ** 2) + abs(c - 2)

    C, c, h = np.array([0.4 + 0.2j, 1.1 - 0.7j, 0.3 + 0.9j]), 0.8 + 0.3j, 1e-6
    (value,), (to_C, to_c) = comparison.pulled_back(f, (C, c), (0, 1), [1.0], False)
    np.testing.assert_allclose(value, f(C, c), rtol=1e-15)
    for direction in (1.0, 1j):
        slope = (f(C, c + h * direction) - f(C, c - h * direction)) / (2 * h)
        np.testing.assert_allclose((np.conj(to_c) * direction).real, slope, rtol=1e-7, atol=1e-8)
        for k in range(3):
            step = np.eye(3)[k] * direction
            slope = (f(C + h * step, c) - f(C - h * step, c)) / (2 * h)
            np.testing.assert_allclose((np.conj(to_C) * step).real.sum(), slope, rtol=1e-7, atol=1e-8)
