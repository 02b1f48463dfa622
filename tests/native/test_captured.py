"""Arrays of the module or of an enclosing function, which a program reads without being given them."""

import numba
import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from tests.native.uncompiled import check  # noqa: E402

RNG = np.random.default_rng(5)
WEIGHTS = RNG.normal(size=(3, 3))
OFFSETS = RNG.normal(size=3)
KNOTS = np.linspace(-3.0, 3.0, 3)


def products(x):
    return np.sum((WEIGHTS @ x) * (x @ WEIGHTS)) + np.dot(WEIGHTS.T, x)[1] * np.sum(np.outer(OFFSETS, x)[0])


def solved(x):
    z = np.linalg.solve(WEIGHTS + 4.0 * np.eye(3), x)
    return np.sum(z * z) + np.sum(np.cross(x, OFFSETS) ** 2)


def interpolated(x):
    return np.sum(np.interp(x, KNOTS, OFFSETS) ** 2)


def convolved(x):
    return np.sum(np.convolve(x, OFFSETS) ** 2) + np.sum(np.convolve(OFFSETS, x)[1:2])


def chosen(x, k):
    z = OFFSETS if k > 0 else x
    return np.sum(z * z) * x[0]


def started_from(x, k):
    z = OFFSETS
    for _ in range(k):
        z = z * x
    return np.sum(z * z)


def iterated(x):
    total = 0.0
    for row in WEIGHTS:
        total += np.sum(row * x * x)
    for k, (w, u) in enumerate(zip(OFFSETS, x)):
        total += k * w * u * u
    return total


def layers():
    weights = RNG.normal(size=(2, 3))

    def network(x):
        return np.sum(np.tanh(weights @ x))

    return network


POINT = RNG.normal(size=3)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (products, (POINT,)),
        (solved, (POINT,)),
        (interpolated, (POINT,)),
        (convolved, (POINT,)),
        (chosen, (POINT, 1)),
        (chosen, (POINT, 0)),
        (started_from, (POINT, 0)),
        (started_from, (POINT, 3)),
        (iterated, (POINT,)),
        (layers(), (POINT,)),
    ],
)
def test_captured_arrays_are_constants_of_a_derivative(f, args):
    check(f, *args)


def test_compiled_a_network_with_captured_weights_has_the_derivatives_of_the_plain_tier():
    network = layers()
    value, gradient = plaingrad.value_and_grad(network, tier="native")(POINT)
    assert value == numba.njit(network)(POINT)
    np.testing.assert_allclose(gradient, plaingrad.grad(network, tier="plain")(POINT), rtol=1e-12)


def with_a_dead_write(x, k):
    u = x * 2.0
    v = x.copy()

    def scaled(t):
        return t * x[1]

    y = scaled(x[0])
    total = y * v[2] + np.sum(u)
    u[::2] -= v[1:] * k  # read by nothing
    return total


def test_a_write_that_numba_drops_and_nothing_reads_is_no_hindrance():
    check(with_a_dead_write, POINT, 1.0)


def with_a_write_in_a_loop(x, n):
    u = np.zeros(3)
    total = 0.0

    def scaled(t):
        return t * x[1]

    for k in range(n):
        for row in u.reshape(3, 1):
            total += row[0] * scaled(x[0])
            row[0] = x[k]
    return total


def test_a_write_that_numba_drops_and_the_next_iteration_reads_is_refused():
    directions = np.ones_like(POINT), None
    with pytest.raises(plaingrad.NativeError, match="Numba loses the write"):
        plaingrad.jvp(numba.njit(with_a_write_in_a_loop), (POINT, 3), directions, tier="native")
    # Without the closure, which is taken apart first, Numba drops nothing.
    found, plain = (
        plaingrad.jvp(with_a_write_in_a_loop, (POINT, 3), directions, tier=tier) for tier in ("native", "plain")
    )
    assert found == pytest.approx(plain, rel=1e-14)


# Arrays that compiled code reads where they are: large ones, and those that are not contiguous ------------------------

LARGE = np.arange(200000.0)
EVERY_OTHER = np.arange(20.0)[::2]
BACKWARDS = np.arange(6.0)[::-1]


def of_large(x):
    s = 0.0
    for i in range(8):
        s += x * x * LARGE[i]
    return s


def of_every_other(x):
    s = 0.0
    for i in range(EVERY_OTHER.shape[0]):
        s += np.sin(x * EVERY_OTHER[i])
    return s


def of_backwards(x):
    return np.sum(np.exp(x * BACKWARDS))


LIVE = [(of_large, LARGE), (of_every_other, EVERY_OTHER), (of_backwards, BACKWARDS)]


@pytest.fixture(params=[0, 1, 2], ids=["large", "every other", "backwards"])
def live(request):
    f, array = LIVE[request.param]
    before = array.copy()
    yield f, array
    array[...] = before


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("take", [plaingrad.linearize, plaingrad.vjp], ids=["linearize", "vjp"])
def test_a_map_notices_that_an_array_which_it_reads_again_has_changed(live, take, compiled):
    f, array = live
    truth = plaingrad.grad(f, tier="plain")(0.7)
    options = {} if compiled else {"tier": "native"}
    y, linear = take(numba.njit(f) if compiled else f, 0.7, **options)
    for _ in range(2):
        assert np.ravel(linear(1.0)) == pytest.approx([truth], rel=1e-12)
    array[3] += 100.0
    with pytest.raises(plaingrad.ChangedSinceError):
        linear(1.0)
    array[3] -= 100.0
    assert np.ravel(linear(1.0)) == pytest.approx([truth], rel=1e-12)
    assert y == pytest.approx(f(0.7), rel=1e-12)


def nested(f):
    return plaingrad.grad(plaingrad.grad(f))


OPERATORS = {
    "grad": plaingrad.grad,
    "derivative": plaingrad.derivative,
    "vjp": lambda f: lambda x: plaingrad.vjp(f, x)[1](1.0)[0],
    "linearize": lambda f: lambda x: plaingrad.linearize(f, x)[1](1.0),
    "reverse over reverse": nested,
    "forward over reverse": lambda f: plaingrad.derivative(plaingrad.grad(f)),
    "hvp": lambda f: lambda x: plaingrad.hvp(f, (x,), (1.0,))[0],
}


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_an_array_that_the_program_itself_writes_after_a_call_of_numbas(live, operator):
    f, array = live
    compiled = numba.njit(f)

    def program(x):
        y = compiled(x)
        array[1] += 1.0
        return y

    def reference(x):
        y = f(x)
        array[1] += 1.0
        return y

    before = array.copy()
    truth = operator(reference)(0.7)
    assert np.sum(array - before) == 1.0
    array[...] = before
    assert operator(program)(0.7) == pytest.approx(truth, rel=1e-9)
    assert np.sum(array - before) == 1.0


def test_what_is_small_and_contiguous_is_a_copy_in_machine_code():
    values = np.arange(4.0)

    @numba.njit
    def f(x):
        return x * values[3]

    y, linear = plaingrad.linearize(f, 2.0)
    values[3] = 50.0
    assert (y, linear(1.0)) == (6.0, 3.0)
