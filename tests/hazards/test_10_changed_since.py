"""Hazard 10: arrays that are changed between the call and its pullback."""

import numpy as np
import pytest

import plaingrad


def test_a_captured_argument_changed_before_the_pullback_is_noticed():
    w = np.array([1.0, 2.0, 3.0])
    y, pullback = plaingrad.vjp(lambda x: (x * x).sum(), w)
    assert y == 14.0
    w[0] = 100.0
    try:
        (x_bar,) = pullback(1.0)
    except plaingrad.ChangedSinceError:
        return
    assert x_bar.tolist() == [2.0, 4.0, 6.0], "the engine's own copy was not changed"


def test_a_global_array_that_a_pullback_needs_is_fingerprinted():
    k = np.array([1.0, 2.0, 3.0])
    y, pullback = plaingrad.vjp(lambda x: (x * k).sum(), np.ones(3))
    assert pullback(1.0)[0].tolist() == [1.0, 2.0, 3.0]
    k[1] = 50.0
    with pytest.raises(plaingrad.ChangedSinceError):
        pullback(1.0)
    k[1] = 2.0
    assert pullback(1.0)[0].tolist() == [1.0, 2.0, 3.0], "put back, it is right again"


def test_a_kept_intermediate_changed_before_the_pullback_is_noticed():
    kept = []

    def f(x):
        y = np.exp(x)
        kept.append(y)
        return (y * y).sum()

    x = np.array([0.0, 1.0])
    _, pullback = plaingrad.vjp(f, x)
    kept[0][0] = 7.0
    with pytest.raises(plaingrad.ChangedSinceError):
        pullback(1.0)


def test_a_change_through_a_view_is_noticed():
    table = np.arange(6.0)
    view = table[::2]
    _, pullback = plaingrad.vjp(lambda x: x @ view, np.ones(3))
    table[4] = -1.0
    with pytest.raises(plaingrad.ChangedSinceError):
        pullback(1.0)


def test_a_change_of_an_element_that_the_pullback_does_not_read_is_no_matter():
    table = np.arange(6.0)
    _, pullback = plaingrad.vjp(lambda x: x @ table[:3], np.ones(3))
    table[5] = -1.0
    try:
        (x_bar,) = pullback(1.0)
    except plaingrad.ChangedSinceError:
        return  # strict about whole regions is allowed
    assert x_bar.tolist() == [0.0, 1.0, 2.0]


def test_a_returned_array_changed_by_the_caller_is_noticed_or_not_needed():
    y, pullback = plaingrad.vjp(lambda x: np.exp(x), np.array([0.0, 1.0]))
    plain = y.copy()
    y *= 0.0
    try:
        (x_bar,) = pullback(np.ones(2))
    except plaingrad.ChangedSinceError:
        return
    assert x_bar == pytest.approx(plain, rel=1e-13)


def test_a_linear_program_reads_nothing_and_never_complains():
    kept = []

    def f(x):
        kept.append(x + x)
        return kept[-1][1:].sum() - x[::-1].sum()

    w = np.array([1.0, 2.0])
    _, pullback = plaingrad.vjp(f, w)
    kept[0][:] = 0.0
    w[:] = 0.0
    assert pullback(1.0)[0].tolist() == [-1.0, 1.0]


def test_in_place_writes_are_undone_for_each_pullback_and_redone_after_it():
    k = np.array([1.0, 2.0])

    def f(x):
        k[0] = 5.0
        y = (x * k).sum()
        k[0] = 7.0
        return y + (x * x * k).sum()

    x = np.array([1.0, 1.0])
    value, pullback = plaingrad.vjp(f, x)
    assert value == 7.0 + 9.0 and k.tolist() == [7.0, 2.0]
    for _ in range(3):
        assert pullback(1.0)[0].tolist() == [5.0 + 14.0, 2.0 + 4.0]
        assert k.tolist() == [7.0, 2.0], "the world is as after the call"
    k[0] = 8.0
    with pytest.raises(plaingrad.ChangedSinceError):
        pullback(1.0)


def test_two_pullbacks_over_one_array_see_their_own_times():
    k = np.array([1.0, 2.0])

    def f(x):
        k[...] = k * 2.0
        return (x * k).sum()

    _, first = plaingrad.vjp(f, np.ones(2))
    assert first(1.0)[0].tolist() == [2.0, 4.0]
    _, second = plaingrad.vjp(f, np.ones(2))
    assert second(1.0)[0].tolist() == [4.0, 8.0]
    # the first call's k has been changed since by the second
    try:
        (x_bar,) = first(1.0)
    except plaingrad.ChangedSinceError:
        pass
    else:
        assert x_bar.tolist() == [2.0, 4.0]
    assert k.tolist() == [4.0, 8.0]


def test_lists_and_objects_may_change_since_because_references_do_not_matter():
    box = {"k": 2.0, "list": [3.0]}
    _, pullback = plaingrad.vjp(lambda x: x * x * box["k"] * box["list"][0], 1.5)
    box["k"] = 100.0
    box["list"].clear()
    assert pullback(1.0) == (18.0,)


def test_the_error_names_what_changed_and_says_what_to_do():
    k = np.array([1.0, 2.0, 3.0])
    _, pullback = plaingrad.vjp(lambda x: (x * k).sum(), np.ones(3))
    k += 1.0
    with pytest.raises(plaingrad.ChangedSinceError) as refused:
        pullback(1.0)
    assert "changed" in str(refused.value) and len(str(refused.value)) > 40


def test_nan_in_a_captured_array_is_not_taken_for_a_change():
    k = np.array([1.0, np.nan])
    _, pullback = plaingrad.vjp(lambda x: (x * k)[0], np.ones(2))
    assert pullback(1.0)[0].tolist() == [1.0, 0.0] or np.isnan(pullback(1.0)[0][1])
