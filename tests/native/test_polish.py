"""Passes on derived programs: the results stay, in fewer statements, each variable assigned once where that goes."""

import math

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.errors import NativeError  # noqa: E402
from plaingrad.native.compile import build  # noqa: E402
from plaingrad.native.border import call  # noqa: E402
from plaingrad.native.finish.dead_code import is_pure, without_dead  # noqa: E402
from plaingrad.native.finish.ssa import single_assignment
from plaingrad.native.finish.ssa_values import unsure_names  # noqa: E402
from plaingrad.native.program.ir import (  # noqa: E402
    Break,
    Const,
    Do,
    For,
    If,
    Let,
    Loop,
    Program,
    Raise,
    Ref,
    Store,
    Var,
    statements,
)
from tests.native.comparison import copied  # noqa: E402
from tests.native.random_programs import function_of  # noqa: E402
from tests.sampling import some  # noqa: E402

ARGNUMS = (0, 1, 2, 3, 4, 5)

# -- programs by hand --------------------------------------------------------------------------------------------------


def let(target, op, *args, detail=None):
    """A statement; names are variables, numbers constants."""
    return Let(target, op, tuple(operand(a) for a in args), detail)


def operand(x):
    return Var(x) if isinstance(x, str) else Const(x)


def add(target, a, b):
    return let(target, "binary", a, b, detail="+")


def program(body, params=("x", "n"), own=(), types=None, **facts):
    return Program("f", "f.py", list(params), body, types or {}, own=frozenset(own), **facts)


def run(p, *args):
    """What a program returns, run by CPython."""
    from plaingrad.native.program.emit import source

    text, space = source(p)
    exec(text, space)
    return space[p.name](*args)


def polished(p):
    return without_dead(single_assignment(p))


def assigned(p):
    """How often each variable is assigned."""
    found = {}
    for s in statements(p.body):
        if isinstance(s, (Let, For)):
            found[s.target] = found.get(s.target, 0) + 1
    return found


def same(p, *every):
    """The polished program, which gives what `p` gives."""
    new = polished(p)
    for args in every:
        assert run(new, *args) == run(p, *args)
    return new


def test_straight_line_code_assigns_every_variable_once():
    body = [let("y", "copy", "x"), *[add("y", "y", k) for k in range(5)], let("result", "copy", "y")]
    new = same(program(body), (1.0, 0))
    assert set(assigned(new).values()) == {1}


def test_where_branches_meet_their_values_move_into_one_variable():
    body = [
        let("y", "copy", 1.0),
        let("t", "compare", "x", 0.0, detail=">"),
        If(Var("t"), [add("y", "y", "x"), add("y", "y", "x")], [let("z", "copy", 3.0)]),
        add("y", "y", 1.0),
        let("result", "copy", "y"),
    ]
    new = same(program(body), (2.0, 0), (-2.0, 0))
    assert max(assigned(new).values()) == 2
    assert "z" not in assigned(new)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_values_that_change_places_in_a_loop_do_so_at_once(n):
    swap = [let("h", "copy", "a"), let("a", "copy", "b"), let("b", "copy", "c"), let("c", "copy", "h")]
    body = [
        *[let(name, "copy", value) for name, value in zip("abc", ("x", 2.0, 3.0), strict=True)],
        For("k", Const(0), Var("n"), Const(1), swap),
        let("result", "tuple", "a", "b", "c"),
    ]
    same(program(body), (1.0, n))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_loop_leaves_with_the_values_of_the_way_it_was_left_by(n):
    body = [
        let("s", "copy", "x"),
        let("k", "copy", 0),
        Loop(
            [
                let("old", "copy", "s"),
                add("s", "s", 10.0),
                let("done", "compare", "k", "n", detail=">="),
                If(Var("done"), [let("last", "copy", "old"), Break()], [add("s", "s", 1.0)]),
                add("k", "k", 1),
                let("s", "binary", "s", 2.0, detail="*"),
            ]
        ),
        let("result", "tuple", "s", "k", "old", "last"),
    ]
    same(program(body), (1.0, n))


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_a_variable_without_a_value_on_some_way_is_left_as_it_is(n):
    body = [
        For(
            "k",
            Const(0),
            Var("n"),
            Const(1),
            [
                let("first", "compare", "k", 0, detail="=="),
                If(Var("first"), [let("v", "copy", "x")], [add("v", "v", 1.0)]),
                let("w", "copy", "v"),
                add("v", "v", 1.0),
            ],
        ),
        let("some", "compare", "n", 0, detail=">"),
        If(Var("some"), [let("result", "tuple", "v", "w")], [let("result", "copy", "x")]),
    ]
    p = program(body)
    assert unsure_names(p) == {"v", "w"}
    same(p, (1.0, n))


