"""Levels are used again: nothing of one derivative is left for the next, whatever the program did with it."""

import functools
import dataclasses
import gc
import math
import threading
import weakref

import numpy as np
import pytest

import plaingrad
from plaingrad.engine.calls import reuse
from plaingrad.engine.compiled import core
from plaingrad.engine.reverse.reverse import ReverseLevel

needs_core = pytest.mark.skipif(core is None, reason="levels that are not compiled are made anew")


def cubic(x, y):
    return x * x * y + math.sin(y)


def warm():
    for _ in range(3):
        plaingrad.grad(cubic)(1.1, 0.4)
        plaingrad.jvp(cubic, (1.1, 0.4), (1.0, 0.0))
        plaingrad.hvp(cubic, (1.1, 0.4), (1.0, 0.0))


def made_during(work):
    """How many levels `work` makes anew."""
    made = []
    before = reuse.Level.__init__

    def counted(self, parent):
        made.append(type(self).__name__)
        before(self, parent)

    reuse.Level.__init__ = counted
    try:
        work()
    finally:
        reuse.Level.__init__ = before
    return made


@needs_core
@pytest.mark.parametrize(
    "work",
    [
        lambda: plaingrad.grad(cubic)(1.1, 0.4),
        lambda: plaingrad.jvp(cubic, (1.1, 0.4), (1.0, 0.5)),
        lambda: plaingrad.hvp(cubic, (1.1, 0.4), (1.0, 0.5)),
        lambda: plaingrad.jvp(np.tanh, (np.ones(3),), (np.ones(3),)),
        lambda: plaingrad.hvp(lambda x: np.sum(np.tanh(x)), (np.ones(3),), (np.ones(3),)),
    ],
)
def test_levels_are_used_again(work):
    warm()
    work()
    assert made_during(work) == []


def test_different_programs_one_after_another():
    programs = [
        (lambda x: x**3, 1.3, 3 * 1.3**2, 6 * 1.3),
        (
            lambda x: float(np.sum(np.array([x, x * x]))) * 0.0 + math.exp(x),
            0.3,
            math.exp(0.3),
            math.exp(0.3),
        ),
        (lambda x: [x, x * x][1] * 2.0, 0.7, 4 * 0.7, 4.0),
        (lambda x: np.sum(np.array([x, 2.0]) * x), 0.7, 2 * 0.7 + 2.0, 2.0),
    ]
    for _ in range(3):
        for f, x, slope, curvature in programs:
            assert plaingrad.grad(f)(x) == pytest.approx(slope, rel=1e-14)
            assert plaingrad.jvp(f, (x,), (1.0,))[1] == pytest.approx(slope, rel=1e-14)
            assert plaingrad.hvp(f, (x,), (1.0,))[0] == pytest.approx(curvature, rel=1e-14)


def test_after_an_exception():
    def fails(x):
        y = x * x
        if y > 1.0:
            raise ValueError("too large")
        return y

    for _ in range(5):
        for derivative in (
            lambda x: plaingrad.grad(fails)(x),
            lambda x: plaingrad.jvp(fails, (x,), (1.0,))[1],
            lambda x: plaingrad.hvp(fails, (x,), (x,))[0],
        ):
            with pytest.raises(ValueError, match="too large"):
                derivative(2.0)
            assert derivative(0.5) == 1.0


@needs_core
def test_nothing_is_kept():
    class Held:
        pass

    seen = []

    def f(x):
        held = Held()
        held.x = x * x
        seen.append(weakref.ref(held))
        return held.x * x

    def closure(captured):
        seen.append(weakref.ref(captured))
        return lambda x: x * captured.x

    was_on = gc.isenabled()
    gc.disable()
    try:
        warm()
        captured = Held()
        captured.x = 2.0
        for derivative in (
            lambda f: plaingrad.grad(f)(1.5),
            lambda f: plaingrad.jvp(f, (1.5,), (1.0,)),
            lambda f: plaingrad.hvp(f, (1.5,), (1.0,)),
        ):
            derivative(f)
            derivative(closure(captured))
        del captured
        assert [reference() for reference in seen] == [None] * len(seen)
    finally:
        if was_on:
            gc.enable()


