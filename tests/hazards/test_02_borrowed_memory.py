"""Hazard 2, continued: memory that no array owns may be read, changed and given back without NumPy's knowledge."""

import array
import ctypes
import io
import mmap
import os
import pickle
import struct
import subprocess
import sys
import threading
from multiprocessing import shared_memory
from pathlib import Path

import numpy as np
import plaingrad
import pytest
from cases_b import check
from plaingrad import AliasError, grad, jacobian, jvp, value_and_grad, vjp

X = np.array([1.5, -0.5, 2.0, 0.25])
W = np.array([3.0, -2.0, 0.5, 7.0])
V = np.array([0.3, 1.1, -0.7, 2.0])


def same_as_plain(f, x, *args, rtol=1e-6, rtol_of_jvp=1e-12):
    """Asserts value and gradient of f at x: the plain call, and differences of it."""
    value, g = value_and_grad(f)(x.copy(), *args)
    assert value == f(x.copy(), *args)
    h = 1e-6
    for k in range(x.size):
        up, down = x.copy(), x.copy()
        up[k] += h
        down[k] -= h
        slope = (f(up, *args) - f(down, *args)) / (2 * h)
        assert abs(g[k] - slope) <= rtol * max(1.0, abs(slope)), (k, g[k], slope)
    y, y_dot = jvp(f, (x.copy(), *args), (V, *[None] * len(args)))
    assert y == value
    assert np.isclose(y_dot, V @ g, rtol=rtol_of_jvp)


def refused(f, *args, where="in `f`"):
    """The message of the AliasError that f(*args) is refused with, in both modes."""
    with pytest.raises(AliasError) as caught:
        plaingrad.jvp(f, args, (np.ones_like(args[0]),))
    with pytest.raises(AliasError, match="To go on") as caught:
        grad(f)(*args)
    assert where in str(caught.value)
    return str(caught.value)


# -- read only: differentiated -----------------------------------------------------------------------------------------

READS = {
    "product": lambda x, a: (x * a * x).sum(),
    "quotient": lambda x, a: (a / x + x / a).sum(),
    "sum and difference": lambda x, a: ((x + a) ** 2 - (a - x) ** 3).sum(),
    "power": lambda x, a: (np.exp(x) ** (a * 0.1)).sum(),
    "matrix product": lambda x, a: (x @ a) ** 2 + np.dot(a, np.sin(x)),
    "einsum": lambda x, a: np.einsum("i,i,i", x, a, x),
    "where": lambda x, a: np.where(a > 0, x * x, a * x).sum(),
    "keyword": lambda x, a: np.multiply(x, x, where=a > 0, out=np.zeros(4)).sum() + np.average(x, weights=a),
    "list": lambda x, a: (np.concatenate([x, a]) ** 2).sum() + np.stack((a, x * x, a)).prod(),
    "in place": lambda x, a: in_place(x * 1.0, a).sum(),
    "by element": lambda x, a: sum(u * v * v for u, v in zip(a, x, strict=True)) + a[1] * x[2],
    "by index": lambda x, a: (x[np.argsort(a)] * a[::-1]).sum() + (x[:, None] * a[None, ::2]).sum(),
    "outer": lambda x, a: np.outer(x, a)[1, 2] * np.linalg.norm(x * a),
}


def in_place(b, a):
    b *= a
    b += a
    b[1:3] = b[1:3] * a[1:3]
    b[0] /= a[0]
    np.multiply(b, a, out=b)
    return b


def over_mmap():
    m = mmap.mmap(-1, 32)
    a = np.frombuffer(m)
    a[:] = W
    return a, m.close


def over_shared_memory():
    shm = shared_memory.SharedMemory(create=True, size=32)
    a = np.ndarray(4, buffer=shm.buf)
    a[:] = W

    def close():
        shm.close()
        shm.unlink()

    return a, close


def over_bytearray():
    raw = bytearray(W.tobytes())
    return np.frombuffer(raw), raw.clear


def over_bytearray_without_export():
    raw = bytearray(W.tobytes())
    return np.ndarray(4, float, raw), raw.clear


def over_bytes():
    return np.frombuffer(W.tobytes()), lambda: None


def over_ctypes():
    c = (ctypes.c_double * 4)(*W)
    return np.ctypeslib.as_array(c), lambda: None


def over_pointer():
    c = (ctypes.c_double * 4)(*W)
    a = np.ctypeslib.as_array(ctypes.cast(c, ctypes.POINTER(ctypes.c_double)), (4,))
    return a, lambda: ctypes.memset(c, 0, 32)


