"""Functions that keep something from call to call, given to solvers: memos have their derivatives, histories refuse, and
what is kept is in the end what a plain call keeps."""

import collections
import functools
import types

import numpy as np
import plaingrad
import pytest

integrate = pytest.importorskip("scipy.integrate")
optimize = pytest.importorskip("scipy.optimize")
pytestmark = pytest.mark.filterwarnings("ignore")
MEMO = {}


def in_dictionary(p):
    kept = {}

    def square():
        if "square" not in kept:
            kept["square"] = p * p
        return kept["square"]

    return square


def in_object(p):
    class Square:
        found = None

        def __call__(self):
            if self.found is None:
                self.found = p * p
            return self.found

    return Square()


def in_property(p):
    class Square:
        @functools.cached_property
        def found(self):
            return p * p

    square = Square()
    return lambda: square.found


def in_cell(p):
    found = None

    def square():
        nonlocal found
        if found is None:
            found = p * p
        return found

    return square


def in_array(p):
    found, is_known = np.zeros(1), []

    def square():
        if not is_known:
            found[0] = p * p
            is_known.append(True)
        return found[0]

    return square


def in_module(p):
    MEMO.clear()
    return lambda: MEMO.setdefault("square", p * p)


def in_slot(p):
    class Square:
        __slots__ = ("found",)

        def __call__(self):
            if not hasattr(self, "found"):
                self.found = p * p
            return self.found

    return Square()


def in_attribute_of_function(p):
    def square():
        if not hasattr(square, "found"):
            square.found = p * p
        return square.found

    return square


def by_factory(p):
    kept = collections.defaultdict(lambda: p * p)
    return lambda: kept["square"]


def by_missing(p):
    class Squares(dict):
        def __missing__(self, key):
            self[key] = found = p * p
            return found

    kept = Squares()
    return lambda: kept["square"]


def in_array_by_out(p):
    found = np.full(1, np.nan)

    def square():
        if np.isnan(found[0]):
            np.multiply(p, p, out=found)
        return found[0]

    return square


def in_array_of_objects(p):
    found = np.array([None], object)

    def square():
        if found[0] is None:
            found[0] = p * p
        return found[0]

    return square


def in_attribute_of_module(p):
    module = types.ModuleType("settings")

    def square():
        if not hasattr(module, "found"):
            module.found = p * p
        return module.found

    return square


def by_descriptor(p):
    class Lazy:
        def __get__(self, o, owner=None):
            return o.__dict__.setdefault("found", p * p)

    class Square:
        lazy = Lazy()

    square = Square()
    return lambda: square.lazy


def by_unknown_attribute(p):
    class Square:
        def __getattr__(self, name):
            self.__dict__[name] = found = p * p
            return found

    square = Square()
    return lambda: square.found


def in_attribute_of_dictionary(p):
    class Squares(dict):
        found = None

    squares = Squares()

    def square():
        if squares.found is None:
            squares.found = p * p
        return squares.found

    return square


def in_module_named_like_a_library(p):
    module = types.ModuleType("numpy_model")
    exec(SOURCE, module.__dict__)
    return module.square_of(p)


SOURCE = """
def square_of(p):
    kept = []

    def square():
        if not kept:
            kept.append(p * p)
        return kept[0]

    return square
"""


def by_item(p):
    class Square:
        def __init__(self):
            self.kept = {}

        def __getitem__(self, key):
            return self.kept.setdefault(key, p * p)

    square = Square()
    return lambda: square["found"]


MEMOS = [in_dictionary, in_object, in_property, in_cell, in_array, in_module, in_slot, in_attribute_of_function, by_factory,
         by_missing, in_array_by_out, in_array_of_objects, in_attribute_of_module, by_descriptor, by_unknown_attribute,
         by_item, in_attribute_of_dictionary, in_module_named_like_a_library]  # fmt: skip
