"""Hazard 4: NumPy's scalars make a new object where a float gives itself back."""

import copy
import math
import operator

import numpy as np
import pytest
from cases_b import check, check_or_refuse

SAME = {
    "+x": lambda v: +v,
    "copy()": lambda v: v.copy(),
    "astype": lambda v: v.astype(np.float64),
    "astype without copy": lambda v: v.astype(float, copy=False),
    "[()]": lambda v: v[()],
    "[...]": lambda v: v[...][()],
    "np.float64": lambda v: np.float64(v),
    "np.double of float": lambda v: np.double(float(v)),
    "item": lambda v: v.item(),
    "tolist": lambda v: v.tolist(),
    "float": lambda v: float(v),
    "__float__": lambda v: v.__float__(),
    "real": lambda v: v.real,
    "conj": lambda v: v.conj(),
    "conjugate": lambda v: v.conjugate(),
    "T": lambda v: v.T,
    "ravel": lambda v: v.ravel()[0],
    "flatten": lambda v: v.flatten()[0],
    "reshape": lambda v: v.reshape(1)[0],
    "squeeze": lambda v: v.squeeze(),
    "sum": lambda v: v.sum(),
    "mean": lambda v: v.mean(),
    "max": lambda v: v.max(),
    "prod": lambda v: v.prod(),
    "cumsum": lambda v: v.cumsum()[0],
    "take": lambda v: v.take(0),
    "repeat": lambda v: v.repeat(2)[1],
    "clip": lambda v: v.clip(0.0, 10.0),
    "view": lambda v: v.view(np.float64),
    "base and data": lambda v: np.asarray(v)[()],
    "np.array": lambda v: np.array(v)[()],
    "np.copy": lambda v: np.copy(v)[()],
    "copy.copy": lambda v: copy.copy(v),
    "copy.deepcopy": lambda v: copy.deepcopy(v),
    "__copy__": lambda v: v.__copy__(),
    "__deepcopy__": lambda v: v.__deepcopy__({}),
    "positive": lambda v: np.positive(v),
    "operator.pos": lambda v: operator.pos(v),
    "ascontiguousarray": lambda v: np.ascontiguousarray(v)[0],
    "atleast_1d": lambda v: np.atleast_1d(v)[0],
    "squeeze function": lambda v: np.squeeze(v)[()],
    "real function": lambda v: np.real(v),
    "complex real": lambda v: complex(v).real,
    "np.complex128": lambda v: np.complex128(v).real,
    "array item": lambda v: np.array([v]).item(0),
    "list of array": lambda v: list(np.array([v, 2.0]))[0],
    "unpacked array": lambda v: (lambda a, b: a)(*np.array([v, 2.0])),
    "dict of items": lambda v: dict(enumerate(np.array([v])))[0],
    "iterated": lambda v: [u for u in np.array([v])][0],
    "nan_to_num": lambda v: np.nan_to_num(v),
    "longdouble": lambda v: float(np.longdouble(v)),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_number_in_a_new_object_keeps_its_slope(name):
    same = SAME[name]
    check_or_refuse(lambda x: float(same(np.float64(x) * 3.0)) ** 2, 1.5, 18 * 1.5)
    check_or_refuse(lambda x: float(same(x[1]) * x[0]), np.array([1.5, 2.5]), np.array([2.5, 1.5]))


CHANGED = {
    "-x": (lambda v: -v, -1.0),
    "abs": (lambda v: abs(v), 1.0),
    "__abs__": (lambda v: v.__abs__(), 1.0),
    "round": (lambda v: round(v, 1), 0.0),
    "round method": (lambda v: v.round(1), 0.0),
    "0-d array": (lambda v: np.array(v) * 2.0, 2.0),
    "divmod": (lambda v: divmod(v, 1.0)[1], 1.0),
    "pow": (lambda v: pow(v, 3), 3 * 1.5**2),
    "rsub": (lambda v: 1.0 - v, -1.0),
    "int on the left": (lambda v: 2 * v, 2.0),
    "np.float64 method": (lambda v: v.__mul__(v), 3.0),
    "var": (lambda v: v.var() + v * 0.0, 0.0),
    "imag": (lambda v: v.imag + v * 0.0, 0.0),
    "dot": (lambda v: np.dot(v, 4.0), 4.0),
    "math": (lambda v: math.sin(v), math.cos(1.5)),
    "math.fsum": (lambda v: math.fsum([v, v]), 2.0),
    "sum": (lambda v: sum([v, v, 1]), 2.0),
    "power of int": (lambda v: 2**v, 2**1.5 * math.log(2)),
    "int array": (lambda v: (np.array([1, 2]) * v).sum(), 3.0),
    "searchsorted": (lambda v: np.searchsorted([1.0, 2.0], v) * v, 1.0),
    "in place": (lambda v: operator.imul(v, v), 3.0),
    "trunc": (lambda v: math.trunc(v) * v + np.trunc(v) + np.floor(v) + int(v), 1.0),
}


@pytest.mark.parametrize("name", CHANGED)
def test_operations_on_numpy_scalars(name):
    change, slope = CHANGED[name]
    check_or_refuse(lambda x: float(change(np.float64(x))), 1.5, slope)
    check_or_refuse(lambda x: float(change(x[0])), np.array([1.5, 9.0]), np.array([slope, 0.0]))


def test_reading_one_element_twice_gives_two_objects_with_one_place():
    def f(x):
        a, b = x[0], x[0]
        x = x * 1.0
        x[0] = 100.0
        return a * b * x[0]

    check(f, np.array([1.5, 2.5]), np.array([300.0, 0.0]))


def test_single_precision_scalars_keep_their_kind():
    def f(x):
        v = np.float32(x[0])
        w = v * v
        assert type(w) is np.float32
        return float(w) * 2.0

    check(f, np.array([1.5, 2.5]), np.array([6.0, 0.0]), rtol=1e-6)


def test_numpy_scalars_as_keys_indices_and_conditions():
    def f(x):
        v = np.float64(x)
        store = {v: v * v, "k": 3.0}
        return (store[1.5] if v > 1 and bool(v) and v == 1.5 else 0.0) * np.array([1.0, 5.0])[int(v)]

    check(f, 1.5, 15.0)
