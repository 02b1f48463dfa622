"""Every row at the ends of the range of floating-point numbers: its partial derivatives against closed forms by mpmath.

Functions of one number are tried at all points, others at one in six of their pairs and triples; at all of them
with PLAINGRAD_TEST_ALL=1.
"""

import cmath
import functools
import math

import mpmath
import numpy as np
import pytest
from tests.rules.extremes import PARTIALS, is_close, name_of_row, partial_of
from tests.sampling import sample_of

from plaingrad import derivative, grad, rulebook
from plaingrad.rules import elementwise, special
from plaingrad.tangents import is_zero, unthunk

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numba.NumbaPerformanceWarning")

DOUBLES = (5e-324, 1e-310, 1e-300, 1e-200, 1e-160, 1e-20, 0.3, 1.0, 2.5, 30.0, 1e5, 1e20, 1e200, 1e300, 1.7e308)
SINGLES = (1e-45, 1e-40, 1e-30, 1e-22, 1e-10, 0.3, 1.0, 2.5, 30.0, 1e5, 1e10, 1e19, 1e30, 3.4e38)
SMALL_EXPONENTS = (1e-310, 1e-30, 0.3, 1.0, 2.0, 2.5, 30.0)
ROWS = [
    rule
    for rule in rulebook.rules()
    if rule.kind == "scalar" and rule.source.split(":")[0] in (elementwise.__file__, special.__file__)
]
HAS_NO_NUMBERS = (np.ndarray, np.generic, np.half, np.longdouble, np.clongdouble, np.csingle)  # types of methods
# Where |x| is not small, 1 - tanh(x)**2 and 1 + tan(x)**2 of complex numbers are right to the last digit of 1.
OF_SIZE_ONE = {"tanh", "tan"}
IN_BASE = {"pow": 1, "power": 1, "float_power": 1, "rpow": 0}  # which argument is the exponent


def kinds_of(function):
    owner = getattr(function, "__objclass__", None)
    if owner in HAS_NO_NUMBERS:
        return []
    if owner in (complex, np.cdouble):
        return [owner]
    if owner in (np.single, np.double):
        return [owner]
    if isinstance(function, np.ufunc):
        takes_complex = any(types.startswith("D") for types in function.types)
        return [np.double, np.single, *([np.cdouble] if takes_complex and ordered(function) else [])]
    return [complex if getattr(function, "__module__", None) == "cmath" and function is not cmath.rect else float]


def ordered(function):
    """Whether its value has a derivative for complex arguments; maximum and its like compare."""
    return function not in (np.maximum, np.minimum, np.fmax, np.fmin, np.power, np.float_power)


def points(function, count, kind):
    sizes = SINGLES if kind is np.single else DOUBLES
    if issubclass(kind, (complex, np.complexfloating)):
        sizes = [x for x in sizes if 1e-301 < x < 1e301]
    name = name_of_row(function)
    axes = [sizes] * count
    if name in IN_BASE:
        axes[IN_BASE[name]] = SMALL_EXPONENTS
    if count == 1:
        found = [(x,) for x in sizes] + [(-x,) for x in sizes]
    elif count == 2:
        found = [(s * x, t * y) for x in axes[0] for y in axes[1] for s, t in ((1, 1), (-1, 1), (1, -1))]
    else:
        found = [(x, y, z) for x in sizes[::2] for y in sizes[::2] for z in sizes[::2]]
    if count > 1:
        found = sample_of(found, name, 6)
    if issubclass(kind, (complex, np.complexfloating)):
        turns = ((1, 0.75), (0.25, -1))
        return [tuple([kind(complex(x * a, x * b)) for x, (a, b) in zip(xs, turns)]) for xs in found]
    return [tuple(map(kind, xs)) for xs in found]


def cases():
    for rule in ROWS:
        for kind in kinds_of(rule.function):
            f = rule.function
            where = getattr(f, "__objclass__", None) or getattr(f, "__module__", "")
            yield pytest.param(rule, kind, id=f"{getattr(where, '__name__', where)}.{f.__name__}-{kind.__name__}")