COLD = {"rtol": 1e-9, "atol": 1e-11}
SOLVERS = {  # with a square, and the same of p in closed form, with its derivative
    "brentq": (lambda square: optimize.brentq(lambda x: x**3 - square(), 0, 9, xtol=1e-14), lambda p: 2 / 3 * p ** (-1 / 3)),
    "root": (lambda square: optimize.root(lambda x: x**3 - square(), [1.0], tol=1e-12).x[0], lambda p: 2 / 3 * p ** (-1 / 3)),
    "minimize": (lambda square: optimize.minimize(lambda x: np.sum(np.cosh(x - square())), [1.0]).x[0], lambda p: 2 * p),
    "least_squares": (lambda square: optimize.least_squares(lambda x: x - square(), [1.0]).x[0], lambda p: 2 * p),
    "quad": (lambda square: integrate.quad(lambda x: x * square(), 0, 1)[0], lambda p: p),
    "odeint": (lambda square: integrate.odeint(lambda y, t: -square() * y, [1.0], [0, 1.0])[-1, 0],
               lambda p: -2 * p * np.exp(-p * p)),
    "BDF": (lambda square: integrate.solve_ivp(lambda t, y: -square() * y, (0, 1), [1.0], method="BDF", **COLD).y[0, -1],
            lambda p: -2 * p * np.exp(-p * p)),
}  # fmt: skip


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("memo", MEMOS)
def test_a_memo_that_a_solver_fills_has_its_derivative(solver, memo):
    if memo not in MEMOS[:2] and solver not in ("brentq", "odeint"):
        return
    solve, slope = SOLVERS[solver]
    f = lambda p: solve(memo(p))
    assert plaingrad.grad(f)(0.8) == pytest.approx(slope(0.8), rel=1e-6)
    assert plaingrad.jvp(f, (0.8,), (1.0,))[1] == pytest.approx(slope(0.8), rel=1e-6)
    if solver in ("brentq", "quad"):
        second = (slope(0.8 + 1e-5) - slope(0.8 - 1e-5)) / 2e-5
        assert plaingrad.grad(plaingrad.grad(f))(0.8) == pytest.approx(second, rel=1e-6)


def test_items_of_a_generator_are_refused_if_it_holds_what_varies():
    def f(p, q):
        def going():
            while True:
                yield q * q

        squares = going()
        return optimize.brentq(lambda x: x**3 - next(squares) * p, 0, 9)

    with pytest.raises(plaingrad.MissingRuleError, match="generator"):
        plaingrad.grad(f, 1)(1.0, 0.8)
    assert plaingrad.grad(f)(1.0, 0.8) == pytest.approx(0.8 ** (2 / 3) / 3, rel=1e-8)


def test_two_solvers_and_the_program_share_a_memo():
    def f(p):
        kept = {}

        def cube(x):
            if not kept:
                kept["parts"] = [p * p, {"root": p}]
            return x**3 - kept["parts"][0] * kept["parts"][1]["root"]

        return optimize.brentq(cube, 0, 9) + optimize.newton(cube, 1.0) + kept["parts"][0]

    assert plaingrad.grad(f)(0.8) == pytest.approx(2 + 1.6, rel=1e-9)


def test_a_memo_by_the_iterate_is_missed_at_the_solution():
    class Model:
        x = None

        def __init__(self, p):
            self.p = p

        def at(self, x):
            if self.x is None or not np.array_equal(x, self.x):
                self.x, self.found = np.copy(x), np.exp(x - self.p * self.p)
            return self.found

    def f(p):
        model = Model(p)
        return optimize.root(
            lambda x: model.at(x) - 1, [0.3], jac=lambda x: np.diag(model.at(x)), tol=1e-12
        ).x[0]

    assert plaingrad.grad(f)(0.8) == pytest.approx(1.6, rel=1e-8)


