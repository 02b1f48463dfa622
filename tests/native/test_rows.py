"""Rows that are used number by number become places of their arrays; others stay rows."""

import numba
import numpy as np
import pytest

import plaingrad
from plaingrad.native.program import emit
from plaingrad.native.frontend import translation
from plaingrad.native.lowering import prepare
from plaingrad.native.program.ir import Let, statements
from tests.native.uncompiled import gradient


@numba.njit
def distance(x, y):
    total = 0.0
    for j in range(x.size):
        total += (x[j] - y[j]) ** 2
    return total


def distances(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        for k in range(len(b)):
            total += np.sqrt(distance(a[i], b[k]))
    return total


def from_the_end(a):
    last = a[-1]
    return last[0] * last[-1]


def rows_of_rows(a):
    total = 0.0
    for i in range(a.shape[0]):
        plane = a[i]
        for j in range(plane.shape[0]):
            row = plane[j]
            for k in range(len(row)):
                total += row[k] * plane[j, 0]
    return total


def written_rows(a):
    b = np.zeros(a.shape)
    for i in range(a.shape[0]):
        row = b[i]
        for j in range(row.size):
            row[j] = a[i, j] * a[i, 0]
        for j in range(1, row.size):
            row[j] = row[j] + row[j - 1]
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += b[i, j] * b[i, j]
    return total


def planes_by_two_indices(a):
    total = 0.0
    for i in range(a.shape[0]):
        row = a[i, i]
        total += row[0] * row[1] * row.ndim
        (n,) = row.shape
        total += row[n - 1]
    return total


GONE = [
    (distances, (np.arange(6.0).reshape(3, 2), np.array([[0.5, -1.0], [7.0, 0.1]]))),
    (from_the_end, (np.arange(6.0).reshape(3, 2),)),
    (rows_of_rows, (np.sin(np.arange(24.0)).reshape(2, 3, 4),)),
    (rows_of_rows, (np.sin(np.arange(24.0)).reshape(4, 3, 2).T,)),
    (written_rows, (np.cos(np.arange(6.0)).reshape(2, 3),)),
    (planes_by_two_indices, (np.cos(np.arange(12.0)).reshape(2, 2, 3),)),
]


def whole(a):
    row = a[1]
    return np.sum(row) * row[0]


def of_the_iteration_before(a):
    row = a[0]
    total = 0.0
    for i in range(1, a.shape[0]):
        total += row[0] * a[i, 1]
        row = a[i]
    return total + row[1]


def of_an_array_that_changes(a):
    b = a * 2.0
    row = b[0]
    b = a * 3.0
    return row[1] * b[0, 1]


def of_an_index_that_changes(a):
    i = 0
    row = a[i]
    i += 1
    return row[1] * a[i, 0]


def by_a_slice(a):
    row = a[1:3, 0]
    return row[0] * row[1]


STAY = [
    (whole, (np.arange(1.0, 7.0).reshape(3, 2),)),
    (of_the_iteration_before, (np.arange(1.0, 7.0).reshape(3, 2),)),
    (of_an_array_that_changes, (np.arange(1.0, 7.0).reshape(3, 2),)),
    (of_an_index_that_changes, (np.arange(1.0, 7.0).reshape(3, 2),)),
    (by_a_slice, (np.arange(1.0, 7.0).reshape(3, 2),)),
]


@pytest.mark.parametrize("f, args", GONE + STAY, ids=lambda x: getattr(x, "__name__", ""))
def test_gradients_are_those_of_the_plain_tier(f, args):
    value, found = gradient(f, args)
    wanted_value, wanted = plaingrad.value_and_grad(f, tuple(range(len(args))), tier="plain")(*args)
    assert value == pytest.approx(wanted_value, rel=1e-14)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def rows_left(f, args):
    program = prepare.prepared(translation.program(f, tuple(map(numba.typeof, args))))
    taken = [s.target for s in statements(program.body) if isinstance(s, Let) and s.op == "item"]
    return [name for name in taken if isinstance(program.types.get(name), numba.types.Array)]


@pytest.mark.parametrize("f, args", GONE, ids=lambda x: getattr(x, "__name__", ""))
def test_no_row_is_left(f, args):
    assert rows_left(f, args) == []


@pytest.mark.parametrize("f, args", [STAY[0], STAY[1], STAY[4]], ids=lambda x: getattr(x, "__name__", ""))
def test_a_row_that_is_needed_stays(f, args):
    assert rows_left(f, args) != []


def test_rows_stay_where_indices_are_checked():
    checked = numba.njit(boundscheck=True)(from_the_end)
    program = translation.program(checked, (numba.float64[:, ::1],))
    assert "last = a[" in emit.source(prepare.prepared(program))[0]
    with pytest.raises(IndexError):
        plaingrad.grad(checked, tier="native")(np.zeros((0, 2)))


def test_a_compiled_gradient_without_rows_agrees():
    f, args = GONE[0]
    found = plaingrad.grad(f, (0, 1), tier="native")(*args)
    for a, b in zip(found, gradient(f, args)[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
