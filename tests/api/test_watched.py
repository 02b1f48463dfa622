"""Gradients by parameters in globals, closures and objects, which are no arguments."""

import concurrent.futures
import itertools
import threading

import numpy as np
import plaingrad
import pytest
from plaingrad import ArgumentError, MissingRuleError, grad, grad_wrt, jvp

W = np.array([[1.0, 2.0]])
b = np.array([0.5])
x = np.array([1.0, 1.0])


def loss(x):
    return np.sum((W @ x + b) ** 2)


class Model:
    def __init__(self):
        self.W = np.array([2.0, 3.0])
        self.rate = 0.5
        self.steps = 3

    def __call__(self, x):
        return np.sum(self.W * x) ** 2 * self.rate


def test_globals_are_differentiated_where_they_lie():
    assert_same = np.testing.assert_array_equal
    found = grad_wrt(loss, [W, b])(x)
    assert_same(found[0], [[7.0, 7.0]])
    assert_same(found[1], [7.0])
    value, by_name = grad_wrt(loss, {"W": W, "b": b}, value=True)(x)
    assert value == 12.25
    assert_same(by_name["W"], found[0])
    by_argument = grad(lambda W, b, x: np.sum((W @ x + b) ** 2), (0, 1))(W, b, x)
    assert_same(found[0], by_argument[0])


def test_objects_are_differentiated_through_whatever_reads_them():
    model = Model()
    alias = model.W
    (slopes,) = grad_wrt(model, [model])(x)
    assert slopes == plaingrad.Tangent(Model, {"W": np.array([5.0, 5.0]), "rate": 25.0})
    slopes = grad_wrt(lambda: np.sum(alias[::-1] * [1.0, 10.0]) * model.rate, model)()
    np.testing.assert_array_equal(slopes.W, [5.0, 0.5])
    assert slopes.rate == 23.0
    assert model.W is alias and model.rate == 0.5


def test_closures_lists_and_dictionaries():
    weights = {"a": 2.0, "list": [3.0, 4.0]}

    def f(t):
        return weights["a"] * weights["list"][1] * t

    assert grad_wrt(f, [weights])(10.0) == [{"a": 40.0, "list": [0.0, 20.0]}]
    assert grad_wrt(lambda t: (f(t), "aux"), [weights], has_aux=True)(1.0)[1] == "aux"


def test_a_function_may_write_into_its_parameters():
    V = np.array([1.0, 2.0])

    def f():
        V[0] *= 3.0
        s = np.sum(V**2)
        V[1] = 7.0
        return s

    np.testing.assert_array_equal(grad_wrt(f, V)(), [18.0, 4.0])
    np.testing.assert_array_equal(V, [3.0, 7.0])


def test_it_nests():
    cubes = lambda: grad_wrt(lambda: np.sum(W**3), W)()
    np.testing.assert_allclose(grad_wrt(lambda: np.sum(cubes() ** 2), W)(), 36.0 * W**3)
    of_scale = lambda t: grad_wrt(lambda: np.sum((W * t) ** 3), W)()
    np.testing.assert_allclose(jvp(of_scale, (1.0,), (1.0,))[1], 9.0 * W**2)
    assert grad(lambda t: np.sum(of_scale(t)))(1.0) == 45.0
    np.testing.assert_allclose(grad_wrt(lambda: grad(lambda t: np.sum((W * t) ** 3))(1.0), W)(), 9.0 * W**2)


def test_an_array_in_two_places_has_one_gradient():
    model = Model()
    model.tied = model.W
    slopes = grad_wrt(lambda: np.sum(model.W * model.tied), model)()
    np.testing.assert_array_equal(slopes.W, [4.0, 6.0])
    np.testing.assert_array_equal(slopes.tied, [4.0, 6.0])


def test_the_parameters_are_read_at_each_call():
    model = Model()
    by_model = grad_wrt(model, [model])
    model.W = np.array([0.0, 1.0])
    assert by_model(x)[0].rate == 1.0


