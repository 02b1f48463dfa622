"""A program that catches an asynchronous exception inside, and goes on: what it does from then on has its derivative."""

import math
import random
import threading

import numpy as np
import pytest
from tests.hunts.injected import HOME, Put, State, Tracer, without_collection
from tests.sampling import count

from plaingrad import derivative, grad, jvp, rrule

# CPython 3.14 traces generators while it closes them, and an exception there goes to nobody.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

X = 0.7
PLACES = count(12, 60)  # of each program at which an exception is put in; more with PLAINGRAD_TEST_ALL=1


def cube(x):
    return x**3


@rrule(cube)
def cube_rrule(x):
    return x**3, lambda z_bar: (3.0 * x * x * z_bar,)


class Array(np.ndarray):
    """A subclass: operands of such classes are tried out with nothing recorded."""


class Length:
    """A number whose special methods C code enters."""

    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        return self.v < other.v

    @property
    def double(self):
        return self.v * 2.0


def scalars(x):
    y = math.exp(math.sin(x)) * x / 2.0 - abs(x)
    return y**3 + math.hypot(x, y) + cube(x) + sum([x, y])


def arrays(x):
    a = np.array([x, 1.0, 2.0])
    a[1] = x * x
    a *= 2.0
    b = a[[0, 2, 1]] * np.cumsum(a)  # not in the compiled core
    return np.sum(np.exp(a) * a) + a @ a + np.max(b)


def subclasses(x):
    a = np.array([x, 1.0, 2.0])
    b = a.view(Array)
    return np.sum(2.0 * b + a * b)


def masked(x):
    a = np.ma.masked_array(np.array([x, 2.0]), [0, 1])
    return (a / x * a).sum()


def objects(x):
    return sorted([Length(x), Length(-1.0)])[-1].double * [x][0]


def afterwards(x):
    """x^2 sin(x) + 2 x^2 + 3 x + 3 x^2, by calls that look up the level in force."""

    def inner(y):
        return y * y * math.sin(y)

    return inner(x) + Length(x).double * x + np.sum(np.array([x, x * x]) * 3.0)


FIRST = 2 * X * math.sin(X) + X * X * math.cos(X) + 10 * X + 3
SECOND = 2 * math.sin(X) + 4 * X * math.cos(X) - X * X * math.sin(X) + 10

OPERATORS = {
    "reverse": (lambda f: grad(f)(X), FIRST),
    "forward": (lambda f: derivative(f)(X), FIRST),
    "reverse over reverse": (lambda f: grad(grad(f))(X), SECOND),
    "forward over reverse": (lambda f: jvp(grad(f), (X,), (1.0,))[1], SECOND),
    "forward over forward": (lambda f: derivative(derivative(f))(X), SECOND),
}


def is_engine(code):
    name = code.co_filename
    return name.startswith("<plaingrad") or (name.startswith(HOME) and "/rewrite/" not in name and "/rules/" not in name)


ONCE = [(operator, masked) for operator in ("reverse", "forward")]  # many instructions
CASES = [(operator, part) for operator in OPERATORS for part in (scalars, arrays, subclasses, objects)] + ONCE


@pytest.mark.parametrize(("operator", "part"), CASES)
def test_what_comes_afterwards_has_its_derivative(operator, part):
    derived, right = OPERATORS[operator]
    caught, inside, tracers, aimed = [], [], [], []

    def f(x):
        begin = len(tracers[0].places) if tracers else 0
        try:
            if aimed:
                aimed[0].aim()
            part(x)
        except Put:
            caught.append(True)
        if len(tracers) == 1:
            inside.extend(range(begin + 1, len(tracers[0].places) + 1))
        return afterwards(x)

    def program():
        assert derived(f) == pytest.approx(right, rel=1e-12)

    def everywhere():
        program()
        program()
        for _ in range(2):  # what is kept from one derivative to the next, of tracers too, is kept the second time
            tracers[:], inside[:] = [Tracer(None, keep=True, watched=is_engine)], []
            recorded = tracers[0]
            recorded.run(program)
        tracers.append(None)
        first = {}
        for number, place in enumerate(recorded.places, 1):
            first.setdefault(place, number)
        errors = np.geterr()
        chances = random.Random(0)
        state = State((Length,), ())
        within = sorted({*first.values()} & {*inside})  # the rest is before and after what is caught
        chosen = chances.sample(within, min(len(within), PLACES // 4))
        others = chances.sample(sorted(first.values()), PLACES - len(chosen))
        further = chances.sample(within, min(len(within), 40))  # until one is caught
        for number, at in enumerate([*chosen, *others, *further]):
            if caught and number >= PLACES:
                break
            program()  # what is kept from one derivative to the next is as it was, and places have their numbers
            try:
                # What one derivative keeps the next does not do: instructions of the part are counted from its start.
                later = at - inside[0] if at in within else None
                tracer = Tracer(at if later is None else None, watched=is_engine, later=later)
                aimed[:] = [tracer]
                tracer.run(program)
            except Put:
                pass
            except AssertionError:
                raise AssertionError(f"wrong after number {at}, where there was {recorded.places[at - 1]}") from None
            finally:
                aimed.clear()
            # A tracing function can raise between the entry of `np.errstate` and the block, where no signal comes.
            np.seterr(**errors)
            assert not state.differences(), at

    without_collection(everywhere)
    assert caught or len(inside) < 200  # where the core leaves so few instructions, none may be met


def test_a_thread_does_not_wait_for_a_level_that_is_at_work_nowhere():
    """What an interrupted clean-up has left behind is nobody's: the next derivative, of any thread, takes the argument."""
    from plaingrad.engine.reverse.reverse import ReverseLevel
    from plaingrad.engine.reverse import exclusive
    from plaingrad.rewrite import PLAIN

    x = [1.0, 2.0]
    exclusive._patched[id(x)] = [ReverseLevel(PLAIN)]
    found = []
    thread = threading.Thread(target=lambda: found.append(grad(lambda x: x[0] * x[1])(x)), daemon=True)
    thread.start()
    thread.join(20)
    try:
        assert found == [[2.0, 1.0]]
    finally:
        exclusive._patched.pop(id(x), None)
