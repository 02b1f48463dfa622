"""The compiled core: its table, tape and cotangents are those of Python's dictionaries and lists, and its results too."""

import json
import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plaingrad
from plaingrad import derivative, grad, hvp, jvp, linearize, scalar_rule, value_and_grad, vjp
from plaingrad.engine import compiled
from plaingrad.engine.memory.tape import CALLED, STEP
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.engine.reverse.run import Run
from plaingrad.rewrite import PLAIN

core = compiled.core
needs_core = pytest.mark.skipif(core is None, reason="the compiled core is not in use here")


# -- which form is in use ------------------------------------------------------------------------------------------------


def said(code, **environment):
    """What a new process prints."""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_the_environment_leaves_the_core_alone_and_info_says_so():
    code = "import plaingrad; print(plaingrad.info()['core']); print(plaingrad.grad(lambda x: x * x)(3.0))"
    assert said(code, PLAINGRAD_COMPILED="0").splitlines() == ["python: PLAINGRAD_COMPILED=0 is set", "6.0"]


def test_info_says_what_is_in_use():
    found = plaingrad.info()
    assert found["numpy"] == np.__version__
    assert found["core"].startswith("python: ") if core is None else found["core"] == "compiled"


@needs_core
def test_an_extension_of_another_version_is_not_used():
    code = (
        "import os, plaingrad.engine.compiled as room\n"
        "assert room.core is not None, (room.WHY_NOT, room.__path__, os.listdir(room.__path__[0]))\n"
        "room.core.VERSION = 0\n"
        "import importlib; room = importlib.reload(room)\n"
        "print(room.core, room.WHY_NOT)"
    )
    assert said(code).startswith("None the extension was built from another version")


# -- the table -----------------------------------------------------------------------------------------------------------


@needs_core
@given(st.lists(st.tuples(st.sampled_from("sdpgic"), st.integers(0, 40)), max_size=120))
def test_the_table_is_a_dictionary(steps):
    level = ReverseLevel(PLAIN)
    table, numbers, wanted = level.index, [float(k) + 0.5 for k in range(41)], {}
    for what, k in steps:
        key = id(numbers[k])
        if what == "s":  # under a bare identity
            table[key] = wanted[key] = k
        elif what == "i":  # as the level files a number
            if key not in wanted:
                wanted[key] = level.add_number(numbers[k])
        elif what == "d" and key in wanted:
            del table[key], wanted[key]
        elif what == "p":
            assert table.pop(key, None) == wanted.pop(key, None)
        elif what == "c" and k == 0:
            table.clear()
            wanted.clear()
        for x in numbers:
            assert table.get(id(x)) == wanted.get(id(x))
            assert (id(x) in table) == (id(x) in wanted)
        assert len(table) == len(wanted)
        assert table.finds_any(numbers) == bool(wanted)
    with pytest.raises(KeyError):
        table[id(wanted)]
    level.close()


@needs_core
def test_many_numbers_are_found_and_dead_ones_are_let_go():
    level = ReverseLevel(PLAIN)
    kept = [float(k) for k in range(20_000)]
    places = [level.add_number(x) for x in kept]
    for k in range(50_000):
        level.add_number(k + 0.5)  # nobody else refers to it
    assert [level.index[id(x)] for x in kept] == places
    assert len(level.index) < 45_000
    assert level._sweep_numbers() == len(kept)
    assert {id(x) for x in level.numbers()} == {id(x) for x in kept}
    level.close()


# -- the tape and the cotangents -------------------------------------------------------------------------------------------


@needs_core
def test_the_tape_reads_as_a_list_of_triples():
    tape, wanted = core.Recorder(ReverseLevel(PLAIN)).entries, []
    step, arguments = object(), (1, 2)
    for triple in [(1, 0, 2.5), (2, 1, 3), (-1, STEP, step), (arguments, CALLED, math.sin), (3, 2, 1j), (4, 3, np.float64(2))]:
        tape.extend(triple)
        wanted += triple
    assert list(tape) == wanted
    assert list(reversed(tape)) == wanted[::-1]
    assert len(tape) == len(wanted)
    for places in (slice(None), slice(1, None, 3), slice(6, None, 3), slice(3, 9), slice(None, None, -1), slice(50, 60)):
        assert tape[places] == wanted[places]
    tape.clear()
    assert list(tape) == []
    assert not tape


