"""A batch that runs at once gives what the loop gives, and what it may not do at once it leaves to the loop."""

import functools
import io
import math
import warnings
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import plaingrad
import pytest
from plaingrad import Tangent, grad, hessian, jacobian, rrule, stop_gradient, tree_leaves, value_and_grad, vmap
from plaingrad.api import batches
from plaingrad.engine.batches import admitted

rng = np.random.default_rng(0)
X, M, s = rng.normal(size=(6, 3)), rng.normal(size=(6, 3, 3)), rng.random(6) + 0.5
v, W, Q = rng.normal(size=3), rng.normal(size=(3, 4)), rng.normal(size=(3, 3)) + 3 * np.eye(3)
Pair = namedtuple("Pair", "a b")


@dataclass
class Unit:
    W: np.ndarray
    b: float

    def out(self, x):
        return np.tanh(self.W @ x + self.b)

    @property
    def count(self):
        return self.W.size


@pytest.fixture
def ways(monkeypatch):
    """Calls of one thing where batches run at once, and where they are loops; and why a batch was left to the loop."""
    why = []
    monkeypatch.setattr(batches.Run, "give_up", noted(batches.Run.give_up, why))

    def both(call):
        found = []
        for fewest in (2, 10**9):
            monkeypatch.setattr(batches, "FEWEST", fewest)
            admitted._known.clear()
            with warnings.catch_warnings(record=True) as seen, redirect_stdout(io.StringIO()) as printed:
                warnings.simplefilter("always")
                try:
                    result = call()
                except Exception as error:
                    result = repr(error)
            found.append((result, [str(w.message) for w in seen], printed.getvalue()))
        return found

    both.why = why
    return both