def test_generators_that_go_on_afterwards():
    kept = []

    def f(x):
        def later():
            y = x
            while True:
                y = y * 2.0
                yield y

        kept.append(later())
        return next(kept[-1]) * x

    for _ in range(3):
        assert plaingrad.jvp(f, (3.0,), (1.0,)) == (18.0, 12.0)
        assert plaingrad.hvp(f, (3.0,), (1.0,)) == (4.0,)
        assert plaingrad.jvp(cubic, (1.0, 2.0), (1.0, 0.0))[1] == 4.0
    assert [next(generator) for generator in kept] == [12.0] * 6
    assert plaingrad.jvp(lambda x: x * next(kept[0]), (1.0,), (1.0,)) == (24.0, 24.0)


def test_a_derivative_inside_one_that_goes_on():
    def outer(x):
        inner = plaingrad.grad(lambda y: y * y * x)(x)  # 2 x^2
        again = plaingrad.jvp(lambda y: y * inner, (x,), (1.0,))[1]  # 2 x^2
        return inner * x + again  # 2 x^3 + 2 x^2

    for _ in range(3):
        assert plaingrad.grad(outer)(1.5) == 6 * 1.5**2 + 4 * 1.5
        assert plaingrad.jvp(outer, (1.5,), (1.0,))[1] == 6 * 1.5**2 + 4 * 1.5
        assert plaingrad.hvp(outer, (1.5,), (1.0,))[0] == 12 * 1.5 + 4


def test_what_a_cached_function_remembers_in_one_of_several_runs():
    """A Hessian runs its function once for each direction; each run computes what was cached during another."""

    def hessian(a, b):
        @functools.lru_cache
        def scale():
            return held[0] * held[1]

        held = []

        def f(x, y):
            held[:] = [x, y]
            scale.cache_clear()
            return scale() * scale() + x

        return plaingrad.hessian(f, argnums=(0, 1))(a, b)

    def jacobian(a, b):
        held = []

        @functools.lru_cache
        def scale():
            return held[0] * held[1]

        def f(x, y):
            held[:] = [x, y]
            return [scale() * x, scale() * y, scale()]

        return plaingrad.jacobian(f, argnums=(0, 1), mode="forward", chunk_size=1)(a, b)

    for _ in range(3):
        warm()
        assert hessian(2.0, 3.0) == ((18.0, 24.0), (24.0, 8.0))
        assert jacobian(2.0, 3.0) == [(12.0, 4.0), (9.0, 12.0), (3.0, 2.0)]


def test_text_of_one_derivative_is_nothing_to_the_next():
    def writes(x):
        text = f"{x * 1.2345678:.17g}"
        return x + len(text) * 0.0

    def reads(x):
        return x * float("1.85185170000000007")

    for _ in range(3):
        assert plaingrad.jvp(writes, (1.5,), (1.0,))[1] == 1.0
        assert plaingrad.jvp(reads, (2.0,), (1.0,))[1] == 1.85185170000000007
        assert plaingrad.grad(writes)(1.5) == 1.0
        assert plaingrad.grad(reads)(2.0) == 1.85185170000000007


