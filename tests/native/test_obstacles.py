"""`why_not_native`: all constructs that stand in the way of a native derivative, with their places."""

import linecache
from dataclasses import dataclass

import numpy as np
import plaingrad
import pytest

TABLE = [1.0, {2.0}]


@dataclass
class Spring:
    stiffness: float
    length: float


def careful(spring, x):
    try:
        return spring.stiffness * x
    except ValueError:
        return 0.0


def numbered(n, x):
    if x < 0.0:
        return
    yield n


def with_many_obstacles(spring, x):
    a = careful(spring, x) + TABLE[0]
    b = np.gradient(np.array([x, x]))
    for k in numbered(3, x):
        a += k
    for k in range(3):
        some = {1.0, x}
    with open("x") as file:
        table = {x: len(f"{x}")}
    return a + b[0] + len(some) + table[x] + len(file)


MANY = {
    "try:": "`try`",
    "TABLE": "which may change",
    "b = np.gradient(np.array([x, x]))": "gradient",
    "return": "in a generator",
    "{1.0, x}": "a set",
    "with open('x') as file:": "`with`",
    "{x: len(f'{x}')}": "key that is not known",
}


def test_all_obstacles_are_listed_with_their_places():
    found = plaingrad.why_not_native(with_many_obstacles, Spring(1.0, 2.0), 3.0)
    assert {o.expression for o in found} == {*MANY}
    for o in found:
        assert MANY[o.expression] in o.why
        assert o.file == __file__
        assert o.expression.replace("'", '"') in linecache.getline(__file__, o.line)
        assert o.fix and "\n" not in o.fix
    assert {o.function for o in found} == {"careful", "numbered", "with_many_obstacles"}
    assert [o.line for o in found] == sorted(o.line for o in found)
    assert repr(found).count("To go on:") == len(found)


def as_numba_takes_it(x):
    a = np.add.accumulate(x)
    b = x.hello
    return a[0] + b


def without_rules(x):
    y = np.roots(x)
    z = np.roots(2.0 * x)
    return np.abs(y).sum() + np.abs(z).sum()


def test_what_numba_has_no_type_for_is_listed():
    found = plaingrad.why_not_native(as_numba_takes_it, np.ones(3))
    assert [o.expression for o in found] == ["np.add.accumulate(x)", "b = x.hello"]
    assert all(o.function == "as_numba_takes_it" for o in found)


def test_what_has_no_rule_is_listed():
    found = plaingrad.why_not_native(without_rules, np.ones(3))
    assert [o.why for o in found] == ["`roots` has no native derivative rule"] * 2
    assert found[1].line == found[0].line + 1


def energy(spring, x):
    return spring.stiffness * (x - spring.length) ** 2


@pytest.mark.parametrize("f", [energy, lambda spring, x: spring.length * x[0]])
def test_nothing_stands_in_the_way_of_what_is_differentiated_natively(f):
    x = 3.0 if f is energy else np.ones(2)
    found = plaingrad.why_not_native(f, Spring(1.0, 2.0), x)
    assert not found
    assert repr(found) == "Nothing stands in the way of a native derivative."


def test_functions_without_source_and_functions_in_c_say_so():
    space = {}
    exec("def f(spring):\n    spring.length = 2.0\n    return spring.length", space)
    found = plaingrad.why_not_native(space["f"], Spring(1.0, 2.0))
    assert any("the source of the function is not found" in o.why for o in found)
    (only,) = plaingrad.why_not_native(np.linalg.eig, np.ones((2, 2)))
    assert "no Python function" in only.why
    with pytest.raises(plaingrad.ArgumentError):
        plaingrad.why_not_native(3.0)


def test_the_function_is_not_called_and_its_refusals_stay():
    def f(spring, seen):
        seen.append(spring)
        try:
            return spring.length
        except ValueError:
            return 0.0

    seen = []
    assert plaingrad.why_not_native(f, Spring(1.0, 2.0), seen)
    assert not seen
    with pytest.raises(plaingrad.NativeError):
        plaingrad.grad(f, tier="native")(Spring(1.0, 2.0), seen)