def noted(give_up, why):
    def noting(self, reason, once=False):
        why.append(reason)
        give_up(self, reason, once)

    return noting


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-12 if a.dtype.itemsize > 4 else 1e-5, atol=1e-13)
    elif isinstance(a, (dict, Tangent)):
        assert set(a) == set(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert a == b


OF_NUMBERS = {
    "math": lambda x: math.sin(x) * math.exp(-x * x) + math.atan2(x, 1.0) + math.log(x) + math.pow(x, 1.5),
    "operators": lambda x: -x + x**2 / 3 - 2**x + x % 0.3 + x // 0.3 + abs(-x),
    "comparisons": lambda x: ((x > 1) * 2.0, x == x, float(x) <= 1),
    "extremes": lambda x: max(x, 0.0) + min(x, 0.9, 1.1),
    "agreeing": lambda x: x if x > 0 else -x,
    "structures": lambda x: {"a": [x, 3, "text", None], "b": (x * 2, 1.0)},
    "constants": lambda x: (3.0, np.ones(2), 2),
    "arrays": lambda x: np.array([[x, 1], [2, x]]),
    "sums": lambda x: sum(x * k for k in range(3)) + sum([x, 1]),
    "types": lambda x: (isinstance(x, float) * 1.0, 1.0 if type(x) is np.float64 else 2.0, x.dtype.itemsize),
    "calls": lambda x: (lambda *a, **k: a[0] * k["z"])(*[x], **{"z": x}) + functools.partial(math.pow, 2.0)(x),
    "whole numbers": lambda x: Pair(int(x) if x.dtype.kind == "i" else x, x * 2),
}
OF_ARRAYS = {
    "sums": lambda x: (x.sum(), np.sum(x, 0), np.mean(x, axis=-1, keepdims=True), np.std(x, ddof=1), x.max(0)),
    "cumulations": lambda x: (np.cumsum(x), np.cumsum(x, 0), np.argmax(x), x.argmin(0), np.sort(x, axis=0)),
    "shapes": lambda x: (x.reshape(-1), np.reshape(x, (-1, 1)), x.T, np.swapaxes(x, 0, -1), np.expand_dims(x, -1)),
    "more shapes": lambda x: (np.squeeze(x[None]), np.broadcast_to(x, (2, *x.shape)), x.flatten(), np.moveaxis(x, 0, -1)),
    "joined": lambda x: (np.concatenate([x, np.ones(x.shape)]), np.stack([x, x + 1], axis=-1), np.hstack([x, x])),
    "chosen": lambda x: (np.where(x > 0, x, 0), np.clip(x, -0.5, 0.5), np.maximum(0.0, x), np.sign(x)),
    "items": lambda x: (x[0], x[-1], x[1:], x[::-1], x[..., 0], x[[0, 2]], x[np.array([True, False, True])], x[None]),
    "rows": lambda x: ([r * 2 for r in x], sum(k * r for k, r in enumerate(x)), [a * b for a, b in zip(x, v)]),  # noqa: B905
    "products": lambda x: (x @ v, v @ x, x @ W, W.T @ x, x @ x, np.dot(x, x), x.dot(v), np.dot(x, 2.0)),
    "norms": lambda x: (np.linalg.norm(x), np.linalg.norm(x, axis=-1), np.linalg.solve(Q, x)),
    "likes": lambda x: (np.zeros_like(x) + x, x * x.shape[0] + x.size + len(x), x.copy(), x.astype(np.float32)),
    "softmax": lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(),
}
OF_MATRICES = {
    "einsum": lambda x: (np.einsum("ij,jk->ik", x, W), np.einsum("ji", x), np.einsum("ii", x)),
    "solutions": lambda x: (np.linalg.inv(x + Q), np.linalg.det(x), np.linalg.solve(x + Q, x[0])),
    "steps": lambda x: functools.reduce if x.ndim > 2 else steps(x),
}


def steps(x):
    h = x * 0.5
    for _ in range(3):
        h = np.tanh(h + x)
        h *= 0.5
        h += 1
    return h


@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("numbers", [s, s.astype(np.float32), np.array([1, 2, 3]), np.array([1.0, 0.0, -1.0, np.nan])])
def test_numbers(ways, name, numbers):
    (a, *_), (b, *_) = ways(lambda: vmap(OF_NUMBERS[name])(numbers))
    assert_same(a, b)
    if numbers is s:
        assert not ways.why


@pytest.mark.parametrize("name", [*OF_ARRAYS, *OF_MATRICES])
@pytest.mark.parametrize("kind", ["vectors", "matrices", "strided", "narrow", "integers", "complex", "empty"])
def test_arrays_and_their_gradients(ways, name, kind):
    f = OF_ARRAYS.get(name) or OF_MATRICES[name]
    if name in OF_MATRICES and kind != "matrices":
        return
    of_kind = {
        "vectors": X,
        "matrices": M,
        "strided": X[::-1, ::-1],
        "narrow": X.astype(np.float32),
        "integers": rng.integers(-3, 4, size=(6, 3)),
        "complex": X + 1j * X[:, ::-1],
        "empty": np.zeros((6, 0)),
    }[kind]
    a, b = ways(lambda: vmap(f)(of_kind))
    assert_same(a, b)
    if kind in ("vectors", "matrices") and (kind, name) != ("matrices", "norms"):
        assert not ways.why

        def total(x):
            return sum(np.sum(np.sin(y)) for y in tree_leaves(f(x)) if y.dtype.kind == "f")

        assert_same(*ways(lambda: vmap(grad(total))(of_kind)))
        assert_same(*ways(lambda: grad(lambda Z: np.sum(vmap(total)(Z)))(of_kind)))


def loss(w, x):
    return np.tanh(w @ x) ** 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: vmap(grad(loss, (0, 1)), (None, 0))(v, X),
        lambda: vmap(value_and_grad(lambda x: (np.sum(x**2), {"a": x * 2, "b": 3}), has_aux=True))(X),
        lambda: vmap(grad(lambda p, x: np.sum(p["a"] * x) + p["b"][0], argnums=-2), (None, 0))({"a": v, "b": [2.0], "n": 3}, X),
        lambda: vmap(grad(lambda m, x: m.out(x) * m.count), (None, 0))(Unit(v, 0.5), X),
        lambda: vmap(grad(lambda m: np.sum(m.W) * m.b))(Unit(X, s)),
        lambda: vmap(grad(lambda p: p.a * p.b))(Pair(s, s)),
        lambda: vmap(grad(grad(lambda z: math.sin(z) * z**3)))(s),
        lambda: vmap(lambda x: grad(lambda w: loss(w, x) * np.sum(w * w))(v * x[0]) * x)(X),
        lambda: vmap(grad(lambda x: np.sum(stop_gradient(x) * x)))(X),
        lambda: vmap(grad(lambda x: np.sum(x)))(X.astype(np.float32)),
        lambda: vmap(vmap(grad(loss), (None, 0)), (0, None))(X, X + 1),
        lambda: vmap(lambda row: vmap(lambda z: z * 2 + math.sin(z))(row).sum())(X),
        lambda: vmap(vmap(lambda z: z * v, out_axes=1), out_axes=2)(M),
        lambda: grad(lambda w: np.sum(vmap(loss, (None, 0))(w, X)))(v),
        lambda: hessian(lambda w: np.sum(vmap(loss, (None, 0))(w, X)))(v),
        lambda: jacobian(lambda w: vmap(loss, (None, 0))(w, X), mode="forward")(v),
        lambda: hessian(lambda w: np.sum(vmap(grad(loss), (None, 0))(w, X) ** 2))(v),
        lambda: grad(lambda w: np.sum(vmap(lambda x: grad(lambda z: loss(z, w) * z[0])(x))(X) ** 2))(v),
        lambda: vmap(lambda x, m: m @ x, in_axes=(1, -1))(X.T, M.transpose(1, 2, 0)),
        lambda: vmap(lambda x: (x, {"k": x[:, None]}), out_axes=(1, {"k": -1}))(X),
        lambda: vmap(lambda x, k: x[k] * k, (0, 0))(X, np.array([0, 2, 1, -1, 0, 0])),
        lambda: vmap(lambda k: v[k])(np.array([0, 2, -1])),
        lambda: vmap(grad(lambda x, k=1: np.sum(x * k)))(X, k=v),
    ],
)  # fmt: skip
def test_compositions(ways, call):
    assert_same(*ways(call))
    assert not ways.why


