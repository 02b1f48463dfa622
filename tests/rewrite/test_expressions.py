"""Which instructions become an expression, in what order its steps are done, and that nobody can tell."""

import math
import sys

import pytest
from plaingrad.rewrite import PLAIN, hooks, rewrite_function
from plaingrad.rewrite.listing import Listing
from tests.rewrite.support import recording, using


def as_expressions(f):
    return rewrite_function(f, hooks.EXPRESSIONS)


def steps_of(f):
    """The steps of the expressions in `f`, in order."""
    code = as_expressions(f).__code__
    consts = [code.co_consts[arg] for name, arg in Listing(code).instructions if name == "LOAD_CONST"]
    return [[verb for verb, _ in const.steps] for const in consts if hasattr(const, "steps")]


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


class Telling:
    """Notes what is asked of it."""

    def __init__(self, log, name):
        object.__setattr__(self, "log", log)
        object.__setattr__(self, "name", name)

    def __repr__(self):
        return self.name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.log.append(f"{self.name}.{name}")
        return Telling(self.log, f"{self.name}.{name}")

    def __setattr__(self, name, value):
        self.log.append(f"{self.name}.{name} = {value}")

    def __getitem__(self, k):
        self.log.append(f"{self.name}[{k}]")
        return Telling(self.log, f"{self.name}[]")

    def __setitem__(self, k, value):
        self.log.append(f"{self.name}[{k}] = {value}")

    def __neg__(self):
        self.log.append(f"-{self.name}")
        return self

    def operation(sign):
        def does(self, other):
            self.log.append(f"{self.name} {sign} {other}")
            return Telling(self.log, f"({self.name}{sign})")

        return does

    def __call__(self, *args):
        self.log.append(f"{self.name} called with {args}")
        return Telling(self.log, f"{self.name}()")

    __add__, __sub__, __mul__, __truediv__, __pow__, __mod__ = map(operation, ("+", "-", "*", "/", "**", "%"))
    __iadd__, __lt__, __matmul__ = map(operation, ("+=", "<", "@"))
    __radd__ = __rmul__ = operation("r")


FACTOR = 3.0


def lines(o, p, k, v):
    a = o.x * p.y - o[k] / 2
    b = -(a + p.z ** v) * o[p.k].w % 4
    o.x += a * p.y
    o[k] += b.q * v
    o.a.b = a @ p.x
    o[p.k] = a * b - FACTOR * v
    c = [o.x * v < p.y, (o.x + 1, p.y + 2), {k: o.x * p.x * v}]
    d, e = o.d * v, p.e * v
    d = d + o.x.f(v, p.y) * p[k].g.h(v)
    return a * b + c[1][0] * d.x - e.x * math.sqrt(v * v) * (lambda t: t * v + o.z)(p.m)


def test_everything_is_asked_in_the_order_of_the_program():
    logs = []
    for f in (lines, as_expressions(lines)):
        log = []
        f(Telling(log, "o"), Telling(log, "p"), 1, 2.5)
        logs.append(log)
    assert logs[0] == logs[1] and len(logs[0]) > 40


def told(x):
    return type(x) if callable(x) else repr(x)


def test_hooks_are_asked_in_the_order_of_the_program():
    logs = []
    for form in (hooks.HOOKED, hooks.EXPRESSIONS):
        log = []
        with using(recording(log)):
            rewrite_function(lines, form)(Telling([], "o"), Telling([], "p"), 1, 2.5)
        logs.append([(name, *map(told, operands)) for name, *operands in prepared_late(log)])
    assert logs[0] == logs[1] and len(logs[0]) > 60


def prepared_late(log):
    """The log as if functions of modules were prepared where they are called, not where they are looked up."""
    for name, *operands in log:
        if name == "method" and operands[0] is math:
            name = "attr"
        if name != "prep" or operands[0] is not math.sqrt:
            yield name, *operands


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("lambda a, b: a * b + 1.5", [["load", "load", "binary", "const", "binary"]]),
        ("lambda a, b: a.x * b", [["load", "attr", "load", "binary"]]),
        ("lambda a, b: a.x", []),
        ("lambda a, b: a[b][1]", [["load", "load", "getitem", "const", "getitem"]]),
        ("lambda a, b: math.sin(a) * b", [["global", "method", "load", "call", "load", "binary"]]),
        ("lambda a, b: a.x.f(b)", [["load", "attr", "method"]]),
        ("lambda a, b: a[0].f(b).g()", [["load", "const", "getitem", "method"]]),
        ("lambda a, b: a.f(b.x * a.y)", [["load", "attr", "load", "attr", "binary"]]),
        ("lambda a, b: f(a) * b + a", [["load", "load", "binary", "load", "binary"]]),
        ("lambda a, b: -a * b < 0", [["load", "neg", "load", "binary", "const", "compare"]]),
    ],
)
def test_what_is_found(text, steps):
    if "math" in text and sys.version_info[:2] >= (3, 12):
        pytest.skip("a function of a module is another instruction where the module is imported by the code")
    assert steps_of(eval(text)) == steps


