"""Which hook each instruction becomes, and what it is given."""

import pytest
from plaingrad.rewrite import PLAIN, rewrite_function, rewritten
from tests.rewrite.support import recording, using


def hooks_of(f, *args, only=None):
    """The (name, operands) that `f(*args)` asks of its hooks."""
    log = []
    with using(recording(log)):
        rewrite_function(f)(*args)
    return [entry for entry in log if only is None or entry[0] in only]


class Thing:
    x = 5

    def f(self, *args, **kwargs):
        return args, kwargs

    def __getitem__(self, k):
        return k

    def __setitem__(self, k, v):
        pass

    def __delitem__(self, k):
        pass

    def __enter__(self):
        return 1

    def __exit__(self, *exc):
        return True

    def __iter__(self):
        return iter("ab")

    def __getattr__(self, name):
        return lambda other: f"{name} {other}"


ARITHMETIC = [
    ("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("floordiv", "//"), ("mod", "%"), ("pow", "**"),
    ("lshift", "<<"), ("rshift", ">>"), ("and_", "&"), ("or_", "|"), ("xor", "^"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sign"), ARITHMETIC)
def test_binary_operators_call_their_hooks_in_order(name, sign):
    f = eval(f"lambda a, b: a {sign} b")
    assert hooks_of(f, 7, 2) == [(name, 7, 2)]


@pytest.mark.parametrize(("name", "sign"), ARITHMETIC)
def test_in_place_operators_call_their_own_hooks(name, sign):
    ns = {}
    exec(f"def f(a, b):\n  a {sign}= b\n  return a", ns)
    assert hooks_of(ns["f"], 7, 2) == [("i" + name.rstrip("_"), 7, 2)]


def test_matrix_products():
    class M:
        __matmul__ = __imatmul__ = lambda self, other: self

    def f(a, b):
        a @ b
        a @= b

    m = M()
    assert hooks_of(f, m, 1) == [("matmul", m, 1), ("imatmul", m, 1)]


def test_unary_operators():
    assert hooks_of(lambda a: -a + +a - ~a, 3, only=("neg", "pos", "invert")) == [("neg", 3), ("pos", 3), ("invert", 3)]


def test_comparisons_and_containment():
    def f(a, b):
        return a < b, a <= b, a == b, a != b, a > b, a >= b, a in (b,), a not in (b,), a is b, a is not b

    expected = [(name, 1, 2) for name in ("lt", "le", "eq", "ne", "gt", "ge")] + [("contains", 1, (2,))] * 2
    assert hooks_of(f, 1, 2) == expected


def test_a_comparison_may_be_anything_until_it_is_tested():
    def f(a, b):
        return (a < b), ("yes" if a < b else "no")

    class Hidden(list):
        pass

    from plaingrad.rewrite import Hooks

    with using(Hooks(PLAIN, lt=lambda a, b: Hidden())):
        assert rewrite_function(f)(1, 2) == ([], "no")


def test_not_in_negates_what_contains_says():
    from plaingrad.rewrite import Hooks

    with using(Hooks(PLAIN, contains=lambda x, c: True)):
        assert rewrite_function(lambda x: (x in (), x not in ()))(1) == (True, False)


def test_subscripts_and_slices():
    t = Thing()

    def f(t, i):
        t[i], t[i:], t[:i:2], t[i, i:3]
        t[i] = 1
        t[i:] = 2
        del t[i]

    assert hooks_of(f, t, 4) == [
        ("getitem", t, 4),
        ("getitem", t, slice(4, None)),
        ("getitem", t, slice(None, 4, 2)),
        ("getitem", t, (4, slice(4, 3))),
        ("setitem", 1, t, 4),
        ("setitem", 2, t, slice(4, None)),
        ("meet_all", 4),
        ("meet", t),
    ]


def test_attributes():
    t = Thing()

    def f(t):
        t.x
        t.y = 2
        t.y += 1
        del t.y

    assert hooks_of(f, t) == [
        ("attr", t, "x"),
        ("set_attr", 2, t, "y"),
        ("attr", t, "y"),
        ("iadd", 2, 1),
        ("set_attr", 3, t, "y"),
        ("meet", t),
    ]


def test_a_method_call_asks_once_for_the_thing_to_call():
    t = Thing()
    log = hooks_of(lambda t: t.f(1, k=2), t)
    assert log == [("method", t, "f")]


def test_what_the_method_hook_returns_is_called_with_the_arguments_as_they_are():
    from plaingrad.rewrite import Hooks

    seen = []
    hooks = Hooks(PLAIN, method=lambda o, name: lambda *a, **k: seen.append((name, a, k)) or "result")
    with using(hooks):
        assert rewrite_function(lambda t: t.f(1, 2, k=3))("o") == "result"
    assert seen[-1] == ("f", (1, 2), {"k": 3})


def test_calls_are_prepared_and_made_natively():
    def g(*args, **kwargs):
        return args, kwargs

    def f(g, xs, kw):
        g()
        g(1, 2)
        g(1, k=2)
        g(*xs)
        g(0, *xs, **kw)

    prepared = hooks_of(f, g, [1], {"k": 2}, only=("prep",))
    assert prepared == [("prep", g)] * 5


def test_prep_says_what_is_called():
    from plaingrad.rewrite import Hooks

    def other(*args, **kwargs):
        return "other", args, kwargs

    def f(g, xs):
        return g(1), g(1, k=2), g(*xs, k=2), g(), g(g(3))

    with using(Hooks(PLAIN, prep=lambda f: other)):
        first, second, third, fourth, fifth = rewrite_function(f)(None, (4,))
    assert first == ("other", (1,), {})
    assert second == ("other", (1,), {"k": 2})
    assert third == ("other", (4,), {"k": 2})
    assert fourth == ("other", (), {})
    assert fifth == ("other", (("other", (3,), {}),), {})


def test_prep_is_asked_when_the_arguments_are_ready():
    from plaingrad.rewrite import Hooks

    log = []

    def f(g, h):
        return g(h(1), h(2))

    def g(a, b):
        return a + b

    def h(x):
        log.append(x)
        return x

    with using(Hooks(PLAIN, prep=lambda f: log.append(f.__name__) or f)):
        rewrite_function(f)(g, h)
    assert log == ["h", 1, "h", 2, "g"]


def test_decorators_and_class_bodies_are_calls():
    import builtins

    def deco(f):
        return f

    def f():
        @deco
        def inner():
            pass

        @deco
        class C:
            x = 1

    prepared = [e[1] for e in hooks_of(f, only=("prep",))]
    assert prepared == [deco, builtins.__build_class__, deco]


def test_a_decorator_that_was_made_with_star_arguments_is_prepared():
    def deco(f):
        return f

    def make(*args):
        return deco

    def f(xs):
        @make(*xs)
        def inner():
            pass

        return inner

    assert [e[1] for e in hooks_of(f, [1], only=("prep",))] == [make, deco]


def test_an_assertion_that_fails_is_a_call():
    ns, log = {}, []
    exec("def f(x):\n  assert x, 'why'", ns)
    with using(recording(log)), pytest.raises(AssertionError, match="why"):
        rewrite_function(ns["f"])(0)
    assert [e[1] for e in log if e[0] == "prep"] == [AssertionError]


def test_comprehensions_are_rewritten_with_their_parent():
    def f(xs, k):
        return [x * k for x in xs], max(x + k for x in xs), {x - k for x in xs}, {x: -x for x in xs}

    log = hooks_of(f, [1, 2], 3)
    assert [e for e in log if e[0] in ("mul", "add", "sub", "neg")] == [
        ("mul", 1, 3), ("mul", 2, 3), ("add", 1, 3), ("add", 2, 3),
        ("sub", 1, 3), ("sub", 2, 3), ("neg", 1), ("neg", 2),
    ]  # fmt: skip
    assert [e for e in log if e[0] == "iterable"] == [("iterable", [1, 2])] * 4
    assert [e for e in log if e[0] == "prep"] == [("prep", max)]


def test_comprehensions_with_closures_are_not_prepared():
    def f(xs):
        k = 2
        return [x * k for x in xs], sum(x * k for x in xs), lambda: k

    assert [e[1] for e in hooks_of(f, [1.0]) if e[0] == "prep"] == [sum]


def test_other_functions_in_it_stay_as_they_are():
    def f():
        def inner(a):
            return a + 1

        return inner, lambda a: a + 1

    inner, lam = rewrite_function(f)()
    originals = [c for c in f.__code__.co_consts if hasattr(c, "co_code")]
    assert inner.__code__ is originals[0]
    assert lam.__code__ is originals[1]


def test_iteration_and_unpacking():
    def f(xs):
        for _ in xs:
            pass
        a, b = xs
        a, *b = xs
        [*xs, 1]
        {*xs}
        (0, *xs)
        print(*xs, end="", file=Sink())

    assert hooks_of(f, "ab", only=("iterable", "met_items")) == [
        *[("iterable", "ab")] * 4,
        ("met_items", "ab"),  # they are hashed
        *[("iterable", "ab")] * 2,
    ]


def test_what_is_hashed_is_met_before():
    def f(k, v, ks):
        {k: v, v: k}
        {k, v, 3}
        {x for x in ks}
        {x: v for x in ks}

    hooks = hooks_of(f, "k", 2.5, ("a", (1,)), only=("meet_all",))
    assert sorted(repr(entry[1]) for entry in hooks[:2]) == ["'k'", "2.5"]
    assert [entry[1] for entry in hooks[-4:]] == ["a", (1,), "a", (1,)]
    assert {entry[1] for entry in hooks[2:-4]} == {"k", 2.5, 3}


class Sink:
    def write(self, text):
        pass


def test_constants_need_no_hook_to_be_iterated():
    def f():
        a, b = 1, 2
        return [1, 2, 3, 4], {1, 2, 3}, a, b

    assert hooks_of(f) == []


def test_truth_tests_meet_their_operand():
    def f(a, b):
        if a:
            pass
        while b:
            break
        a and b
        a or b
        not a
        1 if b else 2
        [1 for _ in "x" if a]

    met = hooks_of(f, 1, 2, only=("meet",))
    assert met == [("meet", v) for v in (1, 2, 1, 1, 1, 2, 1)]


def test_tests_of_comparisons_meet_nothing():
    def f(a, b):
        if a < b and a is not b and a in (b, 1) and not a == b:
            return 1

    assert hooks_of(f, 1, 2, only=("meet",)) == []


def test_other_objects_that_c_code_looks_into_are_met():
    t, e, cause = Thing(), ValueError(), KeyError()
    t_keys = {"k": 1}

    def f(t, e, cause, d):
        with t:
            pass
        {**d}
        dict(**d)
        try:
            raise e from cause
        except ValueError:
            pass
        match t:
            case Thing(x=5):
                pass

    met = [entry[1] for entry in hooks_of(f, t, e, cause, t_keys, only=("meet", "meet_all"))]
    assert [type(o) for o in met if type(o) is not bool] == [Thing, dict, dict, KeyError, ValueError, Thing] or met == [
        t, t_keys, t_keys, cause, e, t,
    ]  # fmt: skip


def test_formatted_values_are_shown_to_text():
    def f(x, w):
        return f"{x} {x!r} {x:>{w}} {x!s:>{w}}"

    shown = hooks_of(f, 1.5, 8, only=("text",))
    assert [e for e in shown if e[1] == 1.5] == [("text", 1.5)] * 4
    assert rewrite_function(f)(1.5, 8) == f(1.5, 8)


def test_super_is_called_with_two_arguments_where_the_compiler_knows_them():
    class A:
        def m(self):
            return "A"

    class B(A):
        def m(self):
            return super().m()

        def n(self):
            return super(B, self).m

    log = []
    with using(recording(log)):
        assert rewrite_function(B.m)(B()) == "A"
        rewrite_function(B.n)(B())
    assert [e[1:] for e in log if e[0] == "prep"] == [(super,), (super,)]
    asked = [e for e in log if e[0] in ("method", "attr")]
    assert [(e[0], type(e[1]), e[2]) for e in asked] == [("method", super, "m"), ("attr", super, "m")]


def test_class_bodies_and_modules_keep_no_local():
    source = "x = 2\ny = x * 3\nz = [i + y for i in (1, 2)]\nclass A:\n  pass\nw = y[0] if z else -x"
    code = compile(source.replace("y[0]", "z[0]"), "m", "exec")
    log, plain = [], {}
    exec(code, plain)
    with using(recording(log)):
        ns = {}
        exec(rewritten(code), ns)
    assert [e[0] for e in log if e[0] in ("mul", "add", "getitem", "meet")] == ["mul", "add", "add", "meet", "getitem"]
    assert {k: v for k, v in ns.items() if k in "xyzw"} == {k: v for k, v in plain.items() if k in "xyzw"}
    assert ".level" not in ns


def test_names_flags_and_tables_are_those_of_the_original():
    async def f(a, /, b, *c, d=1, **e):
        """Doc."""
        async with a as x:
            return [x async for x in b if d], lambda: (c, e)

    old, new = f.__code__, rewritten(f.__code__)
    for name in (
        "co_name co_qualname co_filename co_firstlineno co_flags co_argcount co_posonlyargcount co_kwonlyargcount "
        "co_freevars co_cellvars"
    ).split():
        assert getattr(new, name) == getattr(old, name), name
    assert new.co_varnames == (*old.co_varnames, ".level")
    assert new.co_consts[0] == old.co_consts[0]
    assert {line for *_, line in new.co_lines()} == {line for *_, line in old.co_lines()}
    assert set(new.co_positions()) <= {*old.co_positions(), (None,) * 4}


def test_an_unknown_instruction_is_named():
    from dataclasses import replace

    from plaingrad.errors import UnsupportedPythonError
    from plaingrad.rewrite.cache import facts
    from plaingrad.rewrite.transform import transform

    few = {name: action for name, action in facts().actions.items() if name != "BINARY_OP"}
    with pytest.raises(UnsupportedPythonError, match="instruction BINARY_OP of CPython"):
        transform((lambda a: a + a).__code__, replace(facts(), actions=few), rewritten)
