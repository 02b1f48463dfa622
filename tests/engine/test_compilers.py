"""Numba's own Python code is called as it is; what it keeps outside of Python's objects is refused by name."""

import math
import weakref

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, jvp
from plaingrad.testing import check_grads

numba = pytest.importorskip("numba")
from numba.experimental import jitclass  # noqa: E402
from numba.typed import Dict, List  # noqa: E402


@numba.vectorize
def wave(a, b):
    return math.sin(a) * b


@numba.vectorize(["float64(float64, float64)"])
def typed_wave(a, b):
    return math.sin(a) * b


@numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()")
def total(a, result):
    result[0] = a.sum()


@numba.njit
def with_a_wave(a):
    return wave(a, a).sum()


@numba.stencil
def neighbours(a):
    return a[-1] + a[1]


@jitclass([("a", numba.float64)])
class Box:
    def __init__(self, a):
        self.a = a

    def square(self):
        return self.a * self.a


X = np.array([0.5, 2.0])


@pytest.mark.parametrize("f", [wave, typed_wave])
def test_an_elementwise_function_is_differentiated_from_its_python_function(f):
    assert grad(lambda x: f(x, 3.0).sum())(X) == pytest.approx(3.0 * np.cos(X))
    assert jvp(lambda x: f(x, x), (X,), (np.ones(2),))[1] == pytest.approx(np.sin(X) + X * np.cos(X))
    assert grad(lambda x: f(x, 3.0))(0.5) == pytest.approx(3.0 * math.cos(0.5))
    assert grad(grad(lambda x: f(x, 3.0)))(0.5) == pytest.approx(-3.0 * math.sin(0.5))
    value, _ = plaingrad.value_and_grad(lambda x: f(x, 3.0))(0.5)
    assert type(value) is type(f(0.5, 3.0)) and value == f(0.5, 3.0)


def test_it_is_called_as_it_is_on_constants():
    assert grad(lambda x: x * wave(0.5, 3.0))(2.0) == wave(0.5, 3.0)
    assert grad(lambda x: (x * wave.outer(X, X)).sum())(2.0) == pytest.approx(wave.outer(X, X).sum())
    assert grad(lambda x: x * total(X))(2.0) == 2.5
    table = List([3.0, 4.0])
    assert grad(lambda x: x * table[1] * Box(2.0).square())(2.0) == 16.0


def test_inside_a_compiled_function():
    assert grad(with_a_wave)(X) == pytest.approx(np.sin(X) + X * np.cos(X))


def in_a_typed_list(x):
    values = List()
    values.append(x)
    return values[0] * 2.0


def in_a_typed_list_made_at_once(x):
    return List([x, x])[0] * 2.0


def in_a_typed_dict(x):
    table = Dict.empty(numba.types.int64, numba.types.float64)
    table[1] = x
    return table[1] * 2.0


def in_a_jitclass(x):
    return Box(x).square()


def in_an_attribute_of_a_jitclass(x):
    box = Box(1.0)
    box.a = x
    return box.square()


def in_a_reduction(x):
    return wave.outer(np.array([x]), np.array([1.0])).sum()


def in_a_c_function(x):
    return CFUNC.ctypes(x)


@numba.cfunc("float64(float64)")
def CFUNC(x):
    return x * x


@pytest.mark.parametrize(
    "f",
    [
        in_a_typed_list, in_a_typed_list_made_at_once, in_a_typed_dict, in_a_jitclass, in_an_attribute_of_a_jitclass,
        in_a_reduction, in_a_c_function,
    ],
    ids=lambda f: f.__name__,
)
def test_numbers_kept_by_numba_are_refused_by_file_and_line(f):
    for attempt in (grad(f), lambda x: jvp(f, (x,), (1.0,))):
        with pytest.raises(plaingrad.MissingRuleError) as caught:
            attempt(1.5)
        assert __file__ in str(caught.value)
    f(1.5)  # numba works as before
    assert grad(lambda x: wave(x, 1.0))(0.5) == pytest.approx(math.cos(0.5))


def test_a_callback_for_c_is_python_when_called_from_python():
    assert grad(lambda x: CFUNC(x))(1.5) == 3.0


class Owner:
    pass


class Holder:
    def __init__(self):
        owner = Owner()
        self.gone = weakref.proxy(owner)

    def __float__(self):
        return 2.0


def test_a_weak_proxy_of_an_object_that_is_gone_is_no_error():
    assert grad(lambda x: x * float(Holder()))(3.0) == 2.0
    assert grad(lambda x: (hash(Holder()) * 0 + 1) * x)(3.0) == 1.0

    def returned(x):
        holder = Holder()
        holder.x = x
        return holder

    holder, pullback = plaingrad.vjp(returned, 2.0)
    assert holder.x == 2.0