def test_from_several_threads():
    wrong = []

    def work(k):
        for n in range(60):
            x = 1.0 + k + n / 64.0
            if plaingrad.jvp(lambda v: v * v * k, (x,), (1.0,))[1] != 2 * x * k:
                wrong.append(("jvp", k, n))
            if plaingrad.hvp(lambda v: v * v * v * k, (x,), (1.0,))[0] != 6 * x * k:
                wrong.append(("hvp", k, n))
            if plaingrad.grad(lambda v: v * k)(x) != k:
                wrong.append(("grad", k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_rule_that_is_entered_in_between():
    def double(x):
        return 2.0 * x

    def f(x):
        return double(x) * x

    warm()
    assert plaingrad.jvp(f, (3.0,), (1.0,))[1] == 12.0
    plaingrad.frule(double)(lambda f, x: plaingrad.Dual(2.0 * x.primal, 10.0 * x.tangent))
    try:
        assert plaingrad.jvp(f, (3.0,), (1.0,))[1] == 36.0
    finally:
        plaingrad.remove_rule(double)
    assert plaingrad.jvp(f, (3.0,), (1.0,))[1] == 12.0


def of_arrays(v):
    a = np.array([v[0], v[1], 2.0])
    total = float(np.sum(np.sin(a) * a)) + float(np.linalg.norm(a)) + a.sum() + sum(v)
    for k in range(2):
        total += math.hypot(v[k], 2.0) + float(np.outer(a, a)[0, k])
    return total


def slopes_of_arrays(x, y):
    r = math.sqrt(x * x + y * y + 4.0)
    return [
        math.sin(x) + x * math.cos(x) + x / r + 2.0 + x / math.hypot(x, 2.0) + 2.0 * x + y,
        math.sin(y) + y * math.cos(y) + y / r + 2.0 + y / math.hypot(y, 2.0) + x,
    ]


@needs_core
def test_what_is_decided_for_functions_of_arrays_lasts():
    for _ in range(3):
        assert plaingrad.grad(of_arrays)([0.7, 1.3]) == pytest.approx(slopes_of_arrays(0.7, 1.3))
    assert not made_during(lambda: plaingrad.grad(of_arrays)([0.7, 1.3]))
    decided = reuse.free_levels[ReverseLevel][-1][
        1
    ].calls.prepared  # to hold the level would be a reference to it
    wanted = (np.sum, np.sin, np.array, np.outer, np.linalg.norm, math.hypot, sum, range, float)
    assert [f for f in wanted if f not in decided] == []


def test_a_rule_of_the_program_replaces_what_was_decided_for_a_function_of_arrays():
    def f(x):
        return float(np.sum(np.arctan(x)))

    x = np.array([0.5, 2.0])
    expected = 1.0 / (1.0 + x * x)
    assert plaingrad.grad(f)(x) == pytest.approx(expected)
    plaingrad.rrule(np.arctan)(lambda x: (np.arctan(x), lambda z_bar: (7.0 * z_bar,)))
    try:
        assert plaingrad.grad(f)(x) == pytest.approx([7.0, 7.0])
    finally:
        plaingrad.remove_rule(np.arctan)
    assert plaingrad.grad(f)(x) == pytest.approx(expected)
    assert plaingrad.grad(f)(x) == pytest.approx(expected)


class Celsius:
    def __init__(self, x):
        self.x = x

    def __float__(self):
        return self.x * 2.0


def test_float_of_whatever_there_is_keeps_the_derivative():
    def f(x):
        y = float(np.float64(3.0) * x)
        y += float(y) * float(2) * float(" 0.5 ") * float(True) + float(np.array(x)) + float(Celsius(x))
        return y + float(np.array([x]).sum()) + float()

    # 3 x, 3 x, x, 2 x, x
    for _ in range(2):
        assert plaingrad.grad(f)(1.5) == pytest.approx(10.0)
        assert plaingrad.jvp(f, (1.5,), (1.0,))[1] == pytest.approx(10.0)
        assert plaingrad.hvp(lambda x: f(x) * x, (1.5,), (1.0,))[0] == pytest.approx(20.0)
        assert plaingrad.jacobian(lambda v: [f(v[0]) * v[1]])([1.5, 2.0])[0] == pytest.approx([20.0, 15.0])
    with pytest.raises(ValueError, match="could not convert"):
        plaingrad.grad(lambda x: x * float("none"))(1.0)
    with pytest.raises(TypeError):
        plaingrad.grad(lambda x: x * float(1, 2))(1.0)


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: float
    names: dict

    def moved(self, by):
        return dataclasses.replace(self, x=self.x * by)


def test_methods_of_builtin_classes_called_through_the_class():
    def f(x):
        total = 0.0
        for k in range(3):
            one = Frozen(x * k, dict.fromkeys("ab", x)).moved(x)
            object.__setattr__(one, "x", one.x + x)
            values = []
            list.append(values, one.x)
            total += values[0] + one.names["a"] + float.fromhex("0x1p1") * x
        return total

    # k x^2 + x + x + 2 x for k = 0, 1, 2
    for _ in range(2):
        assert plaingrad.grad(f)(1.5) == pytest.approx(2 * 3 * 1.5 + 12)
        assert plaingrad.jvp(f, (1.5,), (1.0,))[1] == pytest.approx(2 * 3 * 1.5 + 12)
        assert plaingrad.hvp(f, (1.5,), (1.0,))[0] == pytest.approx(6.0)


def several(v):
    a = np.array([v[0], v[1]])
    return [v[0] * v[1] + math.sin(v[0]), float(np.sum(a * a)), math.hypot(v[0], v[1]) ** 2]


def test_levels_with_chunks_of_tangents_and_coefficients_are_used_again():
    x, y = 0.7, 1.3
    rows = [[y + math.cos(x), x], [2 * x, 2 * y], [2 * x, 2 * y]]
    works = {
        "forward": lambda: (
            plaingrad.jacobian(several, mode="forward")([x, y]) == [pytest.approx(r) for r in rows]
        ),
        "reverse": lambda: (
            plaingrad.jacobian(several, mode="reverse")([x, y]) == [pytest.approx(r) for r in rows]
        ),
        "other size": lambda: (
            plaingrad.jacobian(lambda v: v[0] * v[1] * v[2], mode="forward")([x, y, 2.0])
            == pytest.approx([2 * y, 2 * x, x * y])
        ),
        "taylor": lambda: (
            list(plaingrad.taylor(lambda t: math.sin(t) * t, x, 3))
            == pytest.approx(
                [
                    math.sin(x) * x,
                    math.sin(x) + x * math.cos(x),
                    (2 * math.cos(x) - x * math.sin(x)) / 2,
                    (-3 * math.sin(x) - x * math.cos(x)) / 6,
                ]
            )
        ),
        "hessian": lambda: (
            plaingrad.hessian(lambda v: v[0] * v[0] * v[1])([x, y])
            == [pytest.approx([2 * y, 2 * x]), pytest.approx([2 * x, 0.0])]
        ),
        "fails": lambda: raises_at_the_second(x, y),
        "nested": lambda: (
            plaingrad.jacobian(
                lambda v: plaingrad.jacobian(lambda w: [w[0] * w[0] * w[1]], mode="forward")(v)[0],
                mode="forward",
            )([x, y])
            == [pytest.approx([2 * y, 2 * x]), pytest.approx([2 * x, 0.0])]
        ),
    }
    for name in [*works, *reversed(works), *works]:
        assert works[name](), name
    if core is not None:
        for name in ("forward", "reverse", "taylor"):
            works[name]()  # what came before may have used up the level
            assert not made_during(works[name]), name


def raises_at_the_second(x, y):
    with pytest.raises(ZeroDivisionError):
        plaingrad.jacobian(lambda v: [v[0] * v[1], v[0] / 0.0], mode="forward")([x, y])
    return True


@needs_core
def test_the_memory_of_many_columns_is_not_kept():
    def long(v):
        kept = [v[0]]
        for _ in range(3000):
            kept.append(kept[-1] * 1.0001 + v[1])
        return [kept[-1]]

    for _ in range(2):
        plaingrad.jacobian(long, mode="forward")([1.0, 2.0, 3.0, 4.0, 5.0])
    assert made_during(lambda: plaingrad.jacobian(long, mode="forward")([1.0, 2.0, 3.0, 4.0, 5.0]))


@needs_core
def test_a_hessian_leaves_no_level_with_its_arrays_to_the_collector():
    refs = []

    def f(v):
        held = np.ones(50)
        refs.append(weakref.ref(held))
        held[0] = v[1]
        return np.sum(held * v[0] * v[0])

    v = np.array([0.3, 0.4])
    expected = [[2 * (49 + 0.4), 2 * 0.3], [2 * 0.3, 0.0]]
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            assert plaingrad.hessian(f)(v) == pytest.approx(np.array(expected))
        assert len(refs) > 2 and not any(ref() is not None for ref in refs)
        assert not made_during(lambda: plaingrad.hessian(f)(v))
    finally:
        gc.enable()