@needs_core
def test_cotangents_read_as_a_list():
    bars = core.Bars(6)
    wanted = [None] * 6
    payload = np.array([0x7FF4C0FFEE5EED01, 0x7FF4C0FFEE5EED02], np.uint64).view(float)  # what stands for None and objects
    for k, x in [(0, 1.5), (1, 2j), (1, None), (2, None), (3, np.float32(2)), (3, 0.0), (4, -0.0), (0, np.float64(3))]:
        bars[k] = x
        wanted[k] = x
        assert [bars[k] for k in range(6)] == wanted
    for x in payload.tolist():
        bars[5] = x
        assert math.isnan(bars[5])
    with pytest.raises(IndexError):
        bars[6]
    with pytest.raises(IndexError):
        bars[6] = 1.0


# -- results ---------------------------------------------------------------------------------------------------------------

PROGRAMS = '''
import math
import numpy as np
import plaingrad

class P:
    def __init__(self, x):
        self.x = x
    def step(self, other, k=1):
        self.x = self.x * 1.01 - other.x / (k + 1.5) + k
        return self
    @property
    def twice(self):
        return 2 * self.x

def scalars(x, y):
    z = x * y + 3 - 2 * x / y - (1 - y) / 3
    z += x ** 2; z -= y ** 3.5; z *= 1.5; z /= 3 + x
    return -z + math.sin(x) * math.cos(y) + math.exp(-x * x) + math.tanh(y) + math.log(x + 2) + math.sqrt(y + 1) \\
        + math.tan(x) + math.atan(y) + math.erf(x) + abs(-y) + x ** 1 + math.hypot(x, y) + math.log(y, x + 3)

def numpys(x, y):
    a, b = np.float64(x) * y, np.float64(2.0)
    return float((a + b) * a - b / a + 3 * a - a ** 2 + (a - 1) / b + np.sin(a) + a / 3)

def objects(x, y):
    ps = [P(x * k + y) for k in range(5)]
    for k in range(4):
        for p in ps:
            p.step(ps[k], k) if k % 2 else p.step(ps[k])
    return sum(p.twice for p in ps) + max(p.x for p in ps)

def arrays(x, y):
    a = np.array([x, y, x * y])
    a[1] = a[0] * a[2]
    a += y
    return (a * a).sum() / a[1] + sum(float(v) for v in a)

def containers(x, y):
    d = {"a": [x, y], "b": (y, {"c": x})}
    d["a"].append(d["b"][1]["c"] * d["a"][0])
    return sum(v * v for v in d["a"]) + min(d["a"])

def inner(x, y):
    return plaingrad.grad(scalars, argnums=(0, 1))(x, y)[1] * x + plaingrad.derivative(lambda t: t * t * y)(x)

POINTS = [(0.7, 1.3), (1.9, 0.4), (0.1, 2.2)]
ALL = [scalars, numpys, objects, arrays, containers, inner]

def results():
    found = []
    for f in ALL:
        for p in POINTS:
            value, slopes = plaingrad.value_and_grad(f, argnums=(0, 1))(*p)
            pushed, along = plaingrad.jvp(f, p, (1.0, -0.5))
            if f is not inner:  # which takes derivatives itself
                assert value == pushed == f(*p)
            found += [value, *slopes, along, *plaingrad.hvp(f, p, (1.0, -0.5))]
    return [float(x) for x in found]
'''


@needs_core
def test_both_forms_give_the_same_results():
    space = {"__name__": "programs"}
    exec(compile(PROGRAMS, "<programs>", "exec"), space)
    found = space["results"]()
    other = json.loads(said(f"{PROGRAMS}\nprint(results())", PLAINGRAD_COMPILED="0"))
    assert found == pytest.approx(other, rel=1e-13, abs=1e-13)  # the Python form takes runs in one step, and rounds apart


def test_a_users_rule_for_a_function_of_math_is_used_in_both_modes():
    scalar_rule(math.sin, lambda z, x: 7.0)
    try:
        assert grad(math.sin)(0.5) == 7.0
        assert derivative(math.sin)(0.5) == 7.0
    finally:
        plaingrad.remove_rule(math.sin)
    assert grad(math.sin)(0.5) == math.cos(0.5)


def test_slopes_at_the_ends_of_domains():
    assert grad(math.sqrt)(0.0) == math.inf
    assert grad(lambda x: x / 3)(1.0) == 1 / 3
    with pytest.raises(ZeroDivisionError):
        grad(lambda x: x / 0)(1.0)
    with pytest.raises(ZeroDivisionError):
        jvp(lambda x: 1 / x, (0.0,), (1.0,))
    with pytest.raises(OverflowError):
        grad(lambda x: x + 10**400)(1.0)
    with pytest.raises(OverflowError):
        grad(lambda x: x**2)(1e200)
    with pytest.raises(TypeError):
        grad(lambda x: math.sin(x, x))(1.0)
    assert math.isnan(grad(lambda x: x * math.nan)(1.0))


