"""`vmap`: a function of one example applied to a batch is the loop over its examples, derivatives included."""

import math
from collections import namedtuple

import numpy as np
import plaingrad
import pytest
from plaingrad import ArgumentError, grad, hessian, jacobian, jvp, vmap

X = np.arange(6.0).reshape(3, 2)
Y = np.array([1.0, 0.0, 2.0])
w = np.array([0.5, -1.0])


def loss(w, x, y):
    return (w @ x - y) ** 2


def test_gradients_per_example_are_right():
    expected = 2.0 * (X @ w - Y)[:, None] * X
    np.testing.assert_allclose(vmap(grad(loss), in_axes=(None, 0, 0))(w, X, Y), expected)
    by_both = vmap(grad(loss, (0, 2)), in_axes=(None, 0, 0))(w, X, Y)
    np.testing.assert_allclose(by_both[0], expected)
    np.testing.assert_allclose(by_both[1], -2.0 * (X @ w - Y))


def test_it_is_differentiated_in_every_mode_and_nests():
    mean = lambda w: np.mean(vmap(loss, in_axes=(None, 0, 0))(w, X, Y))
    expected = np.mean(2.0 * (X @ w - Y)[:, None] * X, 0)
    np.testing.assert_allclose(grad(mean)(w), expected)
    np.testing.assert_allclose(jacobian(mean, mode="forward")(w), expected)
    np.testing.assert_allclose(hessian(mean)(w), 2.0 * X.T @ X / 3)
    cubes = vmap(grad(lambda x: np.sum(x**3)))
    np.testing.assert_allclose(grad(lambda X: np.sum(cubes(X)))(X), 6.0 * X)
    np.testing.assert_allclose(vmap(hessian(lambda x: np.sum(x**3)))(X)[2], np.diag(6.0 * X[2]))
    products = vmap(vmap(lambda a, b: a * b, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_allclose(products(Y, w), np.outer(Y, w))
    np.testing.assert_allclose(jvp(products, (Y, w), (np.ones(3), None))[1], np.outer(np.ones(3), w))


def test_any_python_may_be_in_it():
    def steps(x):
        """Collatz-like: the number of steps is another for each example."""
        n = 0
        while x > 1.0:
            x, n = x / 2.0, n + 1
        return {"x": x, "n": n, "sign": "even" if n else "even", "nothing": None}

    found = vmap(steps)(np.array([8.0, 3.0, 0.5]))
    np.testing.assert_allclose(found["x"], [1.0, 0.75, 0.5])
    assert found["n"].tolist() == [3, 2, 0] and found["n"].dtype.kind == "i"
    assert found["sign"] == "even" and found["nothing"] is None
    np.testing.assert_allclose(grad(lambda x: np.sum(vmap(steps)(x)["x"]))(np.array([8.0, 3.0, 0.5])), [1 / 8, 1 / 4, 1.0])


def test_axes():
    np.testing.assert_array_equal(vmap(np.sum, in_axes=1)(X), X.sum(0))
    np.testing.assert_array_equal(vmap(np.sum, in_axes=-1)(X), X.sum(0))
    np.testing.assert_array_equal(vmap(lambda x: 2 * x, out_axes=1)(X), 2 * X.T)
    np.testing.assert_array_equal(vmap(lambda x: (x, x), out_axes=(0, -1))(X)[1], X.T)
    labels = np.array([0, 1, 1])
    np.testing.assert_array_equal(vmap(lambda x, k: x[k])(X, labels), [0.0, 3.0, 5.0])
    assert vmap(math.sin)(Y)[0] == math.sin(1.0)


def test_structures_are_mapped_and_returned():
    Pair = namedtuple("Pair", "a b")

    class Model:
        def __init__(self, W, scale):
            self.W, self.scale = W, scale

    found = vmap(lambda p: Pair(p["x"].sum(), [p["c"] * 2.0]), in_axes=({"x": 1, "c": None},))({"x": X, "c": 4.0})
    assert type(found) is Pair
    np.testing.assert_array_equal(found.a, X.sum(0))
    np.testing.assert_array_equal(found.b[0], [8.0, 8.0])
    of_models = vmap(grad(lambda m, x: m.scale * np.sum(m.W * x)), in_axes=(None, 0))(Model(w, 2.0), X)
    assert type(of_models) is plaingrad.Tangent
    np.testing.assert_array_equal(of_models.W, 2.0 * X)
    np.testing.assert_array_equal(of_models.scale, X @ w)
    of_stacks = vmap(lambda m: m.scale * m.W[0])(Model(X, 2.0))
    np.testing.assert_array_equal(of_stacks, 2.0 * X[:, 0])


def test_arguments_by_name_are_the_same_for_all():
    np.testing.assert_array_equal(vmap(lambda x, by: x * by)(Y, by=3.0), 3.0 * Y)


def test_a_function_may_return_an_array_that_it_writes_into_again():
    Pair = namedtuple("Pair", "a b")
    weights = np.array([[1.0], [2.0], [3.0]])

    def in_a_buffer(x, buffer):
        buffer[0] = x * x
        return buffer

    def in_structures(x, buffer):
        return {"l": [in_a_buffer(x, buffer)], "p": Pair(buffer, (buffer,))}

    batched = vmap(in_a_buffer, (0, None))
    np.testing.assert_array_equal(batched(Y, np.zeros(1)), Y[:, None] ** 2)
    np.testing.assert_array_equal(grad(lambda y: np.sum(batched(y, np.zeros(1)) * weights))(Y), 2 * Y * [1, 2, 3])
    found = vmap(in_structures, (0, None))(Y, np.zeros(1))
    for part in (found["l"][0], found["p"].a, found["p"].b[0]):
        np.testing.assert_array_equal(part, Y[:, None] ** 2)


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: vmap(loss, (None, 0, 0))(w, X, Y[:2]), "differ in the number of examples: 3 in argument 1, 2"),
        (lambda: vmap(loss, (None, None, None))(w, X, Y), "no argument is mapped"),
        (lambda: vmap(loss, (None, 0))(w, X, Y), "2 entries"),
        (lambda: vmap(loss)(w, 1.0, Y), "no axis of examples"),
        (lambda: vmap(np.sum, 2)(X), "2 axes"),
        (lambda: vmap(np.sum)(X[:0]), "empty"),
        (lambda: vmap(lambda k: np.ones(k))(np.array([1, 2])), "different shapes"),
        (lambda: vmap(lambda x: "low" if x < 1 else "high")(Y), "differ where"),
        (lambda: vmap(lambda x: [1.0] * int(x + 1))(Y), "different entries"),
        (lambda: vmap(lambda x: None if x < 1 else 1.0)(Y), "differ|types"),
        (lambda: vmap(np.sum, ({"a": 0},))({"b": X}), "not like"),
        (lambda: vmap(np.sum)(np.ma.masked_less(X, 1.0)), "argument 0 is an array with a mask"),
        (lambda: vmap(lambda x: np.ma.masked_less(x, 1.0))(X), "a result is an array with a mask"),
    ],
)
def test_what_is_no_batch_is_refused(call, word):
    with pytest.raises(ArgumentError, match=word):
        call()