def nothing_bound(o, flag):
    if flag:
        late = 1.0
    return o.missing * late


def no_global(o):
    return o.missing + not_there * o.x  # noqa: F821


def global_first(o):
    return not_there * o.missing  # noqa: F821


def empty_cell(o, flag):
    def inner():
        return o.x * late + o.y

    if flag:
        late = 1.0
    return inner()


def cell_of_its_own(o, flag):
    def inner():
        return late

    if flag:
        late = 1.0
    return o.missing + late * o.x, inner


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("f", [nothing_bound, empty_cell, cell_of_its_own])
@pytest.mark.parametrize("o", [Point(1.0, 2.0), Telling([], "o"), None])
def test_the_same_exception_comes_first(f, flag, o):
    def result(g):
        try:
            return type(g(o, flag)).__name__
        except Exception as e:
            return type(e), str(e), getattr(e, "name", None), e.__traceback__.tb_next.tb_lineno

    with using(PLAIN):
        assert result(as_expressions(f)) == result(f)


@pytest.mark.parametrize("f", [no_global, global_first])
@pytest.mark.parametrize("o", [Point(1.0, 2.0), Telling([], "o"), None])
def test_a_missing_global_raises_where_it_is_read(f, o):
    def raised(g):
        with pytest.raises((NameError, AttributeError)) as caught:
            g(o)
        return caught.type, str(caught.value), caught.value.name

    assert raised(as_expressions(f)) == raised(f)


def test_globals_are_those_of_the_function_and_may_be_any_mapping():
    class Names(dict):
        def __missing__(self, name):
            return 7.0

    for names in ({"g": 2.0}, Names()):
        space = {}
        exec("def f(a): return a * g + g", space)
        f = type(lambda: 0)(space["f"].__code__, {**names, "__builtins__": __builtins__})
        if type(names) is dict:
            assert as_expressions(f)(3.0) == f(3.0) == 8.0
    f = type(lambda: 0)(space["f"].__code__, {"__builtins__": {"g": 5.0}})
    assert as_expressions(f)(3.0) == f(3.0) == 20.0


def test_a_line_of_its_own_stays_a_line_for_tracers():
    def f(a, b):
        return (
            a * b
            + a.x
            - b
        )

    def traced(g):
        seen = []

        def tracer(frame, event, arg):
            if frame.f_code.co_filename == __file__ and frame.f_code.co_name == "f" and event == "line":
                seen.append(frame.f_lineno)
            return tracer

        old = sys.gettrace()
        sys.settrace(tracer)
        try:
            with pytest.raises(AttributeError):
                g(1.0, 2.0)
        finally:
            sys.settrace(old)
        return seen

    assert traced(as_expressions(f)) == traced(f)


def test_long_and_deep_ones_are_cut():
    names = [f"v{k}" for k in range(30)]
    for text in (" + ".join(names), "(".join(f"{n} * " for n in names) + "1" + ")" * 29, " - ".join(["v0"] * 200)):
        space = {}
        exec(f"def f({', '.join(names)}): return {text}", space)
        values = [1.0 + 0.1 * k for k in range(30)]
        assert as_expressions(space["f"])(*values) == space["f"](*values)
        assert steps_of(space["f"])


def test_a_null_that_belongs_to_a_call_further_out_stays():
    def f(x, v):
        return x - (lambda a, z=math.atan(v): a + z * v)(x * v)

    assert as_expressions(f)(0.5, 2.0) == f(0.5, 2.0)


def test_generators_go_on_with_the_hooks_in_force():
    def f(o):
        while True:
            got = yield o.x * o.y + 1.0
            o.x += got * o.y

    found = []
    for g in (f, as_expressions(f)):
        it = g(Point(2.0, 3.0))
        found.append([next(it), it.send(1.0), it.send(0.5)])
    assert found[0] == found[1] == [7.0, 16.0, 20.5]
