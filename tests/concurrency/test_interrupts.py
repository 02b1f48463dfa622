"""An asynchronous exception at any instruction: everything is as before, and it stays the exception that it was."""

import contextlib
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest
from tests.hunts import injected
from tests.hunts.injected import Put, State, Tracer, free_locks, interrupted, places_to_try, without_collection
from tests.sampling import count

import plaingrad
from plaingrad import grad, jvp, vjp
from plaingrad.critical import TIMES

# CPython 3.14 traces generators while it closes them, and an exception there goes to nobody.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def keyboard():
    """Shells let what runs in the background ignore the interrupt."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Length:
    """A number whose special methods C code enters."""

    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        return self.v < other.v

    def __mul__(self, other):
        return Length(self.v * other)

    @property
    def double(self):
        return self.v * 2.0


def mixed(p):
    """Containers, an object, an array that is written, and special methods: 2 a b + sum(w w) + c."""
    w = p["w"]
    w *= 1.0
    w[0] = w[0] * 1.0
    longest = sorted([Length(p["list"][0]), Length(-1.0)])[-1] * p["box"].b
    return longest.double + (w * w).sum() + p["c"]


class Box:
    def __init__(self, b):
        self.b = b


ARGUMENT = {"list": [1.5, 2.5], "box": Box(3.0), "w": np.array([1.0, 2.0]), "c": 4.0}


def gradient_of_mixed(g):
    assert g["list"] == [6.0, 0.0] and g["box"].b == 3.0 and g["c"] == 1.0
    assert g["w"].tolist() == [2.0, 4.0]


def pulled():
    _, pullback = vjp(mixed, ARGUMENT)
    gradient_of_mixed(pullback(1.0)[0])
    return pullback


def chain(x):
    return plaingrad.checkpoint(lambda a: (a * a).sum() * Length(a[0]).double, x)


XS = np.array([1.0, 2.0])


def forward():
    y, y_dot = jvp(lambda x, d: (x * x).sum() + d["k"] * Length(d["k"]).double, (XS, KS), (XS, {"k": 1.0}))
    assert y_dot == 2.0 * 5.0 + 4.0 * 3.0


KS = {"k": 3.0}


def second():
    assert grad(grad(lambda x: (Length(x) * x).v * x))(2.0) == 12.0
    assert grad(lambda x: x["k"] * grad(lambda y: y * Length(y * x["k"]).v)(1.0))(KS)["k"] == 12.0


def checkpointed():
    # 2 x0 (x0^2 + x1^2): by x0 2 * 5 + 2 * 2, by x1 8 x1 / 2
    assert grad(chain)(XS).tolist() == [14.0, 8.0]


def repeated():
    y = grad(lambda x: plaingrad.checkpoint_sequence(lambda s: [s[0] * 2.0], [x], 6, 2)[0])(1.0)
    assert y == 64.0


def generators():
    def f(x):
        def numbers():
            for k in range(3):
                yield x * k

        return sum(Length(y).double for y in numbers())

    assert grad(f)(1.5) == 6.0


def small():
    assert grad(lambda p: Length(p["k"]).double * p["k"])(KS) == {"k": 12.0}


def numbers():
    def f(x, y):
        return Length(x).double * y

    assert grad(f, argnums=(0, 1))(1.5, 2.0) == (4.0, 3.0)
    assert jvp(f, (1.5, 2.0), (1.0, None)) == (6.0, 4.0)
    assert grad(lambda x: x * x)(1.5) == 3.0


PROGRAMS = {
    "small": small,
    "numbers": numbers,
    "gradient": lambda: gradient_of_mixed(grad(mixed)(ARGUMENT)),
    "pullback": pulled,
    "forward": forward,
    "second": second,
    "checkpoint": checkpointed,
    "sequence": repeated,
    "generators": generators,
}
OTHERS = {"gradient": count(40, 100)}  # more with PLAINGRAD_TEST_ALL=1
ARGUMENTS = [ARGUMENT, XS, KS]
CLASSES = (Length, Box)


TRIED = set()


def try_everywhere(program, others, lines=False):
    """Put an exception in at each place that no program has reached yet; the number of places."""
    places = places_to_try(program, others, lines, TRIED)
    state = State(CLASSES, ARGUMENTS)
    for at in places:
        stopped = interrupted(program, at, lines=lines)
        assert not state.differences(), (at, stopped, state.differences())
    assert free_locks()
    program()
    return len(places)


@pytest.mark.parametrize("name", PROGRAMS)
def test_at_every_instruction_of_opening_and_closing(name):
    assert without_collection(lambda: try_everywhere(PROGRAMS[name], OTHERS.get(name, count(15, 30)))) >= 15


@pytest.mark.parametrize("name", PROGRAMS)
def test_at_every_line(name):
    assert without_collection(lambda: try_everywhere(PROGRAMS[name], count(10, 20), lines=True)) >= 10


@pytest.mark.parametrize("times", range(2, TIMES + 1))
def test_several_in_quick_succession(times):
    """While what one has ended is cleaned up, others arrive, at any instruction of that."""
    without_collection(lambda: try_several(times))


def try_several(times):
    chances = random.Random(times)
    met = 0
    for program in PROGRAMS.values():
        places = places_to_try(program, 10)
        state = State(CLASSES, ARGUMENTS)
        for _ in range(12):
            at = [chances.choice(places)]
            while len(at) < times:
                at.append(at[-1] + chances.choice([1, 2, 3, 5, 8, 13, 21, 34, 55]))
            tracer = Tracer(tuple(at))
            with contextlib.suppress(Put):
                tracer.run(program)
            assert not state.differences(), (at, tracer.raised, state.differences())
            met += tracer.raised == times
        program()
    assert free_locks() and met > 40


def test_it_stays_the_exception_that_it_was_also_where_the_function_has_failed():
    def fails(p):
        sorted([Length(p["c"]), Length(1.0)])
        raise ValueError("of the program's own")

    def program():
        with pytest.raises(ValueError, match="of the program's own"):
            grad(fails)(ARGUMENT)

    without_collection(lambda: try_everywhere(program, 100))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, TimeoutError])
def test_other_exceptions(error):
    program = PROGRAMS["gradient"]
    places = places_to_try(program, 0)
    state = State(CLASSES, ARGUMENTS)
    for at in random.Random(0).sample(places, 60):
        assert interrupted(program, at, error) or True
        assert not state.differences()


def test_an_interrupt_in_the_middle_of_the_users_code():
    state = State(CLASSES, ARGUMENTS)

    def f(p):
        y = mixed(p)
        signal.raise_signal(signal.SIGINT)
        return y

    for derived in (grad(f), lambda p: grad(lambda q: grad(f)(q)["c"])(p), lambda p: jvp(f, (p,), (grad(mixed)(p),))):
        with pytest.raises(KeyboardInterrupt):
            derived(ARGUMENT)
        assert not state.differences()
        PROGRAMS["gradient"]()


def test_signals_at_any_moment():
    without_collection(ring_at_any_moment)  # what is raised in a callback of the collector is only printed


def ring_at_any_moment():
    for program in PROGRAMS.values():
        program()  # what is made, or imported, once is made now
    state = State(CLASSES, ARGUMENTS)

    armed = []

    def ring(number, frame):
        if armed:  # with several threads a signal may come late
            armed.clear()
            raise Put

    before = signal.signal(signal.SIGALRM, ring)
    chances = random.Random(1)
    stopped = 0
    try:
        for k in range(150):
            program = list(PROGRAMS.values())[k % len(PROGRAMS)]
            try:
                try:
                    armed.append(True)
                    signal.setitimer(signal.ITIMER_REAL, chances.uniform(1e-5, 2e-3))
                    program()
                finally:
                    armed.clear()
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Put:
                stopped += 1
            assert not state.differences(), state.differences()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stopped and free_locks()


def test_exceptions_from_another_thread():
    without_collection(raise_from_another_thread)


def raise_from_another_thread():
    for program in PROGRAMS.values():
        program()
    state = State(CLASSES, ARGUMENTS)
    counts = {"stopped": 0, "wrong": []}
    stop = threading.Event()

    def work():
        while not stop.is_set():
            try:
                for program in PROGRAMS.values():
                    program()
            except Put:
                counts["stopped"] += 1
            except BaseException as error:
                counts["wrong"].append(error)
                return

    def guarded():
        while not stop.is_set():
            try:
                work()
            except Put:  # between two of its lines
                counts["stopped"] += 1

    def outermost():
        try:
            guarded()
        except Put:
            counts["stopped"] += 1

    thread = threading.Thread(target=outermost)
    thread.start()
    for _ in range(30):
        time.sleep(0.01)
        before = counts["stopped"]
        injected.asynchronously(thread.ident, Put)
        waited = 0
        while counts["stopped"] == before and thread.is_alive():  # CPython 3.11 hangs where one is taken back
            time.sleep(0.001)
            waited += 1
            if waited % 1000 == 0:  # it was swallowed where exceptions are only printed
                injected.asynchronously(thread.ident, Put)
    stop.set()
    thread.join()
    assert not counts["wrong"], counts["wrong"]
    assert counts["stopped"] and not state.differences() and free_locks()


def test_a_program_that_catches_it_goes_on():
    """What was interrupted is not done; the rest has its derivative."""

    def f(p):
        y = mixed(p)
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return y * 2.0
        return y

    g = grad(f)(ARGUMENT)
    assert g["list"] == [12.0, 0.0] and g["c"] == 2.0


def test_formatting_a_dictionary_that_another_thread_changes():
    table = {str(k): float(k) for k in range(50)}
    stop = threading.Event()

    def change():
        k = 50
        while not stop.is_set():
            table[str(k)] = 1.0
            table.pop(str(k - 30), None)
            k += 1

    thread = threading.Thread(target=change)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(30):
            assert grad(lambda x: (x * x, f"{[x, len(table)]}", str(table) and None)[0])(1.5) == 3.0
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
