"""What a batch that runs at once got wrong once: views, iterators, classes of the program, results that hold functions."""

import functools
import math

import numpy as np
import plaingrad
import pytest
from plaingrad import grad, vmap
from plaingrad.api import batches
from plaingrad.engine.batches import admitted
from plaingrad.errors import ArgumentError

rng = np.random.default_rng(0)
X, M, s = rng.normal(size=(6, 3)), rng.normal(size=(6, 3, 3)), rng.random(6) + 0.5
K = np.array([0, 1, 2, 0, 1, 2])


class Odd(float):
    def __add__(self, other):
        return 7.0

    __radd__ = __add__


class OddArray(np.float64):
    count = 0

    def sum(self):
        OddArray.count += 1
        return 5.0 * OddArray.count


class Square:
    def __call__(self, x):
        return x * x


class Truth:
    count = 0

    def __bool__(self):
        Truth.count += 1
        return False


def add_one(a):
    a += 1.0


def row(x, k):
    add_one(x[k])
    return x.sum()


def transposed(x):
    y = x * 1.0
    add_one(np.einsum("ij->ji", y))
    return y.sum()


def copied(x):
    z = np.array(x).copy()
    also = z
    z += 1.0
    return also * 1.0


def converted(x):
    z = np.array(x).astype(float)
    also = z
    z += 1.0
    return also * 1.0


def rest_after_zip(x):
    g = (x * i for i in range(5))
    return sum(u for u, _ in zip(g, [1, 2], strict=False)) + 100 * sum(g)


def rest_after_break(x):
    g = (x * i for i in range(5))
    for i, _ in enumerate(g):
        if i == 1:
            break
    return sum(g) + x


def rest_after_any(x):
    g = (i for i in range(5))
    any(g)
    return sum(g) * x


def zip_twice(x):
    z = zip([x, x], [1.0, 2.0], strict=True)
    return sum(u * v for u, v in z) + 10 * sum(u * v for u, v in z)


def enumerate_twice(x):
    z, y = enumerate([x, 2 * x, 3 * x]), 0.0 * x
    for _ in z:
        break
    for _, v in z:
        y = y + v
    return y


def reversed_twice(x):
    z = reversed([x, 2 * x])
    return (*z, *z, len([*z]))


def first_of_many(x):
    for i, _ in enumerate(range(10**12)):
        if i == 3:
            return x * i


matrix = np.ones((3, 3)).view(
    type("Mine", (np.ndarray,), {"__mul__": lambda a, b: 9.0, "__rmul__": lambda a, b: 9.0})
)
odd, odd_array, masked = Odd(2.0), OddArray(2.0), np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
LIKE_LOOPS = [
    (row, (M, K)),
    (transposed, (M,)),
    (copied, (s,)),
    (converted, (s,)),
    (rest_after_zip, (s,)),
    (rest_after_break, (s,)),
    (rest_after_any, (s,)),
    (zip_twice, (s,)),
    (enumerate_twice, (s,)),
    (reversed_twice, (s,)),
    (first_of_many, (s,)),
    (lambda x: list(reversed(u for u in x)), (X,)),
    (lambda x: x * len(u for u in x), (X,)),
    (lambda x: x * len(np.shape(np.array(u for u in range(3)))), (X,)),
    (lambda x: all(u > -9 for u in x), (X,)),
    (lambda x: any([x[0] > -9, 1 / 0]), (X,)),
    (lambda x: float(x) + odd, (s,)),
    (grad(lambda x: float(x) + odd), (s,)),
    (lambda x: x * masked, (X,)),
    (lambda x: x * matrix, (X,)),
    (lambda x: x, (s.astype(s.dtype.newbyteorder()),)),
    (lambda x: np.array([x, 10**30])[0], (s,)),
    (lambda x: math.copysign(1.0, float(x) ** 0.5), (np.full(6, -0.0),)),
    (lambda x: isinstance(grad(lambda t: t * t)(float(x)) * 2.0, np.float64), (s,)),
    (lambda x: isinstance(abs(-grad(lambda t: t * t)(x)), np.float64), (s,)),
    (lambda x: isinstance(max(np.array(x), 0.0), np.ndarray), (s,)),
    (lambda x: np.cumsum(x, 2), (s,)),
    (lambda x: lambda: x, (s,)),
    (lambda x: [functools.partial(math.sin, x)], (s,)),
    (lambda x: (x.sum, slice(x, None)), (X,)),
    (lambda x: zip(x, strict=True), (X,)),
    (lambda x: (math.sin, None, "a", float, x), (X,)),
]


def ways(monkeypatch, f, args):
    """What f gives for a batch at once, and in a loop, with the arguments as they are then."""
    found = []
    for fewest in (2, 10**9):
        monkeypatch.setattr(batches, "FEWEST", fewest)
        admitted._known.clear()
        own = [a.copy() for a in args]
        try:
            result = vmap(f)(*own)
        except Exception as error:
            result = repr(error)
        found.append((result, own))
    return found


@pytest.mark.parametrize(("f", "args"), LIKE_LOOPS)
def test_a_batch_gives_what_the_loop_gives(monkeypatch, f, args):
    (a, after), (b, expected) = ways(monkeypatch, f, args)
    assert_same(a, b)
    assert_same(after, expected)


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12)
    elif isinstance(a, (list, tuple)):
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert a == b


def test_rows_of_shared_arrays_are_written_into_as_by_the_loop(monkeypatch):
    shared = np.ones((3, 4))

    def f(k):
        add_one(shared[k])
        return shared.sum()

    monkeypatch.setattr(batches, "FEWEST", 2)
    np.testing.assert_array_equal(vmap(f)(K), [16, 20, 24, 28, 32, 36])
    np.testing.assert_array_equal(shared, np.full((3, 4), 3.0))


def test_methods_and_truths_of_classes_of_the_program_are_called_for_each_example(monkeypatch):
    monkeypatch.setattr(batches, "FEWEST", 2)
    truths = [Truth(), Truth()]
    np.testing.assert_array_equal(vmap(lambda x: x * odd_array.sum())(np.ones(4)), [5, 10, 15, 20])
    vmap(lambda x: x if any(t for t in truths) else -x)(s)
    assert Truth.count == 12


def test_a_rule_of_one_object_counts(monkeypatch):
    square = Square()
    plaingrad.rrule(square)(lambda x: (x * x, lambda z_bar: (1000.0 * z_bar,)))
    monkeypatch.setattr(batches, "FEWEST", 2)
    np.testing.assert_array_equal(vmap(grad(lambda x: square(x)))(s), np.full(6, 1000.0))


def test_functions_as_results_are_refused_unless_they_are_one():
    """The loop gave that of the first example."""
    with pytest.raises(ArgumentError, match="differ where they hold"):
        vmap(lambda x: lambda: x)(s[:2])
    assert vmap(lambda x: math.sin)(s[:2]) is math.sin