def test_the_counter_of_a_loop_is_told_from_a_variable_of_its_name():
    inner = For("k", Const(0), Const(3), Const(1), [add("s", "s", "k")])
    body = [let("s", "copy", 0), let("k", "copy", 7), inner, add("s", "s", "k"), let("result", "copy", "s")]
    same(program(body), (1.0, 0))


def test_a_copy_of_a_variable_keeps_the_value_from_before_a_loop():
    body = [
        let("s", "copy", "x"),
        let("before", "copy", "s"),
        For("k", Const(0), Var("n"), Const(1), [let("in_last", "copy", "s"), add("s", "s", 1.0)]),
        let("result", "tuple", "before", "s"),
    ]
    same(program(body), (1.0, 0), (1.0, 3))


# -- cotangents that are zero ------------------------------------------------------------------------------------------


def numbers(*names):
    from numba import types

    return dict.fromkeys(names, types.float64)


def test_the_first_contribution_to_a_cotangent_is_assigned():
    body = [
        let("x_b", "copy", 0.0),
        add("x_b", "x_b", "x"),
        add("x_b", "x_b", "n"),
        let("result", "copy", "x_b"),
    ]
    new = same(program(body, own=("x_b",)), (2.0, 3.0))
    assert len(new.body) == 2


def test_a_zero_of_the_users_is_computed_with():
    body = [let("y", "copy", 0.0), let("z", "binary", "y", "x", detail="*"), let("result", "copy", "z")]
    new = polished(program(body, types=numbers("x", "y", "z")))
    assert math.isnan(run(new, math.inf, 0))


def test_what_a_zero_cotangent_is_multiplied_with_is_not_looked_at():
    body = [let("y_b", "copy", 0.0), let("d", "binary", "y_b", "x", detail="*"), let("result", "copy", "d")]
    new = polished(program(body, own=("y_b", "d"), types=numbers("x", "y_b")))
    assert run(new, math.inf, 0) == 0.0
    unknown = polished(program(body, own=("y_b", "d")))  # x may be an array
    np.testing.assert_array_equal(run(unknown, np.ones(3), 0), np.zeros(3))


@pytest.mark.parametrize("x", [math.inf, -math.inf, math.nan])
def test_a_contribution_that_is_inf_or_nan_is_never_dropped(x):
    body = [
        let("y_b", "copy", 0.0),
        let("t", "compare", "n", 0, detail=">"),
        If(Var("t"), [add("y_b", "y_b", "x")], []),
        let("z_b", "copy", 0.0),
        For("k", Const(0), Var("n"), Const(1), [add("z_b", "z_b", "y_b"), let("y_b", "copy", 0.0)]),
        let("result", "tuple", "y_b", "z_b"),
    ]
    p = program(body, own=("y_b", "z_b"), types=numbers("x", "y_b", "z_b"))
    for n in (0, 1, 2):
        np.testing.assert_array_equal(run(polished(p), x, n), run(p, x, n))


def test_a_cotangent_that_every_iteration_leaves_at_zero_takes_no_variable_of_the_loop():
    step = [add("t_b", "t_b", "x"), add("s_b", "s_b", "t_b"), let("t_b", "copy", 0.0)]
    body = [
        let("t_b", "copy", 0.0),
        let("s_b", "copy", 0.0),
        For("k", Const(0), Var("n"), Const(1), step),
        let("result", "tuple", "s_b", "t_b"),
    ]
    new = same(program(body, own=("t_b", "s_b"), types=numbers("x", "t_b", "s_b")), (2.0, 0), (2.0, 3))
    (loop,) = [s for s in new.body if isinstance(s, For)]
    assert len(loop.body) == 2


def test_a_sum_with_a_complex_zero_is_complex():
    body = [let("z_b", "copy", 0j), add("z_b", "z_b", "x"), let("result", "copy", "z_b")]
    assert type(run(polished(program(body, own=("z_b",))), 2.0, 0)) is complex


