"""np.vectorize: elements, calls, types and errors are those of the plain call, with differentiated arrays beside or in it."""

import warnings

import numpy as np
import pytest

from plaingrad import derivative, grad, jvp

B = np.array([True, False])
CASES = {
    "truth values": (lambda b: b, B),
    "their negation": (lambda b: not b, B),
    "their inversion": (lambda b: ~b, B),
    "their sum": (lambda b: b + b, B),
    "two of them": (lambda b, c: b and c, B, np.array([True, True])),
    "in a matrix": (lambda b: not b, B.reshape(2, 1)),
    "in a list": (lambda b: b, [True, False]),
    "one": (lambda b: b, True),
    "single": (lambda x: x * 2, np.array([1.5, 2], np.float32)),
    "half": (lambda x: x * 1000, np.array([100.0], np.float16)),
    "complex": (lambda x: x * 1j, np.array([1, 2], np.complex64)),
    "bytes": (lambda n: n, np.array([1, 2], np.int8)),
    "bytes that overflow": (lambda n: n + 100, np.array([100, 2], np.int8)),
    "unsigned": (lambda n: -n, np.array([1, 2], np.uint8)),
    "large": (lambda n: n, np.array([2**63], np.uint64)),
    "products of int32": (lambda n: n * n, np.array([70000], np.int32)),
    "times": (lambda t: t, np.array([1, 2], "m8[s]")),
    "text": (lambda s: s + "x", np.array(["a", "bc"])),
    "objects": (lambda x: x, np.array([1, "a"], object)),
    "the class of what it is given": (lambda x: len(type(x).__name__), np.array([1.0, 2.0])),
    "an attribute of NumPy's numbers": (lambda x: getattr(x, "dtype", B.dtype).itemsize, np.array([1.0, 2.0], np.float32)),
    "two results": (lambda x: (x, x > 1), np.array([1, 2], np.float32)),
    "lists": (lambda x: [x, 1], np.array([1.0, 2.0])),
    "arrays": (lambda x: np.array([x, 1.0]), np.array([1.0, 2.0])),
    "arrays without axes": (lambda x: np.array(x), np.array([1.0, 2.0])),
    "nothing": (lambda x: x * 2.0, np.ones((0, 3))),
}  # fmt: skip
OPTIONS = {"": {}, "with a cache": {"cache": True}, "of floats": {"otypes": [float]}, "of objects": {"otypes": [object]}}


def described(f, options, args):
    """The type, shape and elements of what np.vectorize gives, or its error; what `f` was called with; warnings."""
    calls = []

    def noted(*elements):
        calls.append([(type(x).__name__, repr(x)) for x in elements])
        return f(*elements)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            results = np.vectorize(noted, **options)(*args)
        except (TypeError, ValueError, OverflowError) as error:
            return type(error), str(error), calls
    results = results if isinstance(results, tuple) else (results,)
    given = [(w.category, str(w.message)) for w in warned]  # of `~` on truth values, since Python 3.12
    return [(type(y), y.dtype, y.shape, y.tolist()) for y in results], calls, given


@pytest.mark.parametrize("slope", [grad, derivative])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("f, args", [(f, args) for f, *args in CASES.values()], ids=CASES)
def test_beside_a_derivative_all_is_as_in_a_plain_call(f, args, options, slope):
    plain, seen = described(f, options, args), []

    def program(x):
        seen.append(described(f, options, args))
        return x * x

    assert slope(program)(1.5) == 3.0
    assert repr(seen) == repr([plain])


X = np.array([0.5, 1.25, -2.0])


@pytest.mark.parametrize("options", [{}, {"cache": True}, {"otypes": [float]}])
def test_differentiated_elements(options):
    def program(x):
        return np.sum(np.vectorize(lambda a, n: a * a * n if a > 0 else -a, **options)(x, [1, 2, 3]))

    expected = [2 * X[0], 4 * X[1], -1.0]
    assert grad(program)(X) == pytest.approx(expected)
    assert jvp(program, (X,), (np.ones(3),)) == pytest.approx((program(X), sum(expected)))
    assert grad(lambda x: np.sum(grad(program)(x)))(X) == pytest.approx([2.0, 4.0, 0.0])
    assert derivative(lambda t: program(np.array([t, t, -t])))(1.0) == pytest.approx(2.0 + 4.0 + 1.0)


def test_differentiated_single_precision_stays_so():
    values = []

    def program(x):
        y = np.vectorize(lambda a: a * 2)(x)
        values.append(y.dtype)
        return y.sum()

    x_bar = grad(program)(X.astype(np.float32))
    assert x_bar.dtype == np.float32 and x_bar.tolist() == [2.0, 2.0, 2.0]
    assert values == [np.dtype(np.float32)] == [np.vectorize(lambda a: a * 2)(X.astype(np.float32)).dtype]


def test_nothing_to_differentiate_in_it():
    def program(x):
        return np.sum(np.vectorize(lambda a: a * a, otypes=[float])(x)) + np.sum(x)

    assert grad(program)(np.ones((0, 2))).shape == (0, 2)
    with pytest.raises(ValueError, match="size 0 inputs unless `otypes`"):
        grad(lambda x: np.sum(np.vectorize(lambda a: a * a)(x)))(np.ones(0))


def test_a_cached_first_call_counts():
    def program(x, cache):
        calls = []
        y = np.vectorize(lambda a: calls.append(1) or a * a * len(calls), cache=cache)(x)
        return np.sum(y)

    for cache, weights in ((True, [1, 2, 3]), (False, [2, 3, 4])):
        assert program(X, cache) == pytest.approx(np.sum(X * X * weights))
        assert grad(program)(X, cache) == pytest.approx(2 * X * weights)