def test_derivatives_against_closed_forms(monkeypatch):
    monkeypatch.setattr(batches, "FEWEST", 2)
    expected = (2 * np.tanh(X @ v) / np.cosh(X @ v) ** 2)[:, None] * X
    np.testing.assert_allclose(vmap(grad(loss), (None, 0))(v, X), expected)
    np.testing.assert_allclose(grad(lambda w: np.sum(vmap(loss, (None, 0))(w, X)))(v), expected.sum(0))


class Noted:
    """An object that notes whatever is done to it."""

    def __init__(self):
        self.log = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.log.append(name) or 2.0

    @property
    def w(self):
        self.log.append("w")
        return 2.0

    def method(self, x=1.0) -> Any:
        self.log.append("method")
        return x

    __call__ = __getitem__ = __mul__ = __add__ = __contains__ = __rmul__ = method

    def __eq__(self, other):
        return self.method() == other

    def __bool__(self):
        return self.log.append("bool") is None

    def __len__(self):
        return self.log.append("len") or 2

    def __iter__(self):
        return iter([self.method()])

    def __hash__(self):
        return self.log.append("hash") or 1

    def __format__(self, spec):
        return self.log.append("format") or "text"

    def __enter__(self):
        self.log.append("enter")

    def __exit__(self, *_):
        self.log.append("exit")


def in_with(c, x):
    with c:
        return x * 2


def swallowing(c, x):
    try:
        c.log.append(float(x[0]))
    except BaseException:
        c.log.append("never")
    finally:
        c.log.append("finally")
    return x


def in_place(c, x):
    x += 1
    return x * 1


def changed(a):
    a += 1
    return a


class Calls:
    def __get__(self, instance, owner):
        owner.count.append(1)
        return float(len(owner.count))


class Counting:
    count: ClassVar[list[int]] = []
    calls = Calls()


