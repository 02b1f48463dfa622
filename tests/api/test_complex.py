"""Complex numbers in both modes. The convention is Zygote's: for real y and z = u + iv, z_bar = dy/du + i dy/dv."""

import cmath
import math

import numpy as np
import pytest

from plaingrad import ArgumentError, NonScalarOutputError, derivative, grad, jacobian, jvp, vjp, wirtinger

Z = 0.6 - 1.1j
MODES = ("forward", "reverse")

HOLOMORPHIC = {
    "exp": (cmath.exp, cmath.exp),
    "log": (cmath.log, lambda z: 1 / z),
    "log10": (cmath.log10, lambda z: 1 / (z * math.log(10))),
    "sqrt": (cmath.sqrt, lambda z: 0.5 / cmath.sqrt(z)),
    "sin": (cmath.sin, cmath.cos),
    "cos": (cmath.cos, lambda z: -cmath.sin(z)),
    "tan": (cmath.tan, lambda z: 1 / cmath.cos(z) ** 2),
    "asin": (cmath.asin, lambda z: 1 / cmath.sqrt(1 - z * z)),
    "acos": (cmath.acos, lambda z: -1 / cmath.sqrt(1 - z * z)),
    "atan": (cmath.atan, lambda z: 1 / (1 + z * z)),
    "sinh": (cmath.sinh, cmath.cosh),
    "cosh": (cmath.cosh, cmath.sinh),
    "tanh": (cmath.tanh, lambda z: 1 / cmath.cosh(z) ** 2),
    "asinh": (cmath.asinh, lambda z: 1 / cmath.sqrt(1 + z * z)),
    "acosh": (cmath.acosh, lambda z: 1 / (cmath.sqrt(z - 1) * cmath.sqrt(z + 1))),
    "atanh": (cmath.atanh, lambda z: 1 / (1 - z * z)),
    "power": (lambda z: z**3, lambda z: 3 * z * z),
    "complex power": (lambda z: z ** (1.5 + 0.5j), lambda z: (1.5 + 0.5j) * z ** (0.5 + 0.5j)),
    "exponent": (lambda z: (2 + 1j) ** z, lambda z: cmath.log(2 + 1j) * (2 + 1j) ** z),
    "quotient": (lambda z: (1 + z) / (2j - z), lambda z: (1 + 2j) / (2j - z) ** 2),
    "of parts": (lambda z: complex(z.real, z.imag) * 2, lambda z: 2),
    "of polar": (lambda z: cmath.rect(*cmath.polar(z)) ** 2, lambda z: 2 * z),
    "np.exp": (np.exp, np.exp),
    "np.log": (np.log, lambda z: 1 / z),
    "np.sqrt": (np.sqrt, lambda z: 0.5 / np.sqrt(z)),
    "np.sin": (np.sin, np.cos),
    "np.tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
    "np.square": (np.square, lambda z: 2 * z),
    "np.reciprocal": (np.reciprocal, lambda z: -1 / z**2),
    "np.power": (lambda z: np.power(z, 3), lambda z: 3 * z * z),
}


@pytest.mark.parametrize("name", HOLOMORPHIC)
@pytest.mark.parametrize("mode", MODES)
def test_a_holomorphic_function_has_its_complex_derivative_in_both_modes(name, mode):
    f, slope = HOLOMORPHIC[name]
    assert jacobian(f, mode=mode)(Z) == pytest.approx(slope(Z), rel=1e-13)
    assert derivative(f)(Z) == pytest.approx(slope(Z), rel=1e-13)


@pytest.mark.parametrize("name", [name for name in HOLOMORPHIC if name.startswith("np.")])
@pytest.mark.parametrize("mode", MODES)
def test_and_so_has_one_of_an_array(name, mode):
    f, slope = HOLOMORPHIC[name]
    z = np.array([Z, 1.5 + 0.2j])
    np.testing.assert_allclose(jacobian(f, mode=mode)(z), np.diag(slope(z)), rtol=1e-13)


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_the_pullback_of_a_holomorphic_function_multiplies_by_the_conjugate(name):
    f, slope = HOLOMORPHIC[name]
    weight = 0.4 + 0.9j
    assert vjp(f, Z)[1](weight)[0] == pytest.approx(weight * complex(slope(Z)).conjugate(), rel=1e-13)
    assert jvp(f, (Z,), (weight,))[1] == pytest.approx(weight * slope(Z), rel=1e-13)


