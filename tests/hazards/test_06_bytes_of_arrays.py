"""Hazard 6: bytes of a differentiated array are keys and make checksums; they are not read as numbers again."""

import array
import ast
import base64
import ctypes
import hashlib
import io
import pickle
import struct
import zlib

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, jvp
from plaingrad.errors import PlaingradError

X = np.array([0.5, 1.2, 2.0])


def key_of_a_table(x):
    table = {}
    for k in range(3):
        y = x * (k % 2)
        if y.tobytes() not in table:
            table[y.tobytes()] = y @ x + k
    return sum(table.values()) * len(table)


def hashed(x):
    return (x @ x) * (1 + isinstance(hash(x.tobytes()), int)) + len({x.tobytes(), (x * 1.0).tobytes()})


def compared(x):
    return x @ x if x.tobytes() == (x + 0.0).tobytes() and x.tobytes() != (2 * x).tobytes() else x.sum()


def digested(x):
    h = hashlib.sha256(x.tobytes())
    h.update(x)
    names = {hashlib.md5(x).hexdigest(): x * x}
    return names[hashlib.md5(x.tobytes()).hexdigest()].sum() + 0 * len(h.digest()) + 0 * zlib.crc32(x.tobytes())


def of_numbers(x):
    seen = {np.float64(v).tobytes(): v * v for v in x}
    return sum(seen.values())


def kept_and_joined(x):
    parts = b"".join([x.tobytes(), (2 * x).tobytes()])
    return x @ x if parts.startswith(x.tobytes()) and len(parts) == 48 else x.sum()


ALLOWED = [key_of_a_table, hashed, compared, digested, of_numbers, kept_and_joined]


@pytest.mark.parametrize("f", ALLOWED)
def test_keys_checksums_and_comparisons_are_free(f):
    def slopes(at):
        steps = 1e-6 * np.eye(3)
        return [(f(at + h) - f(at - h)) / 2e-6 for h in steps]

    g = grad(f)
    np.testing.assert_allclose(g(X), slopes(X), rtol=1e-6)
    np.testing.assert_allclose(g(X), g(X))
    np.testing.assert_allclose(jvp(f, (X,), (X,))[1], g(X) @ X)
    by_steps = (g(X + 1e-6 * X) - g(X - 1e-6 * X)) / 2e-6
    np.testing.assert_allclose(jvp(g, (X,), (X,))[1], by_steps, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(grad(lambda x: g(x) @ X)(X), by_steps, rtol=1e-6, atol=1e-6)


class Frame(np.ndarray):
    pass


def over_a_view(data):
    view = memoryview(data)
    return sum(view.cast("d"))


def through_a_stream(data):
    stream = io.BytesIO()
    stream.write(data)
    return np.frombuffer(stream.getvalue()).sum()


def in_an_array_of_bytes(data):
    return np.array([data + b"1"]).view("V1")[:-1].view(float).sum()


def through_a_buffer_that_is_written(data):
    buffer = bytearray(len(data))
    a = np.frombuffer(buffer)
    buffer[:] = data
    return (a * 1.0).sum()


def through_a_view_made_before(data):
    buffer = bytearray(len(data))
    view = memoryview(buffer).cast("d")
    buffer[:] = data
    return view[0] + view[1] + view[2]


def through_a_pointer(data):
    return sum((ctypes.c_double * 3).from_buffer_copy(data))


def by_whole_numbers(data):
    return struct.unpack("d", int.from_bytes(data[:8], "little").to_bytes(8, "little"))[0]


READERS = {
    "frombuffer": lambda data: np.frombuffer(data).sum(),
    "frombuffer, the last": lambda data: np.frombuffer(data[8:], count=1).sum(),
    "the order of bytes": lambda data: np.frombuffer(data[::-1], ">f8").sum(),
    "an array over it": lambda data: (np.ndarray(3, float, data) * 2.0).sum(),
    "an array of a subclass": lambda data: (Frame(3, float, data) * 2.0).sum(),
    "new": lambda data: (np.ndarray.__new__(Frame, 3, float, data) * 2.0).sum(),
    "struct": lambda data: sum(struct.unpack("3d", data)),
    "struct, iterated": lambda data: sum(v for (v,) in struct.iter_unpack("d", data)),
    "array": lambda data: sum(array.array("d", data)),
    "bytearray": lambda data: np.frombuffer(bytearray(data)).sum(),
    "base64": lambda data: np.frombuffer(base64.b64decode(base64.b64encode(data))).sum(),
    "zlib": lambda data: np.frombuffer(zlib.decompress(zlib.compress(data))).sum(),
    "hex": lambda data: np.frombuffer(bytes.fromhex(data.hex())).sum(),
    "latin": lambda data: np.frombuffer(data.decode("latin-1").encode("latin-1")).sum(),
    "repr": lambda data: np.frombuffer(ast.literal_eval(repr(data))).sum(),
    "pickle": lambda data: np.frombuffer(pickle.loads(pickle.dumps(data))).sum(),
    "in a list": lambda data: np.frombuffer(b"".join([data[:8], data[8:]])).sum(),
    "bytes of bytes": lambda data: np.array(list(data), np.uint8).view(float).sum(),
    "an array of bytes": lambda data: np.frombuffer(data, np.uint8).view(float).sum(),
    "void": lambda data: np.void(data).view("3f8").sum(),
    "fromiter": lambda data: np.fromiter(data, np.uint8).view(float).sum(),
    **{f.__name__: f for f in (over_a_view, through_a_stream, in_an_array_of_bytes, through_a_buffer_that_is_written,
                               through_a_view_made_before, through_a_pointer, by_whole_numbers)},
}  # fmt: skip


@pytest.mark.parametrize("x", [X, np.array([1.0, 0.0, 2.0]), np.array([-1.0, 1.0, 1.0])], ids=["any", "zero", "one"])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_bytes_that_come_back_as_numbers_are_refused(read, x):
    read(x.tobytes())  # it runs

    def f(x):
        return read(x.tobytes()) * x[0]

    for operator in (lambda: grad(f)(x), lambda: jvp(f, (x,), (x,)), lambda: grad(lambda x: grad(f)(x) @ x)(x)):
        with pytest.raises(PlaingradError, match="test_06_bytes_of_arrays"):
            operator()


def test_written_at_an_outer_level_and_read_at_an_inner_one():
    def f(x):
        data = x.tobytes()
        return grad(lambda s: s * np.frombuffer(data).sum() * s)(x[0])

    with pytest.raises(plaingrad.RoundTripError):
        grad(f)(X)


def test_a_file(tmp_path):
    def f(x):
        with open(tmp_path / "x", "wb") as file:
            file.write(x.tobytes())
        return np.fromfile(tmp_path / "x").sum() * x[0]

    with pytest.raises(plaingrad.RoundTripError):
        grad(f)(np.array([1.0, 1.0]))


def test_other_bytes_are_read_as_before():
    constant = np.array([0.25, 3.5]).tobytes()

    def f(x):
        assert x.tobytes()
        return (np.frombuffer(constant) * x[:2]).sum() * struct.unpack("d", constant[:8])[0]

    assert grad(f)(X).tolist() == [0.0625, 0.875, 0.0]