def over_array_array():
    c = array.array("d", W)
    return np.asarray(c), lambda: c.extend([0.0] * 100)


def over_bytesio():
    b = io.BytesIO(W.tobytes())
    return np.frombuffer(b.getbuffer()), b.close


class Lender:
    """As PyTorch's tensors: it lends memory that no buffer is exported of."""

    def __init__(self, values):
        self.memory = (ctypes.c_double * len(values))(*values)
        self.__array_interface__ = {
            "version": 3,
            "shape": (len(values),),
            "typestr": "<f8",
            "data": (ctypes.addressof(self.memory), False),
        }


class DlpackLender:
    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


def over_interface():
    lender = Lender(W)
    return np.asarray(lender), lambda: ctypes.memset(lender.memory, 0, 32)


def over_dlpack():
    values = W.copy()
    return np.from_dlpack(DlpackLender(values)), lambda: values.fill(0.0)


def unpickled():
    return pickle.loads(pickle.dumps(W, 5)), lambda: None


def unpickled_out_of_band():
    buffers = []
    data = pickle.dumps(W, 5, buffer_callback=buffers.append)
    raw = [bytearray(b.raw()) for b in buffers]
    return pickle.loads(data, buffers=raw), raw[0].clear


def swapped():
    m = mmap.mmap(-1, 64)
    a = np.frombuffer(m).reshape(4, 2)[::-1, 1]  # negative and wide strides
    a[:] = W
    return a, m.close


def of_float32():
    m = mmap.mmap(-1, 16)
    a = np.frombuffer(m, np.float32)
    a[:] = W
    return a, m.close


WRAPPED = [
    over_mmap, over_shared_memory, over_bytearray, over_bytearray_without_export, over_bytes, over_ctypes, over_pointer,
    over_array_array, over_bytesio, over_interface, over_dlpack, unpickled, unpickled_out_of_band, swapped, of_float32,
]  # fmt: skip


@pytest.mark.parametrize("wrap", WRAPPED)
@pytest.mark.parametrize("name", READS)
def test_memory_that_is_read_as_an_array_is_differentiated_and_may_be_given_back(wrap, name):
    def f(x):
        a, close = wrap()
        s = READS[name](x, a)
        del a
        close()  # with an export left, or read afterwards, this would raise, crash or change the gradient
        return s

    same_as_plain(f, X + 3.0, rtol_of_jvp=1e-6 if wrap is of_float32 else 1e-12)


@pytest.mark.parametrize("wrap", WRAPPED)
def test_captured_memory_may_be_given_back_between_the_call_and_its_pullback(wrap):
    a, close = wrap()
    y, pullback = vjp(lambda x: x * np.exp(a * 0.1) * x, X)
    w = np.exp(a * 0.1).astype(float)
    del a
    close()
    assert np.allclose(pullback(np.ones(4))[0], 2 * X * w, rtol=1e-6)
    assert np.allclose(y, X * X * w, rtol=1e-6)


@pytest.mark.parametrize("wrap", WRAPPED)
def test_argument_memory_may_be_given_back_after_the_call(wrap):
    a, close = wrap()
    kept = [
        vjp(lambda a, x: (a * x * a).sum(), a, X)[1],
        plaingrad.build_rrule(lambda a, x: (a * x * a).sum())(a, X)[1],
    ]
    linear = plaingrad.linearize(lambda a: (a * a * X).sum(), a)[1]
    assert jacobian(lambda a: a * a)(a).shape == (4, 4)
    assert np.allclose(plaingrad.hvp(lambda a: (a**3).sum(), (a,), (a,)), 6 * W * W, rtol=1e-6)
    v = np.ones_like(a)
    del a
    close()
    assert np.allclose(kept[0](1.0)[0], 2 * W * X, rtol=1e-6)
    assert np.allclose(kept[1](1.0)[1], 2 * W * X, rtol=1e-6)
    assert np.isclose(linear(v), (2 * W * X).sum(), rtol=1e-6)


