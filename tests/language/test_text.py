"""Text of active numbers: free to leave, refused when it comes back; `int`, `floor`, `round` end derivatives."""

import ast
import decimal
import fractions
import io
import json
import logging
import math
import pickle
import string
import struct
import textwrap

import numpy as np
import pytest
from cases_b import check, check_or_refuse

import plaingrad

X = 3.25  # exact in two decimals, so that text keeps all of it


# Text may leave.


def test_every_way_to_format_an_active_number_is_legal_and_says_the_plain_text():
    seen = []

    def f(x):
        y = x * x
        seen.append(f"{x} {y!r} {y:.3f} {y:>10.2e} {x=} {y!s:>8} {x:{6}.{2}}")
        seen.append("%s %r %.3f %5.1e %d" % (x, y, y, y, y))
        seen.append("{} {0!r}".replace("{}", "{0}").format(y))
        seen.append("{:.4f} {name:g}".format(x, name=y))
        seen.append(str(y) + repr(x) + format(y, ".2f") + ascii(x))
        seen.append(y.__format__(".1f") + y.__str__() + x.__repr__())
        seen.append("%(a)s and %(b).2f" % {"a": x, "b": y})
        seen.append("{d[k]} {l[0]}".format(d={"k": y}, l=[x]))
        seen.append("{0.real}".format(y))
        seen.append(string.Template("$x").substitute(x=x))
        seen.append(str([x, y]) + repr((x, {"y": y})) + f"{[y]}")
        return y

    check(f, X, 2 * X, state=lambda: seen, reset=seen.clear)


@pytest.mark.unchecked(reason="each call prints")
def test_print_writes_the_plain_text_and_passes_the_value_by():
    page = io.StringIO()

    def f(x):
        print("x is", x, x * x, sep=", ", end="!\n", file=page)
        print(f"{x:.2f}", file=page)
        return x**3

    def clear():
        page.seek(0)
        page.truncate()

    check(f, X, 3 * X**2, state=page.getvalue, reset=clear)


@pytest.mark.unchecked(reason="each call prints")
def test_print_to_standard_output(capsys):
    def f(x):
        print(x, [x * 2.0], {"y": x})
        return x * x

    f(X)
    plain = capsys.readouterr().out
    assert plaingrad.grad(f)(X) == 2 * X
    assert capsys.readouterr().out == plain == "3.25 [6.5] {'y': 3.25}\n"


@pytest.mark.unchecked(reason="each call logs")
def test_logging_formats_arguments_lazily_and_keeps_its_record():
    page = io.StringIO()
    logger = logging.getLogger("plaingrad.tests.text")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    handler = logging.StreamHandler(page)
    handler.setFormatter(logging.Formatter("%(levelname)s %(funcName)s:%(lineno)d %(message)s"))

    def f(x):
        logger.info("at %s with %.3f", x, x * x)
        logger.debug("not shown %s", x)
        logger.warning("as text %r", [x])
        return x * x

    def clear():
        page.seek(0)
        page.truncate()

    logger.addHandler(handler)
    try:
        check(f, X, 2 * X, state=page.getvalue, reset=clear)
    finally:
        logger.removeHandler(handler)
    assert "INFO f:" in page.getvalue(), "the record names the user's function"


def test_a_table_of_active_numbers_written_and_never_read():
    page = []

    def f(x):
        rows = [(i, x * i) for i in range(4)]
        page.append("\n".join(f"{i:3d} {v:8.3f}" for i, v in rows))
        page.append(textwrap.indent(",".join(map(str, [v for _, v in rows])), "  "))
        return sum(v for _, v in rows)

    check(f, X, 6.0, state=lambda: page, reset=page.clear)


def test_json_dumps_is_legal_and_its_text_is_plain():
    seen = []

    def f(x):
        seen.append(json.dumps({"x": x, "list": [x * x, None, "text"]}, sort_keys=True, indent=1))
        seen.append(json.dumps([x]))
        return x * x

    check(f, X, 2 * X, state=lambda: seen, reset=seen.clear)


