"""Runs of arithmetic in forward mode, and in reverse mode inside it: against the hooks, closed forms and mpmath."""

import contextlib
import gc
import inspect
import linecache
import math
import operator
import threading

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import count

import plaingrad
from plaingrad import rulebook
from plaingrad.engine.fusion import fused
from plaingrad.engine.forward.forward import ForwardLevel
from plaingrad.engine.forward.push import push
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.engine.fusion.straight import Straight
from plaingrad.rewrite import CURRENT
from plaingrad.rewrite.fusion import FUNCTIONS

DOMAINS = {"acosh": (1.2, 3.4), "asin": (-0.7, 0.6), "acos": (-0.7, 0.6), "atanh": (-0.7, 0.6)}
POSITIVE = ("log", "log2", "log10", "log1p", "sqrt", "cbrt")


@contextlib.contextmanager
def unfused():
    """Every operation goes through its hook."""
    with pytest.MonkeyPatch.context() as patch:
        for cls in (ForwardLevel, ReverseLevel):

            def choose(self, original=cls.choose_arithmetic):
                original(self)
                self.fuses = False

            patch.setattr(cls, "choose_arithmetic", choose)
        yield


def gradient_along(f, xs, dots):
    """(gradient, Hessian times `dots`) of f(*xs), forward over reverse."""
    g = plaingrad.grad(f, tuple(range(len(xs))))
    return push(g, tuple(xs), tuple(dots), {})


def everything(f, xs, dots):
    """All that the modes say of `f`, as a flat list of numbers."""
    found = [*push(f, xs, dots, {})]
    wide = tuple(np.array([x_dot, -2.0 * x_dot, 0.5]) for x_dot in dots)
    y, y_dot = push(f, xs, wide, {}, 3)
    found += [y, *np.broadcast_to(y_dot, (3,)).tolist()]
    for part in gradient_along(f, xs, dots):
        found += part
    for k in range(len(xs)):  # only one input moves in each way
        one = [None] * len(xs)
        one[k] = 1.0
        found.append(push(f, xs, tuple(one), {})[1])
        g = plaingrad.grad(f, len(xs) - 1 - k)
        found += push(g, xs, tuple(one), {})
    return found


LINES = [
    "{z} = {a} * {b} + 0.3",
    "{z} = {a} / (1.5 + {b} * {b}) - {a}",
    "{z} = math.sin({a}) * {b} - {a} * 0.25",
    "{z} = math.tanh({a} - {b}) * 1.5",
    "{z} = math.sqrt(1.0 + {a} * {a}) / ({b} ** 2 + 2)",
    "{z} = -{a} + 0.5 * {b}",
    "{z} = {a} ** 3 * 0.125 - math.cos({b}) / 3",
    "{z} = math.exp(-{a} * {a}) + {b}",
    "{z} = math.log({a} * {a} + 2.0) * math.atan({b})",
    "{z} = {a} - {a} * 0.75",
    "{z} = math.erf({a}) - math.asinh({b}) / 2",
    "{z} = math.tanh({a} + {z})",
    "{z} = math.tanh({a} * k + 0.1)",
]
NAMES = "xyuvw"


@st.composite
def programs(draw):
    """The source of a function of x and y: straight lines, some of them in a loop, some behind a branch."""
    lines = draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=7))
    names = st.sampled_from(NAMES)
    body = [line.format(z=draw(names), a=draw(names), b=draw(names)) for line in lines]
    at = draw(st.integers(0, len(body)))
    turns = draw(st.integers(0, 4))
    source = ["def f(x, y):", "    u, v, w, k = 0.4, -0.9, x, 1"]
    source += ["    " + line for line in body[:at]]
    source += [f"    for k in range({turns}):", "        w = math.tanh(w + x) * 0.5"]
    source += ["        " + line for line in body[at:]]
    if draw(st.booleans()):
        source += [
            "        if k % 2:",
            "            u = math.sin(x * y) - u * 0.5",
            "            v = u + y * y",
        ]
    result = draw(st.sampled_from(["u * v + w", "w", "u + 2.0 * v", "u - w * x"]))
    return "\n".join([*source, f"    return {result}"])


@settings(max_examples=count(30, 60), deadline=None)
@given(programs(), st.floats(-1.5, 1.5), st.floats(-1.5, 1.5), st.floats(-2.0, 2.0))
def test_runs_and_hooks_agree(source, x, y, x_dot):
    scope = {"math": math}
    exec(source, scope)
    f, xs, dots = scope["f"], (x, y), (x_dot, 1.0)
    taken_together = everything(f, xs, dots)
    with unfused():
        one_by_one = everything(f, xs, dots)
    assert taken_together == pytest.approx(one_by_one, rel=1e-11, abs=1e-12)


