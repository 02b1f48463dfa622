"""Calls like earlier ones take a short way, and only for as long as nothing has changed that it was decided by."""

import dataclasses
import functools
import math
import threading

import numpy as np
import pytest

import plaingrad
from plaingrad.errors import NativeError

pytest.importorskip("numba")
import numba

from plaingrad.native.border import shortcuts
from plaingrad.native.objects import layouts

SCALE = 2.0


def helper(x):
    return x * x


def scaled(x, k):
    return SCALE * helper(x) * k


def summed(x, k):
    total = 0.0
    for value in x.ravel():
        total += k * value * value
    return total


def natively(f, argnums=0):
    return plaingrad.value_and_grad(f, argnums, tier="native")


def twice(f, *args, argnums=0):
    """The second of two calls, which takes the short way."""
    natively(f, argnums)(*args)
    return natively(f, argnums)(*args)


@pytest.fixture
def space():
    """`scaled`, with globals of its own."""
    made = {"SCALE": 2.0, "helper": helper, "__name__": __name__}
    exec("def scaled(x, k=1.0):\n    return SCALE * helper(x) * k\n", made)
    return made


def short_ways(f):
    return len(shortcuts._shortcuts.of(f))


def test_the_second_call_takes_the_short_way():
    assert twice(scaled, 3.0, 1.5) == (27.0, 18.0)
    assert short_ways(scaled) == 1
    called = []
    kept = shortcuts._shortcuts.of(scaled)
    (key, found) = next(iter(kept.items()))
    kept[key] = dataclasses.replace(found, run=lambda args: called.append(args) or found.run(args))
    assert natively(scaled)(4.0, 1.0) == (32.0, 16.0)
    assert called == [(4.0, 1.0)]
    kept[key] = found


def test_what_is_read_from_outside_may_change(space):
    f = space["scaled"]
    assert twice(f, 3.0, 1.0) == (18.0, 12.0)
    space["SCALE"] = -1.0
    assert natively(f)(3.0, 1.0) == (-9.0, -6.0)
    space["helper"] = math.sin
    assert natively(f)(3.0, 1.0) == (-math.sin(3.0), -math.cos(3.0))
    f.__code__ = (lambda x, k: x + k).__code__
    assert natively(f)(3.0, 1.0) == (4.0, 1.0)
    assert natively(f)(3.0, 1.0) == (4.0, 1.0)


def test_a_default_is_looked_at_again(space):
    f = space["scaled"]
    assert twice(f, 3.0) == (18.0, 12.0)
    f.__defaults__ = (2.0,)
    assert natively(f)(3.0) == (36.0, 24.0)


def test_a_rule_that_is_given_late_takes_effect(space):
    f = space["scaled"]
    assert twice(f, 3.0, 1.0) == (18.0, 12.0)
    plaingrad.nondifferentiable(f)
    with pytest.raises(NativeError, match="rule of its own"):
        natively(f)(3.0, 1.0)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(3.0),
        np.arange(3.0, dtype=np.float32),
        np.arange(0.0),
        np.arange(40.0),
        np.arange(80.0)[::-2],
        np.asfortranarray(np.arange(40.0).reshape(5, 8)),
        np.arange(40.0).reshape(5, 8).T[1:],
        np.array(3.0),
    ],
    ids=["small", "float32", "empty", "long", "backwards", "fortran", "part", "0-d"],
)
def test_every_layout_has_its_own(x):
    given = x.copy(order="K")
    for array in (x, given):
        array = array.view()
        for is_read_only in (False, True):
            array.flags.writeable = not is_read_only
            for _ in range(2):
                value, slope = natively(summed)(array, 0.5)
                np.testing.assert_allclose(value, 0.5 * np.sum(x.astype(float) ** 2), rtol=1e-6)
                np.testing.assert_allclose(slope, x, rtol=1e-6)
                assert (slope.dtype, slope.shape) == (x.dtype, x.shape)
                assert slope.flags.owndata or slope.base is not None


