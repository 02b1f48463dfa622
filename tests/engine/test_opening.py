"""Derivatives of functions of numbers, and of lists and dictionaries of them: levels that the core opens, closes and uses again, and the same in Python."""

import contextvars
import gc
import math
import threading
import types
import weakref

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, jvp, value_and_grad
from plaingrad.engine.calls import reuse
from plaingrad.engine.compiled import core
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.engine.users_code import adopt
from plaingrad.errors import ArgumentError, MissingRuleError, NonScalarOutputError
from plaingrad.rewrite import CURRENT, PLAIN


@pytest.fixture(autouse=True)
def nothing_is_left():
    for _ in range(2):  # there is a level to be used again
        assert grad(lambda x: x * x)(3.0) == 6.0
        assert jvp(lambda x: x * x, (3.0,), (1.0,)) == (9.0, 6.0)
    yield
    assert CURRENT.get() is PLAIN
    assert not adopt._open
    assert grad(lambda x: x * x)(3.0) == 6.0


def wave(x, y=2.0, *, scale=1.0):
    return math.sin(x) * y * scale + x / y


def test_numbers_by_position_and_keyword():
    for _ in range(3):
        value, found = value_and_grad(wave, argnums=(1, 0))(0.3, 1.7, scale=3.0)
        assert value == wave(0.3, 1.7, scale=3.0)
        assert found == pytest.approx((3 * math.sin(0.3) - 0.3 / 1.7**2, 3 * 1.7 * math.cos(0.3) + 1 / 1.7), rel=1e-15)
        assert grad(wave, argnums=-1)(0.3, 1.7) == pytest.approx(math.sin(0.3) - 0.3 / 1.7**2, rel=1e-15)
        y, y_dot = jvp(wave, (0.3, 1.7), (1.0, -1.0))
        assert y == wave(0.3, 1.7)
        assert y_dot == pytest.approx(1.7 * math.cos(0.3) + 1 / 1.7 - math.sin(0.3) + 0.3 / 1.7**2, rel=1e-15)


def test_an_argument_is_itself_the_value():
    x = 0.1 + 0.2
    for _ in range(2):
        value, found = value_and_grad(lambda x, y: x)(x, 2.0)
        assert value is x and found == 1.0
        value, dot = jvp(lambda x, y: x, (x, 2.0), (3.0, None))
        assert value is x and dot == 3.0
        value, found = value_and_grad(lambda x, y: np.sum(np.array([x])) and x, argnums=(0, 1))(x, 2.0)
        assert value is x and found == (1.0, 0.0)


def test_a_constant_value():
    assert value_and_grad(lambda x: 7.0, argnums=(0,))(1.0) == (7.0, (0.0,))
    assert jvp(lambda x: 7.0, (1.0,), (1.0,)) == (7.0, 0.0)
    assert grad(lambda x: 3)(1.0) == 0.0


def test_what_had_no_influence_does_not_poison():
    def f(x):
        math.log(x * 1e-320) * math.inf
        x / 1e-320 / 1e-320
        return x * 2.0

    assert grad(f)(1.0) == 2.0


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda x: np.float64(x) * x, 6.0),
        (lambda x: np.sum(np.array([x, x]) * x), 12.0),
        (lambda x: np.array([x, 2.0])[0] * x, 6.0),
        (lambda x: (x + 1j * x).imag * x, 6.0),
        (lambda x: sum([x, x]) * math.hypot(x, 0.0), 12.0),
    ],
)
def test_values_and_ways_that_are_no_floats(f, slope):
    for _ in range(3):
        assert grad(f)(3.0) == pytest.approx(slope, rel=1e-14)
        assert jvp(f, (3.0,), (1.0,))[1] == pytest.approx(slope, rel=1e-14)


def test_values_with_structure():
    for _ in range(3):
        y, y_dot = jvp(lambda x, k: [x, {"a": x * x, "k": k}], (3.0, 2.0), (1.0, None))
        assert y == [3.0, {"a": 9.0, "k": 2.0}] and y_dot == [1.0, {"a": 6.0, "k": 0.0}]
        with pytest.raises(NonScalarOutputError):
            grad(lambda x: [x])(3.0)
        assert grad(lambda x: (x * x, "aux"), has_aux=True)(3.0) == (6.0, "aux")


