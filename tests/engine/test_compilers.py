"""Numba's own Python code is called as it is; what it keeps outside of Python's objects is refused by name."""

import math
import weakref

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, jvp

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


def in_a_generalized_ufunc(x):
    return total(np.array([x, x])) * 1.0


def in_a_stencil(x):
    return neighbours(np.array([1.0, x, 1.0, x])).sum()


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
        in_a_generalized_ufunc, in_a_stencil, in_a_reduction, in_a_c_function,
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