EFFECTS = [
    lambda c, x: x * c.w,
    lambda c, x: x * c.anything,
    lambda c, x: c.method(x),
    lambda c, x: c(x),
    lambda c, x: x * c[1.0],
    lambda c, x: x if c else -x,
    lambda c, x: x * (not c),
    lambda c, x: c * x,
    lambda c, x: x + len(c),
    lambda c, x: x + sum(c),
    lambda c, x: x + [*c][0],
    lambda c, x: x if 1 in c else -x,
    lambda c, x: x * len(f"{c}"),
    lambda c, x: x if c == 1 else x,
    lambda c, x: x if [c] == [1] else x,
    lambda c, x: x * len({c}),
    lambda c, x: x * (c in [1, 2]),
    lambda c, x: x * sorted([2, 1], key=c.method)[0],
    lambda c, x: x * sum(map(c, [1.0])),
    lambda c, x: (c.log.append(1), x)[1],
    lambda c, x: (c.log.extend([1]), x)[1],
    lambda c, x: (setattr(c, "v", 1), x)[1],
    lambda c, x: (print(x.shape), x)[1],
    lambda c, x: x + next(c.rows),
    lambda c, x: x + sum(c.rows),
    lambda c, x: x + c.random.normal(),
    lambda c, x: (np.add(x, 1, out=x), x * 1)[1],
    lambda c, x: (x.sort(), x * 1)[1],
    lambda c, x: (np.add(c.buffer, 1.0, c.buffer), x * c.buffer)[1],
    lambda c, x: (np.exp(c.buffer / 9, c.buffer), x * c.buffer)[1],
    lambda c, x: (np.cumsum(c.buffer + 1, 0, None, c.buffer), x * c.buffer)[1],
    lambda c, x: (c.buffer.clip(1.0, 2.0, c.buffer), x * c.buffer)[1],
    lambda c, x: x * Counting.calls,
    lambda c, x: changed(np.asarray(x, dtype=float)) * 2,
    lambda c, x: changed(x.astype(float, copy=False)) * 2,
    lambda c, x: (lambda y: (changed(np.asarray(y, dtype=float)), y))(x * 2)[1],
    in_with,
    swallowing,
    in_place,
]


@pytest.mark.parametrize("f", EFFECTS)
def test_effects_are_those_of_the_loop(ways, f):
    seen = []

    def call():
        c, numbers = Noted(), X.copy()
        c.rows, c.random, c.buffer = iter(map(float, range(10))), np.random.default_rng(1), np.zeros(3)
        Counting.count.clear()
        result = vmap(lambda x: f(c, x))(numbers)
        seen.append((c.log, numbers, next(c.rows, None), c.random.normal(), c.buffer, len(Counting.count)))
        return result

    a, b = ways(call)
    assert_same(a, b)
    assert_same(*seen)


@pytest.mark.parametrize(
    "f, numbers",
    [
        (lambda x: math.log(x), [1.0, -1.0]),
        (lambda x: np.log(x), [1.0, -1.0]),
        (lambda x: 1 / x, [1.0, 0.0]),
        (lambda x: 1 / float(x), [1.0, 0.0]),
        (lambda x: math.exp(x), [1.0, 1000.0]),
        (lambda x: x if x > 1 else -x, [1.0, 2.0]),
        (lambda x: [1.0][int(x)], [0.0, 1.0]),
        (lambda x: grad(np.sqrt)(x), [1.0, 0.0]),
        (lambda x: x * 2**62, [1, 3]),
        (lambda x: round(x, 1), [1.24, 2.0]),
        (lambda x: len(str(x)), [1.0, 2.25]),
        (lambda x: {x: 1}[x], [1.0, 2.0]),
        (lambda x: np.zeros(0).mean() + x, [1.0, 2.0]),
        (lambda x: x + "a", [1.0, 2.0]),
        (lambda x: rule_of_its_own(x), [1.0, 2.0]),
        (lambda x: 1.0 if (math.sin(x) > 0) is True else 2.0, [1.0, 2.0]),
        (lambda x: 1.0 if math.isnan(x) is False else 2.0, [1.0, 2.0]),
        (lambda x: 1.0 if (float(x) > 0) is (float(x) > 0.5) else 2.0, [1.0, 2.0]),
        (lambda x: 1.0 if float(float(x)) is float(x) else 2.0, [1.0, 2.0]),
        (lambda x: 1.0 if x is None or type(x) is float else 2.0, [1.0, 2.0]),
        (lambda x: int(x) >> -1, [1, 2]),
        (lambda x: 1j * float(x) < 1j, [1.0, 2.0]),
        (lambda x: np.array([int(x)], dtype=np.int8), [100, 300]),
        (lambda x: x.item(), [1.0, 2.0]),
    ],
)
def test_errors_warnings_and_what_has_no_form(ways, f, numbers):
    assert_same(*ways(lambda: vmap(f)(np.array(numbers))))
    assert_same(*ways(lambda: vmap(f)(np.array(numbers, np.float32))))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.float16])