@st.composite
def element_programs(draw):
    """The source of a function of x and y whose values are elements of a list or array `p`: nothing can be taken together."""
    lines = draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=8))
    places = st.sampled_from(["p[0]", "p[1]", "p[2]", "p[3]", "p[4]"])
    make = draw(st.sampled_from(["[{}]", "np.array([{}])"]))
    source = ["def f(x, y):", "    p = " + make.format("x, y, 0.4, -0.9, x * y"), "    for k in range(2):"]
    for line in lines:
        text = line.format(z=draw(places), a=draw(places), b=draw(places))
        source.append("        " + (text.replace("math.", "np.") if draw(st.booleans()) else text))
    text = "\n".join([*source, "    return float(p[0] * p[3] + p[4] - p[2] / (p[1] * p[1] + 1.0))"])
    for name in ("atan", "asinh"):
        text = text.replace(f"np.{name}", f"np.arc{name[1:]}")
    return text.replace("np.erf", "math.erf")


@settings(max_examples=count(30, 60), deadline=None)
@given(element_programs(), st.floats(-1.5, 1.5), st.floats(-1.5, 1.5), st.floats(-2.0, 2.0))
def test_single_operations_that_know_both_levels_agree_with_those_that_go_through(source, x, y, x_dot):
    scope = {"math": math, "np": np}
    exec(source, scope)
    f, xs, dots = scope["f"], (x, y), (x_dot, 1.0)
    known = everything(f, xs, dots)
    with unfused():
        through = everything(f, xs, dots)
    assert known == pytest.approx(through, rel=1e-11, abs=1e-12)


def spiral(x, y, n):
    a, b = x, y
    for _ in range(n):
        c = math.sin(a) * b + 0.3
        b = a / (1.5 + b * b) - c * 0.5
        a = c * c - x * b + math.exp(-c)
    return a * b


def test_first_and_second_derivatives_of_a_loop_are_those_of_multiple_precision():
    mpmath.mp.dps = 40
    scope = {"math": mpmath}
    exec(inspect.getsource(spiral), scope)
    exact = scope["spiral"]
    x, y, v, w = 0.6, -0.8, 1.0, 0.4

    def along(t):
        return exact(mpmath.mpf(x) + t * v, mpmath.mpf(y) + t * w, 5)

    value, slope, curvature = [float(d) for d in mpmath.taylor(along, 0, 2)]
    y_value, y_dot = push(spiral, (x, y, 5), (v, w, None), {})
    assert y_value == pytest.approx(value, rel=1e-14) and y_dot == pytest.approx(slope, rel=1e-12)
    g = plaingrad.grad(spiral, (0, 1))
    bars, bars_dot = push(g, (x, y, 5), (v, w, None), {})
    assert bars[0] * v + bars[1] * w == pytest.approx(slope, rel=1e-12)
    assert bars_dot[0] * v + bars_dot[1] * w == pytest.approx(2.0 * curvature, rel=1e-12)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_in_a_run_has_first_and_second_derivatives(name):
    scope = {"math": math}
    exec(f"def f(x):\n    a = x * 1.0\n    b = math.{name}(a)\n    return b * a", scope)
    f, c = (
        scope["f"],
        getattr(mpmath, name, None)
        or {"exp2": lambda t: mpmath.mpf(2) ** t, "log2": lambda t: mpmath.log(t, 2)}[name],
    )
    mpmath.mp.dps = 30
    for x in DOMAINS.get(name, (0.3, 1.7) if name in POSITIVE else (-0.7, 1.3)):
        _, first, second = mpmath.taylor(lambda t, x=x: c(x + t) * (x + t), 0, 2)
        assert push(f, (x,), (1.0,), {})[1] == pytest.approx(float(first), rel=1e-12)
        g, g_dot = push(plaingrad.grad(f), (x,), (1.0,), {})
        assert g == pytest.approx(float(first), rel=1e-12)
        assert g_dot == pytest.approx(2.0 * float(second), rel=1e-11)


def test_every_row_of_a_function_can_be_written_as_straight_line_code():
    for name in FUNCTIONS:
        code = Straight()
        assert code.slope(code.emit(name, "x", name="z"))


def square(x):
    a = x * 0.5
    b = a * x
    return b + b


