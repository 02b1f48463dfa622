"""Hazard 6: a number that leaves as text, bytes or whole numbers and comes back has lost its derivative."""

import array
import codecs
import csv
import decimal
import io
import json
import logging
import marshal
import math
import pickle
import pprint
import statistics
import string
import struct
import tempfile

import numpy as np
import pytest
from cases_b import check, check_or_refuse

import plaingrad

X = 3.25

REFUSALS = (plaingrad.RoundTripError, plaingrad.MissingRuleError)


def by_csv(x):
    page = io.StringIO()
    csv.writer(page).writerow([x, x * x])
    page.seek(0)
    return sum(float(cell) for row in csv.reader(page) for cell in row)


def by_csv_quoting(x):
    page = io.StringIO(f"{x},{x * 2.0}\n")
    return sum(next(csv.reader(page, quoting=csv.QUOTE_NONNUMERIC)))


def by_file(x):
    with tempfile.TemporaryFile("w+") as page:
        page.write(f"{x}\n")
        page.seek(0)
        return float(page.readline())


def by_genfromtxt(x):
    return float(np.genfromtxt(io.StringIO(f"{x} 1.0\n"))[0])


def by_savetxt(x):
    page = io.StringIO()
    np.savetxt(page, [x])
    page.seek(0)
    return float(np.loadtxt(page))


def by_array_text(x):
    return float(np.array2string(np.array([x]), precision=17).strip("[]"))


def by_array_str(x):
    return float(str(np.array([x])).strip("[]"))


def by_template(x):
    return float(string.Template("$v").substitute(v=x))


def by_formatter(x):
    return float(string.Formatter().format("{0:.17g}", x))


def by_pprint(x):
    return json.loads(pprint.pformat([x]))[0]


def by_encoded_text(x):
    return float(codecs.encode(str(x), "utf-8").decode())


def by_sliced_text(x):
    text = f"value={x!r};"
    return float(text[6:-1])


def by_text_of_a_list(x):
    return json.loads(str([x, 1.0]))[0]


def by_user_str(x):
    class Money:
        def __str__(self):
            return str(x)

    return float(str(Money()))


def by_json_indent(x):
    return json.loads(json.dumps([x], indent=2))[0]


def by_json_parse_float(x):
    return json.loads(json.dumps(x), parse_float=lambda text: float(text))


def by_decimal_text(x):
    return float(decimal.Decimal(repr(x)) * 2)


def by_hex(x):
    return float.fromhex(float.hex(x))


def by_bytes_of_array(x):
    return struct.unpack("d", np.array([x]).tobytes())[0]


def by_log_record(x):
    page = io.StringIO()
    logger = logging.Logger("plaingrad.tests.hazard")
    logger.addHandler(logging.StreamHandler(page))
    logger.warning("%s", x)
    return float(page.getvalue())


def by_exception_text(x):
    try:
        raise ValueError(x)
    except ValueError as error:
        return float(str(error))


def by_key_error_text(x):
    try:
        return {}[x]
    except KeyError as error:
        return float(str(error))


def by_marshal(x):
    return marshal.loads(marshal.dumps(x))


def by_pickle_of_a_container(x):
    return pickle.loads(pickle.dumps({"a": [x]}))["a"][0]


def by_struct(x):
    return struct.unpack(">d", struct.pack(">d", x))[0]


def by_struct_float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def by_pack_into(x):
    block = bytearray(8)
    struct.pack_into("d", block, 0, x)
    return struct.unpack_from("d", block)[0]


def by_array_bytes(x):
    a = array.array("d")
    a.frombytes(struct.pack("d", x))
    return a[0]


def by_dict_of_text(x):
    text = " ".join(map(repr, [x, 2.0 * x]))
    return sum(map(float, text.split()))


def by_upper_and_strip(x):
    return float(f"  {x:E} ".lower().strip())


ALL = [v for k, v in list(globals().items()) if k.startswith("by_")]


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_a_number_that_left_and_came_back_is_refused(f):
    with pytest.raises(REFUSALS) as refused:
        plaingrad.grad(f)(X)
    assert ".py" in str(refused.value) and len(str(refused.value)) > 60


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_the_same_program_is_legal_when_its_text_is_of_an_inactive_number(f):
    check(lambda x: x * f(1.625), X, f(1.625))


