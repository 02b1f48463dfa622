"""What `explain` says where code of packages, and wrappers of functions, stand between the user's line and the operation."""

import functools

import numpy as np
import pytest

from plaingrad import explain

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


class Guarded:
    """Its attributes are looked up by code of its own, as in statsmodels' wrappers of results."""

    def __init__(self, value):
        self.value = value

    def __getattribute__(self, name):
        value = object.__getattribute__(self, "value")
        return value if name == "value" else getattr(value, name)


def test_a_class_that_looks_up_its_own_attributes_is_not_asked_what_it_is():
    def f(x):
        return Guarded(np.sqrt(x)).sum()

    assert explain(f, np.array([0.0, 4.0])).first.step.name == "numpy.sqrt"


def test_a_nan_from_an_infinite_constant_is_the_first_event():
    def f(x):
        return x * float("inf")

    first = explain(f, 0.0).first
    assert (first.what, first.bad.word, first.operands) == ("value", "nan", "0, inf")


def test_a_nan_that_follows_from_an_overflow_is_no_event_of_its_own():
    def f(x):
        y = np.exp(x)
        return (y / y).sum()

    assert [event.step.name for event in explain(f, np.array([800.0])).events if event.what == "value"] == [
        "numpy.exp"
    ]


def test_a_hint_stands_under_the_cotangent_that_it_is_about():
    def f(x):
        angle = np.arctan2(x[0], x[1])
        return np.sqrt(np.where(x > 0.0, angle, 0.0)).sum()

    found = explain(f, np.zeros(2))
    assert [event.bad.word for event in found.events] == ["inf", "nan", "nan"]
    assert found.hinted is found.events[1] and "double where" in found.hint
    shown = repr(found)
    assert shown.index("np.sqrt") < shown.index("np.arctan2(x[0], x[1])") < shown.index("double where")


def test_a_partial_function_is_called_by_the_name_of_its_function():
    def g(scale, x):
        return scale * x

    found = explain(functools.partial(g, 0.0), 2.0)
    assert repr(found).startswith("partial(") and "0x" not in repr(found)
    assert [cut.name for cut in found.inputs[0].cuts] == ["*"]


def test_reading_another_entry_of_a_container_cuts_nothing():
    def f(x):
        table = {"x": x, "unit": 2.0}
        rest = [x, 1.0][1:]
        return table["unit"] * rest[0] if "x" in table else 0.0

    (one,) = explain(f, 3.0).inputs
    assert one.cuts == []


def test_the_place_in_a_package_is_told_of_a_cut_too():
    networkx = pytest.importorskip("networkx")

    def f(w):
        g = networkx.Graph()
        g.add_edge(0, 1, weight=w)
        g.add_edge(1, 2, weight=1.0)
        g.add_edge(0, 2, weight=1.5)
        return sum(data["weight"] for *_, data in networkx.minimum_spanning_edges(g, data=True))

    assert "inside networkx" in repr(explain(f, 2.0))