def result_of(f, args):
    """f(*args), or None where the plain call raises or gives no number."""
    try:
        z = f(*args)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return None if z is NotImplemented or z != z or isinstance(z, complex) and not any(isinstance(x, (complex, np.complexfloating)) for x in args) and f is not cmath.rect else z


def assert_close(found, function, position, args, kind):
    truth = partial_of(function, position, args)
    if truth is None:
        return
    name = name_of_row(function)
    if isinstance(found, (complex, np.complexfloating)):
        found = complex(found).conjugate()
    real_kind = {complex: np.double, np.cdouble: np.double, float: np.double}.get(kind, kind)
    floor = 2e-16 if name in OF_SIZE_ONE else 0.0
    rel = 1e-4 if real_kind is np.single else 2e-12 if name not in ("gamma", "erf", "erfc", "lgamma", "digamma") else 1e-10
    with mpmath.workdps(50):
        assert is_close(found, truth, real_kind, rel, floor), (args, position, found, mpmath.nstr(truth, 12))


@pytest.mark.parametrize("rule, kind", list(cases()))
def test_partials_are_right_at_the_ends_of_the_range(rule, kind):
    f = rule.function
    if f is special.polygamma:
        samples = [(n, x) for n in (1, 2) for x in (1e-100, 0.3, 1e5, 1e20)]
    elif f in (math.log, cmath.log):
        samples = points(f, 1, kind) + points(f, 2, kind)
    else:
        samples = points(f, len(rule.partials), kind)
    tried = 0
    for args in samples:
        if result_of(f, args) is None:
            continue
        _, pullback = rule.rrule(*args)
        tried += 1
        for position, cotangent in enumerate(pullback(kind(1) if kind is np.single else 1.0)):
            if PARTIALS[name_of_row(f)][position] is None:
                continue
            found = unthunk(cotangent)
            assert_close(0.0 if is_zero(found) else found, f, position, args, kind)
    assert tried


def test_every_row_has_a_closed_form():
    assert {name_of_row(rule.function) for rule in ROWS} <= PARTIALS.keys()


# The same through the engine: as the hooks, fused runs and arrays of the plain tier compute it, and natively ---------

PAIRS = [(s * x, t * y) for x in DOUBLES for y in DOUBLES for s, t in ((1, 1), (-1, 1), (1, -1))]


def quotient(x, y):
    return x / y


def fused_quotient(x, y):
    a = x / y
    b = a * 1.0
    return b + 0.0


def numpy_quotient(x, y):
    return np.divide(x, y)


def array_quotient(x, y):
    return (np.array([x]) / np.array([y]))[0]


def angle(x, y):
    return math.atan2(x, y)


def length(x, y):
    return math.hypot(x, y)


def distance(x, y):
    return math.dist((x, 0.0), (0.0, y))


def norm(x, y):
    return np.linalg.norm(np.array([x, y]))


def size_of_complex(x, y):
    return abs(complex(x, y))


def numpy_length(x, y):
    return np.hypot(x, y)


def numpy_angle(x, y):
    return np.arctan2(x, y)


LENGTHS = (length, distance, norm, size_of_complex, numpy_length)
PROGRAMS = [
    *[(f, PARTIALS["truediv"]) for f in (quotient, fused_quotient, numpy_quotient, array_quotient)],
    *[(f, PARTIALS["hypot"]) for f in LENGTHS],
    *[(f, PARTIALS["atan2"]) for f in (angle, numpy_angle)],
]


@functools.cache
def exact_gradient(partials, args):
    """By closed forms, to the fifty digits that are compared."""
    with mpmath.workdps(700):
        truths = [mpmath.mpmathify(partial(*map(mpmath.mpf, args))) for partial in partials]
    with mpmath.workdps(50):
        return [+truth for truth in truths]


def assert_gradient(found, partials, args):
    truths = exact_gradient(partials, args)
    with mpmath.workdps(50):
        for value, truth in zip(found, truths):
            assert is_close(value, truth, np.double, 1e-11), (args, value, mpmath.nstr(truth, 12))


