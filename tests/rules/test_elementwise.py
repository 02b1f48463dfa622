"""Every row at its own sample points against differences, on numbers, arrays and complex numbers; singular points."""

import cmath
import contextlib
import math
import operator
import sys

import mpmath
import numpy as np
import pytest
from tests.rules.agreement import assert_partials_agree, difference, inner

import plaingrad.rules
from plaingrad import rulebook
from plaingrad.rules import elementwise, special
from plaingrad.tangents import is_zero, unthunk

with contextlib.suppress(ImportError):
    import scipy.special  # noqa: F401 (so that digamma calls it)
ROWS = [
    rule
    for rule in rulebook.rules()
    if rule.kind == "scalar" and rule.source.split(":")[0] in (elementwise.__file__, special.__file__)
]
UFUNC_ROWS = [rule for rule in ROWS if isinstance(rule.function, np.ufunc)]
# The first argument of these is no number.
FIRST_IS_FIXED = {special.polygamma}
COMPLEX_SAMPLES = (0.4 + 0.3j, -1.2 + 0.7j, 0.6 - 1.1j)


def name_of(rule):
    f = rule.function
    return f"{type(f).__name__}-{getattr(f, '__qualname__', getattr(f, '__name__', f))}"


def samples_of(rule):
    """One tuple of arguments per sample point."""
    domain = rule.domain
    samples = list(zip(*domain))
    if rule.function in (math.log, cmath.log):
        samples += [(x,) for x in domain[0]]
    return samples


def owner_type(function):
    """The numeric type whose method the function is, if it is one."""
    return getattr(function, "__objclass__", None)


IN_DOUBLE = {np.half: np.double, np.single: np.double, np.csingle: np.cdouble}


@pytest.mark.parametrize(
    "rule", [rule for rule in ROWS if owner_type(rule.function) not in (*IN_DOUBLE, np.ndarray)], ids=name_of
)
def test_partials_agree_with_differences_on_numbers(rule):
    cls = owner_type(rule.function)
    for args in samples_of(rule):
        args = tuple(
            float(x) if type(x) is int and rule.function is not special.polygamma else x for x in args
        )
        if cls is not None:
            args = (np.float64(args[0]) if cls is np.generic else cls(args[0]), *args[1:])
        assert_partials_agree(
            rule.rrule, args, rule.function, (0,) if rule.function in FIRST_IS_FIXED else ()
        )


@pytest.mark.parametrize(
    "rule", [rule for rule in ROWS if owner_type(rule.function) in IN_DOUBLE], ids=name_of
)
def test_partials_in_lower_precision_agree_with_those_in_double(rule):
    narrow = owner_type(rule.function)
    wide = IN_DOUBLE[narrow]
    wide_rule = rulebook.find(wide.__dict__[rule.function.__name__])
    for x, *others in samples_of(rule):
        found = rule.rrule(narrow(x), *others)[1](1.0)
        truth = wide_rule.rrule(wide(x), *others)[1](1.0)
        for x_bar, x_bar_in_double in zip(map(unthunk, found), map(unthunk, truth)):
            np.testing.assert_allclose(x_bar, x_bar_in_double, rtol=4e-3)


@pytest.mark.parametrize(
    "rule", [rule for rule in ROWS if owner_type(rule.function) is np.ndarray], ids=name_of
)
def test_an_array_method_has_the_row_of_the_number(rule):
    assert rule.partials == rulebook.find(float.__dict__[rule.function.__name__]).partials