class Frozen(list):
    """A list that refuses to be added to another, as pandas has one."""

    def __radd__(self, other):
        raise TypeError("frozen")

    __add__ = __radd__


def test_a_list_with_operators_of_its_own_is_looked_through():
    import pickle

    assert grad(lambda x: x * len(pickle.dumps(Frozen([1.0, "a", None]))))(2.0) > 0.0


def test_objects_of_any_depth_are_looked_through():
    import pickle

    def deep(x, depth):
        tree = [x]
        for _ in range(depth):
            tree = [tree]
        return pickle.dumps(tree)

    with pytest.raises(plaingrad.MissingRuleError):
        grad(lambda x: x * len(deep(x, 60)))(2.0)
    assert grad(lambda x: x * len(deep(1.0, 60)))(2.0) == len(deep(1.0, 60))


# -- kernels ------------------------------------------------------------------------------------------------------------


@numba.guvectorize(["void(float64[:,:], float64[:], float64, float64[:], float64[:])"], "(n,m),(m),()->(n),()")
def product(a, x, s, y, largest):
    largest[0] = 0.0
    for i in range(a.shape[0]):
        y[i] = 0.0
        for j in range(a.shape[1]):
            y[i] += s * a[i, j] * x[j]
        if y[i] > largest[0]:
            largest[0] = y[i]


@numba.stencil
def cross(a, b):
    return math.sin(a[0, 1]) * b[-1, 0] + a[0, 0]


@numba.stencil(neighborhood=((-2, 1),), standard_indexing=("w",), cval=3.0)
def windows(a, w):
    s = 0.0
    for k in range(-2, 2):
        s += a[k] * w[k + 2]
    return s


ROW = np.linspace(0.3, 1.7, 7)
GRID = np.sin(np.arange(12.0)).reshape(3, 4)


@pytest.mark.parametrize("f, args", [
    (lambda a: total(a), (ROW,)),
    (lambda a: total(a[::-1, ::2]), (GRID,)),
    (lambda a: total(a), (np.zeros((0, 4)),)),
    (lambda a, x, s: product(a, x, s), (np.ones((2, 3, 4)) * GRID, GRID[0], 2.0)),
    (lambda a, x, s: product(a, x, s), (GRID, GRID[:2], np.array([1.0, 2.0]))),
    (product, (GRID, GRID[0], 2.0)),
], ids=lambda x: "")
def test_generalized_ufuncs_are_differentiated_place_by_place(f, args):
    check_grads(f, args)
    if args[0].size:
        check_grads(lambda *args: grad(lambda *args: sum(np.sum(y) for y in as_tuple(f(*args))))(*args), args)


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def test_a_generalized_ufunc_in_forward_mode():
    y, y_dot = jvp(lambda a: total(a * a), (GRID,), (np.ones_like(GRID),))
    np.testing.assert_array_equal(y, total(GRID * GRID))
    np.testing.assert_allclose(y_dot, 2.0 * GRID.sum(1))


@pytest.mark.parametrize("level", ["native", "plain"])
def test_stencils_called_from_python(level, monkeypatch):
    if level == "plain":
        from plaingrad.native.border import rule

        monkeypatch.setattr(rule, "takes", lambda *args: False)
    def in_numpy(a, b):
        return np.sum((np.sin(a[1:, 1:]) * b[:-1, :-1] + a[1:, :-1]) ** 2)

    for here, there in zip(grad(lambda a, b: (cross(a, b) ** 2).sum(), (0, 1))(GRID, GRID + 2.0),
                           grad(in_numpy, (0, 1))(GRID, GRID + 2.0)):
        np.testing.assert_allclose(here, there, rtol=1e-13, atol=1e-15)
    y, slope = plaingrad.value_and_grad(lambda a: windows(a[::-1], np.array([1.0, 2.0, 0.5, -1.0])).sum())(ROW)
    assert y == windows(ROW[::-1], np.array([1.0, 2.0, 0.5, -1.0])).sum()
    np.testing.assert_allclose(slope[::-1], [1.0, 3.0, 3.5, 2.5, 1.5, -0.5, -1.0])
    assert not grad(lambda a: neighbours(a).sum())(np.ones(2)).any()  # nothing but border


def test_what_a_kernel_does_is_explained():
    @numba.stencil
    def slope(a):
        return math.sqrt(a[1] - a[-1])

    @numba.njit
    def f(a):
        return slope(a).sum()

    found = plaingrad.explain(f, np.array([1.0, 1.0, 1.0]))
    assert found.first.place.expression == "math.sqrt(a[1] - a[-1])"
    assert found.first.slope == np.inf
    found = plaingrad.explain(lambda a: total(np.sqrt(a)), np.zeros(2))
    assert found.first.step.name == "numpy.sqrt"