@pytest.mark.parametrize("f, partials", PROGRAMS)
def test_gradients_of_programs_are_right_at_the_ends_of_the_range(f, partials):
    both = grad(f, argnums=(0, 1))
    for x, y in sample_of(PAIRS[::2], f.__name__, 6):
        if f is norm and max(abs(x), abs(y)) > 1e307:
            continue
        if result_of(f, (x, y)) is None:
            continue
        assert_gradient(both(x, y), partials, (x, y))
        forward = derivative(lambda t: f(t, y))(x), derivative(lambda t: f(x, t))(y)
        assert_gradient(forward, partials, (x, y))


@pytest.mark.parametrize(
    "f, partials", [row for row in PROGRAMS if row[0] in (quotient, fused_quotient, length, numpy_length, angle)]
)
def test_native_gradients_are_right_at_the_ends_of_the_range(f, partials):
    pytest.importorskip("numba")
    both = grad(f, argnums=(0, 1), tier="native")
    for x, y in sample_of(PAIRS, f.__name__, 6):
        if result_of(f, (x, y)) is not None:
            assert_gradient(both(x, y), partials, (x, y))


@pytest.mark.parametrize("f", [math.asinh, np.arcsinh, np.arctan, math.sqrt, np.log1p, math.tan])
def test_native_functions_of_one_number_are_right_at_the_ends_of_the_range(f):
    pytest.importorskip("numba")

    def program(x):
        return f(x)

    slope = grad(program, tier="native")
    for x in DOUBLES:
        if result_of(f, (x,)) is not None:
            with mpmath.workdps(50):
                assert is_close(slope(x), partial_of(f, 0, (x,)), np.double, 1e-11, 2e-16), x


@pytest.mark.parametrize("n", [3, 5])
@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e200, 3e307])
def test_lengths_of_many_coordinates_are_scaled(n, scale):
    x = [scale * k for k in range(1, n + 1)]
    size = math.sqrt(sum(k * k for k in range(1, n + 1)))
    tolerance = 1e-12 if scale > 1e-310 else 1e-3
    for f in (lambda *xs: math.hypot(*xs), lambda *xs: math.dist(xs, (0.0,) * n)):
        found = grad(f, argnums=tuple(range(n)))(*x)
        assert found == pytest.approx([k / size for k in range(1, n + 1)], rel=tolerance)


NAN = math.nan


@pytest.mark.parametrize("x", [NAN, math.inf, 0.0, 5e-324])
@pytest.mark.parametrize(
    "f",
    [lambda x: x**0, lambda x: x**0.0, lambda x: np.power(x, 0.0), lambda x: (np.array([x]) ** np.zeros(1))[0],
     lambda x: (np.array([x]) ** 0)[0], lambda x: math.pow(x, 0.0)],
)  # fmt: skip
def test_the_zeroth_power_is_constant_in_every_mode_and_tier(f, x):
    assert grad(f)(x) == derivative(f)(x) == 0.0
    if x == 0.0 or not math.isfinite(x):
        assert derivative(f, order=2)(x) == 0.0


def zeroth_power(x, y):
    return x**y


@pytest.mark.parametrize("x", [NAN, math.inf, 0.0, 5e-324, 2.0])
def test_the_zeroth_and_the_first_power_are_so_natively_too(x):
    pytest.importorskip("numba")
    for y, slope in ((0.0, 0.0), (1.0, 1.0)):
        assert grad(zeroth_power, tier="native")(x, y) == slope
        assert grad(zeroth_power, tier="plain")(x, y) == slope


def test_abs_of_nan_has_no_slope_in_any_mode_or_tier():
    pytest.importorskip("numba")

    def size(x):
        return abs(x)

    for f in (size, math.fabs, np.abs, lambda x: np.abs(np.array([x]))[0]):
        found = [grad(f)(NAN), derivative(f)(NAN), derivative(f, order=2)(NAN) + NAN]
        assert all(map(math.isnan, found))
    assert math.isnan(grad(size, tier="native")(NAN))