@pytest.mark.parametrize("rule", UFUNC_ROWS, ids=name_of)
def test_a_ufunc_row_holds_element_by_element_on_broadcast_arrays(rule):
    samples = samples_of(rule)
    columns = [np.array(column, float) for column in zip(*samples)]
    arrays = [column.reshape([-1] + [1] * (len(columns) - 1 - i)) for i, column in enumerate(columns)]
    z, pullback = rule.rrule(*arrays)
    np.testing.assert_array_equal(z, rule.function(*arrays))
    grid = np.broadcast_arrays(*arrays)
    for i, z_bar_partial in enumerate(pullback(np.ones_like(z))):
        x_bar = unthunk(z_bar_partial)
        if is_zero(x_bar):
            continue
        x_bar = np.broadcast_to(x_bar, np.shape(z))
        for at in np.ndindex(np.shape(z)):
            args = [float(g[at]) for g in grid]
            _, pullback_at = rule.rrule(*args)
            np.testing.assert_allclose(x_bar[at], unthunk(pullback_at(1.0)[i]), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("rule", UFUNC_ROWS, ids=name_of)
def test_a_ufunc_row_keeps_float32(rule):
    if rule.function is np.float_power:
        return
    arrays = [np.array(column, np.float32) for column in zip(*samples_of(rule))]
    z, pullback = rule.rrule(*arrays)
    assert z.dtype == np.float32
    for x_bar in pullback(np.ones_like(z)):
        x_bar = unthunk(x_bar)
        assert is_zero(x_bar) or x_bar.dtype == np.float32


COMPLEX_ROWS = [
    rule
    for rule in ROWS
    if getattr(rule.function, "__module__", None) == "cmath"
    or (
        isinstance(rule.function, np.ufunc)
        and any(t.startswith("D" * rule.function.nin + "->") for t in rule.function.types)
    )
    or (
        isinstance(rule.function, type(abs))
        and rule.function is not math.pow
        and rule.function.__name__ in "abs add sub mul truediv neg pos pow".split()
    )
    or owner_type(rule.function) in (complex, np.cdouble)
]


@pytest.mark.parametrize("rule", COMPLEX_ROWS, ids=name_of)
def test_complex_partials_agree_with_differences(rule):
    if rule.function is cmath.rect:
        return  # takes real numbers, and is among the rows above
    if rule.function in (np.maximum, np.minimum, np.fmax, np.fmin, elementwise._umath.clip):
        return  # ordered by the real part first: tested below
    n = rule.function.nin if isinstance(rule.function, np.ufunc) else len(rule.partials)
    for k in range(3):
        args = (COMPLEX_SAMPLES[k:] + COMPLEX_SAMPLES[:k])[:n]
        if owner_type(rule.function) is np.cdouble:
            args = tuple(map(np.cdouble, args))
        assert_partials_agree(rule.rrule, args, rule.function)
        if rule.function in (math.log, cmath.log):
            assert_partials_agree(rule.rrule, args[:1], rule.function)


def test_a_real_argument_of_a_complex_product_gets_a_complex_cotangent_to_be_projected():
    _, pullback = rulebook.find(operator.mul).rrule(2.0, 1 + 3j)
    assert unthunk(pullback(1.0)[0]) == 1 - 3j


# Special functions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digamma", [special.digamma, special.digamma_in_python])
def test_digamma_agrees_with_mpmath_to_thirteen_digits(digamma):
    mpmath.mp.dps = 30
    for x in [
        *np.linspace(-9.95, 30, 400).tolist(),
        1e-8,
        -1e-8,
        1e5,
        1e15,
        1.4616321449683623,
        -40.3,
        -1000.25,
    ]:
        truth = mpmath.digamma(mpmath.mpf(x))
        assert abs(digamma(x) - truth) <= 1e-13 * max(1, abs(truth)), x


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("polygamma", [special.polygamma, special.polygamma_in_python])
def test_polygamma_agrees_with_mpmath_to_thirteen_digits(n, polygamma):
    mpmath.mp.dps = 30
    for x in [*np.linspace(-5.95, 20, 100).tolist(), 1e-3, 40.0, 1e4]:
        truth = mpmath.polygamma(n, mpmath.mpf(x))
        assert abs(polygamma(n, x) - truth) <= 1e-13 * abs(truth), x


def test_digamma_calls_scipy_where_the_program_has_imported_it(monkeypatch):
    called = []
    fake = type("Module", (), {"psi": staticmethod(lambda x: called.append(x) or 1.5)})
    monkeypatch.setitem(sys.modules, "scipy.special", fake)
    assert special.digamma(2.0) == 1.5 and called == [2.0]
    monkeypatch.delitem(sys.modules, "scipy.special")
    assert special.digamma(1.0) == pytest.approx(-0.5772156649015329, rel=1e-14)


def test_digamma_at_poles_and_at_infinity():
    assert math.isnan(special.digamma(0.0)) and math.isnan(special.digamma(-3.0))
    assert special.digamma(math.inf) == math.inf and math.isnan(special.digamma(math.nan))


@pytest.mark.parametrize(
    "name, f",
    [("gamma", mpmath.gamma), ("lgamma", mpmath.loggamma), ("erf", mpmath.erf), ("erfc", mpmath.erfc)],
)
def test_special_functions_agree_with_mpmath(name, f):
    mpmath.mp.dps = 30
    rule = rulebook.find(getattr(math, name))
    for x in (0.3, 1.4616, 2.7, 5.5, -0.4, -1.7):
        truth = mpmath.re(mpmath.diff(f, mpmath.mpf(x)))
        found = unthunk(rule.rrule(x)[1](1.0)[0])
        assert abs(found - truth) <= 1e-13 * max(1, abs(truth)), x


# Singular points: the derivative never raises and never poisons ---------------------------------------------


def cotangents(f, *args):
    with np.errstate(all="ignore"):
        return [unthunk(x_bar) for x_bar in rulebook.find(f).rrule(*args)[1](1.0)]


@pytest.mark.parametrize("f", [abs, operator.abs, math.fabs, np.absolute, np.fabs])
def test_the_slope_of_abs_at_its_kink_is_zero(f):
    assert cotangents(f, 0.0) == [0.0]


def test_the_slope_of_a_complex_length_at_zero_is_zero():
    assert cotangents(abs, 0j) == [0]
    assert cotangents(np.absolute, np.array([0j, 3 + 4j]))[0].tolist() == pytest.approx([0, 0.6 + 0.8j])
    assert cotangents(np.hypot, 0.0, 0.0) == [0, 0]
    assert cotangents(math.hypot, 0.0, 0.0) == [0, 0]


@pytest.mark.parametrize("f", [operator.pow, pow, np.power, math.pow])
@pytest.mark.parametrize(
    "x, y, expected",
    [
        (0.0, 0.0, (0, 0)),  # x ** 0 is constant
        (0.0, 2.0, (0, 0)),
        (0.0, 1.0, (1, 0)),
        (0.0, 3.5, (0, 0)),
        (-2.0, 3.0, (12, -8 * math.log(2))),  # the real part of z log x
        (-2.0, 2.0, (-4, 4 * math.log(2))),
        (3.0, 0.0, (0, math.log(3))),
        (math.inf, 0.0, (0, math.inf)),
        (0.0, 0.5, (math.inf, 0)),
        (1e-200, -1.0, (-math.inf, 1e200 * math.log(1e-200))),
    ],
)
def test_powers_at_singular_points(f, x, y, expected):
    assert cotangents(f, x, y) == pytest.approx(expected)


def test_powers_of_arrays_at_singular_points():
    x = np.array([0.0, 0.0, -2.0, 3.0, 0.0])
    y = np.array([0.0, 2.0, 3.0, 0.0, 1.0])
    x_bar, y_bar = cotangents(np.power, x, y)
    assert x_bar.tolist() == [0, 0, 12, 0, 1]
    np.testing.assert_allclose(y_bar, [0, 0, -8 * math.log(2), math.log(3), 0])


def test_a_complex_power_of_zero():
    assert cotangents(operator.pow, 0j, 2.0) == [0, 0]
    assert cotangents(operator.pow, 0j, 0.0) == [0, 0]


@pytest.mark.parametrize(
    "f, x, slope",
    [
        (math.sqrt, 0.0, math.inf),
        (np.sqrt, 0.0, math.inf),
        (np.cbrt, 0.0, math.inf),
        (math.acos, 1.0, -math.inf),
        (math.asin, -1.0, math.inf),
        (math.acosh, 1.0, math.inf),
        (cmath.atan, 0j, 1),
        (math.expm1, -800.0, 0.0),
        (math.tanh, 1000.0, 0.0),
        (np.log, 0.0, math.inf),
        (math.exp, -1000.0, 0.0),
    ],
)
def test_a_pole_gives_an_infinity_and_never_an_exception(f, x, slope):
    assert cotangents(f, x) == [slope]


def test_a_complex_root_at_zero_gives_no_exception():
    assert not cmath.isfinite(cotangents(cmath.sqrt, 0j)[0])


def test_ties_of_maximum_and_minimum_go_to_the_first_argument():
    for f in (np.maximum, np.minimum, np.fmax, np.fmin):
        assert cotangents(f, 2.0, 2.0) == [1, 0]
        assert cotangents(f, np.float64(2.0), np.float64(2.0)) == [1, 0]


def test_fmax_and_fmin_pass_over_a_nan():
    for f in (np.fmax, np.fmin):
        assert cotangents(f, math.nan, 2.0) == [0, 1]
        assert cotangents(f, 2.0, math.nan) == [1, 0]


def test_maximum_of_complex_numbers_goes_to_the_one_returned():
    assert cotangents(np.maximum, 1 + 2j, 1 + 3j) == [0, 1]
    assert cotangents(np.minimum, 1 + 2j, 1 + 3j) == [1, 0]


def test_clip_at_its_edges_belongs_to_the_argument():
    clip = elementwise._umath.clip
    assert cotangents(clip, 1.0, 1.0, 2.0) == [1, 0, 0]
    assert cotangents(clip, 2.0, 1.0, 2.0) == [1, 0, 0]
    assert cotangents(clip, 5.0, 3.0, 2.0) == [0, 0, 1]  # low above high: high is returned


def test_logaddexp_of_infinities_is_never_nan():
    for f in (np.logaddexp, np.logaddexp2):
        assert cotangents(f, -math.inf, -math.inf) == [0.5, 0.5]
        assert cotangents(f, math.inf, 1.0) == [1, 0]
        assert cotangents(f, -math.inf, 1.0) == [0, 1]


def test_copysign_heaviside_and_nextafter():
    assert cotangents(math.copysign, -3.0, 2.0)[0] == -1
    assert cotangents(math.copysign, 0.0, -2.0)[0] == 0
    assert cotangents(np.heaviside, 0.0, 0.5)[1] == 1
    assert cotangents(np.heaviside, 1.0, 0.5)[1] == 0
    assert cotangents(math.nextafter, 1.0, 2.0)[0] == 1


def test_the_phase_of_zero_is_undefined_but_raises_nothing():
    assert not cmath.isfinite(cotangents(cmath.phase, 0j)[0])


# Rules that are no rows -------------------------------------------------------------------------------------


def test_sign_of_complex_numbers():
    if not elementwise.SIGN_IS_DIRECTION:
        pytest.skip("before NumPy 2 the sign of a complex number is that of its real part")
    assert_partials_agree(rulebook.find(np.sign).rrule, (0.3 - 1.2j,))
    assert cotangents(np.sign, np.array([0j]))[0].tolist() == [0]


def test_sign_of_real_numbers_is_a_step():
    assert is_zero(cotangents(np.sign, -2.0)[0])


@pytest.mark.parametrize(
    "f",
    [
        np.conjugate,
        np.ndarray.conj,
        np.ndarray.conjugate,
        np.generic.conj,
        np.generic.conjugate,
        complex.conjugate,
    ],
)
def test_conjugation_is_its_own_adjoint(f):
    x = {np.ndarray: np.array([1 + 2j]), np.generic: np.complex128(1 + 2j)}.get(owner_type(f), 1 + 2j)
    assert np.all(cotangents_of(f, 3 + 4j, x)[0] == 3 - 4j)
    assert float.conjugate(2.0) == 2.0
    assert cotangents_of(float.conjugate, 3.0, 2.0)[0] == 3.0


def cotangents_of(f, z_bar, *args):
    return [unthunk(x_bar) for x_bar in rulebook.find(f).rrule(*args)[1](z_bar)]


@pytest.mark.parametrize("f", [math.ldexp, np.ldexp])
def test_ldexp_scales_its_cotangent_and_overflows_to_infinity(f):
    assert cotangents_of(f, 1.0, 3.0, 4) == [16]
    with np.errstate(all="ignore"):
        assert cotangents_of(f, 1.0, 0.0, 2000) == [math.inf]
    assert (
        cotangents_of(np.ldexp, np.ones(2, np.float32), np.ones(2, np.float32), np.array([1, -1]))[0].dtype
        == np.float32
    )


@pytest.mark.parametrize(
    "f, args", [(np.modf, (-3.7,)), (np.frexp, (5.3,)), (np.divmod, (7.3, 2.1)), (np.divmod, (-7.3, 2.1))]
)
def test_two_results_at_once(f, args):
    z, pullback = rulebook.find(f).rrule(*args)
    assert z == f(*args)
    for k in (0, 1):
        z_bar = (1.0, 0.0) if k == 0 else (0.0, 1.0)
        for i, x in enumerate(args):
            truth = difference(lambda t: float(f(*args[:i], t, *args[i + 1 :])[k]), x)
            assert unthunk(pullback(z_bar)[i]) == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize(
    "f, args",
    [
        (math.modf, (-3.7,)),
        (math.frexp, (9.3,)),
        (cmath.polar, (3 - 4j,)),
    ],
)
def test_a_definition_gives_what_the_function_gives(f, args):
    found, expected = rulebook.find(f).definition(*args), f(*args)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a, b)
        assert type(a) is type(b)