def test_chunks_carry_every_direction():
    y, y_dot = push(square, (3.0,), (np.array([1.0, -2.0, 0.0]),), {}, 3)
    assert y == 9.0 and y_dot.tolist() == [6.0, -12.0, 0.0]


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_a_chunk_of_any_size_is_its_tangents_one_by_one(count):
    rng = np.random.default_rng(count)
    v, w = rng.normal(size=count), rng.normal(size=count)
    _, wide = push(spiral, (0.6, -0.8, 3), (v, w, None), {}, count)
    one_by_one = [
        push(spiral, (0.6, -0.8, 3), (float(a), float(b), None), {})[1] for a, b in zip(v, w, strict=True)
    ]
    np.testing.assert_allclose(wide, one_by_one, rtol=1e-13)


def test_a_constant_that_is_infinite_or_nan_poisons_nothing():
    def f(x, c):
        a = x * 2.0
        b = c * 3.0
        d = b - c * a
        return a if d != d else a * 2.0

    for c in (math.inf, math.nan):
        assert push(f, (1.5, c), (1.0, None), {})[1] in (2.0, 4.0)
        g, g_dot = push(plaingrad.grad(f), (1.5, c), (1.0, None), {})
        assert g in (2.0, 4.0) and g_dot == 0.0

    def mixed(x, c):
        b = c * 2.0
        a = x * x + b * 0.0 if x > 0 else b
        e = b * c
        z = x * a
        return z if e else a

    with unfused():
        expected = everything(mixed, (1.5, 1e308), (1.0, 0.0))
    assert everything(mixed, (1.5, 1e308), (1.0, 0.0)) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("line", "x"),
    [
        ("math.sqrt(a)", 0.0),
        ("math.sqrt(a) * a", 0.0),
        ("math.cbrt(a)" if hasattr(math, "cbrt") else "math.sqrt(a)", 0.0),
        ("math.asin(a)", 1.0),
        ("math.acosh(a)", 1.0),
        ("a ** 2 / (a + 1.0)", 0.0),
        ("a ** 8 * 1e300", 1e-300),
        ("a * 1e200 * a", 1e200),
        ("math.exp(a) - math.exp(a)", 709.0),
        ("1.0 / (a * a)", 1e-200 * 1e40),
    ],
)
@pytest.mark.parametrize("held", ["a", "[a]", "np.array([a])"])
def test_at_singular_points_all_ways_say_what_the_hooks_say(line, x, held):
    scope = {"math": math, "np": np}
    if held != "a":
        line = (
            line.replace("math.", "np.")
            .replace("(a)", "(p[0])")
            .replace("a ", "p[0] ")
            .replace("* a", "* p[0]")
        )
        line = line.replace("np.a", "np.arc") if "np.asin" in line or "np.acosh" in line else line
    exec(f"def f(x):\n    a = x * 1.0\n    p = {held}\n    b = {line}\n    return float(b + a)", scope)

    def found():
        with np.errstate(all="ignore"):
            value, slope = push(scope["f"], (x,), (1.0,), {})
            wide = push(scope["f"], (x,), (np.array([1.0, 2.0]),), {}, 2)[1].tolist()
            return [value, slope, *wide, *push(plaingrad.grad(scope["f"]), (x,), (1.0,), {})]

    together = found()
    with unfused():
        assert together == pytest.approx(found(), rel=1e-12, nan_ok=True)


def test_a_quotient_by_zero_is_that_of_its_type():
    def f(x, y):
        return (x * 1.0) / y[0]

    with np.errstate(all="ignore"):
        value, slope = push(f, (1.5, np.array([0.0])), (1.0, None), {})
        g, g_dot = push(plaingrad.grad(f), (1.5, np.array([0.0])), (1.0, None), {})
    assert (value, slope, g) == (math.inf, math.inf, math.inf) and not g_dot > 0
    with pytest.raises(ZeroDivisionError):
        push(plaingrad.grad(f), (1.5, [0.0]), (1.0, None), {})


def test_a_run_that_fails_leaves_the_error_of_a_plain_call():
    def f(x):
        a = x * 2.0
        b = a / (x - x)
        return b * a

    for derivative in (
        lambda: push(f, (1.5,), (1.0,), {}),
        lambda: push(plaingrad.grad(f), (1.5,), (1.0,), {}),
    ):
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            derivative()


def test_integers_booleans_and_numbers_of_numpy_take_the_other_way():
    def step(a, b):
        c = a * b + a
        return c * 2.0 - b

    def f(x):
        total = step(x, 2) + step(3, x) + step(True, x) + step(x, np.float64(1.5)) + step(x, 0.5)
        return float(total)

    # d/da = 2 (b + 1), d/db = 2 a - 1
    slope = 2 * 3 + 5 + 1 + 2 * 2.5 + 2 * 1.5
    assert push(f, (0.7,), (1.0,), {})[1] == pytest.approx(slope, rel=1e-15)
    g, g_dot = push(plaingrad.grad(f), (0.7,), (1.0,), {})
    assert g == pytest.approx(slope, rel=1e-15) and g_dot == 0.0


