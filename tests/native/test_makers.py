"""Arrays made in place of NumPy's functions, in what plaingrad compiles, are those that Numba makes."""

import functools
import itertools

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from numba.core import event  # noqa: E402

from plaingrad.native.runtime import declare, allocation  # noqa: E402
from tests.sampling import ALL, sample_of, some  # noqa: E402


@functools.cache
def both(f):
    """`f` compiled as a derived program, and by Numba; a function of this module is compiled once a type."""
    return declare.program(f, {}), numba.njit(f)


def assert_same(found, wanted):
    """Whether two arrays agree in all that Numba says of them."""
    assert (found.dtype, found.shape, found.strides) == (wanted.dtype, wanted.shape, wanted.strides)
    np.testing.assert_array_equal(found, wanted)


SHAPES = [0, 3, np.int32(2), (), (0,), (2, 3), (4, 0, 2), (np.int8(2), np.int64(1))]


def zeros_of_every_kind(n):
    """Zeros of shape `n`, with every way to say their dtype."""
    return (
        np.zeros(n),
        np.zeros(n, np.float32),
        np.zeros(n, np.int16),
        np.zeros(n, np.complex128),
        np.zeros(n, "float32"),
        np.zeros(n, dtype=np.bool_),
    )


def zeros(n):
    """Zeros of shape `n`, of floats."""
    return (np.zeros(n),)


@pytest.mark.parametrize("shape", sample_of(SHAPES, "zeros", 2), ids=str)
def test_zeros_of_a_shape_are_numbas(shape):
    ours, theirs = both(zeros_of_every_kind if ALL or str(shape) in ("0", "3", "(2, 3)") else zeros)
    for found, wanted in zip(ours(shape), theirs(shape), strict=True):
        assert_same(found, wanted)


def arrays_like(a):
    """Zeros like `a`, an array like `a` that is filled, and zeros of another dtype."""
    filled = np.empty_like(a)
    filled[...] = 3
    return np.zeros_like(a), filled, np.zeros_like(a, np.float32)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0).reshape(3, 4)[::-1, ::2],
        np.zeros((0, 2), np.complex64),
        np.array(2.0),
        np.arange(3),
        2.5,
        1j,
    ],
    ids=["C", "F", "strided", "empty", "0-d", "ints", "number", "complex number"],
)
def test_arrays_like_another_are_numbas(x):
    ours, theirs = both(arrays_like)
    for found, wanted in zip(ours(x), theirs(x), strict=True):
        assert_same(found, wanted)


def filled(whole, viewed, row):
    """A constant in all of an array, in a view of one, and in a row of one."""
    whole.fill(1)
    viewed[::-1, 1:3].fill(1)
    row[1].fill(True)


@pytest.mark.parametrize(
    "kind", some([np.float64, np.complex128, np.bool_], [np.float32, np.int64, np.uint8])
)
def test_a_constant_fills_whole_arrays_and_views(kind):
    ours, theirs = both(filled)
    for order in ("C", "F"):
        found, wanted = ([np.zeros((3, 4), kind, order=order) for _ in range(3)] for _ in range(2))
        ours(*found)
        theirs(*wanted)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
            assert b.any()


@pytest.mark.parametrize("shape", [-1, (2, -1), (1 << 40, 1 << 40)], ids=str)
def test_shapes_that_no_array_has_are_numbas_errors(shape):
    def made(n):
        return np.zeros(n).size

    ours, theirs = both(made)
    with pytest.raises(Exception) as wanted:  # noqa: PT011
        theirs(shape)
    with pytest.raises(type(wanted.value)) as found:
        ours(shape)
    assert str(found.value) == str(wanted.value)


def test_a_real_array_cannot_be_filled_with_a_complex_number():
    def made(a):
        a.fill(1j)

    with pytest.raises(numba.TypingError):
        declare.program(made, {})(np.zeros(2))


class Compiled(event.Listener):
    """The names of the functions that Numba compiles."""

    def __init__(self):
        self.names = []

    def on_start(self, begun):
        """Numba begins one."""
        self.names.append(begun.data["dispatcher"].py_func.__name__)

    def on_end(self, ended):
        """It is done."""


def test_nothing_is_compiled_but_the_program():
    def program(n):
        a, b = np.empty((n, 2)), np.zeros(n, np.float32)
        c = np.zeros_like(a)
        a.fill(1.0)
        return a[0, 0] + a[2, 1] + b[0] + c[0, 0]

    numba.njit(lambda n: np.empty((n, 2)))(
        3
    )  # whichever array is the first, Numba compiles how it asks for memory
    told = Compiled()
    with event.install_listener("numba:compile", told):
        assert declare.program(program, {})(3) == 2.0
    assert told.names == ["program"]


