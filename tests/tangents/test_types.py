"""Zeros, structural tangents, postponed ones, pairs: their arithmetic and their looks."""

import copy
import pickle
import threading
import time

import numpy as np
import pytest

from plaingrad import Dual, NoTangent, Tangent, Thunk, ZeroTangent, grad, unthunk


class Model:
    def __init__(self, rate=2.0, weights=None, name="m"):
        self.rate = rate
        self.weights = np.array([1.0, 2.0]) if weights is None else weights
        self.name = name


class Other:
    pass


# -- zeros -------------------------------------------------------------------------------------------------------------


def test_a_zero_tangent_added_gives_the_very_object():
    x = np.array([1.0, 2.0])
    t = Tangent(Model, rate=1.0)
    for value in (x, 3.0, t, 2 + 1j, ZeroTangent, [1.0]):
        assert ZeroTangent + value is value
        assert value + ZeroTangent is value if not isinstance(value, list) else True
    assert x - ZeroTangent is x


def test_a_zero_tangent_subtracted_from_or_scaled():
    assert ZeroTangent - 3.0 == -3.0
    assert (ZeroTangent - np.ones(2)).tolist() == [-1.0, -1.0]
    for scaled in (2 * ZeroTangent, ZeroTangent * 2.0, np.float64(3) * ZeroTangent, ZeroTangent / 4, -ZeroTangent):
        assert scaled is ZeroTangent
    for product in (np.ones(3) * ZeroTangent, ZeroTangent * np.ones(3), np.eye(2) @ ZeroTangent, ZeroTangent @ np.eye(2)):
        assert product is ZeroTangent
    assert ZeroTangent.conjugate() is ZeroTangent and ZeroTangent.real is ZeroTangent.imag is ZeroTangent


def test_no_tangent_stays_what_it_is_and_refuses_numbers():
    assert NoTangent + NoTangent is NoTangent + ZeroTangent is NoTangent
    assert 2.0 * NoTangent is NoTangent * 2.0 is -NoTangent is NoTangent
    for add in (lambda: NoTangent + 1.0, lambda: 1.0 + NoTangent, lambda: np.ones(2) + NoTangent):
        with pytest.raises(TypeError):
            add()


@pytest.mark.parametrize("zero", [NoTangent, ZeroTangent], ids=["NoTangent", "ZeroTangent"])
def test_zeros_are_single_objects(zero):
    assert not zero
    assert copy.deepcopy(zero) is copy.copy(zero) is pickle.loads(pickle.dumps(zero)) is zero


# -- Tangent -----------------------------------------------------------------------------------------------------------


def test_tangents_are_added_and_scaled_field_by_field():
    a = Tangent(Model, {"rate": 1.0, "weights": np.array([1.0, 2.0]), "name": None})
    b = Tangent(Model, {"rate": 0.5, "weights": np.array([10.0, 20.0]), "name": None})
    total = a + 2 * b
    assert total.rate == 2.0 and total.weights.tolist() == [21.0, 42.0] and total.name is None
    assert (a - b).rate == 0.5 and (a / 2).weights.tolist() == [0.5, 1.0] and (-a).rate == -1.0
    assert a.rate == 1.0 and a.weights.tolist() == [1.0, 2.0]  # unchanged
    assert sum([a, b], ZeroTangent).rate == 1.5


def test_fields_that_one_of_two_tangents_leaves_out_are_zero():
    assert Tangent(Model, rate=1.0) + Tangent(Model, weights=2.0) == Tangent(Model, rate=1.0, weights=2.0)
    assert Tangent(Model, rate=0.0) == Tangent(Model) == ZeroTangent
    assert Tangent(Model, rate=1.0) != Tangent(Model)


def test_tangents_of_different_classes_cannot_be_added_and_are_not_equal():
    with pytest.raises(TypeError, match="Model and one of Other"):
        Tangent(Model, rate=1.0) + Tangent(Other, rate=1.0)
    assert Tangent(Model, rate=1.0) != Tangent(Other, rate=1.0)


def test_containers_in_tangents_are_added_entry_by_entry_not_joined():
    a = Tangent(Model, {"layers": [1.0, (2.0, {"b": 3.0})]})
    assert (a + a).layers == [2.0, (4.0, {"b": 6.0})]
    assert (3 * a)["layers"] == [3.0, (6.0, {"b": 9.0})]


def test_a_number_of_numpy_scales_a_tangent():
    t = np.float64(0.5) * Tangent(Model, rate=4.0)
    assert type(t) is Tangent and t.rate == 2.0