U, V = Z.real, Z.imag
R2 = U * U + V * V

OF_REAL_VALUE = {  # name: (function, dy/du, dy/dv)
    "real": (lambda z: z.real, 1, 0),
    "imag": (lambda z: z.imag, 0, 1),
    "abs": (abs, U / R2**0.5, V / R2**0.5),
    "abs squared": (lambda z: abs(z) ** 2, 2 * U, 2 * V),
    "z z*": (lambda z: (z * z.conjugate()).real, 2 * U, 2 * V),
    "phase": (cmath.phase, -V / R2, U / R2),
    "polar": (
        lambda z: cmath.polar(z)[0] * cmath.polar(z)[1],
        U / R2**0.5 * cmath.phase(Z) - V / R2**0.5,
        V / R2**0.5 * cmath.phase(Z) + U / R2**0.5,
    ),
    "np.abs": (np.abs, U / R2**0.5, V / R2**0.5),
    "np.angle": (np.angle, -V / R2, U / R2),
    "np.real": (np.real, 1, 0),
    "np.imag": (np.imag, 0, 1),
    "np.conj": (lambda z: np.imag(np.conj(z) * z * z), *((2 * U * V), (U * U + 3 * V * V))),  # |z|^2 v
    "of math": (
        lambda z: math.exp(z.real) * math.sin(z.imag),
        math.exp(U) * math.sin(V),
        math.exp(U) * math.cos(V),
    ),
}