def test_threads_share_a_model():
    model = Model()
    found = []
    threads = [threading.Thread(target=lambda: found.append(grad_wrt(model, [model])(x)[0].rate)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [25.0] * 4
    assert model.rate == 0.5


@pytest.mark.parametrize(
    "parameters, word",
    [
        (0.5, "value"),
        ([0.5], "value"),
        ([W, 3], "value"),
        ([(W, 1.0)], "value"),
        ([np.arange(3)], "array of floats"),
        ([W, W[0]], "share memory"),
        ([np.broadcast_to(1.0, (3,))], "several elements"),
        ([np.frombuffer(bytearray(16))], "memory of another"),
        (["text"], "no real or complex number"),
    ],
)
def test_what_has_no_place_is_refused(parameters, word):
    with pytest.raises(ArgumentError, match=word):
        grad_wrt(lambda: 1.0, parameters)()


def test_a_compiled_function_has_read_its_globals():
    numba = pytest.importorskip("numba")
    with pytest.raises(ArgumentError, match="constants"):
        grad_wrt(numba.njit(lambda: W[0, 0]), W)


def test_gradients_of_tied_arrays_are_arrays_of_their_own_and_nest():
    model = Model()
    model.tied = model.W
    slopes = grad_wrt(lambda: np.sum(model.W * model.tied), model)()
    slopes.W[0] = 9.0
    assert slopes.tied[0] == 4.0
    twice = grad_wrt(lambda: np.sum(grad_wrt(lambda: np.sum(model.W**3), model)().tied ** 2), model)()
    np.testing.assert_allclose(twice.W, 36.0 * model.W**3)


V = np.array([1.0, 2.0, 3.0])


def in_threads():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return sum(pool.map(lambda k: float(V[k] ** 2), range(3)))


def into_another_array():
    out = np.empty(3)
    np.multiply(V, V, out=out)
    return out.sum()


PROGRAMS = {
    "a checkpoint": lambda: plaingrad.checkpoint(lambda t: np.sum(V**2) * t, 1.0),
    "threads": in_threads,
    "iteration": lambda: sum(v * v for v in V),
    "out": into_another_array,
    "a view": lambda: np.sum(V[::-1].reshape(3, 1) ** 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_parameters_are_followed_wherever_they_are_read(name):
    np.testing.assert_array_equal(grad_wrt(PROGRAMS[name], V)(), 2.0 * V)


def test_a_view_as_parameter_and_the_memory_behind_it():
    B = np.arange(6.0).reshape(2, 3)
    row = B[1]
    np.testing.assert_array_equal(grad_wrt(lambda: np.sum(B**2), row)(), 2.0 * row)
    np.testing.assert_array_equal(grad_wrt(lambda: np.sum(row**2), B)(), [[0.0] * 3, 2.0 * row])


def test_derivatives_around_it_are_of_every_kind():
    of = lambda t: np.sum(grad_wrt(lambda: np.sum(np.sin(V * t)), V)())
    assert plaingrad.derivative(of)(1.0) == pytest.approx(np.sum(np.cos(V) - V * np.sin(V)))
    assert plaingrad.derivative(of, order=2)(1.0) == pytest.approx(np.sum(-2 * V * np.sin(V) - V**2 * np.cos(V)))
    np.testing.assert_array_equal(plaingrad.vmap(lambda t: grad_wrt(lambda: np.sum(V * t), V)())(np.array([1.0, 2.0])), [[1.0] * 3, [2.0] * 3])


def test_an_exception_leaves_the_parameters_as_they_were():
    model = Model()

    def fails():
        model.steps = [model.rate * 3.0]
        raise KeyError("no")

    with pytest.raises(KeyError):
        grad_wrt(fails, [model])()
    assert model.rate == 0.5 and model.steps == [1.5]


@pytest.mark.parametrize("make", [iter, reversed, zip, enumerate, itertools.cycle, itertools.chain])
def test_an_iterator_that_was_made_before_is_refused(make):
    """It takes numbers out of the vector natively, of which nobody would know."""
    w = np.array([1.0, 2.0, 3.0])
    by_next, by_loop = make(w), make(w)

    def of_first(it):
        for found in it:
            return np.sum(found) * 2.0

    for f in (lambda: np.sum(next(by_next)) * 2.0, lambda: of_first(by_loop)):
        with pytest.raises(MissingRuleError, match="made outside"):
            grad_wrt(f, w)()
    rows = iter(w[:, None])  # these are views
    assert grad_wrt(lambda: np.sum(next(rows) ** 2), w)().tolist() == [2.0, 0.0, 0.0]


# -- watch ---------------------------------------------------------------------------------------------------------


def test_a_block_records_one_call_by_globals_closures_and_objects():
    model, scale = Model(), {"s": 2.0}

    def f(x):
        return np.sum((W @ x + b) ** 2) * scale["s"] + model(x)

    with plaingrad.watch([W, scale, model]) as watched:
        y = watched(f, x)
        found = watched.gradient(y)
    assert y == f(x)
    expected = grad_wrt(f, [W, scale, model])(x)
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1:] == expected[1:]
    assert found[1] == {"s": 12.25} and found[2].rate == 25.0
    np.testing.assert_array_equal(watched.gradient(y)[0], expected[0])  # after the block, too


def test_a_cotangent_of_any_structure():
    with plaingrad.watch({"W": W, "b": b}) as watched:
        y = watched(lambda x: {"z": W @ x + b, "name": "affine"}, x)
        found = watched.gradient(y, {"z": np.array([3.0]), "name": None})
    np.testing.assert_array_equal(found["W"], [[3.0, 3.0]])
    np.testing.assert_array_equal(found["b"], [3.0])
    with plaingrad.watch(W) as watched:
        y = watched(lambda: W * W)
        with pytest.raises(plaingrad.NonScalarOutputError):
            watched.gradient(y)
        with pytest.raises(plaingrad.CotangentError):
            watched.gradient(y, np.ones(7))


def test_what_a_block_computes_is_refused():
    with plaingrad.watch(W) as watched:
        with pytest.raises(ArgumentError, match="nothing was called yet"):
            watched.gradient(1.0)
        y = watched(loss, x)
        z = 2.0 * y
        with pytest.raises(ArgumentError, match="what a block computes is not watched"):
            watched.gradient(z)
        with pytest.raises(ArgumentError, match="one watch is for one call"):
            watched(lambda y: W.sum() * y, z)
    with pytest.raises(ArgumentError, match="the block of watch is over"):
        plaingrad.watch(W)(loss, x)
    with pytest.raises(ArgumentError, match="cannot be a parameter by itself"):
        plaingrad.watch([1.0])


def test_a_parameter_that_changes_before_the_gradient_is_noticed():
    w = np.array([1.0, 2.0])
    with plaingrad.watch(w) as watched:
        y = watched(lambda: np.sum(w**2))
        w += 1.0
        with pytest.raises(plaingrad.ChangedSinceError):
            watched.gradient(y)


def test_a_block_inside_of_another_derivative():
    def slope(t):
        with plaingrad.watch(W) as watched:
            y = watched(lambda: np.sum(W**2) * t**3)
            return watched.gradient(y)[0, 1]

    assert grad(slope)(2.0) == pytest.approx(2.0 * W[0, 1] * 3.0 * 4.0)
    assert jvp(slope, (2.0,), (1.0,))[1] == pytest.approx(48.0)


def test_blocks_in_threads():
    def work(k):
        own = np.array([float(k)])
        with plaingrad.watch([W, own]) as watched:
            y = watched(lambda: np.sum(W) * own[0] ** 2)
            return watched.gradient(y)[1][0]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(8))) == [6.0 * k for k in range(8)]


def test_what_it_is_called():
    def f():
        return W[0]

    with plaingrad.watch([W]) as watched:
        assert repr(watched) == "<plaingrad.watch of a list: nothing called yet>"
        watched(f)
        assert repr(watched).endswith("test_what_it_is_called.<locals>.f>")