def test_adding_a_number_to_a_tangent_is_refused():
    for wrong in (lambda t: t + 1.0, lambda t: t * "a", lambda t: t * np.ones(2), lambda t: t - 1.0, lambda t: t * t):
        with pytest.raises(TypeError):
            wrong(Tangent(Model, rate=1.0))


def test_tangents_with_fields_named_as_methods_of_mappings():
    t = Tangent(Model, {"get": 1.0, "items": 2.0, "keys": 3.0, "primal_type": 4.0})
    assert t + t == Tangent(Model, {"get": 2.0, "items": 4.0, "keys": 6.0, "primal_type": 8.0})


def test_equality_knows_arrays_nan_and_mappings():
    t = Tangent(Model, weights=np.array([1.0, np.nan]))
    assert t == Tangent(Model, weights=np.array([1.0, np.nan]))
    assert t != Tangent(Model, weights=np.array([1.0, 2.0]))
    assert t != Tangent(Model, weights=np.array([1.0, np.nan, 0.0]))
    assert Tangent(Model, rate=1.0) == {"rate": 1.0}
    assert (Tangent(Model, rate=1.0) == 3) is False


def test_a_tangent_looks_like_its_object():
    assert repr(Tangent(Model, rate=1.5, name=None)) == "Tangent[Model](rate=1.5, name=None)"
    with pytest.raises(AttributeError, match="no field 'wrong'; its fields: rate"):
        Tangent(Model, rate=1.5).wrong
    with pytest.raises(AttributeError, match="immutable"):
        Tangent(Model, rate=1.5).rate = 2.0
    with pytest.raises(TypeError):
        hash(Tangent(Model, rate=1.5))


def test_a_step_with_a_gradient_of_an_object_is_differentiable():
    def loss(model):
        return model.rate**3

    def after_step(step):
        t = step * grad(loss)(Model(2.0))  # 3 r^2 = 12
        t = t + t
        return (-t / 4).rate**2  # (6 step)^2

    assert grad(after_step)(0.5) == pytest.approx(72 * 0.5)


# -- Thunk -------------------------------------------------------------------------------------------------------------


def test_a_thunk_is_evaluated_once_and_only_when_asked():
    calls = []
    t = Thunk(lambda: calls.append(1) or 3.0)
    assert repr(t) == "Thunk(...)" and not calls
    assert unthunk(t) == t.evaluate() == 3.0 and len(calls) == 1
    assert repr(t) == "Thunk(3.0)"


def test_thunks_of_thunks_and_their_arithmetic():
    t = Thunk(lambda: Thunk(lambda: np.array([1.0, 2.0])))
    assert unthunk(t).tolist() == [1.0, 2.0]
    two = Thunk(lambda: 2.0)
    assert (two + 1, 1 + two, two - 1, 1 - two, 3 * two, two * 3, two / 4, -two) == (3, 3, 1, -1, 6, 6, 0.5, -2)
    assert (np.ones(2) * two).tolist() == [2.0, 2.0]
    assert ZeroTangent + two is two and two + ZeroTangent == 2.0


def test_a_thunk_that_fails_fails_again():
    calls = []

    def compute():
        calls.append(1)
        raise ZeroDivisionError("no")

    t = Thunk(compute)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            unthunk(t)
    assert len(calls) == 2


def test_a_thunk_that_asks_for_itself_says_so():
    t = Thunk(lambda: unthunk(t))
    with pytest.raises(RuntimeError, match="its own value"):
        unthunk(t)


def test_threads_that_ask_at_once_compute_once():
    calls = []

    def compute():
        calls.append(1)
        time.sleep(0.02)
        return object()

    t = Thunk(compute)
    found = []
    threads = [threading.Thread(target=lambda: found.append(unthunk(t))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1 and len(found) == 8 and all(x is found[0] for x in found)


def test_a_thunk_in_a_differentiated_function_is_differentiated():
    def f(x):
        return 2.0 * Thunk(lambda: x * x) + x

    assert grad(f)(3.0) == 13.0


# -- Dual --------------------------------------------------------------------------------------------------------------


def test_a_dual_is_a_pair_with_names():
    y = Dual(3.0, 1.0)
    value, tangent = y
    assert (value, tangent) == (y.primal, y.tangent) == (3.0, 1.0)
    assert Dual(len).tangent is NoTangent
    assert grad(lambda x: Dual(x, 2 * x).tangent * Dual(x).primal)(3.0) == 12.0