@pytest.mark.parametrize("name", OF_REAL_VALUE)
def test_a_real_function_of_a_complex_number_in_both_modes(name):
    f, by_u, by_v = OF_REAL_VALUE[name]
    assert grad(f)(Z) == pytest.approx(by_u + 1j * by_v, rel=1e-13, abs=1e-15)
    assert jvp(f, (Z,), (1.0,))[1] == pytest.approx(by_u, rel=1e-13, abs=1e-15)
    assert jvp(f, (Z,), (1j,))[1] == pytest.approx(by_v, rel=1e-13, abs=1e-15)
    for mode in MODES:
        assert jacobian(f, mode=mode)(Z) == pytest.approx(by_u + 1j * by_v, rel=1e-13, abs=1e-15)
    by_z, by_conjugate = wirtinger(f)(Z)
    assert by_z == pytest.approx((by_u - 1j * by_v) / 2, rel=1e-13, abs=1e-15)
    assert by_conjugate == pytest.approx((by_u + 1j * by_v) / 2, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("name", OF_REAL_VALUE)
def test_tangents_of_real_functions_are_real(name):
    f = OF_REAL_VALUE[name][0]
    assert not np.iscomplexobj(jvp(f, (Z,), (0.3 + 0.4j,))[1])


OF_REAL_ARGUMENT = {
    "exp(it)": (lambda t: cmath.exp(1j * t), lambda t: 1j * cmath.exp(1j * t)),
    "complex(t, t^2)": (lambda t: complex(t, t * t), lambda t: 1 + 2j * t),
    "rect": (lambda t: cmath.rect(t, 2.0 * t), lambda t: (1 + 2j * t) * cmath.exp(2j * t)),
    "negative root": (lambda t: cmath.sqrt(-t), lambda t: -0.5 / cmath.sqrt(-t)),
    "power": (
        lambda t: (1 + 2j) * t**3 / (t + 1j),
        lambda t: (1 + 2j) * (3 * t * t * (t + 1j) - t**3) / (t + 1j) ** 2,
    ),
    "numpy": (
        lambda t: np.exp(np.array([1j, 2j]) * t).sum(),
        lambda t: 1j * cmath.exp(1j * t) + 2j * cmath.exp(2j * t),
    ),
}


@pytest.mark.parametrize("name", OF_REAL_ARGUMENT)
def test_a_complex_function_of_a_real_number_in_both_modes(name):
    f, slope = OF_REAL_ARGUMENT[name]
    t = 0.7
    expected = complex(slope(t))
    assert derivative(f)(t) == pytest.approx(expected, rel=1e-13)
    for mode in MODES:
        assert jacobian(f, mode=mode)(t) == pytest.approx(expected, rel=1e-13)
    (t_bar,) = vjp(f, t)[1](0.4 + 0.9j)  # Re(conj(weight) slope)
    assert type(t_bar) is float and t_bar == pytest.approx(((0.4 - 0.9j) * expected).real, rel=1e-13)


def test_the_two_modes_agree_by_the_real_inner_product():
    def f(z, t):
        w = np.fft.fft(z) * t
        w[0] = w[1].conjugate() * z[2].real
        return np.abs(w) + w * w

    random = np.random.default_rng(3)
    complex_normal = lambda n: random.normal(size=n) + 1j * random.normal(size=n)
    z, t, z_dot, t_dot = complex_normal(4), random.normal(size=4), complex_normal(4), random.normal(size=4)
    y_bar = complex_normal(4)
    _, y_dot = jvp(f, (z, t), (z_dot, t_dot))
    z_bar, t_bar = vjp(f, z, t)[1](y_bar)
    assert t_bar.dtype == float and z_bar.dtype == complex
    left = (y_bar.conj() * y_dot).real.sum()
    assert left == pytest.approx((z_bar.conj() * z_dot).real.sum() + t_bar @ t_dot, rel=1e-12)


def test_the_second_derivative_of_a_holomorphic_function_by_both_modes():
    f = lambda z: z**3 * cmath.exp(z)
    expected = (Z**3 + 6 * Z**2 + 6 * Z) * cmath.exp(Z)
    assert derivative(f, order=2)(Z) == pytest.approx(expected, rel=1e-13)
    assert jacobian(jacobian(f, mode="forward"), mode="reverse")(Z) == pytest.approx(expected, rel=1e-13)
    assert jacobian(jacobian(f, mode="reverse"), mode="forward")(Z) == pytest.approx(expected, rel=1e-13)
    assert jacobian(jacobian(f, mode="reverse"), mode="reverse")(Z) == pytest.approx(expected, rel=1e-13)


def test_second_derivatives_through_complex_numbers_of_a_real_variable():
    # |e^(it) + t|^2 = 1 + 2 t cos t + t^2
    f = lambda t: abs(cmath.exp(1j * t) + t) ** 2
    t = 0.7
    expected = 2 - 4 * math.sin(t) - 2 * t * math.cos(t)
    for outer in (grad, derivative):
        for inner in (grad, derivative):
            assert outer(inner(f))(t) == pytest.approx(expected, rel=1e-12)


def test_a_complex_result_has_no_gradient():
    with pytest.raises(NonScalarOutputError, match="real part"):
        grad(lambda z: z * z)(Z)


def test_single_precision_complex_numbers_keep_it():
    z = np.array([1 + 2j, 0.5j], np.complex64)
    assert jvp(lambda z: z * z, (z,), (np.ones_like(z),))[1].dtype == np.complex64
    assert grad(lambda z: np.sum(np.abs(z) ** 2))(z).dtype == np.complex64
    for mode in MODES:
        assert jacobian(lambda z: z * z, mode=mode)(z).dtype == np.complex64
        assert jacobian(lambda z: z.real, mode=mode)(z).dtype == np.complex64


def test_wirtingers_pair_by_other_arguments_and_by_several():
    f = lambda a, z, w: a * z * z.conjugate() * w
    by_z, by_conjugate = wirtinger(f, argnums=1)(2.0, 1 + 2j, 3j)
    assert (by_z, by_conjugate) == (2.0 * (1 - 2j) * 3j, 2.0 * (1 + 2j) * 3j)
    by_both, by_conjugates = wirtinger(f, argnums=(1, -1))(2.0, 1 + 2j, 3j)
    assert by_both == (by_z, 10.0) and by_conjugates == (by_conjugate, 0.0)
    with pytest.raises(ArgumentError, match="complex"):
        wirtinger(f, argnums=(0, 1))(2.0, 1 + 2j, 3j)
