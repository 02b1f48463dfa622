"""Elements that loops read at constant places of arguments: read once, and what must not change by that."""

import math

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402
from plaingrad.native.border import call  # noqa: E402
from plaingrad.native.border import directions  # noqa: E402
from plaingrad.native.lowering.invariant_loads import cells_first  # noqa: E402
from plaingrad.native.frontend.translation import program  # noqa: E402
from plaingrad.native.program.ir import For, If, Let, Loop, statements  # noqa: E402


def reads_in_loops(f, *args):
    """How many elements of arrays the loops of the prepared program read."""
    p = cells_first(program(f, call.signature_of(args)))
    loops = [s for s in statements(p.body) if isinstance(s, (For, Loop))]
    arrays = {name for name, t in p.types.items() if isinstance(t, numba.types.Array)}
    return sum(
        isinstance(s, Let) and s.op == "item" and getattr(s.args[0], "name", "") in arrays
        for loop in loops
        for s in statements(loop.body)
    )


def gradients(f, *args, argnums=(0,)):
    """(value, gradients) natively, uncompiled; its program is the one that is compiled."""
    kinds = call.signature_of(args)
    shadows = call.shadows_of(args, argnums)
    out = list(build.derived("pullback", f, kinds, argnums).python(*args, 1.0, *shadows))
    return out[0], directions.cotangents(args, kinds, argnums, out[1:], shadows)


def agree(f, *args, argnums=(0,)):
    value, found = gradients(f, *args, argnums=argnums)
    wanted, expected = plaingrad.value_and_grad(f, argnums, tier="plain")(*args)
    np.testing.assert_allclose(value, wanted, rtol=1e-14)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def polynomial(p, x, n):
    s = 0.0
    for k in range(n):
        s = s * x * p[-1] + p[0] * math.sin(p[1] * k)
    return s


def conditional(p, x, n):
    s = x
    for k in range(n):
        if k % 2 == 1:
            s += p[2] * s
    return s


def nested(p, x, n):
    s = 0.0
    for i in range(n):
        for j in range(i):
            s += p[1] * x * j
        if s > 100.0:
            break
    return s * p[0]


def until(p, x, n):
    k = 0
    while p[0] * k < x:
        k += 1
    s = 1.0
    for _ in range(k, n, 2):
        s *= p[1]
    return s


def guarded(p, x, n):
    s = 0.0
    for k in range(n):
        if p.size < 2:
            raise ValueError("too short")
        s += p[1] * k
    return s


def of_matrix(p, x, n):
    s = 0.0
    for k in range(n):
        s += p[0, 1] * x + p[-1, 0] * k
    return s


P = np.array([0.7, -0.3, 1.1])


@pytest.mark.parametrize("f", [polynomial, conditional, nested, until, guarded], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 1, 6])
def test_gradients_are_those_of_the_plain_tier(f, n):
    agree(f, P, 1.3, n, argnums=(0, 1))
    assert reads_in_loops(f, P, 1.3, n) == 0


@pytest.mark.parametrize("n", [0, 4])
def test_elements_of_a_matrix_are_read_once_too(n):
    agree(of_matrix, np.array([[1.0, 2.0], [3.0, 4.0]]), 1.3, n, argnums=(0, 1))


@pytest.mark.parametrize(
    ("f", "p", "n"),
    [
        (polynomial, P[:0], 0),
        (polynomial, P[:1], 0),
        (conditional, P[:2], 1),
        (conditional, P[:0], 0),
        (nested, P[:1], 1),
        (of_matrix, np.zeros((0, 0)), 0),
    ],
)
def test_an_array_too_short_for_what_is_never_read_is_no_error(f, p, n):
    agree(f, p, 1.3, n, argnums=(0, 1))


@pytest.mark.parametrize(
    ("f", "p", "n"), [(polynomial, P[:1], 2), (conditional, P[:2], 2), (until, P[:1], 3), (nested, P[:1], 2)]
)
def test_an_array_too_short_for_what_is_read_is_an_index_error_not_a_number(f, p, n):
    with pytest.raises(IndexError):
        gradients(f, p, 0.1, n)


def test_the_users_own_guard_comes_first():
    with pytest.raises(ValueError, match="too short"):
        gradients(guarded, P[:1], 1.0, 2)


def test_compiled_code_checks_the_size_as_well():
    native = plaingrad.grad(polynomial, tier="native")
    np.testing.assert_allclose(native(P, 1.3, 5), plaingrad.grad(polynomial, tier="plain")(P, 1.3, 5))
    np.testing.assert_array_equal(native(P[:1], 1.3, 0), [0.0])
    with pytest.raises(IndexError):
        native(P[:1], 1.3, 5)


def test_an_array_that_is_written_is_read_where_it_stands():
    def f(p, x, n):
        s = 0.0
        for k in range(n):
            s += p[0] * x
            p[0] = s * 0.1
        return s

    def g(p, x, n):
        view = p[1:]
        s = 0.0
        for k in range(n):
            s += p[1] * x
            view[0] = s * 0.1
        return s

    for written in (f, g):
        assert reads_in_loops(written, P, 1.3, 3) > 0
        value, (p_bar,) = gradients(written, P.copy(), 1.3, 3)
        wanted, expected = plaingrad.value_and_grad(written, tier="plain")(P.copy(), 1.3, 3)
        np.testing.assert_allclose(value, wanted, rtol=1e-14)
        np.testing.assert_allclose(p_bar, expected, rtol=1e-13)


def test_single_precision_stays_single():
    def f(p, n):
        s = p[1]
        for k in range(n):
            s = s * p[0]
        return s

    p = np.array([1.1, 0.3], np.float32)
    value, (p_bar,) = plaingrad.value_and_grad(f, (0,), tier="native")(p, 5)
    assert value == numba.njit(f)(p, 5)
    assert p_bar.dtype == np.float32
    np.testing.assert_allclose(p_bar, [5 * p[0] ** 4 * p[1], p[0] ** 5], rtol=1e-5)


def test_a_program_without_loops_is_left_as_it_is():
    def f(p, n):
        if n:
            return p[0] * p[1]
        return p[0]

    before = program(f, call.signature_of((P, 1)))
    assert cells_first(before) is before
    assert any(isinstance(s, If) for s in before.body)