def test_leaving_alone_is_legal():
    def f(x):
        page = io.StringIO()
        print(x, file=page)
        pprint.pprint({"x": [x]}, stream=page)
        np.set_printoptions()
        text = str(np.array([x, x * x])) + repr(np.float64(x)) + np.array2string(np.array([x]))
        assert len(text) > 3 and len(page.getvalue()) > 3
        return x * x

    check(f, X, 2 * X)


def test_writing_rows_that_are_never_read_is_legal_or_refused():
    def f(x):
        page = io.StringIO()
        csv.writer(page).writerow([x, x * x])
        assert page.getvalue().startswith("3.25")
        return x * x

    check_or_refuse(f, X, 2 * X)


@pytest.mark.parametrize(
    "whole",
    [int, round, math.floor, math.ceil, math.trunc, lambda v: int(float(v)), lambda v: v.__round__()],
    ids=["int", "round", "floor", "ceil", "trunc", "int of float", "dunder"],
)
def test_mantissas_taken_as_whole_numbers_are_refused(whole):
    def f(x):
        mantissa, exponent = math.frexp(x)
        return math.ldexp(whole(mantissa * 2.0**53), exponent - 53)

    with pytest.raises(REFUSALS):
        plaingrad.grad(f)(X)


def test_whole_parts_below_two_to_the_52_are_where_derivatives_stop():
    # d/dx of (x * 1000 rounded down) / 1000 is 0 almost everywhere: as in mathematics
    check(lambda x: x * (math.floor(x * 1000.0) / 1000.0), X, 3.25)
    check(lambda x: x + int(x * 2.0**40) * 2.0**-40, X, 1.0)


def test_ratios_hexes_and_statistics_that_use_them():
    with pytest.raises(REFUSALS):
        plaingrad.grad(lambda x: (lambda n, d: n / d)(*x.as_integer_ratio()))(X)
    # the pure-Python statistics module goes through exact ratios: rules must know better
    check(lambda x: statistics.mean([x, x * x, 1.0]), X, (1 + 2 * X) / 3)
    check(lambda x: statistics.fmean([x, x * x, 1.0]), X, (1 + 2 * X) / 3)
    check(lambda x: statistics.variance([x, 0.0, 1.0]), X, 2 * (X - (X + 1) / 3) / 2)
    check(lambda x: statistics.median([x, 0.0, 9.0, x * x]), X, 0.5)  # halfway from x to 9


def test_bits_by_numpy_views_are_right_or_refused():
    check_or_refuse(lambda x: float(np.array([x]).view(np.int64).view(float)[0]), X, 1.0)
    check_or_refuse(lambda x: float((np.array([x]).view(np.int64) + 0).view(float)[0]), X, 1.0)
    check_or_refuse(lambda x: float(np.float64(x).view(np.int64).view(np.float64)), X, 1.0)
    check_or_refuse(lambda x: float(np.array([x]).view("u1").copy().view(float)[0]), X, 1.0)


def test_text_compared_searched_and_hashed_is_a_comparison():
    def f(x):
        seen = {f"{x:.2f}": 2.0}
        return x * seen.get("3.25", 5.0) if "25" in str(x) else x

    check(f, X, 2.0)


@pytest.mark.parametrize(
    "read",
    [
        lambda t: np.array([t], float)[0],
        lambda t: np.asarray(t, float)[()],
        lambda t: np.array(t.split(), float)[0],
        lambda t: np.full(2, t, float)[1],
        lambda t: written_into_an_array(t),
        lambda t: written_into_an_array([t]),
    ],
    ids=["array", "asarray", "split", "full", "written", "list written"],
)
def test_text_that_numpy_turns_into_numbers_is_refused(read):
    with pytest.raises(plaingrad.RoundTripError):
        plaingrad.grad(lambda x: float(read(str(x))) * x)(0.7342)


def written_into_an_array(text):
    a = np.zeros(1)
    a[:] = text
    return a[0]
