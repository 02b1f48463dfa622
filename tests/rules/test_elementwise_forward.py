"""Every row in forward mode: against differences and the other mode, on numbers, arrays and complex numbers, in chunks."""

import cmath
import math

import numpy as np
import pytest
from tests.rules.agreement import difference, directions, inner
from tests.rules.test_elementwise import COMPLEX_ROWS, COMPLEX_SAMPLES, IN_DOUBLE, ROWS, UFUNC_ROWS, name_of, owner_type, samples_of

import plaingrad
from plaingrad import rulebook
from plaingrad.engine.forward.push import push
from plaingrad.rules import elementwise, special

pytestmark = pytest.mark.filterwarnings("ignore")

ON_NUMBERS = [rule for rule in ROWS if owner_type(rule.function) not in (*IN_DOUBLE, np.ndarray)]


def arguments_of(rule):
    """The sample points, as the types that the function takes."""
    cls = owner_type(rule.function)
    for args in samples_of(rule):
        args = tuple(float(x) if type(x) is int and rule.function is not special.polygamma else x for x in args)
        if cls is not None:
            args = (np.float64(args[0]) if cls is np.generic else cls(args[0]), *args[1:])
        yield args


def moving(args):
    """Where the arguments are numbers that may vary."""
    return [i for i, x in enumerate(args) if isinstance(x, (float, complex, np.inexact))]


@pytest.mark.parametrize("rule", ON_NUMBERS, ids=name_of)
def test_the_slope_along_each_argument_agrees_with_differences(rule):
    f = rule.function
    for args in arguments_of(rule):
        for i in moving(args):
            dots = tuple(1.5 if k == i else None for k in range(len(args)))
            z, z_dot = plaingrad.jvp(f, args, dots)
            assert z == f(*args)
            truth = 1.5 * difference(lambda t, i=i: f(*args[:i], t, *args[i + 1 :]), args[i])
            assert abs(z_dot - truth) <= 1e-8 * max(1.0, abs(truth)), (args, i)


@pytest.mark.parametrize("rule", ON_NUMBERS, ids=name_of)
def test_a_chunk_of_numbers_is_each_of_them(rule):
    f = rule.function
    for args in arguments_of(rule):
        places = moving(args)
        chunk = tuple(np.array([1.0, -0.5, 2.5]) * (i + 1) if i in places else None for i in range(len(args)))
        _, z_dots = push(f, args, chunk, {}, chunk=3)
        for k in range(3):
            _, z_dot = push(f, args, tuple(None if x_dot is None else x_dot[k] for x_dot in chunk), {})
            found = 0.0 if z_dots is None else z_dots[k]
            np.testing.assert_allclose(found, 0.0 if z_dot is None else z_dot, rtol=1e-14)


@pytest.mark.parametrize("rule", [rule for rule in COMPLEX_ROWS if rule.function is not cmath.rect], ids=name_of)
def test_forward_mode_of_complex_numbers_pairs_with_reverse_mode(rule):
    f, cls = rule.function, owner_type(rule.function)
    if f in (np.maximum, np.minimum, np.fmax, np.fmin, elementwise._umath.clip):
        return
    convert = cls if cls in (complex, np.cdouble) else complex
    n = 1 if len(rule.partials) == 1 else 2
    for x, y in zip(COMPLEX_SAMPLES, COMPLEX_SAMPLES[1:]):
        args = (convert(x), convert(y))[:n]
        for dots in [(1.0, 0.5), (1j, -0.3 + 0.2j), (0.7 - 0.4j, 1j)]:
            z, z_dot = plaingrad.jvp(f, args, tuple(map(complex, dots[:n])))
            _, pullback = plaingrad.vjp(f, *args)
            for z_bar in directions(z):
                x_bars = pullback(type(z)(z_bar))
                expected = sum(inner(x_bar, x_dot) for x_bar, x_dot in zip(x_bars, dots))
                assert abs(inner(z_bar, z_dot) - expected) <= 1e-12 * max(1.0, abs(expected)), (args, dots)
            truth = sum(
                difference(lambda t, i=i: f(*args[:i], args[i] + t * dots[i], *args[i + 1 :]), 0.0, h=2.0**-8) for i in range(n)
            )
            assert abs(z_dot - truth) <= 1e-8 * max(1.0, abs(truth)), (args, dots)