def test_exceptions_are_those_of_the_program():
    def fails(x):
        raise ValueError(x * x)

    for derive in (lambda: grad(fails)(2.0), lambda: jvp(fails, (2.0,), (1.0,))):
        with pytest.raises(ValueError, match=r"^4.0$") as caught:
            derive()
        files = [at.tb_frame.f_code.co_filename for at in _traceback(caught.value)]
        assert files[-1] == __file__
    with pytest.raises(ArgumentError):
        grad(wave)("text")


def _traceback(error):
    at = error.__traceback__
    while at is not None:
        yield at
        at = at.tb_next


def test_refusals_that_the_program_swallows():
    def f(x):
        try:
            x.as_integer_ratio()
        except Exception:
            pass
        return x * x

    for _ in range(2):
        with pytest.raises(MissingRuleError):
            grad(f)(3.0)
        with pytest.raises(MissingRuleError):
            jvp(f, (3.0,), (1.0,))


def test_a_generator_that_outlives_its_derivative_keeps_the_level():
    kept = []

    def numbers(x):
        while True:
            x = x * 2.0
            yield x

    def f(x):
        kept.append(numbers(x))
        return next(kept[-1]) * x

    for _ in range(3):
        assert grad(f)(3.0) == 12.0
        assert jvp(f, (3.0,), (1.0,))[1] == 12.0
    assert [next(g) for g in kept] == [12.0] * 6
    assert grad(lambda x: next(numbers(x)) * x)(3.0) == 12.0


def test_derivatives_inside():
    def f(x):
        return x * grad(lambda y: y * y * x)(2.0) + jvp(lambda y: y * x, (3.0,), (1.0,))[1]

    for _ in range(3):  # 4 x^2 + x
        assert grad(f)(1.5) == pytest.approx(13.0, rel=1e-15)
        assert jvp(f, (1.5,), (1.0,))[1] == pytest.approx(13.0, rel=1e-15)
        assert grad(grad(lambda x: x**3))(2.0) == 12.0


def test_rules_and_code_that_change_between_derivatives():
    def f(x):
        return math.sinh(x)

    assert grad(f)(0.5) == pytest.approx(math.cosh(0.5), rel=1e-15)
    assert grad(f)(0.5) == pytest.approx(math.cosh(0.5), rel=1e-15)
    before = plaingrad.rulebook.find(math.sinh)
    plaingrad.scalar_rule(math.sinh, lambda x, z: 100.0)
    try:
        assert grad(f)(0.5) == 100.0
        assert jvp(f, (0.5,), (1.0,))[1] == 100.0
    finally:
        plaingrad.rulebook.add(before)
    assert grad(f)(0.5) == pytest.approx(math.cosh(0.5), rel=1e-15)
    module_function.__code__ = (lambda x: x * x * x).__code__
    assert grad(calls_it)(2.0) == 12.0
    module_function.__code__ = (lambda x: x * x).__code__
    assert grad(calls_it)(2.0) == 4.0
    module_function.__defaults__ = (1.0,)
    assert grad(calls_it)(2.0) == 4.0


def module_function(x):
    return x * x


def calls_it(x):
    return module_function(x)


def test_nothing_is_kept_alive():
    def holds():
        big = np.zeros(3)

        def f(x, y=big):
            return x * x

        grad(f)(2.0)
        jvp(f, (2.0,), (1.0,))
        return weakref.ref(f), weakref.ref(big)

    held = holds()
    gc.collect()
    assert [one() for one in held] == [None, None]

    module = types.ModuleType("a_module_that_goes")
    exec("def f(x): return x * x", vars(module))
    assert grad(module.f)(3.0) == 6.0
    held = weakref.ref(module.f)
    del module
    gc.collect()
    assert held() is None


def test_the_numbers_of_a_derivative_go_with_it():
    before = len(gc.get_objects())
    for _ in range(200):
        grad(wave)(0.3)
        jvp(wave, (0.3,), (1.0,))
    gc.collect()
    assert len(gc.get_objects()) - before < 100