def test_a_number_out_of_a_history_refuses_its_derivative():
    def f(p, used):
        seen = []

        def cost(x):
            seen.append(np.sum((x - p) ** 2) + p**3)
            return seen[-1]

        return optimize.minimize(cost, [0.0]).fun + (seen[0] if used else 0.0)

    assert plaingrad.grad(f)(0.8, False) == pytest.approx(3 * 0.64)
    with pytest.raises(plaingrad.MissingRuleError, match="kept"):
        plaingrad.grad(f)(0.8, True)


Seen = collections.namedtuple("Seen", "value")


class Record:
    def __init__(self, value):
        self.value = value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize("kind", [Seen, Record, Slotted, lambda value: Record({"value": (value,)})])
def test_numbers_in_records_of_a_history_refuse_their_derivatives(kind):
    """Those of a function whose root does not depend on the inputs, too."""

    def f(p, used, cost):
        seen = []

        def g(x):
            seen.append(kind(p * x))
            return cost(x, p)

        root = optimize.brentq(g, 0.0, 9.0)
        value = seen[1].value
        value = value if not isinstance(value, dict) else value["value"][0]
        return root + (value if used else 0.0)

    for cost, slope in ((lambda x, p: x**3 - p, 1 / 3), (lambda x, p: x**3 - 1.0, 0.0)):
        assert plaingrad.grad(lambda p: f(p, False, cost))(1.0) == pytest.approx(slope, rel=1e-9)
        with pytest.raises(plaingrad.MissingRuleError, match="kept"):
            plaingrad.grad(lambda p: f(p, True, cost))(1.0)


def test_the_last_record_is_that_of_the_plain_call():
    def f(p):
        last = [None]

        def cost(x):
            last[0] = Record(x[0] * 1000)
            return np.sum((x - p) ** 2)

        optimize.minimize(cost, [0.0], tol=1e-2)
        return p + int(last[0].value * 1e9)

    assert plaingrad.value_and_grad(f)(0.8) == (f(0.8), 1.0)


def test_what_is_kept_in_the_end_is_what_a_plain_call_keeps():
    def f(p, seen, calls, names):
        def cost(x):
            calls[0] += 1
            calls_of["cost"] = calls_of.get("cost", 0) + 1
            seen.append(float(x[0]))
            names.add(len(names) // 2)
            return np.sum((x - p) ** 2)

        calls_of = {}
        found = optimize.minimize(cost, [0.0], callback=lambda x: seen.append(x.copy())).fun
        return found, calls_of

    plain, plain_calls, plain_names = [], np.zeros(1, int), set()
    value, counted = f(0.8, plain, plain_calls, plain_names)
    seen, calls, names = [], np.zeros(1, int), set()
    found, recounted = plaingrad.value_and_grad(lambda p: f(p, seen, calls, names), has_aux=True)(0.8)[0]
    assert found == value
    assert recounted == counted
    assert calls == plain_calls
    assert names == plain_names
    assert list(map(type, seen)) == list(map(type, plain))
    assert np.array_equal(
        np.concatenate(list(map(np.atleast_1d, seen))), np.concatenate(list(map(np.atleast_1d, plain)))
    )


def test_an_exception_in_a_solver_leaves_what_the_function_has_kept():
    def f(p):
        seen = []

        def g(x):
            seen.append(x)
            if len(seen) > 3:
                raise KeyError(len(seen))
            return x**3 - p

        with pytest.raises(KeyError, match="4"):
            optimize.brentq(g, 0, 9)
        return p * len(seen)

    assert plaingrad.grad(f)(0.8) == 4.0


def test_memory_that_a_right_side_writes_anew_in_each_call():
    def f(p):
        slope = np.zeros(2)

        def rate(y, t):
            slope[0], slope[1] = y[1], -p * y[0]
            return slope

        return integrate.odeint(rate, [1.0, 0.0], np.linspace(0, 1, 5))[-1, 0]

    root = np.sqrt(0.8)
    assert plaingrad.grad(f)(0.8) == pytest.approx(-np.sin(root) / (2 * root), rel=1e-6)