@pytest.mark.parametrize("rule", UFUNC_ROWS, ids=name_of)
def test_broadcast_arrays_are_pushed_element_by_element(rule):
    f = rule.function
    columns = [np.array(column, float) for column in zip(*samples_of(rule))]
    arrays = tuple(column.reshape([-1] + [1] * (len(columns) - 1 - i)) for i, column in enumerate(columns))
    dots = tuple(np.cos(3 * a + i) for i, a in enumerate(arrays))
    z, z_dot = plaingrad.jvp(f, arrays, dots)
    np.testing.assert_array_equal(z, f(*arrays))
    grid, grid_dots = np.broadcast_arrays(*arrays), np.broadcast_arrays(*dots)
    for at in np.ndindex(np.shape(z)):
        args, each = ([float(g[at]) for g in parts] for parts in (grid, grid_dots))
        np.testing.assert_allclose(z_dot[at], plaingrad.jvp(f, tuple(args), tuple(each))[1], rtol=1e-12, atol=1e-300)
    pairs = tuple(np.stack([d, -2 * d]) for d in dots)
    _, chunk = push(f, arrays, pairs, {}, chunk=2)
    np.testing.assert_allclose(chunk, np.stack([z_dot, -2 * z_dot]), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("rule", UFUNC_ROWS, ids=name_of)
def test_a_pushed_row_keeps_float32(rule):
    if rule.function is np.float_power:
        return
    arrays = tuple(np.array(column, np.float32) for column in zip(*samples_of(rule)))
    z, z_dot = plaingrad.jvp(rule.function, arrays, tuple(np.ones_like(a) for a in arrays))
    assert z_dot.dtype == np.float32 and z_dot.shape == z.shape


@pytest.mark.parametrize("rule", ON_NUMBERS, ids=name_of)
def test_second_derivatives_of_rows_agree_in_all_pairs_of_modes(rule):
    f = rule.function
    for args in list(arguments_of(rule))[:2]:
        i = moving(args)[-1]
        convert = type(args[i])
        x, one = args[i].real, type(args[i].real)(1)

        def g(t):
            z = f(*args[:i], convert(t), *args[i + 1 :])
            return z.real * z.real + 2 * z.imag * z.imag if np.iscomplexobj(z) else z * z

        def forward(t):
            return plaingrad.jvp(g, (t,), (one,))[1]

        truth = plaingrad.grad(plaingrad.grad(g))(x)
        found = [
            plaingrad.jvp(plaingrad.grad(g), (x,), (one,))[1],
            plaingrad.grad(forward)(x),
            plaingrad.jvp(forward, (x,), (one,))[1],
        ]
        np.testing.assert_allclose(found, [truth] * 3, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("x, y", [(-2.0, 0.3 + 0.4j), (-2.0, 0.5), (2.0, 0.3 - 0.4j)])
def test_the_exponent_of_a_power_that_is_complex(x, y):
    for f, args in ((pow, (x, y)), (np.power, (np.array([x], complex), np.array([y])))):
        z_dot = plaingrad.jvp(f, args, (None, type(args[1])(1.0) if np.ndim(y) == 0 and f is pow else np.ones(1, args[1].dtype)))[1]
        truth = x**y * cmath.log(x)
        np.testing.assert_allclose(z_dot, truth if f is pow else [truth], rtol=1e-13)


def test_a_row_without_a_slope_gives_a_zero_tangent():
    assert plaingrad.jvp(math.copysign, (2.0, -1.0), (None, 1.0)) == (-2.0, 0.0)
    assert plaingrad.jvp(math.floor, (2.5,), (1.0,))[0] == 2


def test_the_rows_are_all_here():
    assert {id(rule.function) for rule in ROWS} <= {id(rule.function) for rule in rulebook.rules()}