def test_a_users_rule_for_an_operator_or_function_is_obeyed():
    def f(x):
        a = x * x
        return a * x

    def run():
        return push(f, (2.0,), (1.0,), {})[1], *push(plaingrad.grad(f), (2.0,), (1.0,), {})

    assert run() == (12.0, 12.0, 12.0)

    before = rulebook.find(operator.mul)
    plaingrad.rrule(operator.mul)(lambda a, b: (a * b, lambda z_bar: (z_bar / 0.1, 0.0 * z_bar)))
    try:
        assert plaingrad.grad(f)(2.0) == pytest.approx(100.0)
        assert run()[1] == pytest.approx(100.0)
    finally:
        rulebook.add(before)
    assert run() == (12.0, 12.0, 12.0)


def test_three_levels_deep_everything_is_left_to_the_hooks():
    def f(x):
        a = x * x
        return a * a * x  # x^5

    def jvp(g):
        return lambda x: push(g, (x,), (1.0,), {})[1]

    for derivative in (
        jvp(jvp(jvp(f))),
        jvp(jvp(plaingrad.grad(f))),
        jvp(plaingrad.grad(jvp(f))),
        plaingrad.grad(jvp(plaingrad.grad(f))),
        plaingrad.grad(jvp(jvp(f))),
        jvp(plaingrad.grad(plaingrad.grad(f))),
        plaingrad.grad(plaingrad.grad(jvp(f))),
        plaingrad.grad(plaingrad.grad(plaingrad.grad(f))),
    ):
        assert derivative(1.5) == pytest.approx(60 * 1.5**2, rel=1e-13)


def test_a_pullback_is_called_inside_after_and_deeper_than_the_forward_level():
    kept = []

    def f(x, c):
        a = x * x * c
        return a * x  # c x^3

    def inside(x):
        _, pullback = plaingrad.vjp(f, x, 2.0)
        kept.append(pullback)
        first = pullback(1.0)[0]  # 3 c x^2
        deeper = plaingrad.grad(lambda t: pullback(t * t)[0])(3.0)  # 2 t 3 c x^2
        again = pullback(x)[0]  # 3 c x^3
        return first + deeper + again

    x = 1.5
    value, slope = push(inside, (x,), (1.0,), {})
    assert value == pytest.approx(6 * x * x + 36 * x * x + 6 * x**3, rel=1e-14)
    assert slope == pytest.approx(12 * x + 72 * x + 18 * x * x, rel=1e-14)
    assert kept[0](1.0)[0] == pytest.approx(6 * x * x, rel=1e-14)
    assert plaingrad.grad(lambda t: kept[0](t * t)[0])(3.0) == pytest.approx(36 * x * x, rel=1e-14)
    assert push(lambda t: kept[0](t * t)[0], (3.0,), (1.0,), {})[1] == pytest.approx(36 * x * x, rel=1e-14)


def test_only_some_inputs_move_at_either_level():
    def f(x, y):
        a = x * y + x
        return a * a - y * x

    def partial(x, y):  # d/dx
        return 2 * (x * y + x) * (y + 1) - y

    x, y = 0.7, -1.2
    g = plaingrad.grad(f, 0)
    _, along_y = push(g, (x, y), (None, 1.0), {})
    assert along_y == pytest.approx(2 * x * (y + 1) + 2 * (x * y + x) - 1, rel=1e-13)
    value, along_x = push(g, (x, y), (1.0, None), {})
    assert value == pytest.approx(partial(x, y), rel=1e-13)
    assert along_x == pytest.approx(2 * (y + 1) ** 2, rel=1e-13)
    # x is outer only, y inner only: inside the run both meet
    assert push(lambda x: plaingrad.grad(lambda y: f(x, y))(y), (x,), (1.0,), {})[1] == pytest.approx(
        2 * x * (y + 1) + 2 * (x * y + x) - 1, rel=1e-13
    )


def test_results_that_receive_nothing_contribute_nothing():
    def f(x):
        a = x * 1e200
        b = a * a  # inf, and nobody asks
        c = x * 3.0
        return c if b > 0 else a

    for _ in range(3):
        g, g_dot = push(plaingrad.grad(f), (2.0,), (1.0,), {})
        assert (g, g_dot) == (3.0, 0.0)