def test_user_text_methods_compute_with_active_numbers():
    class Money:
        def __init__(self, amount):
            self.amount = amount
            self.asked = 0.0

        def __str__(self):
            self.asked = self.asked + self.amount
            return f"{self.amount:.2f}"

        def __format__(self, spec):
            self.asked = self.asked + self.amount * 10.0
            return format(self.amount, spec)

        def __repr__(self):
            self.asked = self.asked + self.amount * 100.0
            return "Money"

    def f(x):
        money = Money(x * x)
        str(money)
        f"{money:.1f}"
        f"{money!r}"
        "%s" % money
        repr([money])
        return money.asked

    # one str, one %s, one format, two repr
    check(f, X, 2 * X * (1 + 1 + 10 + 100 + 100))


def test_text_chooses_a_branch_as_a_comparison_does():
    def f(x):
        return x * 2.0 if len(f"{x:.2f}") == 4 else x * 3.0

    check(f, X, 2.0)


def test_a_dictionary_keyed_by_text_of_active_numbers_gives_the_value_back():
    def f(x):
        store = {str(x): x * x, f"{x:.1f}": 4.0 * x}
        return store[str(x)] * store[f"{x:.1f}"]

    check(f, X, 12 * X**2)


def test_unrelated_text_may_be_read_while_active_numbers_were_printed():
    def f(x):
        text = f"{x}"
        assert text
        return x * float("2.5") * json.loads("[1.5]")[0] * complex("2").real * int("3")

    check(f, X, 22.5)


def test_unrelated_text_equal_to_an_input_may_be_read_when_nothing_was_printed():
    def f(x):
        return x * float("3.25")

    check(f, X, 3.25)


def test_an_inactive_number_makes_the_round_trip():
    def f(x):
        c = 7.125
        return x * float(str(c)) * json.loads(json.dumps([c]))[0]

    check(f, X, 7.125**2)


def test_stop_gradient_lets_a_number_make_the_round_trip():
    def f(x):
        return x * float(str(plaingrad.stop_gradient(x)))

    # The text is of a number without tangent: the factor is a constant.
    value, slope = plaingrad.value_and_grad(f)(X)
    assert (value, slope) == (X * X, X)


# Text may not come back.


def number_in_text(x):
    return float(str(x)) * 2.0


def number_in_repr(x):
    return float(repr(x * x))


def number_in_fstring(x):
    return float(f"{x:.17g}")


def number_in_percent(x):
    return float("%.17g" % x)


def number_in_format(x):
    return float("{:r}".replace("r", ".17g").format(x))


def number_in_joined_text(x):
    return sum(float(word) for word in " ".join([str(x), str(x * x)]).split())


def number_in_json(x):
    return json.loads(json.dumps({"x": x}))["x"] * x


def number_in_complex_text(x):
    return complex(str(x)).real


def number_in_bytes(x):
    return float(str(x).encode())


def number_in_eval(x):
    return eval(repr(x)) * x


def number_in_eval_of_an_expression(x):
    return eval(f"{x!r} * 2.0")


def number_in_exec(x):
    space = {}
    exec(f"y = {x!r}", space)
    return space["y"] * 3.0


def number_in_literal_eval(x):
    return ast.literal_eval(f"[{x!r}]")[0] * x


def number_in_hex(x):
    return float.fromhex(x.hex())


def number_in_struct(x):
    return struct.unpack("<d", struct.pack("<d", x))[0]


def number_in_decimal_text(x):
    return float(decimal.Decimal(str(x)))


def number_in_fraction_text(x):
    return float(fractions.Fraction(str(x)))


def number_in_numpy_text(x):
    return float(np.array([str(x)]).astype(float)[0])


def number_in_a_string_file(x):
    page = io.StringIO()
    print(x, file=page)
    return float(page.getvalue())


def number_in_loadtxt(x):
    page = io.StringIO()
    page.write(f"{x}\n")
    page.seek(0)
    return float(np.loadtxt(page))


def number_in_pickle(x):
    return pickle.loads(pickle.dumps(x)) * 2.0


@pytest.mark.parametrize(
    "f",
    [
        number_in_text, number_in_repr, number_in_fstring, number_in_percent, number_in_format,
        number_in_joined_text, number_in_json, number_in_complex_text, number_in_bytes, number_in_eval,
        number_in_eval_of_an_expression, number_in_exec, number_in_literal_eval, number_in_hex,
        number_in_decimal_text, number_in_fraction_text, number_in_numpy_text, number_in_a_string_file,
        number_in_loadtxt,
    ],
)  # fmt: skip
def test_a_number_that_comes_back_from_text_is_refused(f):
    with pytest.raises((plaingrad.RoundTripError, plaingrad.MissingRuleError)) as refused:
        plaingrad.grad(f)(X)
    assert ".py" in str(refused.value), "the error names a file and a line"
    assert f(X) == f(X), "and plain calls go on as before"


