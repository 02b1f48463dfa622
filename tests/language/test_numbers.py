"""Numbers of every kind and at every corner: signs, kinks, poles, ints, complex, fractions, NumPy's scalars."""

import cmath
import decimal
import fractions
import math
import operator

import numpy as np
import pytest
from cases_b import check, check_or_refuse

import plaingrad

INF = math.inf


def value_and_slope(f, x):
    return plaingrad.value_and_grad(f)(x)


# What may be an argument.


def test_an_int_argument_is_taken_as_a_real_number():
    value, slope = value_and_slope(lambda x: x * x + x / 2, 3)
    assert (value, slope) == (10.5, 6.5)
    assert type(slope) is float
    assert plaingrad.grad(lambda x, y: x * y, argnums=(0, 1))(3, 4) == (4.0, 3.0)


def test_a_huge_int_argument_is_the_nearest_real():
    assert value_and_slope(lambda x: x * 2.0, 10**20) == (2e20, 2.0)


def test_ints_that_are_not_differentiated_stay_ints():
    def f(x, n, flags):
        assert type(n) is int and type(flags["on"]) is bool
        return x**n if flags["on"] else sum(x for _ in range(n))

    assert plaingrad.grad(f)(2.0, 3, {"on": True}) == 12.0
    assert plaingrad.grad(f)(2.0, 3, {"on": False}) == 3.0


def test_ints_bools_text_and_none_inside_a_container_have_no_tangent():
    def f(p):
        y = p["x"]
        for _ in range(p["n"]):
            y = y * p["x"]
        return y if p["on"] and p["name"] else 0.0

    check(f, {"x": 1.5, "n": 2, "on": True, "name": "a", "none": None}, {
        "x": 3 * 1.5**2, "n": None, "on": None, "name": None, "none": None,
    })  # fmt: skip


@pytest.mark.parametrize("bad", ["1.5", None, True, b"1", range(3), {1.5}], ids=repr)
def test_an_argument_without_a_tangent_is_refused_by_name(bad):
    def f(x):
        return 1.0

    with pytest.raises(plaingrad.ArgumentError, match="0|'x'|`x`|first"):
        plaingrad.grad(f)(bad)


def test_an_argument_beside_it_may_be_anything():
    sentinel = object()

    def f(x, anything):
        assert anything is sentinel
        return x * x

    assert plaingrad.grad(f)(1.5, sentinel) == 3.0


@pytest.mark.parametrize(
    "number", [fractions.Fraction(3, 2), decimal.Decimal("1.5")], ids=["Fraction", "Decimal"]
)
def test_exact_numbers_are_right_or_refused(number):
    try:
        value, slope = value_and_slope(lambda x: x * x * x, number)
    except plaingrad.PlaingradError as refusal:
        assert len(str(refusal)) > 30
    else:
        assert value == number**3
        assert abs(float(slope) - 3 * 1.5**2) < 1e-12


def test_inactive_fractions_and_decimals_work_beside_active_floats():
    def f(x):
        half = fractions.Fraction(1, 2)
        tenth = decimal.Decimal("0.1")
        return x * half + x ** fractions.Fraction(2) + float(half + 1) * x + float(tenth * 20) * x

    check(f, 1.5, 0.5 + 2 * 1.5 + 1.5 + 2.0)


def test_inactive_decimals_keep_every_digit_sign_and_context():
    def work():
        context = decimal.Context(prec=5, rounding=decimal.ROUND_UP)
        with decimal.localcontext() as local:
            local.prec = 7
            third = decimal.Decimal(1) / decimal.Decimal(3)
        return [
            third, context.create_decimal("-0"), context.create_decimal("1.23456789"), context.exp(4), context.sqrt(2),
            context.fma(2, 3, 4), context.power(2, 10, modulo=7), context.divide(1, 3), context.ln(3),
            decimal.Decimal("-0") * 1, decimal.Decimal("1.2345").quantize(decimal.Decimal("0.01")),
            divmod(decimal.Decimal("-7.5"), 2), decimal.Decimal((1, (1, 2), -1)), decimal.Decimal("1.500").normalize(),
            decimal.Decimal("NaN").is_nan(), round(decimal.Decimal("1.25"), 1), int(decimal.Decimal("2.9")),
        ]  # fmt: skip

    plain = repr(work())

    def f(x):
        assert repr(work()) == plain
        return x * x

    check(f, 1.5, 3.0)


