"""Structured arrays: fields are arrays and are differentiated; what takes out a whole record is refused, never zero."""

import numpy as np
import pytest

import plaingrad

PAIR = np.dtype([("a", float), ("b", float)])


def pairs(x):
    """Two records (x, 3)."""
    z = np.zeros(2, PAIR)
    z["a"] = x
    z["b"] = 3.0
    return z


def one_field(x):
    return (pairs(x)["a"] * pairs(x)["b"]).sum()


def an_element_of_a_field(x):
    return pairs(x)["a"][0] ** 2


def several_fields(x):
    return pairs(x)[["a", "b"]]["a"].sum()


def a_copy_is_changed(x):
    z = pairs(x)
    other = z.copy()
    other["a"] *= x
    return other["a"].sum() + z["a"].sum()


def all_records_are_assigned(x):
    z = np.zeros(2, PAIR)
    z[:] = pairs(x)
    return (z["a"] * z["a"]).sum()


def a_constant_record_overwrites_one(x):
    z = pairs(x)
    z[0] = (1.0, 2.0)
    return (z["a"] * z["a"]).sum()


def records_are_selected_by_a_mask(x):
    return pairs(x)[np.array([True, False])]["a"].sum() * x


def records_are_selected_twice(x):
    return pairs(x)[[0, 0, 1]]["a"].sum() * x


def records_are_joined(x):
    return np.concatenate([pairs(x), pairs(x * x)])["a"].sum()


def records_are_appended(x):
    return np.append(pairs(x), pairs(x * x))["a"].sum()


def records_backwards(x):
    return pairs(x)[::-1]["a"][0] * x


def records_made_of_tuples(x):
    return np.array([(x, 1.0), (x * x, 2.0)], PAIR)["a"].sum()


def records_seen_as_floats(x):
    return (pairs(x).view(float) ** 2).sum()


def records_in_two_dimensions(x):
    return (pairs(x).reshape(2, 1)["a"] * pairs(x).ravel()["a"]).sum()


RIGHT = [
    one_field, an_element_of_a_field, several_fields, a_copy_is_changed, all_records_are_assigned,
    a_constant_record_overwrites_one, records_are_selected_by_a_mask, records_are_selected_twice, records_are_joined,
    records_are_appended, records_backwards, records_made_of_tuples, records_seen_as_floats, records_in_two_dimensions,
]


@pytest.mark.parametrize("f", RIGHT, ids=lambda f: f.__name__)
def test_fields_views_and_copies_are_differentiated(f):
    slope = (f(2.0 + 1e-5) - f(2.0 - 1e-5)) / 2e-5
    value, gradient = plaingrad.value_and_grad(f)(2.0)
    assert value == f(2.0)
    assert gradient == pytest.approx(slope, rel=1e-8)
    assert plaingrad.jvp(f, (2.0,), (1.0,))[1] == pytest.approx(slope, rel=1e-8)


def test_second_derivatives_of_fields():
    assert plaingrad.grad(plaingrad.grad(a_copy_is_changed))(2.0) == pytest.approx(4.0)
    assert plaingrad.hvp(records_are_joined, (2.0,), (1.0,))[0] == pytest.approx(4.0)


def a_sum_over_records(x):
    return sum(r["a"] * r["b"] for r in pairs(x))


def a_loop_over_records(x):
    total = 0.0
    for a, b in pairs(x):
        total += a * b
    return total


def one_record(x):
    return pairs(x)[1]["a"]


def tuples_of_records(x):
    return pairs(x).tolist()[0][0]


def a_list_of_records(x):
    return list(pairs(x))[0]["a"]


def unpacked_records(x):
    first, _ = pairs(x)
    return first["a"]


def the_largest_record(x):
    return max(pairs(x), key=lambda r: r["a"])["a"]


def zipped_records(x):
    return next(r["a"] for r, _ in zip(pairs(x), [1, 2]))


def mapped_records(x):
    return next(map(lambda r: r["a"], pairs(x)))


def sorted_records(x):
    return np.sort(pairs(x), order="a")["a"].sum()


def an_active_record_is_assigned(x):
    z = np.zeros(2, PAIR)
    z[0] = (x, 2.0)
    return z["a"].sum()


REFUSED = [
    a_sum_over_records, a_loop_over_records, one_record, tuples_of_records, a_list_of_records, unpacked_records,
    the_largest_record, zipped_records, mapped_records, sorted_records, an_active_record_is_assigned,
]


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_whole_records_are_refused_with_the_way_to_write_it(f):
    for attempt in (plaingrad.grad(f), lambda x: plaingrad.jvp(f, (x,), (1.0,))):
        with pytest.raises(plaingrad.MissingRuleError, match=r"structured array.*\n.*\n.*\['a'\]\[i\]") as caught:
            attempt(2.0)
        assert __file__ in str(caught.value)
    assert np.isfinite(f(2.0))


def test_patterns_leave_records_of_constants_what_they_are():
    def f(x):
        a = np.zeros(4, dtype=[("p", float), ("q", float)])
        a[1] = (1.0, 2.0)
        a["p"] = x * a["q"]
        return a["p"] + a["q"]

    x = np.arange(1.0, 5.0)
    np.testing.assert_array_equal(f(x), [0.0, 6.0, 0.0, 0.0])
    np.testing.assert_array_equal(plaingrad.sparsity(f, x).toarray(), np.eye(4, dtype=bool))


def test_patterns_refuse_records_of_differentiated_numbers():
    def f(x):
        a = np.zeros(4, dtype=[("p", float), ("q", float)])
        a[1] = (x[0], 2.0)
        return a["p"] * 2.0

    with pytest.raises(plaingrad.MissingRuleError, match="a record"):
        plaingrad.sparsity(f, np.arange(1.0, 5.0))
