"""`array.array`, memoryviews, ctypes and `struct` keep numbers as bytes: constants are read, others refused by name."""

from __future__ import annotations

import array
import ctypes
import struct

import numpy as np
import pytest

import plaingrad
from plaingrad import MissingRuleError

X = np.array([0.3, 0.7, 1.1])
HELD, DOUBLES = array.array("d", [1.0, 2.0, 3.0]), (ctypes.c_double * 3)(1.0, 2.0, 3.0)


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_double), ("b", ctypes.c_double))


def filled(method: str, *numbers) -> array.array:
    a = array.array("d", [0.0])
    getattr(a, method)(*numbers)
    return a


def into_a_memoryview(x) -> float:
    view = memoryview(bytearray(8)).cast("d")
    view[0] = x[0]
    return view[0]


REFUSED = {
    "array of a list": lambda x: array.array("d", list(x))[0],
    "array of a generator": lambda x: max(array.array("d", (v * v for v in x))),
    "array of a map": lambda x: max(array.array("d", map(lambda v: v * v, x))),
    "extended by a generator": lambda x: max(filled("extend", (v for v in x))),
    "appended": lambda x: max(filled("append", x[0])),
    "set": lambda x: filled("__setitem__", 0, x[0])[0],
    "memoryview": lambda x: memoryview(x)[0],
    "memoryview that is written": into_a_memoryview,
    "c_double": lambda x: ctypes.c_double(x[0]).value,
    "array of ctypes": lambda x: (ctypes.c_double * 3)(*x)[0],
    "structure": lambda x: Pair(x[0], x[1]).a,
    "packed": lambda x: struct.unpack("d", struct.pack("d", x[0]))[0],
    "packed by a Struct": lambda x: struct.Struct("d").pack(x[0]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_and_says_where_numbers_may_be_kept(name):
    with pytest.raises(MissingRuleError, match=r"keep differentiated numbers in a list, or in an array of NumPy"):
        plaingrad.grad(REFUSED[name])(X.copy())


def test_constants_in_them_are_read():
    def f(x):
        packed = struct.unpack("d", struct.pack("d", 2.5))[0]
        made = array.array("d", (1.5 * k for k in range(3)))
        held = sum(v * x[k] for k, v in enumerate(HELD)) + np.array(DOUBLES) @ x
        return held * packed + made[2] * memoryview(made)[1] * x[0]

    np.testing.assert_allclose(plaingrad.grad(f)(X.copy()), np.array([5.0, 10.0, 15.0]) + [4.5, 0.0, 0.0])
