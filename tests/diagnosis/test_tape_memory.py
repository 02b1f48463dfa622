"""`max_memory=` stops at the line where the tape grows too large; `tape_size` says beforehand how large it would be."""

import concurrent.futures
import math
import pickle
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import plaingrad
from plaingrad import TapeMemoryError, grad, tape_size


def settle(x, n=400):
    for _ in range(n):
        x = math.sin(x) * 1.01
    return x


def waves(x, n=20):
    for _ in range(n):
        x = np.sin(x)
        x = x * 2.0
    return x.sum()


def relax(x, n=20):
    y = x.copy()
    for _ in range(n):
        y[1:] += np.sin(y[:-1])
    return y.sum()


def held_by(f, x):
    """The bytes that a pullback of `f` holds, as the allocator has it."""
    plaingrad.vjp(f, x)  # what is prepared once is prepared
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        _, pullback = plaingrad.vjp(f, x)
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        del pullback


@pytest.mark.parametrize(("f", "x"), [(settle, 0.5), (waves, np.ones(10_000)), (relax, np.ones(10_000))])
def test_the_size_is_that_of_the_memory_that_a_pullback_holds(f, x):
    f = f if f is not settle else lambda x: settle(x, 20_000)
    assert 0.5 < tape_size(f, x).bytes / held_by(f, x) < 1.3


def test_the_size_is_told_by_line_and_in_little_memory():
    x = np.ones(10_000)
    tape_size(waves, x)
    tracemalloc.start()
    try:
        found = tape_size(lambda x: waves(x, 200), x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.bytes > 16e6 and peak < 4e6
    place, count = found.lines[0]
    assert place.line == waves.__code__.co_firstlineno + 2 and count > 0.9 * found.bytes
    assert f"{place.line}, in `waves`" in repr(found)
    assert grad(waves)(x).shape == x.shape


@pytest.mark.parametrize(
    "operator",
    [
        lambda f, x, most: grad(f, max_memory=most)(x),
        lambda f, x, most: plaingrad.value_and_grad(f, max_memory=most)(x),
        lambda f, x, most: plaingrad.vjp(f, x, max_memory=most),
        lambda f, x, most: plaingrad.jacobian(f, mode="reverse", max_memory=most)(x),
        lambda f, x, most: pickle.loads(pickle.dumps(grad(f, max_memory=most)))(x),
    ],
)
@pytest.mark.parametrize(("f", "x"), [(settle, 0.5), (waves, np.ones(1000)), (relax, np.ones(1000))])
def test_every_operator_stops_at_the_line(operator, f, x):
    traced = sys.gettrace()
    with pytest.raises(TapeMemoryError) as caught:
        operator(f, x, 3000)
    first = str(caught.value).splitlines()[0]
    assert any(f"test_tape_memory.py:{f.__code__.co_firstlineno + k}, in `{f.__name__}`" in first for k in (1, 2, 3))
    assert sys.gettrace() is traced
    operator(f, x, 1e8)  # and is silent where there is room


def test_gradients_are_those_without_a_bound():
    x = np.linspace(0.0, 1.0, 7)
    for f in (waves, relax):
        np.testing.assert_array_equal(grad(f, max_memory=1e9)(x), grad(f)(x))
    assert grad(settle, max_memory=1e9)(0.5) == grad(settle)(0.5)
    twice = grad(lambda t: grad(settle, max_memory=10)(t), max_memory=1e9)  # the outermost's bound is the one
    assert twice(0.5) == pytest.approx(plaingrad.derivative(settle, 2)(0.5), rel=1e-10)


def test_a_derivative_inside_counts_too():
    outer = lambda t: grad(lambda s: settle(s, 2000))(t)
    with pytest.raises(TapeMemoryError, match="in `settle`"):
        grad(outer, max_memory=20_000)(0.5)


def test_checkpoints_make_room():
    def stretch(x):
        return waves_of(x)

    def waves_of(x):
        for _ in range(10):
            x = np.sin(x)
        return x

    def straight(x):
        for _ in range(10):
            x = waves_of(x)
        return x.sum()

    def checkpointed(x):
        for _ in range(10):
            x = plaingrad.checkpoint(stretch, x)
        return x.sum()

    x, most = np.linspace(0.0, 1.0, 1000), 300_000
    with pytest.raises(TapeMemoryError, match=r"plaingrad\.checkpoint"):
        grad(straight, max_memory=most)(x)
    np.testing.assert_allclose(grad(checkpointed, max_memory=most)(x), grad(straight)(x), rtol=1e-14)


def test_a_program_that_swallows_the_error_is_stopped_all_the_same():
    def f(x):
        try:
            return settle(x)
        except Exception:
            return x

    with pytest.raises(TapeMemoryError) as first:
        grad(f, max_memory=1000)(0.5)
    try:  # another attempt, where the first error is handled
        raise first.value
    except TapeMemoryError:
        with pytest.raises(TapeMemoryError):
            grad(f, max_memory=1000)(0.5)


def test_what_is_no_number_of_bytes_is_refused():
    for wrong in ("2 GB", -1, True, math.nan):
        with pytest.raises(plaingrad.ArgumentError, match="number of bytes"):
            grad(settle, max_memory=wrong)(0.5)
        with pytest.raises(plaingrad.ArgumentError, match="number of bytes"):
            plaingrad.vjp(settle, 0.5, max_memory=wrong)
    with pytest.raises(plaingrad.ArgumentError, match="inside of a derivative"):
        grad(lambda x: x * tape_size(settle, x).bytes)(0.5)


def test_other_errors_pass_and_nothing_is_left_behind():
    def f(x):
        y = np.sin(x)
        raise KeyError(y.size)

    for operator in (lambda x: grad(f, max_memory=1e9)(x), lambda x: tape_size(f, x)):
        with pytest.raises(KeyError):
            operator(np.ones(3))
    assert grad(settle)(0.5) == grad(settle)(0.5)


def test_values_of_several_kinds_are_counted_without_a_change_of_the_program():
    numbers = [0.1 * k for k in range(100)]
    table = {"w": np.ones((50, 50)), "b": [1.0, 2.0]}

    def f(xs, p):
        y = np.array(xs[:50])
        for _ in range(5):
            y = np.tanh(p["w"] @ y / 50.0) + p["b"][0]
            xs[0] = float(y[0])
        return y.sum() + math.fsum(xs) * p["b"][1]

    expected = grad(f, (0, 1))(list(numbers), table)
    given = list(numbers)
    found = grad(f, (0, 1), max_memory=1e9)(given, table)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
    np.testing.assert_allclose(found[1]["w"], expected[1]["w"], rtol=1e-14)
    before = list(numbers)
    size = tape_size(f, before, table)
    assert before == numbers and 20_000 < size.bytes < 200_000


def test_what_threads_record_is_counted_while_they_do():
    steps = []
    both = threading.Barrier(2)  # CPython traces a thread no more in which an error was raised so

    def part(x):
        both.wait()
        for k in range(200):
            x = np.sin(x)
            steps.append(k)
        return x.sum()

    def f(x):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return sum(pool.map(part, [x, x * 2.0]))

    x = np.ones(1000)
    with pytest.raises(plaingrad.TapeMemoryError, match="max_memory allows 100 kB"):
        grad(f, max_memory=1e5)(x)
    assert len(steps) < 100  # and not only when the results are there
    np.testing.assert_allclose(grad(f, max_memory=1e9)(x), grad(f)(x), rtol=1e-14)
    size = tape_size(f, x)
    assert size.bytes > 3_000_000
    assert "part" in {place.function for place, _ in size.lines}
    assert threading.gettrace() is None