def test_adding_nothing_to_an_element_is_no_statement():
    body = [
        let("y_b", "copy", 0.0),
        let("d", "item", "x", 0),
        add("e", "d", "y_b"),
        Store(Var("x"), Const(0), Var("e")),
        let("result", "copy", "x"),
    ]
    assert len(polished(program(body, own=("y_b", "d", "e"))).body) == 1


# -- dead statements ---------------------------------------------------------------------------------------------------


def test_what_may_raise_stays_in_the_users_code_and_goes_from_a_reverse_sweep():
    body = [let("y", "binary", 1.0, "x", detail="/"), let("z", "item", "n", 5), let("result", "copy", 1.0)]
    assert len(without_dead(program(body)).body) == 3
    assert len(without_dead(program(body, backward=True)).body) == 1


def test_writes_calls_of_users_functions_and_raises_stay():
    def users(x):
        return x

    body = [
        Let("y", "call", (Ref(users, "users"), Var("x")), ()),
        Let("r", "call", (Ref(np.random.rand, "rand"),), ()),
        Let("s", "call", (Ref(math.sin, "sin"), Var("x")), ()),
        Do(Let("_", "call", (Const(print), Var("x")), ())),
        Store(Var("n"), Const(0), Var("x")),
        If(Var("x"), [Raise(ValueError)], []),
        let("result", "copy", 1.0),
    ]
    kept = without_dead(program(body, backward=True)).body
    assert [getattr(s, "target", "") for s in kept] == ["y", "r", "", "", "", "result"]


def test_functions_of_the_users_are_not_taken_for_pure_by_the_name_of_their_module():
    def f(x):
        return x

    for module in ("mathematics", "numpy_tools", "__main__"):
        f.__module__ = module
        assert not is_pure(f)
    assert is_pure(np.sin) and is_pure(math.cos) and is_pure(np.zeros_like)
    assert not is_pure(np.random.rand) and not is_pure(print)


def test_values_that_only_feed_one_another_around_a_loop_are_dead():
    body = [
        let("a", "copy", 1.0),
        let("s", "copy", 0.0),
        For("k", Const(0), Var("n"), Const(1), [add("a", "a", "x"), add("s", "s", "x")]),
        let("result", "copy", "s"),
    ]
    new = same(program(body, own=("a", "s")), (1.5, 4))
    (loop,) = [s for s in new.body if isinstance(s, For)]
    assert len(loop.body) == 2


# -- whole programs ----------------------------------------------------------------------------------------------------


def outcome(f, args, mode):
    """Everything that a derived program returns and writes, uncompiled."""
    build._built.clear()
    kinds = call.signature_of(args)
    own = list(copied(args))
    if mode == "pullback":
        more = [1.0, *call.shadows_of(tuple(own), ARGNUMS)]
    else:
        more = [x * 0.0 + 1.0 for k, x in enumerate(own) if k in ARGNUMS]
    out = build.derived(mode, f, kinds, ARGNUMS).python(*own, *more)
    return [*out, *own, *more]