def test_threads_and_contexts():
    wrong = []

    def work():
        for k in range(300):
            x = 0.1 * k
            if grad(wave)(x) != pytest.approx(2 * math.cos(x) + 0.5, rel=1e-14):
                wrong.append(x)
            if contextvars.copy_context().run(grad(wave), x) != grad(wave)(x):
                wrong.append(x)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def nested(p):
    return p["a"] * p["l"][1] + p["t"][0] ** 2 * p["l"][0] + p["in"]["deep"][-1]


def test_lists_tuples_and_dictionaries():
    p = {"a": 3.0, "l": [1.0, 2.0], "t": (4.0, "s"), "n": None, "in": {"deep": [0, 5.0], "k": True}, "e": []}
    objects = [id(p["a"]), *map(id, p["l"]), id(p["t"]), id(p["t"][0]), id(p["in"]["deep"][1])]
    want = {"a": 2.0, "l": [16.0, 3.0], "t": (8.0, None), "n": None, "in": {"deep": [None, 1.0], "k": None}, "e": []}
    for _ in range(3):
        assert value_and_grad(nested)(p) == (27.0, want)
        assert list(grad(nested)(p)) == list(p)
        assert jvp(nested, (p,), ({"a": 1.0, "l": (0.0, 1.0)},)) == (27.0, 5.0)
        assert objects == [id(p["a"]), *map(id, p["l"]), id(p["t"]), id(p["t"][0]), id(p["in"]["deep"][1])]
    rosenbrock = lambda v: (1.0 - v[0]) ** 2 + 100.0 * (v[1] - v[0] ** 2) ** 2  # noqa: E731
    x = [0.5, 0.7]
    want = [-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)]
    hessian = [[2 - 400 * (x[1] - x[0] ** 2) + 800 * x[0] ** 2, -400 * x[0]], [-400 * x[0], 200.0]]
    for kind in (list, tuple):
        for _ in range(3):
            assert list(grad(rosenbrock)(kind(x))) == pytest.approx(want, rel=1e-13)
            assert type(grad(rosenbrock)(kind(x))) is kind
            for k in (0, 1):
                direction = kind([float(k == 0), float(k == 1)])
                (found,) = plaingrad.hvp(rosenbrock, (kind(x),), (direction,))
                assert list(found) == pytest.approx(hessian[k], rel=1e-13)


def test_containers_that_the_function_changes():
    def f(x, d):
        x.append(x[0] * x[1])
        x[0], x[1] = x[1], x[0]
        d["new"] = d["a"]
        d["moved"] = x[0]
        del d["a"]
        return x[-1] * d["new"]

    for derive in (lambda *args: grad(f, argnums=(0, 1))(*args), lambda *args: jvp(f, args, ([1.0, 0.0], {"a": 2.0}))):
        first, second, third = 1.5 + 0.1, 2.5 + 0.1, 3.5 + 0.1
        x, d = [first, second], {"a": third}
        found = derive(x, d)
        assert x == [second, first, first * second] and x[0] is second and x[1] is first
        assert d == {"new": third, "moved": second} and d["new"] is third
        if isinstance(found[0], list):
            assert found == ([second * third, first * third], {"a": first * second})
        else:
            assert found == (first * second * third, second * third + 2.0 * first * second)


def test_tuples_in_containers_are_the_callers_own_afterwards():
    pairs = [(0.5, 1.5), (2.5, (3.5, "s"))]
    table = {"pairs": pairs, "one": (4.5,)}
    before = [*map(id, pairs), id(table["one"])]

    def f(table):
        table["pairs"].append(table["one"])
        return table["pairs"][0][0] * table["pairs"][1][1][0] * table["one"][0]

    want = {"pairs": [(3.5 * 4.5, 0.0), (0.0, (0.5 * 4.5, None))], "one": (0.5 * 3.5,)}
    for _ in range(3):
        assert grad(f)(table) == want
        moved = pairs.pop()  # in Python a tuple that the function has moved is equal, no more
        assert moved == table["one"] and (core is None or moved is table["one"])
        assert before == [*map(id, pairs), id(table["one"])]
        y, dot = jvp(lambda t: t["one"], (table,), ({"one": (2.0,)},))
        assert y is table["one"] and dot == (2.0,)