def test_a_run_met_with_more_sets_of_active_inputs_than_it_gets_code_for(monkeypatch):
    monkeypatch.setattr(fused, "MANY", 2)

    def step(a, b, c):
        d = a * b + c
        e = d * c
        return e - a * 0.5

    def f(x):
        y = x * 2.0
        total = 0.0
        for a in (x, 0.3):
            for b in (y, 0.7):
                for c in (x, 0.9):
                    total = total + step(a, b, c)
        return total

    xs, dots = (0.8,), (1.5,)
    many = everything(f, xs, dots)
    with unfused():
        assert many == pytest.approx(everything(f, xs, dots), rel=1e-12)
    # sums over the choices of (ab + c) c - a / 2
    mpmath.mp.dps = 30

    def exact(t):
        return sum(
            (a * b + c) * c - a / 2
            for a in (t, mpmath.mpf(0.3))
            for b in (2 * t, mpmath.mpf(0.7))
            for c in (t, mpmath.mpf(0.9))
        )

    assert many[1] == pytest.approx(1.5 * float(mpmath.diff(exact, 0.8)), rel=1e-12)


def test_generators_and_threads_take_runs_at_one_level():
    def stream(x):
        a = x
        while True:
            a = a * 0.5 + x
            b = a * a - 1.0
            yield b * x

    def in_threads(x):
        found = {}

        def work(k):
            total = 0.0
            for _ in range(300):
                total = total * 0.5 + x * k
                total = total - x * x * 0.01
            found[k] = total

        threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found[0.0] + found[1.0] + found[2.0] + found[3.0]

    def f(x):
        numbers = stream(x)
        return next(numbers) + next(numbers) + in_threads(x)

    # (2.25 + 3.0625) x^3 - 2 x; each thread: 2 (k x - 0.01 x^2)
    x = 0.9
    value, slope = push(f, (x,), (1.0,), {})
    assert value == pytest.approx(5.3125 * x**3 - 2 * x + 12 * x - 0.08 * x * x, rel=1e-12)
    assert slope == pytest.approx(3 * 5.3125 * x * x + 10 - 0.16 * x, rel=1e-12)
    g, g_dot = push(plaingrad.grad(f), (x,), (1.0,), {})
    assert g == pytest.approx(slope, rel=1e-12) and g_dot == pytest.approx(6 * 5.3125 * x - 0.16, rel=1e-12)


def test_dead_numbers_are_swept_out_of_a_long_loop():
    sizes = []

    def f(x):
        a = x
        for k in range(60_000):
            b = a * 0.5 + x
            a = b - a * 0.25
            if k % 20_000 == 19_999:
                sizes.append(len(CURRENT.get().index))
        return a

    y_dot = push(f, (1.0,), (1.0,), {})[1]
    assert y_dot == pytest.approx(4 / 3, rel=1e-12)  # a = a / 4 + x
    assert len(sizes) == 3 and max(sizes) < 10_000


def test_cotangents_meet_arrays_lists_and_rules_between_runs():
    def f(x):
        a = np.array([x, x * x])
        total = 0.0
        for k in range(3):
            b = a[0] * a[1]
            c = float(b) * x + 1.0
            c = c * c - x
            a = a * 0.5 + c * 0.1
            parts = [c, x * c]
            total = total + sum(parts) + float(np.sin(a).sum()) + max(c, total) * 0.5
        return total

    xs, dots = (0.6,), (1.3,)
    together = gradient_along(f, xs, dots)
    with unfused():
        one_by_one = gradient_along(f, xs, dots)
    assert together[0] == pytest.approx(one_by_one[0], rel=1e-12)
    assert together[1] == pytest.approx(one_by_one[1], rel=1e-12)
    h = 1e-5
    g = plaingrad.grad(f)
    assert together[1][0] == pytest.approx(1.3 * (g(0.6 + h) - g(0.6 - h)) / (2 * h), rel=1e-8)


def test_code_that_is_gone_leaves_nothing_behind():
    def once(k):
        scope = {}
        exec(f"def f(x):\n    a = x * {k}.0\n    return a * x", scope)
        assert push(plaingrad.grad(scope["f"]), (2.0,), (1.0,), {}) == (4.0 * k, 2.0 * k)

    once(1)
    gc.collect()
    before = sum(name.startswith("<plaingrad fused") for name in linecache.cache)
    for k in range(2, 6):
        once(k)
    gc.collect()
    after = sum(name.startswith("<plaingrad fused") for name in linecache.cache)
    assert after == before