def test_gradients_of_two_calls_are_two_arrays():
    x = np.arange(30.0)
    first, second = (natively(summed)(x, 1.0)[1] for _ in range(2))
    first[:] = 0.0
    np.testing.assert_array_equal(second, 2.0 * x)


def test_numbers_that_are_zero_and_whole_numbers():
    for k in (1.0, 0.0, -0.0, 2, True, np.float64(3.0), 2**70, 0.0, 1.0):
        if k == 2**70:
            with pytest.raises((NativeError, OverflowError)):
                natively(scaled)(3.0, k)
            continue
        value, slope = natively(scaled)(3.0, k)
        assert (value, slope) == (18.0 * k, 12.0 * k)
    value, slope = twice(scaled, 3, 1.0)
    assert (value, slope, type(slope)) == (18.0, 12.0, float)
    assert type(twice(scaled, np.float64(3.0), 1.0)[1]) is np.float64
    assert twice(scaled, 3.0, 2.0, argnums=(1, 0)) == (36.0, (18.0, 24.0))


def rooted(x, y):
    return math.sqrt(x) * 0.0 + y * y


def test_an_infinite_slope_is_looked_at_again():
    for x in (4.0, 0.0, 4.0):
        native = natively(rooted, (0, 1))(x, 3.0)
        plain = plaingrad.value_and_grad(rooted, (0, 1))(x, 3.0)
        np.testing.assert_array_equal(np.array([native[0], *native[1]]), np.array([plain[0], *plain[1]]))


def divided(x, k):
    return x / k


def test_what_python_raises_is_raised():
    assert twice(divided, 3.0, 2.0) == (1.5, 0.5)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            natively(divided)(3.0, 0.0)
    assert natively(divided)(3.0, 2.0) == (1.5, 0.5)


def test_a_dispatcher_that_is_compiled_later_is_compared():
    space = {"SCALE": 2.0}
    exec("def f(x):\n    return SCALE * x\n", space)
    f = numba.njit(space["f"])
    assert plaingrad.value_and_grad(f)(3.0) == (6.0, 2.0)
    assert f(3.0) == 6.0
    assert plaingrad.value_and_grad(f)(3.0) == (6.0, 2.0)
    space["SCALE"] = 5.0  # not for what was compiled
    assert plaingrad.value_and_grad(f)(3.0) == (6.0, 2.0)
    f.recompile()
    assert plaingrad.value_and_grad(f)(3.0) == (15.0, 5.0)