@pytest.mark.parametrize("f", [lambda x: -x[0], lambda x: x[0] * x[1], lambda x: x @ x, lambda x: x[0].item()])
def test_narrow_numbers_wrap_and_warn_as_in_the_loop(ways, f, dtype):
    a, b = ways(lambda: vmap(f)(np.array([[100, 90], [120, 3]], dtype)))
    assert_same(a, b)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w: np.sum(np.array([x[0], w[0, 0], 1.0]) ** 2),
        lambda x, w: np.sum(np.stack([w[0, 0], x[0], w[1, 0]]) ** 2),
        lambda x, w: np.sum(np.hstack([x[0], w[0, 0], w[1]]) ** 2),
        lambda x, w: np.sum(np.vstack([x, w[1], w]) ** 2) * np.sum(np.vstack([x[0], w[1, 1]])),
        lambda x, w: np.sum(np.concatenate([x, w], axis=None) ** 2),
    ],
)
def test_numbers_shared_by_the_examples_keep_their_derivative(ways, f):
    a, b = ways(lambda: grad(lambda w: np.sum(vmap(f, (0, None))(X, w)))(Q))
    assert_same(a, b)
    step = np.random.default_rng(3).normal(size=Q.shape) * 1e-6
    along = sum(f(x, Q + step) - f(x, Q - step) for x in X) / 2
    np.testing.assert_allclose(np.sum(a[0] * step), along, rtol=1e-6)


def test_rules_of_the_program_count(ways):
    a, b = ways(lambda: grad(lambda z: np.sum(vmap(lambda x: rule_of_its_own(x))(z)))(s))
    assert_same(a, b)
    np.testing.assert_array_equal(a[0], np.full(6, 5.0))


def rule_of_its_own(x):
    return 2 * x


@rrule(rule_of_its_own)
def its_rrule(x):
    return 2 * x, lambda y_bar: (5 * y_bar,)


def test_results_are_apart_from_arguments_and_each_other(monkeypatch):
    monkeypatch.setattr(batches, "FEWEST", 2)
    given = X.copy()
    one, two, three = vmap(lambda x: (x, x, x * 1))(given)
    one += 1
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(two, X)
    h, k = vmap(lambda x: (lambda h: (h, h))(x * 1))(given)
    h += 1
    np.testing.assert_array_equal(k, X)
    assert vmap(lambda x: x)(np.broadcast_to(v, (6, 3))).flags.writeable


def test_blocks_of_examples_are_joined(monkeypatch):
    monkeypatch.setattr(batches, "FEWEST", 2)
    monkeypatch.setattr(batches, "IN_A_BLOCK", 10)
    np.testing.assert_allclose(vmap(lambda x: (2 * x, x.sum()), out_axes=(1, 0))(X)[0], 2 * X.T)
    np.testing.assert_allclose(vmap(grad(loss), (None, 0))(v, X), [grad(loss)(v, x) for x in X])
    found = vmap(lambda x: 1.0 if x > 1 else x)(np.array([2.0, 2.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0]))
    np.testing.assert_array_equal(found, [1, 1, 1, 1, 1, 0, 0, 0])


def test_in_threads(monkeypatch):
    monkeypatch.setattr(batches, "FEWEST", 2)
    each = vmap(grad(loss), (None, 0))
    expected = each(v, X)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda k: each(v * 1.0, X), range(20)):
            np.testing.assert_array_equal(found, expected)


def test_the_tangent_of_an_object_has_a_row_for_each_example(monkeypatch):
    monkeypatch.setattr(batches, "FEWEST", 2)
    found = vmap(grad(lambda m, x: m.out(x)), (None, 0))(Unit(v, 0.5), X)
    slopes = 1 / np.cosh(X @ v + 0.5) ** 2
    assert type(found) is plaingrad.Tangent
    np.testing.assert_allclose(found.W, slopes[:, None] * X)
    np.testing.assert_allclose(found.b, slopes)