@pytest.mark.parametrize("mode", ["pullback", "pushforward"])
@pytest.mark.parametrize("seed", some([50000, 50001, 50003], [50002, 50004, 50005]))
def test_a_random_program_computes_the_same_with_and_without_the_passes(seed, mode, monkeypatch):
    f, args, _ = function_of(seed)
    try:
        new = outcome(f, args, mode)
        monkeypatch.setattr(build, "polished", lambda p: p)
        monkeypatch.setattr(build, "prepared", lambda p: p)
        old = outcome(f, args, mode)
    except (NativeError, numba.core.errors.NumbaError):
        pytest.skip("refused")
    finally:
        build._built.clear()
    for a, b in zip(new, old, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def fibonacci(x, n):
    a, b = x, 1.0
    for _ in range(n):
        a, b = b, a * 0.5 + math.sin(b)
    return a * b


def searching(x, n):
    s = 0.0
    for k in range(n):
        v = x * k
        while True:
            v = v * 0.5 + 0.1
            if v < 0.3:
                break
            if k > 3:
                s += v
                continue
            s += v * x
        s *= 1.1
    return s


@pytest.mark.parametrize("f", [fibonacci, searching], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_compiled_gradients_are_those_of_the_plain_tier(f, n):
    native = plaingrad.value_and_grad(f, tier="native")(0.7, n)
    np.testing.assert_allclose(native, plaingrad.value_and_grad(f, tier="plain")(0.7, n), rtol=1e-13)


# -- expressions -------------------------------------------------------------------------------------------------------


def text_of(body, **facts):
    from plaingrad.native.program.emit import source
    from plaingrad.native.finish.expressions import with_expressions

    return source(with_expressions(program(body, **facts)))[0]


def test_a_number_that_is_read_once_is_written_where_it_is_read():
    body = [
        let("t_1", "binary", "x", "n", detail="*"),
        let("t_2", "unary", "t_1", detail="-"),
        let("t_3", "binary", "x", "t_2", detail="-"),
        let("result", "copy", "t_3"),
    ]
    assert "return x - (-(x * n))\n" in text_of(body, types=numbers("t_1", "t_2", "t_3"))


def test_what_reads_memory_is_not_moved_over_a_write():
    body = [
        let("t_1", "item", "x", 0),
        Store(Var("x"), Const(0), Const(5.0)),
        add("t_2", "t_1", 1.0),
        let("result", "copy", "t_2"),
    ]
    text = text_of(body, types=numbers("t_1", "t_2"))
    assert text.index("t_1 = x[0]") < text.index("x[0] = 5.0")


def test_an_expression_is_not_moved_over_an_assignment_of_what_it_reads():
    body = [
        let("y", "copy", "x"),
        add("t_1", "y", 1.0),
        add("y", "y", 10.0),
        add("t_2", "t_1", "y"),
        let("result", "copy", "t_2"),
    ]
    p = program(body, types=numbers("t_1", "t_2", "y"))
    from plaingrad.native.finish.expressions import with_expressions

    assert run(with_expressions(p), 1.0, 0) == run(p, 1.0, 0) == 13.0


def test_the_users_variables_stay():
    body = [add("height", "x", 1.0), add("t_1", "height", "n"), let("result", "copy", "t_1")]
    assert "height = x + 1.0" in text_of(body, types=numbers("height", "t_1"))


# -- operations that have been done --------------------------------------------------------------------------------------


def test_a_slope_that_two_cotangents_need_is_computed_once():
    text, count = written(lambda x: math.sin(x) * x + math.sin(x), (0.7,))
    assert text.partition("_backward")[2].count("slope(") == 1
    assert count == pytest.approx(math.cos(0.7) * 0.7 + math.sin(0.7) + math.cos(0.7), rel=1e-14)


def written(f, args):
    """(source of the pullback, gradient of its one argument, uncompiled)."""
    build._built.clear()
    made = build.derived("pullback", f, call.signature_of(args), (0,))
    return made.text, made.python(*args, 1.0)[1]


def test_what_was_computed_in_a_branch_or_iteration_is_not_taken_for_done_behind_it():
    step = [
        let("t", "compare", "n", 1, detail=">"),
        If(Var("t"), [let("d", "binary", "s", 2.0, detail="*"), add("s", "s", "d")], []),
        let("e", "binary", "s", 2.0, detail="*"),
        add("s", "s", "e"),
    ]
    body = [
        let("s", "copy", "x"),
        For("k", Const(0), Var("n"), Const(1), step),
        let("f", "binary", "s", 2.0, detail="*"),
        let("result", "copy", "f"),
    ]
    p = program(body, own=("s", "d", "e", "f"), types=numbers("x", "s", "d", "e", "f"))
    same(p, (1.5, 0), (1.5, 1), (1.5, 3))


def test_a_value_that_is_only_moved_is_computed_in_its_new_place():
    body = [
        let("s", "copy", "x"),
        For("k", Const(0), Var("n"), Const(1), [add("new", "s", 1.0), let("s", "copy", "new")]),
        let("result", "copy", "s"),
    ]
    text = text_of(body, types=numbers("s", "new", "x"))
    assert "        s = s + 1.0\n" in text
    assert "new" not in text


def test_values_that_change_places_are_not_folded_into_one_another():
    from plaingrad.native.finish.expressions import with_expressions

    step = [
        add("p", "a", 1.0),
        let("q", "binary", "a", 2.0, detail="*"),
        let("a", "copy", "p"),
        let("b", "copy", "q"),
    ]
    body = [
        let("a", "copy", "x"),
        let("b", "copy", "x"),
        For("k", Const(0), Var("n"), Const(1), step),
        let("result", "tuple", "a", "b"),
    ]
    p = program(body, own=("p", "q"), types=numbers("a", "b", "p", "q", "x"))
    assert run(with_expressions(p), 1.0, 3) == run(p, 1.0, 3) == (4.0, 6.0)
