"""Hazard 5 further in: a number that is active at an outer level only is no constant for opaque code of an inner one."""

import array
import ctypes
import io
import pickle
import struct

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, jvp
from plaingrad.errors import PlaingradError

PAIR = np.dtype([("a", float)])


def packed(x):
    return struct.unpack("d", struct.pack("d", x))[0]


def pickled(x):
    return pickle.loads(pickle.dumps(x))


def saved(x):
    file = io.BytesIO()
    np.save(file, np.array([x]))
    file.seek(0)
    return np.load(file)[0]


def in_c_memory(x):
    return ctypes.c_double(x).value


def in_an_array_of_c(x):
    return array.array("d", [x])[0]


def in_bytes(x):
    return np.frombuffer(np.array([x]).tobytes())[0]


def in_a_memoryview(x):
    return memoryview(np.array([x]))[0]


def as_bits(x):
    return np.array([x]).view(np.int64).view(float)[0]


def as_a_large_integer(x):
    return int(x * 2.0**60) / 2.0**60


def as_a_ratio(x):
    n, d = x.as_integer_ratio()
    return n / d


def in_hexadecimal(x):
    return float.fromhex(x.hex())


def in_a_record(x):
    return [r["a"] for r in np.array([(x,)], PAIR)][0]


def by_unpacking_a_callback(x):
    return list(map(packed, [x]))[0]


PROGRAMS = [
    packed, pickled, saved, in_c_memory, in_an_array_of_c, in_bytes, in_a_memoryview, as_bits, as_a_large_integer,
    as_a_ratio, in_hexadecimal, in_a_record, by_unpacking_a_callback,
]


@pytest.mark.parametrize("c", PROGRAMS, ids=lambda c: c.__name__)
def test_it_is_refused_in_every_nesting(c):
    def by_reverse(x):
        return grad(lambda y: y * c(x))(3.0)

    def by_forward(x):
        return jvp(lambda y: y * c(x), (3.0,), (1.0,))[1]

    def two_levels_in(x):
        return grad(lambda z: grad(lambda y: y * z * c(x))(3.0))(1.0)

    assert by_reverse(2.25) == by_forward(2.25) == 2.25
    for f in (by_reverse, by_forward, two_levels_in):
        with pytest.raises(PlaingradError):
            grad(f)(2.25)
        with pytest.raises(PlaingradError):
            jvp(f, (2.25,), (1.0,))
    assert by_reverse(2.25) == 2.25, "after the refusal all is as before"


def test_constants_of_all_levels_go_into_opaque_code_freely():
    assert grad(lambda x: grad(lambda y: y * x * packed(2.0))(3.0))(5.0) == 2.0
    assert grad(lambda x: grad(lambda y: y * x * as_a_large_integer(2.0))(3.0))(5.0) == 2.0
    assert plaingrad.hvp(lambda x: x * x * packed(2.0), (3.0,), (1.0,))[0] == 4.0