def test_a_forward_level_goes_on_when_a_reverse_level_opens_inside():
    def f(x):
        y = math.sin(x) * x  # before
        z = grad(lambda t: t**3 * y)(x)  # 3 x^2 y
        return z * y + math.exp(y)  # after

    x, s, c = 0.7, math.sin(0.7), math.cos(0.7)
    y, y_dot = s * x, c * x + s
    assert jvp(f, (x,), (1.0,))[1] == pytest.approx(6 * x * y * y + 3 * x * x * 2 * y * y_dot + math.exp(y) * y_dot)
    held = {}

    def keeps(x):
        held["sin"] = map(math.sin, [x, x])  # made before, used after
        z = grad(lambda t: t * t)(x)
        return sum(held["sin"]) * z

    assert jvp(keeps, (x,), (1.0,))[1] == pytest.approx(4 * c * x + 4 * s)


def test_a_pullback_is_called_twice_and_under_other_levels():
    y, pull = vjp(lambda x: math.sin(x) * x * x, 0.7)
    slope = math.cos(0.7) * 0.49 + 1.4 * math.sin(0.7)
    assert pull(1.0)[0] == pull(1.0)[0] == pytest.approx(slope)
    assert grad(lambda t: pull(t * t)[0])(3.0) == pytest.approx(6 * slope)
    assert derivative(lambda t: pull(t * t)[0])(3.0) == pytest.approx(6 * slope)
    assert linearize(lambda x: x * x, 3.0)[1](2.0) == 12.0
    assert hvp(lambda x: x**3, (2.0,), (1.0,)) == (12.0,)