def test_shared_memory_closed_before_the_reverse_pass_does_not_crash():
    program = """
import numpy as np
from multiprocessing import shared_memory
from plaingrad import grad, jvp, checkpoint, vjp
import plaingrad

def f(x, write):
    shm = shared_memory.SharedMemory(create=True, size=64 * 1024)
    try:
        a = np.ndarray(8 * 1024, buffer=shm.buf)
        a[:] = x * x if write else 3.0
        return (a * x).sum()
    finally:
        shm.close()
        shm.unlink()

x = np.arange(8 * 1024.0)
assert (grad(f)(x, False) == 3.0).all()
for call in (lambda: grad(f)(x, True), lambda: jvp(f, (x, True), (x, None))):
    try:
        call()
    except plaingrad.AliasError as error:
        assert "mmap" in str(error)
    else:
        raise AssertionError("not refused")

shm = shared_memory.SharedMemory(create=True, size=64 * 1024)
a = np.ndarray(8 * 1024, buffer=shm.buf)
a[:] = 2.0
y, pullback = vjp(lambda a: (a * a).sum(), a)
y, through = vjp(lambda x: checkpoint(lambda x: (x * a).sum(), x), x)
shm.close()
shm.unlink()
assert (pullback(1.0)[0] == 4.0).all()
assert (through(1.0)[0] == 2.0).all()
"""
    here = {**os.environ, "PYTHONPATH": str(Path(plaingrad.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], env=here, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_an_argument_in_memory_that_the_function_gives_back():
    shm = shared_memory.SharedMemory(create=True, size=32)
    a = np.ndarray(4, buffer=shm.buf)
    a[:] = W

    def f(a):
        y = (a * a).sum()
        shm.close()
        return y

    assert np.array_equal(grad(f)(a), 2 * W)
    shm.unlink()


def test_closing_raises_what_the_plain_call_raises():
    def f(x):
        m = mmap.mmap(-1, 32)
        a = np.frombuffer(m)
        a[:] = 2.0
        y = (a * x).sum()
        try:
            m.close()
        except BufferError:
            y = y * 10.0
        del a
        m.close()
        return y

    check(f, X, np.full(4, 20.0))


def test_a_bytearray_may_grow_when_the_program_has_dropped_its_arrays():
    def f(x):
        raw = bytearray(W.tobytes())
        y = (np.frombuffer(raw) * x * x).sum()
        raw.extend(bytes(8))
        return y + len(raw) * x[0]

    g = 2 * W * X
    g[0] += 40.0
    check(f, X, g)


def test_what_was_there_when_it_was_read_counts_not_what_is_written_later():
    def f(x):
        raw = bytearray(W.tobytes())
        a = np.frombuffer(raw)
        y = (a * x * x).sum()
        a[1] = 10.0  # as an array
        y = y + (a * x).sum()
        raw[16:24] = struct.pack("d", -4.0)  # past NumPy
        return y + (a * x).sum()

    later = np.array([3.0, 10.0, 0.5, 7.0])
    last = np.array([3.0, 10.0, -4.0, 7.0])
    check(f, X, 2 * W * X + later + last)


def test_many_reads_of_large_memory_share_one_copy():
    m = mmap.mmap(-1, 8 * 2**20)
    a = np.frombuffer(m)
    a[:] = 0.5
    x = np.ones(2**20)

    def f(x):
        y = 0.0
        for _ in range(50):  # 50 copies would be 400 MB
            y = y + (a * x)[3]
        return y

    level_bytes = []
    y, pullback = vjp(f, x)
    run = pullback.__closure__
    level = next(c.cell_contents.level for c in run if hasattr(c.cell_contents, "level"))
    level_bytes = {id(c): c.nbytes for c in level.borrowed.copies.values()}
    assert len(level_bytes) == 1
    assert pullback(1.0)[0][3] == 25.0


# -- memory maps of files ----------------------------------------------------------------------------------------------


def test_memory_maps_are_differentiated_as_arguments_and_as_constants(tmp_path):
    path = tmp_path / "a"
    W.tofile(path)
    for mode in ("r", "r+", "c"):
        a = np.memmap(path, dtype=float, mode=mode)
        same_as_plain(lambda x, a=a: (a * x * np.sin(x)).sum() + (a @ x) ** 2, X)
        value, g = value_and_grad(lambda a: (a * a).sum())(a)
        assert value == (W * W).sum()
        assert type(g) is np.ndarray or isinstance(g, np.memmap)
        assert np.array_equal(g, 2 * W)
        assert isinstance(a, np.memmap)
        y = plaingrad.value_and_grad(lambda x, a=a: ((type(a * x) is np.ndarray) * (a * x)).sum())(X)[0]
        assert y == (W * X).sum()


def test_a_differentiated_memory_map_that_is_written_is_refused(tmp_path):
    path = tmp_path / "a"
    W.tofile(path)
    a = np.memmap(path, dtype=float, mode="r+")

    def f(a):
        a *= 2.0
        a.flush()
        return (np.fromfile(path) * a).sum()

    assert "argument 0" in refused(f, a)
    assert np.array_equal(np.fromfile(path), W)


def test_two_maps_of_one_file(tmp_path):
    path = tmp_path / "a"
    W.tofile(path)

    def f(x):
        a = np.memmap(path, dtype=float, mode="r+")
        b = np.memmap(path, dtype=float, mode="r")
        a[:] = x * x
        return (b * np.arange(4.0)).sum()

    refused(f, X)

    def g(x):  # what does not depend on x is written as in the plain call
        a = np.memmap(path, dtype=float, mode="r+")
        b = np.memmap(path, dtype=float, mode="r")
        y = (b * x).sum()
        a[:] = 2.0
        y = y + (b * x).sum()
        a[:] = W
        return y

    check(g, X, W + 2.0)
    assert np.array_equal(np.fromfile(path), W)


def test_an_argument_whose_memory_is_changed_otherwise_is_refused():
    raw = bytearray(W.tobytes())
    a = np.frombuffer(raw)

    def f(a):
        raw[:8] = struct.pack("d", 1.0 + struct.unpack_from("d", raw)[0])
        return (a * a).sum()

    assert "changed otherwise" in refused(f, a, where="argument 0")


def test_an_argument_that_is_read_under_another_name_too():
    raw = bytearray(W.tobytes())
    a, b = np.frombuffer(raw), np.frombuffer(raw)
    assert np.array_equal(grad(lambda a: (a * b).sum())(a), W)  # b is a constant, as of any two names


# -- written with values that depend on the inputs -----------------------------------------------------------------------

WAYS_TO_READ = {
    "bytes": lambda raw, a: np.frombuffer(bytes(raw)).sum(),
    "bytearray": lambda raw, a: np.frombuffer(bytearray(raw)).sum(),
    "slice": lambda raw, a: np.frombuffer(raw[8:]).sum(),
    "unpack": lambda raw, a: struct.unpack_from("d", raw, 8)[0],
    "join": lambda raw, a: np.frombuffer(b"".join([raw])).sum(),
    "ctypes": lambda raw, a: (ctypes.c_double * 4).from_buffer(raw)[2],
    "memoryview": lambda raw, a: memoryview(raw).cast("d")[1],
    "array": lambda raw, a: array.array("d", bytes(raw))[0],
    "BytesIO": lambda raw, a: np.frombuffer(io.BytesIO(raw).getvalue()).sum(),
    "another array": lambda raw, a: np.frombuffer(raw).sum(),
    "the array itself": lambda raw, a: a.sum(),
}


def test_the_owner_of_memory_is_named_without_names_of_the_engine():
    def f(x):
        raw = (ctypes.c_double * 2)()
        a = np.frombuffer(raw)
        a[0] = x
        return raw[0]

    with pytest.raises(plaingrad.AliasError, match=r"in memory of a c_double_Array_2 \(the local `raw`\)"):
        plaingrad.grad(f)(2.0)


@pytest.mark.parametrize("way", WAYS_TO_READ)
def test_memory_that_can_be_read_otherwise_is_not_written(way):
    def f(x):
        raw = bytearray(32)
        a = np.frombuffer(raw)
        a[:] = x * x
        return WAYS_TO_READ[way](raw, a)

    text = refused(f, X)
    assert "a bytearray (the local `raw`)" in text
    assert "stop_gradient" in text


WRITES = {
    "slice": lambda a, x: a.__setitem__(slice(None), x),
    "element": lambda a, x: a.__setitem__(1, x[0]),
    "index": lambda a, x: a.__setitem__([0, 2], x[:2]),
    "in place": lambda a, x: a.__iadd__(x),
    "product": lambda a, x: a.__imul__(x),
    "out": lambda a, x: np.exp(x, out=a),
    "copyto": lambda a, x: np.copyto(a, x),
    "put": lambda a, x: np.put(a, [1], x[0]),
    "fill": lambda a, x: a.fill(x[0]),
    "flat": lambda a, x: a.flat.__setitem__(2, x[0]),
    "view": lambda a, x: a[::-1][1:].__setitem__(0, x[3]),
    "sum": lambda a, x: np.sum(x, out=a[:1].reshape(())),
}
OTHERS = [w for w in WRAPPED if w not in (over_bytes, unpickled, over_dlpack)]


@pytest.mark.parametrize("wrap", OTHERS)
@pytest.mark.parametrize("write", WRITES)
def test_whoever_lends_it_and_however_it_is_written(wrap, write):
    def f(x):
        a, close = wrap()
        WRITES[write](a, x)
        return float(a.sum())

    with pytest.raises(AliasError, match="NumPy does not own"):
        grad(f)(X)
    with pytest.raises(AliasError, match="NumPy does not own"):
        plaingrad.derivative(lambda t: f(X * t))(1.0)


def test_a_refused_write_leaves_the_memory_as_it_was():
    raw = bytearray(W.tobytes())

    def f(x):
        a = np.frombuffer(raw)
        a[:] = x
        return a.sum()

    refused(f, X)
    assert raw == W.tobytes()


def test_values_without_their_derivative_may_be_written():
    raw = bytearray(W.tobytes())

    def f(x):
        a = np.frombuffer(raw)
        a[:] = plaingrad.stop_gradient(x * x)
        return (a * x).sum()

    assert np.array_equal(grad(f)(X), X * X)
    assert raw == (X * X).tobytes()


def test_a_read_only_array_raises_what_the_plain_call_raises():
    def f(x):
        a = np.frombuffer(W.tobytes())
        try:
            a[:] = x
        except ValueError:
            return (a * x).sum()
        return 0.0

    check(f, X, W)


def test_memory_that_only_arrays_can_read_is_written():
    def of_bytearray(x):
        a = np.frombuffer(bytearray(32))
        b = a[::-1]
        a[:] = x * x
        b[0] *= 3.0
        return (a * np.arange(1.0, 5.0)).sum()

    def without_export(x):
        a = np.ndarray((2, 2), buffer=bytearray(32))
        a[0] = x[:2]
        a[1] = a[0] * x[2:]
        return (a * a).sum()

    def of_array_array(x):
        a = np.asarray(array.array("d", W))
        a *= x
        a += a[::-1].copy()
        return (a * a).sum()

    def unpickled(x):
        a = pickle.loads(pickle.dumps(W, 5))
        a[1:] *= x[1:]
        y = (a * x).sum()
        a[:] = x
        return y * (a * a).sum()

    for f in (of_bytearray, without_export, of_array_array, unpickled):
        same_as_plain(f, X)
        assert np.isfinite(plaingrad.hessian(f)(X)).all()
        assert np.allclose(plaingrad.hessian(f)(X), jacobian(jacobian(f))(X))


def test_the_base_of_such_an_array_is_not_handed_out_by_getattr_either():
    def f(x):
        a = np.frombuffer(bytearray(32))
        a[:] = x
        return np.frombuffer(getattr(a, "base").obj).sum()

    assert "handed out" in refused(f, X)


def test_the_base_of_such_an_array_is_not_handed_out():
    def f(x):
        a = np.frombuffer(bytearray(32))
        a[:] = x
        return np.frombuffer(a.base.obj).sum()

    assert "handed out" in refused(f, X)

    def g(x):  # views show their array, and memory without such values is shown
        a = np.frombuffer(bytearray(W.tobytes()))
        assert type(a.base) is memoryview
        del a
        a = np.frombuffer(bytearray(32))
        a[:] = x
        return a[1:].base.sum()

    check(g, X, np.ones(4))


def test_an_unpickled_argument_is_written_as_any_other():
    def f(a):
        a *= 2.0
        return (a * a).sum()

    a = pickle.loads(pickle.dumps(W, 5))
    assert np.array_equal(grad(f)(a), 8 * W)
    assert np.array_equal(a, 2 * W)


def test_memory_reached_by_its_address():
    class Alias:
        def __init__(self, a):
            self.__array_interface__ = a.__array_interface__
            self.keep = a

    def f(x):
        a = np.zeros(4)
        b = np.asarray(Alias(a))
        a[:] = x
        return b.sum()

    with pytest.raises(plaingrad.MissingRuleError, match="address"):
        grad(f)(X)

    def g(x):
        a = np.zeros(4)
        b = np.ctypeslib.as_array(a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), (4,))
        a[:] = x
        return b.sum()

    with pytest.raises(plaingrad.MissingRuleError, match="address"):
        grad(g)(X)


def test_nditer_buffers_are_not_written():
    def f(x):
        a = np.zeros(4)
        for v in np.nditer(a, op_flags=[["readwrite"]]):
            v[...] = x[0] * x[1]
        return a.sum()

    refused(f, X)


# -- other ways to ask -----------------------------------------------------------------------------------------------------


def test_inside_other_derivatives():
    a, close = over_mmap()

    def f(x):
        return (a * x**3).sum()

    assert np.allclose(plaingrad.hessian(f)(X), np.diag(6 * W * X))
    assert np.allclose(grad(lambda x: grad(f)(x) @ W)(X), 6 * W * W * X)
    assert np.allclose(plaingrad.hvp(f, (X,), (V,)), 6 * W * X * V)
    assert np.allclose(jvp(grad(f), (X,), (V,))[1], 6 * W * X * V)

    def writes(x):
        b, close = over_mmap()
        b[:] = grad(lambda y: (y**3).sum())(x)
        return b.sum()

    refused(writes, X, where="in `writes`")

    def inside(x):  # written with what is active further out only
        b = np.zeros(4)

        def g(y):
            c, close = over_mmap()
            c[:] = x
            return (c * y).sum()

        b[:] = grad(g)(x)
        return b.sum()

    refused(inside, X, where="in `g`")


def test_in_threads_and_after_an_exception():
    a, close = over_mmap()
    found = []

    def f(x):
        y = (a * x * x).sum()
        try:
            b = np.frombuffer(bytearray(W.tobytes()))
            y = y + (b * x).sum()
            raise KeyError
        except KeyError:
            return y

    def work():
        for _ in range(20):
            found.append(grad(f)(X))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 80
    assert all(np.allclose(g, 2 * W * X + W) for g in found)


def test_empty_and_zero_dimensional_and_nan():
    def f(x):
        raw = bytearray(8)
        e = np.ndarray(0, buffer=raw)
        z = np.ndarray((), buffer=raw)
        z[...] = 3.0
        e[:] = x[4:]
        n = np.ndarray(1, buffer=bytearray(np.array([np.nan]).tobytes()))
        y = (z * x).sum() + (e * e).sum() + np.where(np.isnan(n), x, n).sum()
        return y + (z + x).sum()

    same_as_plain(f, X)


def test_checkpoints_over_memory_that_is_given_back():
    def f(x):
        a, close = over_mmap()
        y = plaingrad.checkpoint(lambda x: (a * x * x).sum(), x)
        del a
        close()
        return y

    same_as_plain(lambda x: f(x) + 0.0, X)

    kept = []

    def sequence(x, give_back):
        a, close = over_shared_memory()
        kept.append(close)  # which refers to the memory
        y = plaingrad.checkpoint_sequence(lambda s: s * a, x, 3, 2)
        if give_back:
            close()
        return y.sum()

    assert np.allclose(grad(sequence)(X, False), W**3)
    kept.pop()()
    with pytest.raises(plaingrad.CheckpointError, match="given back"):
        grad(sequence)(X, True)


def test_sparsity():
    pytest.importorskip("scipy")
    a, close = over_mmap()
    pattern = plaingrad.sparsity(lambda x: a * x, X)
    assert pattern.shape == (4, 4)

    def f(x):
        b, close = over_mmap()
        b[:] = x
        return b * 2.0

    with pytest.raises(AliasError):
        plaingrad.sparsity(f, X)


def test_nothing_of_ours_holds_an_array_that_the_program_has_dropped():
    def f(x):
        m = mmap.mmap(-1, 32)
        a = np.frombuffer(m)
        np.add(a, 2.0, out=a)  # through a definition in Python
        y = sum(u * v for u, v in zip(a, x, strict=True))
        for _, _ in zip(a, x, strict=True):
            break
        y = y + np.sum([a * x, x]) + np.max(np.vstack((a, 3.0 * x)))
        del a
        m.close()
        return y

    check(f, X, np.array([5.0, 5.0, 8.0, 5.0]))


def test_writes_through_a_memoryview_are_writes_of_the_array():
    def f(x):
        w = np.ones(4)
        m = memoryview(w)
        y = (x * w).sum()
        m[0] = 9.0
        y = y + (x * w).sum()
        m.cast("B")[8:16] = struct.pack("d", 5.0)
        m[2:] = memoryview(np.array([7.0, 8.0]))
        return y + (x * w).sum()

    check(f, X, np.array([19.0, 7.0, 9.0, 10.0]))
    assert np.isclose(grad(lambda t: t * grad(f)(X * t).sum())(1.0), 45.0)

    def g(x):
        w = np.ones(4)
        y = (x * w).sum()
        struct.pack_into("d", memoryview(w), 0, 5.0)
        return y

    with pytest.raises(plaingrad.MissingRuleError):
        grad(g)(X)