class Metre(float):
    """A float of the user's, with a method and operators."""

    def doubled(self):
        return Metre(self * 2.0)

    def __add__(self, other):
        return Metre(float(self) + float(other))

    @property
    def squared(self):
        return self * self


def test_a_float_subclass_made_inside_keeps_its_methods():
    check_or_refuse(lambda x: Metre(x).doubled().squared, 1.5, 8 * 1.5)
    check_or_refuse(lambda x: float(Metre(x) + Metre(x * x)) * x, 1.5, 2 * 1.5 + 3 * 1.5**2)
    check_or_refuse(lambda x: sum([Metre(x), Metre(x)], Metre(0.0)) * 1.0, 1.5, 2.0)


def test_a_float_subclass_as_argument_is_right_or_refused():
    def f(x):
        return x.doubled() * x.squared

    try:
        value, slope = value_and_slope(f, Metre(1.5))
    except plaingrad.PlaingradError as refusal:
        assert len(str(refusal)) > 30
    else:
        assert value == f(Metre(1.5)) and slope == pytest.approx(6 * 1.5**2, rel=1e-13)


@pytest.mark.parametrize(("kind", "rtol"), [(np.float64, 1e-12), (np.float32, 1e-6)])
def test_numpy_scalar_arguments(kind, rtol):
    x = kind(1.5)
    value, slope = value_and_slope(lambda x: x * x * np.exp(x) + x.real, x)
    assert type(value) is kind
    assert value == x * x * np.exp(x) + x
    assert float(slope) == pytest.approx((2 * 1.5 + 1.5**2) * math.exp(1.5) + 1, rel=rtol)


def test_numpy_scalars_made_inside_from_active_floats():
    check(lambda x: float(np.float64(x) * np.float64(2.0) + np.sin(x)), 1.5, 2 + math.cos(1.5))
    check(lambda x: np.float64(x) ** 2, 1.5, 3.0)
    check(lambda x: (np.float32(x) * np.float32(3.0)).item(), 1.5, 3.0, rtol=1e-6)
    check(lambda x: 2 * np.float64(x) if np.float64(x) > np.float32(1.0) else x, 1.5, 2.0)


# Operators.