# Completeness -----------------------------------------------------------------------------------------------

ELSEWHERE = {"matmul", "matvec", "vecmat", "vecdot"}  # linear algebra


def test_every_ufunc_of_numpy_is_classified():
    for name, f in vars(np).items():
        if isinstance(f, np.ufunc) and f.__name__ not in ELSEWHERE:
            assert rulebook.find(f) is not None, name


@pytest.mark.parametrize("module", [math, cmath])
def test_every_function_of_math_and_cmath_has_a_rule(module):
    for name, f in vars(module).items():
        if callable(f) and not name.startswith("_"):
            assert rulebook.find(f) is not None, name


def test_every_arithmetic_operator_has_a_rule():
    for name in "add sub mul truediv floordiv mod pow neg pos abs".split():
        assert rulebook.find(getattr(operator, name)) is not None, name


def test_every_arithmetic_method_of_the_numeric_types_has_a_rule():
    for name in "add sub mul truediv floordiv mod divmod pow".split():
        for cls in (float, np.float64, np.float32, np.ndarray):
            for method in (f"__{name}__", f"__r{name}__"):
                assert rulebook.find(getattr(cls, method)) is not None, (cls, method)


def test_the_difference_that_judges_the_rows_is_itself_right():
    assert difference(math.exp, 1.0) == pytest.approx(math.e, rel=1e-12)
    assert inner(1j, 1j) == 1.0


def test_no_full_or_linear_rule_here_is_without_a_test():
    tested = {
        np.sign,
        np.conjugate,
        math.ldexp,
        np.ldexp,
        math.modf,
        np.modf,
        math.frexp,
        np.frexp,
        np.divmod,
        cmath.polar,
        *elementwise.dunders("conj", "conjugate"),
    }
    here = {
        rule.function
        for rule in rulebook.rules()
        if rule.source.split(":")[0] == elementwise.__file__
        and rule.kind in ("full", "linear", "composed", "bilinear")
    }
    assert here == tested


assert plaingrad.rules