def test_inside_of_another_derivative_and_in_threads():
    assert twice(scaled, 3.0, 1.0) == (18.0, 12.0)
    assert plaingrad.grad(plaingrad.grad(scaled, tier="native"))(3.0, 1.0) == 4.0
    wrong = []

    def work(x):
        for _ in range(200):
            if natively(scaled)(x, 1.0) != (2.0 * x * x, 4.0 * x):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(1, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# -- structures --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Point:
    x: float
    y: float
    kind: str = "a"

    def size(self):
        return self.x * self.x + 3.0 * self.y if self.kind == "a" else self.y


class Slotted:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


def of_points(p, q, rows):
    total = 0.0
    for row in rows:
        total += row.x * row.y
    return total * p.size() * q["w"][0] * q["w"][1]


def example(**changed):
    rows = [Point(float(k), 0.5) for k in range(1, 12)]
    return [Point(2.0, 1.0, **changed), {"w": [1.5, 2.0]}, rows]


def gradients(tier, args):
    value, (p, q) = plaingrad.value_and_grad(of_points, (0, 1), tier=tier)(*args)
    return [value, p.x, p.y, *q["w"]], type(p), list(q)


def known_layouts(f):
    return sum(map(len, layouts._layouts.of(f).values()))


def check_like_plain(args):
    plain = gradients("plain", args)
    for _ in range(2):
        native = gradients("native", args)
        np.testing.assert_allclose(native[0], plain[0], rtol=1e-13)
        assert native[1:] == plain[1:]


def test_a_structure_is_taken_apart_by_generated_code():
    check_like_plain(example())
    assert known_layouts(of_points) >= 1
    args = example()
    args[0].x, args[1]["w"][1], args[2][3].y = 7.0, -1.0, 2.0
    args[2].append(Point(3.0, 3.0))
    check_like_plain(args)


def test_another_structure_is_looked_at():
    check_like_plain(example())
    check_like_plain(example(kind="b"))
    check_like_plain(example())
    args = example()
    args[0].more = 5.0  # a field that the class does not declare
    check_like_plain(args)
    args = example()
    args[1] = {"v": 1.0, **args[1]}
    value, (_, q) = plaingrad.value_and_grad(of_points, (0, 1), tier="native")(*args)
    assert list(q) == ["v", "w"]
    args = example()
    args[2][4].x = 5  # a column of both
    np.testing.assert_allclose(
        plaingrad.value_and_grad(of_points, tier="fastest")(*args)[0], of_points(*args)
    )


def test_a_field_that_is_gone_and_an_object_that_is_there_twice():
    check_like_plain(example())
    args = example()
    del args[2][2].y
    with pytest.raises((AttributeError, NativeError)):
        gradients("native", args)
    args = example()
    args[2][3] = args[2][4]
    with pytest.raises(NativeError):
        gradients("native", args)
    args = example()
    args[2][3] = args[0]
    with pytest.raises(NativeError):
        gradients("native", args)
    check_like_plain(example())


def test_a_method_that_is_replaced_is_the_one_that_runs(monkeypatch):
    check_like_plain(example())
    monkeypatch.setattr(Point, "size", lambda self: self.x * self.y)
    check_like_plain(example())
    monkeypatch.undo()
    check_like_plain(example())


def of_slots(s, tag):
    return s.x * s.y * s.y if tag is None else s.x


def test_slots_subclasses_and_none():
    class Sub(Slotted):
        __slots__ = ()

    for cls in (Slotted, Sub, Slotted):
        for tag in (None, "t"):
            for _ in range(2):
                value, bar = natively(of_slots)(cls(3.0, 2.0), tag)
                assert (value, bar.x, bar.y) == ((12.0, 4.0, 12.0) if tag is None else (3.0, 1.0, 0.0))
                assert plaingrad.tangents.types.primal_type_of(bar) is cls


def left(p):
    p.x = p.x * p.y
    return p.x * p.x


def test_what_is_changed_has_no_short_way():
    for _ in range(3):
        p = Point(3.0, 2.0)
        value, bar = natively(left)(p)
        assert (value, bar.x, bar.y, p.x) == (36.0, 24.0, 36.0, 6.0)


class Model:
    def __init__(self, rate):
        self.rate = rate

    def loss(self, x):
        return self.rate * x / (x - 1.0)


def test_a_method_of_an_object_and_an_exception_midway():
    model = Model(3.0)
    for rate in (3.0, 3.0, 5.0):
        model.rate = rate
        assert natively(model.loss)(3.0) == (rate * 1.5, -rate / 4.0)
    with pytest.raises(ZeroDivisionError):
        natively(model.loss)(1.0)
    assert natively(model.loss)(3.0) == (7.5, -1.25)


def test_the_first_argument_of_a_method_is_another_one_than_that_of_its_function():
    model = Model(2.0)
    for _ in range(2):
        assert natively(model.loss)(3.0) == (3.0, -0.5)
        value, bar = natively(Model.loss)(model, 3.0)
        assert (value, bar.rate) == (3.0, 1.5)


def test_arguments_that_a_partial_holds_are_not_those_that_are_differentiated():
    def product(a, b, x):
        return a.rate * b.rate**2 * x

    two, three = Model(2.0), Model(3.0)
    held = functools.partial(product, two)
    for _ in range(2):
        assert natively(held)(three, 5.0)[1].rate == 60.0
        assert natively(product)(two, three, 5.0)[1].rate == 45.0


def test_a_class_that_looks_up_its_fields_by_itself_from_now_on():
    class Tenfold:
        def __init__(self, x):
            self.x = x

    def square(t):
        return t.x**2

    for _ in range(2):
        assert natively(square)(Tenfold(3.0))[1].x == 6.0
    Tenfold.__getattribute__ = lambda self, name: (
        10 * vars(self)["x"] if name == "x" else object.__getattribute__(self, name)
    )
    with pytest.raises(NativeError, match="Tenfold"):
        natively(square)(Tenfold(3.0))


@numba.njit
def printed(x):
    print("seen")
    if x > 3.0:
        raise ValueError("too large")
    return x * x


@numba.njit
def drawn(x):
    y = x * np.random.normal()
    if x > 3.0:
        raise ValueError("too large")
    return y


@numba.njit
def numbers_after(seed):
    np.random.seed(seed)


@numba.njit
def next_number():
    return np.random.normal()


def printing(model, x):
    return model.rate * printed(x)


def drawing(model, x):
    if x < 0.0:
        raise ValueError("below zero")
    return model.rate * drawn(x)


def vague(model, x):
    if x > 3.0:
        raise ValueError(f"{x} is too large")
    return model.rate * printed(x)


def test_what_must_not_be_done_twice_is_done_once_although_it_raises(capsys, machine_code):
    for x, text in ((2.0, ""), (2.0, ""), (5.0, "too large"), (5.0, "too large"), (2.0, "")):
        if text:
            with pytest.raises(ValueError, match=text):
                natively(printing)(Model(2.0), x)
        else:
            assert natively(printing)(Model(2.0), x)[1].rate == 4.0
        assert capsys.readouterr().out == "seen\n"
    for operator in (natively(drawing), lambda m, x: plaingrad.vjp(drawing, m, x, tier="native")):
        for x, text in ((2.0, ""), (5.0, "too large"), (5.0, "too large")):
            numbers_after(1)
            if text:
                with pytest.raises(ValueError, match=text):
                    operator(Model(2.0), x)
            else:
                operator(Model(2.0), x)
            found = next_number()
            numbers_after(1)
            next_number()
            assert found == next_number()
    with pytest.raises(ValueError, match="below zero"):
        natively(drawing)(Model(2.0), -1.0)


def test_what_prints_and_raises_what_only_the_plain_call_can_say_is_refused(capsys):
    for _ in range(2):
        with pytest.raises(NativeError, match=r"it prints, and what it raises is known by calling it again \(.*:\d+"):
            natively(vague)(Model(2.0), 2.0)
    assert capsys.readouterr().out == ""


class OutOfRange(Exception):
    pass


def written_and_raised(model, v, x, k=1.0):
    v[0] += 1.0
    if x > 3.0:
        raise OutOfRange(f"{x} is out of range")
    return v[0] * model.rate * x * k


def test_every_operator_leaves_arrays_as_the_plain_call_does_that_raises():
    model = Model(2.0)
    for operator in (
        lambda v: plaingrad.jvp(
            written_and_raised, (model, v, 5.0), (None, np.zeros(2), 1.0), tier="native"
        ),
        lambda v: plaingrad.vjp(written_and_raised, model, v, 5.0, tier="native"),
        lambda v: plaingrad.grad(written_and_raised, 2, tier="native")(model, v, 5.0, k=2.0),
        lambda v: plaingrad.jacobian(written_and_raised, 2, tier="native")(model, v, 5.0, k=2.0),
    ):
        v = np.ones(2)
        with pytest.raises(OutOfRange, match="5.0 is out of range"):
            operator(v)
        np.testing.assert_array_equal(v, [2.0, 1.0])