def test_every_binary_operator_with_the_active_number_on_each_side():
    a = 2.5
    cases = [
        (lambda x: x + a, 1.0), (lambda x: a + x, 1.0), (lambda x: x - a, 1.0), (lambda x: a - x, -1.0),
        (lambda x: x * a, a), (lambda x: a * x, a), (lambda x: x / a, 1 / a), (lambda x: a / x, -a / 1.5**2),
        (lambda x: x**a, a * 1.5 ** (a - 1)), (lambda x: a**x, a**1.5 * math.log(a)),
        (lambda x: x // a, 0.0), (lambda x: a // x, 0.0), (lambda x: x % a, 1.0), (lambda x: a % x, -1.0),
        (lambda x: 7 * x, 7.0), (lambda x: x * True, 1.0), (lambda x: x - 3, 1.0),
        (lambda x: 3**x, 3**1.5 * math.log(3)),
        (lambda x: x / 7, 1 / 7), (lambda x: -x, -1.0), (lambda x: +x, 1.0), (lambda x: --x, 1.0),
        (lambda x: x * x / x, 1.0), (lambda x: x - x, 0.0), (lambda x: x / x, 0.0),
        (lambda x: x**x, 1.5**1.5 * (math.log(1.5) + 1)),
    ]  # fmt: skip
    for f, slope in cases:
        check(f, 1.5, slope)


@pytest.mark.parametrize("a", [-7.25, 7.25])
@pytest.mark.parametrize("b", [-2.0, 2.0])
def test_floor_division_and_remainders_with_every_sign(a, b):
    # a = b q + r with q = a // b held fixed: dr/da = 1, dr/db = -q
    check(lambda p: p[0] % p[1], [a, b], [1.0, -(a // b)])
    check(lambda p: p[0] // p[1], [a, b], [0.0, 0.0])
    check(lambda p: sum(divmod(p[0], p[1])), [a, b], [1.0, -(a // b)])
    check(lambda p: divmod(p[0], 2)[1] * divmod(9.5, p[1])[1], [a, b], [9.5 % b, (a % 2) * -(9.5 // b)])
    check(lambda p: math.fmod(p[0], p[1]), [a, b], [1.0, -float(math.trunc(a / b))])
    check(lambda p: math.remainder(p[0], p[1]), [a, b], [1.0, -float(round(a / b))])


def test_a_remainder_written_with_in_place_operators():
    def f(x):
        y = x * 1.0
        y %= 0.4
        z = x
        z //= 0.4
        w = x
        w **= 2
        w -= x
        w /= 2
        return y * 10.0 + z + w

    check(f, 1.5, 10.0 + 1.5 - 0.5)


def test_operator_module_and_unbound_float_methods():
    def f(x):
        y = operator.mul(x, operator.add(x, 1.0)) + operator.neg(x) + operator.truediv(x, 4.0)
        y = operator.iadd(y, x) + operator.pow(x, 2) + operator.mod(x, 1.0) + operator.pos(x) + operator.abs(x)
        y = y + float.__mul__(x, x) + x.__add__(3.0) + x.__rsub__(1.0) + x.__truediv__(2.0) + x.__rtruediv__(2.0)
        y = y + x.__pow__(3) + x.__rpow__(2.0) + x.__neg__() + x.__abs__() + x.__float__() + x.__pos__()
        return y + operator.itemgetter(1)([0.0, x]) + operator.attrgetter("real")(x) + x.__mod__(1.0)

    x = 1.5
    slope = (2 * x + 1 - 1 + 0.25) + 1 + 2 * x + 1 + 1 + 1 + 2 * x + 1 - 1 + 0.5 - 2 / x**2
    slope += 3 * x**2 + 2**x * math.log(2) - 1 + 1 + 1 + 1 + 1 + 1 + 1
    check(f, x, slope)


def test_float_methods_that_ask_and_do_not_change():
    def f(x):
        assert not x.is_integer() and x.imag == 0.0 and hash(x) == hash(1.5)
        assert x.__eq__(1.5) and x.__lt__(2) and not x.__bool__() is False
        return x.real * x.conjugate() + x.imag

    check(f, 1.5, 3.0)


def test_int_methods_meet_active_floats():
    def f(x):
        return (3).__add__(4) * x + (2**70) * x / 2**70 + x * int("12") + (5 // 2) * x + (7 % 4) * x + x * (1 << 3)

    check(f, 1.5, 7 + 1 + 12 + 2 + 3 + 8)


def test_huge_ints_overflow_as_in_plain_code():
    check(lambda x: x * 10**30 / 10**30, 1.5, 1.0)
    for f in (lambda x: x * 10**400, lambda x: 10**400 - x, lambda x: x ** (10**400)):
        with pytest.raises(OverflowError) as plain:
            f(1.5)
        with pytest.raises(OverflowError) as ours:
            plaingrad.grad(f)(1.5)
        assert str(ours.value) == str(plain.value)


def test_comparison_of_active_floats_with_huge_ints_and_fractions():
    def f(x):
        return x * 2.0 if x < 10**400 and x > -(10**400) and x == fractions.Fraction(3, 2) else x

    check(f, 1.5, 2.0)


# Corners.


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (lambda x: x**0, 0.0, 0.0),
        (lambda x: x**0.0, 2.0, 0.0),
        (lambda x: x**1, 0.0, 1.0),
        (lambda x: x**1.0, 0.0, 1.0),
        (lambda x: x**2, 0.0, 0.0),
        (lambda x: x**2, -0.0, 0.0),
        (lambda x: x**1.5, 0.0, 0.0),
        (lambda x: x**3, -2.0, 12.0),
        (lambda x: x**3.0, -2.0, 12.0),
        (lambda x: x**-1, -2.0, -0.25),
        (lambda x: x**-2, -2.0, 0.25),
        (lambda x: x**0.5, 0.0, INF),
        (lambda x: math.sqrt(x), 0.0, INF),
        (lambda x: pow(x, 2), -3.0, -6.0),
        (lambda x: math.pow(x, 3), -2.0, 12.0),
        (lambda x: 0.0**x, 2.0, 0.0),
        (lambda x: 1.0**x, 2.0, 0.0),
        (lambda x: 0**x, 2.0, 0.0),
        (lambda x: abs(x), 0.0, 0.0),
        (lambda x: abs(x), -0.0, 0.0),
        (lambda x: abs(x), -2.0, -1.0),
        (lambda x: math.fabs(x), 0.0, 0.0),
        (lambda x: abs(x) * x, 0.0, 0.0),
        (lambda x: math.copysign(x, -0.0), 2.0, -1.0),
        (lambda x: math.copysign(3.0, x), 2.0, 0.0),
        (lambda x: math.hypot(x, 0.0), 2.0, 1.0),
        (lambda x: math.exp(x * 0.0), 5.0, 0.0),
        (lambda x: math.atan2(x, -1.0), 0.0, -1.0),
        (lambda x: x * 0.0, 3.0, 0.0),
        (lambda x: 0 * x, -3.0, 0.0),
        (lambda x: x * 5e-324, 3.0, 5e-324),
        (lambda x: x / 1e308, 1.0, 1e-308),
    ],
)
def test_corners_of_powers_and_kinks(f, x, slope):
    value, ours = value_and_slope(f, x)
    plain = f(x)
    assert math.copysign(1.0, value) == math.copysign(1.0, plain) and value == plain
    assert ours == slope


def test_min_and_max_take_the_element_that_the_primal_returned():
    check(lambda p: max(p[0], p[1]), [2.0, 2.0], [1.0, 0.0])
    check(lambda p: min(p[0], p[1]), [2.0, 2.0], [1.0, 0.0])
    check(lambda p: max([p[1], p[0], p[2]]), [2.0, 2.0, 1.0], [0.0, 1.0, 0.0])
    check(lambda p: max(p, key=lambda v: -v * v), [2.0, -1.0, 1.0], [0.0, 1.0, 0.0])
    check(lambda p: sorted(p, reverse=True)[0] * 3.0, [2.0, 2.0], [3.0, 0.0])
    check(lambda p: max(p[0], 2.0), [2.0], [1.0])
    check(lambda p: max(2.0, p[0]), [2.0], [0.0])
    check(lambda p: min(p[0], float("nan")), [2.0], [1.0])
    check(lambda p: max((), default=p[0]), [2.0], [1.0])


def test_nan_and_infinity_inactive_beside_active_do_not_poison():
    def f(x):
        values = [x, math.nan, math.inf]
        best = min(v for v in values if v == v)
        worst = -math.inf
        for v in values[:1]:
            worst = max(worst, v)
        return best * worst + (0.0 if math.isnan(values[1]) else values[1]) + math.atan(math.inf) * x

    check(f, 1.5, 3.0 + math.pi / 2)


def test_infinite_results_follow_ieee():
    value, slope = value_and_slope(lambda x: x * INF, 2.0)
    assert value == INF and slope == INF
    value, slope = value_and_slope(lambda x: 1.0 / x, 1e-200)
    assert value == 1e200 and slope == -INF
    value, slope = value_and_slope(lambda x: x - INF, 2.0)
    assert value == -INF and slope == 1.0
    value, slope = value_and_slope(lambda x: x * math.nan, 2.0)
    assert math.isnan(value) and math.isnan(slope)
    value, slope = value_and_slope(lambda x: x * x, INF)
    assert value == INF and slope == INF


def test_nan_in_the_argument_spoils_only_what_depends_on_it():
    value, slopes = value_and_slope(lambda p: p[0] * 2.0, [1.5, math.nan])
    assert value == 3.0 and slopes == [2.0, 0.0]


def test_negative_zero_keeps_its_sign_through_arguments_and_operations():
    for f in (lambda x: x, lambda x: x * 3.0, lambda x: +x, lambda x: x + x, lambda x: math.atan2(x, -1.0)):
        value, _ = value_and_slope(f, -0.0)
        assert value == f(-0.0) and math.copysign(1.0, value) == math.copysign(1.0, f(-0.0)) == -1.0


def test_poles_raise_only_what_the_primal_raises():
    for f in (lambda x: 1 / x, lambda x: x % x, lambda x: x // x, lambda x: x**-1, lambda x: math.log(x)):
        with pytest.raises((ZeroDivisionError, ValueError)) as plain:
            f(0.0)
        with pytest.raises((ZeroDivisionError, ValueError)) as ours:
            plaingrad.grad(f)(0.0)
        assert (type(ours.value), str(ours.value)) == (type(plain.value), str(plain.value))


def test_a_pole_of_a_derivative_is_infinite_and_raises_nothing():
    assert plaingrad.grad(math.sqrt)(0.0) == INF
    assert plaingrad.grad(math.asin)(1.0) == INF
    assert plaingrad.grad(math.acos)(1.0) == -INF
    assert plaingrad.grad(math.acosh)(1.0) == INF
    assert plaingrad.grad(lambda x: x ** (1 / 3))(0.0) == INF


# Complex numbers: the cotangent of z = x + iy is x_bar + i y_bar.


def test_complex_numbers_inside_a_real_program():
    def f(x):
        z = complex(x, x * x)
        w = z * z + 1j * z
        return w.real + abs(z) ** 2 + w.imag

    # z = x + i xx; zz = xx - x^4 + 2i x^3; iz = -xx + ix; |z|^2 = xx + x^4
    x = 1.2
    check(f, x, -4 * x**3 + 2 * x + 4 * x**3 + 6 * x**2 + 1)


def test_complex_argument_of_a_real_function():
    z = 1.2 + 0.7j
    check(lambda z: abs(z) ** 2, z, 2 * z)
    check(lambda z: z.real * 3.0 - z.imag * 2.0, z, 3 - 2j)
    check(lambda z: (z * z).real, z, 2 * z.conjugate())
    check(lambda z: (z * z.conjugate()).real, z, 2 * z)
    # Re exp(z) = e^x cos y: its gradient is the conjugate of exp(z)
    check(lambda z: cmath.exp(z).real, z, cmath.exp(z).conjugate())
    check(lambda z: abs(z), z, z / abs(z))
    check(lambda z: cmath.phase(z), z, 1j * z / abs(z) ** 2)


def test_roots_of_a_negative_number_are_complex_as_in_plain_code():
    # x ** (1/3) for x < 0 is |x| ** (1/3) exp(i pi / 3), so its real part is |x| ** (1/3) / 2
    check(lambda x: (x ** (1 / 3)).real, -8.0, -1 / 24)
    check(lambda x: cmath.sqrt(x).imag, -4.0, -1 / 4)


def test_complex_arithmetic_with_ints_bools_and_division():
    def f(x):
        z = (x + 2j) / (1 - 1j * x) * 3 + True
        return z.imag

    # (x + 2i)(1 + ix) / (1 + xx) = (x - 2x + i(2 + xx)) / (1 + xx)
    x = 0.8
    check(f, x, 3 * (2 * x * (1 + x * x) - (2 + x * x) * 2 * x) / (1 + x * x) ** 2)


# Sums and products.


def test_sum_of_one_and_sum_with_start_make_new_numbers_with_right_slopes():
    check(lambda x: sum([x]) * x, 1.5, 3.0)
    check(lambda x: sum([x, 1, 2.0], x) * x, 1.5, 4 * 1.5 + 3)
    check(lambda x: math.fsum([x, x * x, 1e100, -1e100]), 1.5, 1 + 3.0)
    check(lambda x: math.prod([x, 2.0, x], start=3), 1.5, 12 * 1.5)
    check(lambda x: sum((x * i for i in range(5)), start=0.0), 1.5, 10.0)
    check(lambda x: math.dist([x, 0.0], [0.0, 4.0]) + math.hypot(x, 4.0, x), 3.0, 0.6 + 6 / math.sqrt(34))


@pytest.mark.unchecked(reason="nothing is left of the derivative but rounding")
def test_sum_returns_the_plain_bits_of_compensated_addition():
    values = [0.1] * 10 + [1e16, 1.0, -1e16]
    f = lambda x: sum([x * v for v in values])
    assert plaingrad.value_and_grad(f)(1.0)[0] == f(1.0)
    check(lambda x: sum([x * v for v in [0.1] * 10]), 1.0, 1.0)


def test_bitwise_and_matrix_operators_on_floats_are_the_plain_errors():
    for f in (lambda x: x & 1, lambda x: x | x, lambda x: x << 1, lambda x: ~x, lambda x: x @ x, lambda x: len(x)):
        with pytest.raises(TypeError) as plain:
            f(1.5)
        with pytest.raises(TypeError) as ours:
            plaingrad.grad(f)(1.5)
        assert str(ours.value) == str(plain.value)


def test_an_identity_and_a_constant():
    check(lambda x: x, 1.5, 1.0)
    check(lambda x: 7.0, 1.5, 0.0)
    check(lambda x: float(x), 1.5, 1.0)
    check(lambda p: p[1], [1.5, 2.5], [0.0, 1.0])


def test_an_input_equal_to_a_global_and_to_a_constant_is_not_mixed_up_with_them():
    same = 1.5

    def f(p):
        return p[0] * same * 1.5 + p[1]

    check(f, [same, same], [2.25, 1.0])
    x0 = 2.5
    check(lambda x: x * x0, x0, 2.5)


def test_small_results_that_are_interned_or_cached_are_not_mixed_up():
    def f(x):
        zero = x - x
        one = x / x
        return zero * 100.0 + one * x + (x - x) * x + 0.0 * x

    check(f, 1.5, 1.0)