def test_programs_share_what_the_users_function_has_compiled():
    def user(a):
        return np.argsort(a)[0]

    def same(a):
        return np.argsort(a)[0]

    x = np.array([3.0, 1.0])
    assert numba.njit(user)(x) == 1
    told = Compiled()
    with event.install_listener("numba:compile", told):
        assert declare.program(same, {})(x) == 1
    assert told.names == ["same"]


@pytest.mark.parametrize("maker", allocation.MAKERS.values(), ids=allocation.MAKERS)
def test_makers_are_numpys_where_cpython_runs_them(maker):
    given = np.arange(6.0).reshape(2, 3) if maker.__name__.endswith("like") else (2, 3)
    wanted = getattr(np, maker.__name__)(given)
    found = maker(given)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)


def plus(a, b):
    """A sum in place."""
    a += b
    return a


def minus(a, b):
    """A difference in place."""
    a -= b
    return a


def times(a, b):
    """A product in place."""
    a *= b
    return a


def over(a, b):
    """A quotient in place."""
    a /= b
    return a


CHANGES = {"plus": plus, "minus": minus, "times": times, "over": over}


def changed_in_place(a, b, c, d):
    """A sum, a difference and a product with `d`, in place."""
    a += d
    b -= d
    c *= d
    return a, b, c


KINDS_AND_ORDERS = itertools.product(
    [np.float64, np.float32, np.complex128, np.int64], ["C", "F", "strided"]
)


@pytest.mark.parametrize("kind, order", sample_of(KINDS_AND_ORDERS, "in place", 2))
def test_arithmetic_in_place_is_numbas(kind, order):
    def laid(x):
        if order == "strided":
            made = np.zeros((2 * x.shape[0], 2 * x.shape[1]), kind)[::-2, ::2]
            made[...] = x
            return made
        return np.array(x, order=order)

    ours, theirs = both(changed_in_place)
    random = np.random.default_rng(0)
    for shape in ((3, 4), (1, 4), (3, 1), (1, 1)):
        a, b = ((100 * random.normal(size=n)).astype(kind) for n in ((3, 4), shape))
        if kind is np.complex128:
            a, b = a * (1 + 2j), b * (0.5 - 1j)
        found, wanted, other = [laid(a) for _ in range(3)], [laid(a) for _ in range(3)], laid(b)
        ours(*found, other)
        theirs(*wanted, other)
        for x, y in zip(found, wanted, strict=True):
            assert x.tobytes() == y.tobytes()


def test_sums_in_place_of_other_things_are_numbas():
    ours, theirs = both(plus)
    for a, b in ((1, 2), (1.5, 2), (2.0, 1j)):
        assert ours(a, b) == theirs(a, b)
    for b in (2.0, np.arange(3.0), np.float32(1)):
        found, wanted = np.ones((2, 3)), np.ones((2, 3))
        assert_same(ours(found, b), theirs(wanted, b))


def test_overlapping_views_are_changed_element_after_element():
    def program(a):
        part = a[1:]
        part += a[:-1]

    ours, theirs = both(program)
    found, wanted = np.arange(6.0), np.arange(6.0)
    ours(found)
    theirs(wanted)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(found, np.cumsum(np.arange(6.0)))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (2, 2)), ((2, 3), (3, 3)), ((2, 3), (4, 1)), ((1, 3), (2, 3)), ((2, 3), (2,)), ((2, 0), (3,))],
    ids=str,
)
def test_shapes_that_do_not_go_together_raise_where_numba_reads_past_the_end(shapes, change):
    a, b = map(np.ones, shapes)
    with pytest.raises(ValueError, match="could not be broadcast|non-broadcastable"):
        CHANGES[change](a.copy(), b)
    program, _ = both(CHANGES[change])
    with pytest.raises(ValueError, match="could not be broadcast"):
        program(a, b)
    with pytest.raises(ValueError, match="could not be broadcast"):
        program(a, b.astype(np.float32))  # by another function of Numba's


def changed_and_divided(a, b, c, d, e):
    """As `changed_in_place`, and a quotient."""
    a += e
    b -= e
    c *= e
    d /= e
    return a, b, c, d


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.complex128])
def test_arithmetic_in_place_with_fewer_axes_is_numbas(kind):
    ours, theirs = both(changed_and_divided)
    a = (np.arange(6.0).reshape(2, 3) + 1).astype(kind)
    for b in (np.array([0.5, 3.0, 0.0]), np.array([0.5]), np.array(0.5)):
        found, wanted = [a.copy() for _ in range(4)], [a.copy() for _ in range(4)]
        with np.errstate(all="ignore"):
            ours(*found, b.astype(kind))
            theirs(*wanted, b.astype(kind))
        for x, y in zip(found, wanted, strict=True):
            assert x.tobytes() == y.tobytes()


def test_sums_in_place_of_empty_arrays():
    assert declare.program(plus, {})(np.ones((0, 3)), np.ones((1, 3))).shape == (0, 3)
