"""Section B of the features: differentiation of a language's semantics (Zygote), a test a row."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes
import ctypes.util
import dataclasses
import functools
import math
import queue
import threading
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, jacobian

SOURCE = Path(plaingrad.__file__).parent


def test_b1_custom_adjoints_and_what_is_built_from_them():
    def clipped(x):
        return x

    @plaingrad.rrule(clipped)
    def clipped_rrule(x):
        return x, lambda y_bar: (min(y_bar, 1.0),)

    assert grad(lambda x: 5.0 * clipped(x))(2.0) == 1.0

    seen = []
    slope = grad(lambda x: plaingrad.hook(lambda bar: seen.append(bar) or 2 * bar, x) ** 2)(3.0)
    assert (slope, seen) == (12.0, [6.0])

    levels = []
    grad(grad(lambda x: (levels.append(plaingrad.nestlevel()), x * x)[1]))(1.0)
    assert levels == [2]


def test_b1_nested_checkpoints_run_again_as_often_as_they_should():
    runs = []

    def inner(x):
        runs.append("inner")
        return math.sin(x)

    def outer(x):
        runs.append("outer")
        return plaingrad.checkpoint(inner, x) * x

    slope = grad(lambda x: plaingrad.checkpoint(outer, x))(0.5)
    assert math.isclose(slope, math.sin(0.5) + 0.5 * math.cos(0.5))
    assert runs.count("outer") == 2 and runs.count("inner") == 3  # again with outer, and for its own way back


@dataclasses.dataclass
class Node:
    value: float
    child: object = None


Pair = namedtuple("Pair", "a b")


class Slotted:
    __slots__ = ("w",)

    def __init__(self, w):
        self.w = w


factor = 2.0


def test_b2_structures_mutation_and_gradients_that_mirror_the_structure():
    def f(x):
        x["list"].append(x["node"].value * x["pair"].a)
        x["array"][1:] *= x["slotted"].w
        return sum(x["list"]) + x["node"].child.value * x["array"].sum() * factor

    def given():
        return {
            "list": [1.0, 2.0], "node": Node(3.0, Node(4.0)), "pair": Pair(5.0, 6.0),
            "array": np.array([1.0, 2.0, 3.0]), "slotted": Slotted(0.5),
        }  # fmt: skip

    bar = grad(f)(given())
    assert bar["list"] == [1.0, 1.0]
    assert (bar["node"].value, bar["node"].child.value) == (5.0, (1 + 2.5) * 2)
    assert bar["pair"] == Pair(3.0, 0.0)
    assert bar["array"].tolist() == [8.0, 4.0, 4.0]
    assert bar["slotted"].w == 4.0 * 5.0 * 2.0


def test_b2_globals_and_nonlocal():
    def f(x):
        global factor
        count = 0.0

        def add(y):
            nonlocal count
            count += y

        before, factor = factor, x
        add(factor * x)
        add(factor)
        factor = before
        return count

    assert grad(f)(3.0) == 7.0 and factor == 2.0


def numbers(x):
    for k in range(3):
        yield x**k


class Manager:
    def __init__(self, x):
        self.x = x

    def __enter__(self):
        return self.x * 2

    def __exit__(self, *_):
        return True


def matched(x):
    match x:
        case [a, {"b": b}]:
            return a * b
        case _:
            return 0.0


def raised(x):
    try:
        raise ValueError(x * x)
    except ValueError as error:
        return error.args[0]


def managed(x):
    total = x
    with Manager(x) as y:
        total = y * y
        raise KeyError
    return total


async def later(x):
    await asyncio.sleep(0)
    return x * x


CONTROL = {
    "closure": (lambda x: (lambda y: x * y)(x), 6.0),
    "higher order": (lambda x: functools.reduce(lambda a, b: a * b, map(lambda k: k * x, [1.0, 2.0])), 12.0),
    "generator": (lambda x: sum(numbers(x)), 7.0),
    "comprehension": (lambda x: sum([y * y for y in (x, 2 * x) if y > 0]), 30.0),
    "exception": (raised, 6.0),
    "with": (managed, 24.0),
    "match": (lambda x: matched([x, {"b": x}]), 6.0),
    "async": (lambda x: asyncio.run(later(x)), 6.0),
}


@pytest.mark.parametrize("of", CONTROL)
def test_b3_closures_recursion_and_any_control_flow(of):
    f, expected = CONTROL[of]
    assert grad(f)(3.0) == expected


def test_b4_threads_queues_pools_and_tasks():
    def by_queue(x):
        channel: queue.Queue = queue.Queue()
        worker = threading.Thread(target=lambda: channel.put(math.sin(x) * x))
        worker.start()
        worker.join()
        return channel.get()

    def by_pool(x):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda k: math.sin(x * k), [1.0, 2.0]))

    async def gathered(x):
        return sum(await asyncio.gather(later(x), later(2 * x)))

    assert math.isclose(grad(by_queue)(0.5), math.sin(0.5) + 0.5 * math.cos(0.5))
    assert math.isclose(grad(by_pool)(0.5), math.cos(0.5) + 2 * math.cos(1.0))
    assert grad(lambda x: asyncio.run(gathered(x)))(3.0) == 30.0


def test_b5_mixed_mode_taylor_checkpoints_and_modes_of_functions():
    inner = lambda x: math.sin(x) * x
    expected = 2 * (0.5 * math.sin(0.5)) * (math.sin(0.5) + 0.5 * math.cos(0.5))
    assert math.isclose(grad(lambda x: plaingrad.forwarddiff(inner, x) ** 2)(0.5), expected)
    coefficients = plaingrad.taylor(math.exp, 0.0, 4)
    assert np.allclose(coefficients, [1 / math.factorial(k) for k in range(5)])
    squares = plaingrad.prefer_mode("forward")(lambda x: x * x)
    np.testing.assert_array_equal(jacobian(squares)(np.array([1.0, 2.0])), np.diag([2.0, 4.0]))
    wide, tall = (lambda x: x.sum(keepdims=True)), (lambda x: x * np.ones(50))
    assert jacobian(wide, mode="auto")(np.ones(50)).shape == (1, 50)
    assert jacobian(tall, mode="auto")(np.ones(1)).shape == (50, 1)


def test_b6_another_languages_function_by_ctypes_with_a_rule():
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.j0.restype, library.j0.argtypes = ctypes.c_double, [ctypes.c_double]
    library.j1.restype, library.j1.argtypes = ctypes.c_double, [ctypes.c_double]
    plaingrad.scalar_rule(library.j0, lambda x, z: -library.j1(x))
    h = 1e-5
    expected = (library.j0(2.0 + h) ** 2 - library.j0(2.0 - h) ** 2) / (2 * h)
    assert math.isclose(grad(lambda x: library.j0(x) ** 2)(2.0), expected, rel_tol=1e-8)


def test_b6_jax_inside_and_plaingrad_inside_jax():
    jax = pytest.importorskip("jax")
    assert math.isclose(grad(lambda x: float(plaingrad.jax.inside(jax.numpy.sin)(x)))(0.5), math.cos(0.5), rel_tol=1e-6)


def test_b7_complex_numbers():
    z = 1.0 + 2.0j
    assert grad(lambda z: abs(z) ** 2)(z) == 2 * z  # x_bar + i y_bar
    assert plaingrad.derivative(lambda z: z**3)(z) == 3 * z**2
    by_z, by_conjugate = plaingrad.wirtinger(lambda z: z * z.conjugate() + z)(z)
    assert (by_z, by_conjugate) == (z.conjugate() + 1, z)


@functools.singledispatch
def dispatched(x):
    return x * 3


@dispatched.register
def _(x: list):
    return x[0] * 5


class Registering(type):
    def __new__(cls, name, bases, names):
        return super().__new__(cls, name, bases, {**names, "power": 3})


def test_b8_staged_programs():
    def f(x):
        names = {"x": x}
        exec("y = x * x", names)
        made = Registering("Made", (), {"value": names["y"]})
        return eval("a * b", {"a": made.value**made.power, "b": 1.0}) + dispatched(x) + dispatched([x])

    assert grad(f)(1.5) == 6 * 1.5**5 + 8
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(grad(lambda a: np.einsum("ij,kj->", a, a))(a), 2 * np.ones((2, 1)) * a.sum(0))


def test_b9_any_number_and_array():
    assert grad(lambda x: x**3)(Fraction(1, 3)) == Fraction(1, 3)
    assert grad(lambda x: x * x)(Decimal("1.1")) == Decimal("2.2")
    for t in (np.float16, np.float32, np.float64, np.longdouble):
        slope = grad(lambda x: x * x)(t(1.5))
        assert type(slope) is t and slope == 3
    scipy_sparse = pytest.importorskip("scipy.sparse")
    matrix = scipy_sparse.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
    np.testing.assert_array_equal(grad(lambda x: (matrix @ x).sum())(np.ones(2)), [3.0, 3.0])


def test_b9_numbers_of_other_libraries():
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(50):
        x = mpmath.mpf(1) / 3
        assert abs(grad(lambda x: mpmath.sin(x) * x)(x) - (mpmath.sin(x) + x * mpmath.cos(x))) < mpmath.mpf(10) ** -48


def test_b11_the_core_is_small():
    def lines(path):
        return len((SOURCE / path).read_text().splitlines())

    assert lines("rewrite/transform.py") <= 500  # the rewrite of one code object
    assert lines("engine/memory/tape.py") <= 500  # the tape and the way back over it