def test_results_that_are_arguments_or_hold_them():
    x = [1.5, 2.5]
    for _ in range(2):
        y, dot = jvp(lambda x: x, (x,), ([1.0, 2.0],))
        assert y is x and dot == [1.0, 2.0]
        y, dot = jvp(lambda x: {"x": x, "y": (x[0], x[1] * x[0])}, (x,), ([1.0, 2.0],))
        assert y["x"] is x and y["y"][0] is x[0] and dot == {"x": [1.0, 2.0], "y": (1.0, 5.5)}
        value, found = value_and_grad(lambda x: np.sum(np.array(x) * 2.0))(x)
        assert value == 8.0 and found == [2.0, 2.0]
        value, found = value_and_grad(lambda t: t[1])((1.5, x[1]))
        assert value is x[1] and found == (0.0, 1.0)


def test_containers_are_whole_after_exceptions_and_inside_other_derivatives():
    x, d = [1.5, 2.5], {"a": 0.5}
    before = [*map(id, x), id(d["a"])]

    def fails(x, d):
        x[0], x[1] = x[1], x[0]
        raise KeyError("k")

    for derive in (lambda: grad(fails, argnums=(0, 1))(x, d), lambda: jvp(fails, (x, d), ([1.0, 1.0], {"a": 1.0}))):
        with pytest.raises(KeyError, match="k"):
            derive()
        x.reverse()
        assert before == [*map(id, x), id(d["a"])]

    def inside(x):
        return grad(lambda z: z[0] * z[1] * x[0])(x)[1] * x[1]  # x0^2 x1: of the inner one, z1 by z0 x0

    assert grad(inside)(x) == pytest.approx([2 * 1.5 * 2.5, 1.5**2], rel=1e-15)
    assert jvp(inside, (x,), ([1.0, 0.0],))[1] == pytest.approx(2 * 1.5 * 2.5, rel=1e-15)
    assert before == [*map(id, x), id(d["a"])]


def test_shared_and_cyclic_containers():
    row = [1.0, 2.0]
    assert grad(lambda p: p[0][0] * p[1][1])([row, row]) == [[2.0, 1.0], [2.0, 1.0]]
    cycle = [2.0]
    cycle.append(cycle)
    found = grad(lambda c: c[1][1][0] ** 2)(cycle)
    assert found[0] == 4.0 and found[1] is found
    assert grad(lambda x, y: x[0] * y[1], argnums=(0, 1))(row, row) == ([2.0, 1.0], [2.0, 1.0])


def test_threads_that_differentiate_by_one_list():
    x = [0.1 * k for k in range(20)]
    before = list(map(id, x))
    wrong = []

    def work():
        for _ in range(60):
            if grad(lambda v: sum(a * a for a in v))(x) != [2 * a for a in x]:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and before == list(map(id, x))


@pytest.mark.skipif(core is None, reason="levels that are not compiled are made anew")
def test_the_level_is_the_same_again():
    grad(wave)(0.3)
    free = reuse.free_levels[ReverseLevel]
    identity = id(free[-1][1])  # to hold it would be a reference to it
    for _ in range(5):
        grad(wave)(0.3)
        assert id(free[-1][1]) == identity
        with pytest.raises(ZeroDivisionError):
            grad(lambda x: x / 0.0)(1.0)
        grad(wave)(0.3)
        identity = id(free[-1][1])
    assert len(free[-1][1].index.numbers()) == 0 and len(free[-1][1].tape) == 0
    assert math.sin in free[-1][1].calls.prepared and not free[-1][1].calls.open


@pytest.mark.skipif(core is None, reason="levels that are not compiled are made anew")
def test_a_level_that_somebody_holds_is_not_used_again():
    grad(wave)(0.3)
    level = reuse.free_levels[ReverseLevel][-1][1]
    grad(wave)(0.3)
    assert not any(one[1] is level for one in reuse.free_levels[ReverseLevel])
    held = []
    for derive in (lambda f: grad(f)(2.0), lambda f: jvp(f, (2.0,), (1.0,))[1]):
        assert derive(lambda x: held.append(CURRENT.get()) or x * x) == 4.0
        assert not any(one[1] is held[-1] for free in reuse.free_levels.values() for one in free)
        assert held[-1].is_closed