@pytest.mark.parametrize("f", [number_in_text, number_in_repr, number_in_joined_text, number_in_json])
def test_a_parsed_number_is_a_round_trip_error(f):
    with pytest.raises(plaingrad.RoundTripError):
        plaingrad.grad(f)(X)


def test_packed_bytes_and_pickles_are_right_or_refused():
    check_or_refuse(number_in_struct, X, 1.0)
    check_or_refuse(number_in_pickle, X, 2.0)


def test_a_round_trip_inside_try_except_exception_is_not_silently_wrong():
    def f(x):
        try:
            return float(str(x)) * x
        except ValueError:
            return 0.0 * x

    with pytest.raises(plaingrad.RoundTripError):
        plaingrad.grad(f)(X)


def test_text_left_by_an_earlier_gradient_is_no_round_trip():
    kept = []

    def leave(x):
        kept.append(str(x))
        return x * x

    assert plaingrad.grad(leave)(X) == 2 * X
    check(lambda x: x * float(kept[0]), 2.0, 3.25)


# Where derivatives stop.


def test_int_floor_ceil_trunc_and_round_are_locally_constant():
    def f(x):
        steps = int(x) + math.floor(x) + math.ceil(x) + math.trunc(x) + round(x)
        return x * steps + x.__int__() + x.__trunc__() + x.__floor__() + x.__ceil__() + float(int(x))

    check(f, X, 3 + 3 + 4 + 3 + 3)


def test_round_to_digits_is_locally_constant_and_stays_a_float():
    def f(x):
        return x * round(x * 1.11, 1) + round(x, 2)

    check(f, X, round(X * 1.11, 1))


def test_int_of_an_active_number_is_an_index_and_a_count():
    def f(x):
        table = [10.0, 20.0, 30.0, 40.0]
        y = 0.0
        for _ in range(int(x)):
            y = y + x * table[round(x)]
        return y

    check(f, X, 3 * 40.0)


@pytest.mark.parametrize(
    "take",
    [int, math.floor, math.ceil, math.trunc, round, lambda y: y.__int__(), lambda y: int(y) >> 3],
    ids=["int", "floor", "ceil", "trunc", "round", "dunder", "shifted"],
)
def test_a_whole_number_too_large_to_have_lost_a_fraction_is_refused(take):
    def f(x):
        return float(take(x * 2.0**52)) * 2.0**-52

    with pytest.raises(plaingrad.RoundTripError):
        plaingrad.grad(f)(X)


def test_a_ratio_of_integers_is_refused():
    with pytest.raises((plaingrad.RoundTripError, plaingrad.MissingRuleError)):
        plaingrad.grad(lambda x: x.as_integer_ratio()[0] / x.as_integer_ratio()[1])(X)


def test_exact_numbers_made_of_an_active_float_are_right_or_refused():
    check_or_refuse(lambda x: float(fractions.Fraction(x) * 2), X, 2.0)
    check_or_refuse(lambda x: float(fractions.Fraction.from_float(x) + 1) * x, X, 2 * X + 1)
    check_or_refuse(lambda x: float(fractions.Fraction(x).limit_denominator(1000)), X, 1.0)
    with pytest.raises((plaingrad.RoundTripError, plaingrad.MissingRuleError)):
        plaingrad.grad(lambda x: (lambda r: r.numerator / r.denominator)(fractions.Fraction(x)))(X)
    check_or_refuse(lambda x: float(decimal.Decimal(x) * 2), X, 2.0)
    check_or_refuse(lambda x: float(decimal.Decimal.from_float(x) ** 2), X, 2 * X)


def test_modf_and_frexp_keep_the_smooth_part():
    def f(x):
        fraction, whole = math.modf(x)
        mantissa, exponent = math.frexp(x)
        return fraction * whole + mantissa * 2.0**exponent * 10.0 + math.ldexp(x, 3)

    check(f, X, 3.0 + 10.0 + 8.0)
