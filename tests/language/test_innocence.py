"""Importing plaingrad and taking a gradient leave ordinary programs as they were."""

import contextvars
import copy
import functools
import gc
import inspect
import pickle
import subprocess
import sys
import textwrap
import warnings
import weakref

import numpy as np
import pytest
from tests.sampling import some

import plaingrad

PROGRAMS = {
    "asyncio": """
        import asyncio
        async def work(k):
            async with asyncio.timeout(10):
                await asyncio.sleep(0)
            return k * k
        async def main():
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(work(k)) for k in range(3)]
            return [t.result() for t in tasks] + [await asyncio.wait_for(work(5), 10), asyncio.current_task() is None]
        print(asyncio.run(main()))
    """,
    "concurrent": """
        import concurrent.futures, threading, queue, signal, select, atexit, sched
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            print(sorted(pool.map(abs, [-1, 2, -3])), pool.submit(max, 1, 2).result())
        q = queue.Queue()
        t = threading.Thread(target=lambda: q.put(threading.current_thread().name), name="t")
        t.start(); t.join(); print(q.get())
    """,
    "numbers": """
        import decimal, fractions, statistics, random, math, cmath, ctypes, array, struct
        print(decimal.Decimal("1.1") + 1, fractions.Fraction(1, 3) * 2, statistics.mean([1, 2]), random.Random(1).random())
        print(ctypes.c_double(1.5).value, array.array("d", [1.5])[0], struct.unpack("d", struct.pack("d", 1.5))[0])
    """,
    "meta": """
        import abc, enum, dataclasses, typing, functools, weakref, contextlib, importlib, inspect, types, collections
        class Colour(enum.Enum):
            RED = 1.5
        @dataclasses.dataclass(order=True)
        class P:
            x: float = 1.0
        class S(abc.ABC):
            @abc.abstractmethod
            def f(self): ...
        try:
            S()
        except TypeError:
            print("abstract", Colour(1.5), sorted([P(2.0), P(1.0)]))
        print(inspect.signature(lambda a, b=1: a), isinstance([], collections.abc.Sized))
    """,
    "numpy": """
        import numpy as np, operator
        a = np.arange(4.0)
        print(np.sort(a[::-1]), np.add.reduce(a), np.linalg.norm(a), np.vectorize(lambda v: v * v)(a), operator.matmul(a, a))
    """,
}


@functools.cache
def output(text):
    """What a program prints in a new process: what it sees depends on what was imported before."""
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


USES = some(["import plaingrad; plaingrad.grad(lambda x: sorted([x, 2.0])[0])(1.0)"], ["import plaingrad"])


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("use", USES)
def test_a_program_prints_the_same_when_plaingrad_was_imported_first(program, use):
    source = textwrap.dedent(PROGRAMS[program])
    location = repr([p for p in sys.path if p])
    first = f"import sys; sys.path[:] = {location}\n"
    assert output(first + use + "\n" + source) == output(first + source)


def test_a_program_with_long_lines_is_traced_while_it_is_differentiated():
    body = "".join(f"    y = (y *\n{' ' * 140}x +\n{' ' * 150}y)\n" for _ in range(60))
    scope = {}
    exec(compile("def f(x):\n    y = x\n" + body + "    return x * x\n", "<long lines>", "exec"), scope)
    seen = set()

    def trace(frame, event, arg):
        if frame.f_code.co_filename == "<long lines>":
            seen.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        g = plaingrad.grad(scope["f"])(1e-3)
    finally:
        sys.settrace(before)
    assert g == pytest.approx(2e-3, rel=1e-12)
    assert max(seen) == 183 and {3, 4, 5} <= seen


class Shape:
    """Its special methods are entered from C code while a level is open."""

    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        return self.v < other.v

    def __eq__(self, other):
        return self.v == other.v

    def __hash__(self):
        return hash(self.v)

    @property
    def double(self):
        return self.v * 2.0


def sorts(x):
    """The smallest of three, doubled."""
    return sorted([Shape(x), Shape(x * x), Shape(4.0)])[0].double


def test_functions_and_classes_are_what_they_were():
    before = sorts.__code__, dict(vars(Shape)), [vars(Shape)[n].__code__ for n in ("__lt__", "__eq__", "__hash__", "__init__")]
    fget = Shape.double.fget.__code__ if isinstance(Shape.double, property) else vars(Shape)["double"].fget.__code__
    assert plaingrad.grad(sorts)(1.5) == 2.0
    assert sorts.__code__ is before[0] and dict(vars(Shape)) == before[1]
    assert [vars(Shape)[n].__code__ for n in ("__lt__", "__eq__", "__hash__", "__init__")] == before[2]
    assert vars(Shape)["double"].fget.__code__ is fget
    assert inspect.getsource(sorts).startswith("def sorts(x)") and sorts.__doc__.startswith("The smallest")
    assert pickle.loads(pickle.dumps(Shape(1.5))) == copy.deepcopy(Shape(1.5))


def test_classes_are_restored_after_an_exception_and_while_a_generator_is_left_open():
    kept = []

    def leaves_a_generator(x):
        def g():
            yield Shape(x) < Shape(2.0)
            yield Shape(x) < Shape(3.0)

        kept.append(g())
        next(kept[0])
        sorted([Shape(x), Shape(1.0)])
        raise RuntimeError("left")

    code = Shape.__lt__.__code__
    with pytest.raises(RuntimeError, match="left"):
        plaingrad.grad(leaves_a_generator)(1.5)
    assert Shape.__lt__.__code__ is code
    assert next(kept[0]) is True


def test_no_level_is_left_in_the_context():
    plaingrad.grad(sorts)(1.5)
    with pytest.raises(ZeroDivisionError):
        plaingrad.grad(lambda x: x / 0)(1.5)
    assert [v for v in contextvars.copy_context().values() if type(v).__name__ == "Level"] == []


def test_what_a_gradient_used_is_freed():
    def scenario():
        class Local:
            def __init__(self, v):
                self.v = v

            def __lt__(self, other):
                return self.v < other.v

        held = []

        def f(x):
            a = np.zeros(50)
            a[0] = x
            a *= 2.0
            o = sorted([Local(x), Local(x * x)])[0]
            held.append(weakref.ref(o))
            return o.v * a[0] + sum(k * x for k in range(3))

        plaingrad.grad(f)(1.5)
        plaingrad.grad(plaingrad.grad(f))(1.5)
        return [weakref.ref(f), weakref.ref(Local), *held]

    references = [r for _ in range(3) for r in scenario()]
    gc.collect()
    assert [r for r in references if r() is not None] == []


def test_warnings_and_floating_point_errors_are_those_of_a_plain_call():
    def f(x):
        with np.errstate(divide="raise"):
            try:
                return x * float(np.divide(np.array([1.0]), np.array([0.0]))[0])
            except FloatingPointError:
                warnings.warn("caught", UserWarning, stacklevel=1)
                return x * 3.0

    for run in (f, plaingrad.grad(f)):
        with pytest.warns(UserWarning, match="caught"):
            assert run(2.0) in (6.0, 3.0)
    with np.errstate(all="raise"):
        assert plaingrad.grad(lambda x: x * 1e-300 * 1e300)(1.0) == pytest.approx(1.0)
        assert np.geterr()["over"] == "raise"