def test_complex_float32_and_whole_numbers_beside_floats():
    assert grad(lambda x: (x * (1 + 2j)).real)(2.0) == 1.0
    assert grad(lambda x: float(np.float32(3.0) * x))(2.0) == 3.0
    assert grad(lambda x: x * True + 2**70 * x)(1.0) == 1.0 + 2.0**70
    assert grad(lambda x: 5 // 2 + x * (7 % 4))(1.0) == 3.0


@pytest.mark.parametrize("mode", [lambda f: grad(f)(3.0), lambda f: jvp(f, (3.0,), (1.0,))[1]], ids=["reverse", "forward"])
def test_sums_of_lists_tuples_generators_and_maps(mode):
    assert mode(lambda x: sum([x, 2, x * x])) == 7.0
    assert mode(lambda x: sum((x, 2.0, x))) == 2.0
    assert mode(lambda x: sum([x])) == 1.0
    assert mode(lambda x: sum([], x)) == 1.0
    assert mode(lambda x: sum([x], x)) == 2.0
    assert mode(lambda x: sum([[x], [x * x]], [])[1]) == 6.0
    assert mode(lambda x: sum(v * x for v in (1.0, 2.0))) == 3.0
    assert mode(lambda x: sum(map(lambda v: v * x, (1.0, 2.0)))) == 3.0
    assert mode(lambda x: sum([1, 2, 3]) * x) == 6.0
    assert mode(lambda x: sum([np.float64(2.0) * x, x])) == 3.0
    assert mode(lambda x: float(sum([np.ones(2) * x, x])[0])) == 2.0
    with pytest.raises(TypeError):
        mode(lambda x: sum([x, "a"]))
    with pytest.raises(TypeError):
        mode(lambda x: sum(x))


def test_threads_at_one_level():
    def f(x):
        sums = [0.0] * 8

        def work(k):
            s = x
            for i in range(3000):
                s = s * 0.999 + x / (i + 1 + k)
            sums[k] = s

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return sum(sums)

    value, slope = value_and_grad(f)(0.5)
    assert slope == pytest.approx(value / 0.5, rel=1e-10)  # it is linear
    value, slope = jvp(f, (0.5,), (1.0,))
    assert slope == pytest.approx(value / 0.5, rel=1e-10)


@needs_core
def test_memory_follows_what_is_alive():
    def f(x):
        for _ in range(30_000):
            x = x * 0.999 + 0.001
        return x

    run = Run(f, (0.5,), (0,), {})
    assert len(run.level.tape) == 3 * 60_000
    assert len(run.level.index) < 6_000
    assert run.pull(1.0)[0] == pytest.approx(0.999**30_000, rel=1e-9)


# -- elements of arrays ----------------------------------------------------------------------------------------------------


def vectors(a):
    b = np.zeros(len(a))
    b[0] = a[0] * a[-1]
    for k in range(1, len(a)):
        b[k] = 0.5 * b[k - 1] + a[k] * a[k]
        b[k - 1] = b[k] * a[0]  # what was read is overwritten
    b[1] = 2.0  # a constant ends what was there
    b[-1] = np.float64(3.0) * b[-1]
    return b[0] + b[1] * b[-1] + sum(b[k] for k in range(len(b)))


def matrices(m):
    n = m.copy()
    view = n[1:, ::-1]
    for i in range(2):
        for j in range(3):
            view[i, j] = view[i, j] * m[j % 3, i] + n[0, j]
    n[2, 2] = n[1][1] * n[0, -1]
    kept = n * m  # the way back reads n as it was
    n[0, 0] = 7.0
    n[0, 1] = kept[2, 1] * n[0, 0]
    return (n * n).sum() + kept[1, 2]


def numbers_in_place(a):
    s = 0.0
    for k in range(len(a)):
        a[k] += a[k - 1] * 0.3
        s += a[k] * a[0]
    return s


@pytest.mark.parametrize(("f", "shape"), [(vectors, 5), (matrices, (3, 3)), (numbers_in_place, 4)])
def test_elements_read_and_written_have_the_slopes_of_differences(f, shape):
    x = np.random.default_rng(3).uniform(0.5, 1.5, shape)
    given = x.copy()
    slope = grad(f)(given)
    mine = x.copy()
    f(mine)
    assert np.array_equal(given, mine)  # written, or not, as a plain call does
    wanted = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[at] += 1e-5
        down[at] -= 1e-5
        wanted[at] = (f(up) - f(down)) / 2e-5
    assert slope == pytest.approx(wanted, rel=1e-7)
    value, pull = vjp(f, x.copy())
    assert np.array_equal(pull(1.0)[0], slope)
    assert np.array_equal(pull(2.0)[0], 2 * slope)
    assert grad(lambda t: (pull(t * t)[0] * 1.0).sum())(3.0) == pytest.approx(6 * slope.sum())  # under another level
    _, along = jvp(f, (x.copy(),), (np.ones_like(x),))
    assert along == pytest.approx(slope.sum())
    assert np.all(np.isfinite(hvp(f, (x.copy(),), (np.ones_like(x),))[0]))


def test_elements_raise_and_warn_as_numpy_does():
    x = np.ones(3)
    with pytest.raises(IndexError):
        grad(lambda a: a[5])(x)
    with pytest.raises(IndexError):
        grad(lambda a: a[0, 0])(x)

    def to_read_only(a):
        b = a * 1.0
        b.flags.writeable = False
        b[0] = a[1]
        return b[0]

    with pytest.raises(ValueError, match="read-only"):
        grad(to_read_only)(x)

    def out_of_range(a):
        b = a * 1.0
        try:
            b[7] = a[0]
        except IndexError:
            b[2] = a[0]
        return b[2] * b[1]

    assert grad(out_of_range)(x).tolist() == [1.0, 1.0, 0.0]


def test_elements_of_other_arrays():
    assert grad(lambda a: float(a[1]) * 2)(np.ones(3, np.float32)).tolist() == [0.0, 2.0, 0.0]
    assert grad(lambda a: (a[0] * a[1]).real)(np.array([1 + 1j, 2.0])).tolist() == [2.0, 1 - 1j]
    assert grad(lambda x: np.arange(4)[2] * x)(3.0) == 2.0
    assert grad(lambda x: np.array([x, [1.0]], object)[0] * x)(3.0) == 6.0
    assert grad(lambda a: a[()] * 2.0)(np.array(3.0)) == 2.0
    assert grad(lambda a: a[True].sum())(np.array(3.0)) == 1.0
    assert grad(lambda a: a[np.int64(1)] * a[-2])(np.array([2.0, 5.0])).tolist() == [5.0, 2.0]

    def twice(a, b):
        a[0] = b[0] * 2.0
        return a[0] * b[1]

    x = np.array([3.0, 4.0])
    assert [g.tolist() for g in grad(twice, argnums=(0, 1))(x.copy(), x.copy())] == [[0.0, 0.0], [8.0, 6.0]]
    with pytest.raises(plaingrad.AliasError):
        grad(twice, argnums=(0, 1))(x, x)


@needs_core
def test_steps_of_elements_read_as_those_of_the_list():
    def f(a):
        a[1] = a[0] * 2.0
        return a[1]

    x = np.array([3.0, 4.0])
    run = Run(f, (x,), (0,), {})
    kinds = list(run.level.tape)[1::3]
    assert kinds == [CALLED, 1, CALLED, CALLED]
    names = [f.__name__ for f in list(run.level.tape)[2::3] if callable(f)]
    assert names == ["read_number_back", "write_number_back", "read_number_back"]
    assert run.pull(1.0)[0].tolist() == [2.0, 0.0]
