"""Derivatives of what a function is now: globals, helpers, captured variables, arrays and code that change."""

import math
import types as python_types

import numpy as np
import pytest

import plaingrad
from plaingrad import AliasError, NativeError, derivative, grad, hessian, hvp, jacobian, jvp, linearize, vjp

numba = pytest.importorskip("numba")

from plaingrad.native.border import call as native_call  # noqa: E402

RATE = 2.0
TABLE = np.array([2.0, 1.0])
PAIR = (2.0, TABLE)
SETTINGS = python_types.ModuleType("settings_of_a_test")
SETTINGS.rate = 2.0
SETTINGS.inner = python_types.ModuleType("settings_of_a_test.inner")
SETTINGS.inner.rate = 2.0


def native(f, x=3.0):
    return grad(f, tier="native")(x)


@pytest.fixture(autouse=True)
def as_before():
    """The globals above, whatever a test does to them."""
    yield
    space = globals()
    space.update(RATE=2.0, helper=HELPER, deeper=DEEPER, PAIR=(2.0, TABLE), compiled_helper=COMPILED)
    TABLE[:] = 2.0, 1.0
    SETTINGS.rate = SETTINGS.inner.rate = 2.0


def deeper(x):
    return x * RATE


def helper(x):
    return deeper(x)


@numba.njit
def compiled_helper(x):
    return x * RATE


HELPER, DEEPER, COMPILED = helper, deeper, compiled_helper


def by_a_global(x):
    return RATE * x * x


def by_a_helper(x):
    return helper(x) * x


def by_an_array(x):
    return TABLE[0] * x * x


def by_a_tuple(x):
    return PAIR[1][0] * x * x


def by_a_module(x):
    return SETTINGS.rate * x * x


def by_a_module_inside(x):
    return SETTINGS.inner.rate * x * x


def by_a_default(x, rate=2.0):
    return rate * x * x


def by_a_keyword(x, *, rate=2.0):
    return rate * x * x


def set_global(**values):
    return lambda: globals().update(values)


def seven_times(x):
    return x * 7.0


CHANGES = {
    "a rebound global": (by_a_global, set_global(RATE=7.0)),
    "a redefined helper": (by_a_helper, set_global(helper=seven_times)),
    "a redefined helper of a helper": (by_a_helper, set_global(deeper=seven_times)),
    "a global of a helper of a helper": (by_a_helper, set_global(RATE=7.0)),
    "an array that is written": (by_an_array, lambda: TABLE.__setitem__(0, 7.0)),
    "another array": (by_an_array, set_global(TABLE=np.array([7.0]))),
    "an array in a tuple": (by_a_tuple, lambda: TABLE.__setitem__(0, 7.0)),
    "another tuple": (by_a_tuple, set_global(PAIR=(1.0, np.array([7.0, 0.0])))),
    "a name of a module": (by_a_module, lambda: setattr(SETTINGS, "rate", 7.0)),
    "a name of a module in a module": (by_a_module_inside, lambda: setattr(SETTINGS.inner, "rate", 7.0)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_has_changed_outside_is_seen(what):
    f, change = CHANGES[what]
    space = globals()
    table = space["TABLE"]
    try:
        assert native(f) == 12.0
        change()
        assert native(f) == 42.0 == grad(f, tier="plain")(3.0)
    finally:
        space["TABLE"] = table


def test_a_changed_default_is_seen():
    try:
        assert native(by_a_default) == 12.0
        by_a_default.__defaults__ = (7.0,)
        assert native(by_a_default) == 42.0
        assert native(by_a_keyword) == 12.0
        by_a_keyword.__kwdefaults__ = {"rate": 7.0}
        assert native(by_a_keyword) == 42.0
        by_a_keyword.__kwdefaults__["rate"] = 1.0
        assert native(by_a_keyword) == 6.0
    finally:
        by_a_default.__defaults__ = (2.0,)
        by_a_keyword.__kwdefaults__ = {"rate": 2.0}


def test_a_changed_nonlocal_is_seen():
    rate = 2.0

    def f(x):
        return rate * x * x

    def change(value):
        nonlocal rate
        rate = value

    assert native(f) == 12.0
    change(7.0)
    assert native(f) == 42.0
    change(2.0)
    assert native(f) == 12.0


def test_replaced_code_is_seen():
    def f(x):
        return x * x

    def cube(x):
        return x * x * x

    def outer(x):
        return f(x)

    assert native(f) == native(outer) == 6.0
    f.__code__ = cube.__code__
    assert native(f) == native(outer) == 27.0


def test_a_global_that_goes_is_python_s_again():
    space = globals()

    def f(x):
        return abs(x) * x

    try:
        space["abs"] = seven_times
        assert native(f) == 42.0
        del space["abs"]
        assert native(f) == 6.0
    finally:
        space.pop("abs", None)


def test_zeros_of_both_signs_and_nan_are_told_apart():
    space = globals()

    def f(x):
        return x * np.copysign(1.0, RATE)

    assert native(f) == 1.0
    space["RATE"] = 0.0
    assert native(f) == 1.0
    space["RATE"] = -0.0
    assert native(f) == -1.0


def test_products_and_forward_mode_see_changes():
    space = globals()
    for rate in (2.0, 7.0):
        space["RATE"] = rate
        assert jvp(by_a_global, (3.0,), (1.0,), tier="native") == (9.0 * rate, 6.0 * rate)
        assert hvp(by_a_global, (3.0,), (1.0,), tier="native") == (2.0 * rate,)
        out = np.empty((1, 1))
        assert plaingrad.compiled_jacobian(by_a_global, 3.0)(3.0, out) == 9.0 * rate
        assert out[0, 0] == 6.0 * rate


def test_a_pullback_is_that_of_its_call():
    space = globals()
    y, pullback = vjp(by_a_global, 3.0, tier="native")
    z, of_array = vjp(by_an_array, 3.0, tier="native")
    strided = np.ones(6)[::2]  # read where it is
    _, of_strided = vjp(lambda x: strided[0] * x * x, 3.0, tier="native")
    space["RATE"] = TABLE[0] = strided[0] = 7.0
    with pytest.raises(plaingrad.PlaingradError):
        of_strided(1.0)
    assert (y, *pullback(1.0)) == (18.0, 12.0)
    assert (z, *of_array(1.0)) == (18.0, 12.0)


def test_functions_that_call_each_other_and_change():
    space = globals()

    def even(x, n):
        return x * RATE if n <= 0 else odd(x, n - 1)

    def odd(x, n):
        return x * 3.0 if n <= 0 else even(x, n - 1)

    assert native(lambda x: even(x, 2)) == 2.0
    space["RATE"] = 7.0
    assert native(lambda x: even(x, 2)) == 7.0


def test_a_function_given_as_an_argument_is_that_of_now():
    space = globals()

    def apply(f, x):
        return f(x) * x

    assert grad(apply, argnums=1, tier="native")(deeper, 3.0) == 12.0
    space["RATE"] = 7.0
    assert grad(apply, argnums=1, tier="native")(deeper, 3.0) == 42.0


# -- an array under two names ------------------------------------------------------------------------------------------


def test_an_argument_that_is_read_as_a_global_too():
    def read(x):
        return x[0] * TABLE[0] * x[1]

    def written(x):
        x[0] = x[0] * 3.0
        return x[0] * TABLE[0]

    here = grad(read, tier="native")(TABLE)
    assert np.array_equal(here, grad(read, tier="plain")(TABLE))
    with pytest.raises(AliasError, match="global, or captured"):
        grad(written, tier="native")(TABLE)
    with pytest.raises(AliasError, match="global, or captured"):
        grad(written, tier="native")(TABLE[:1])
    with pytest.raises(AliasError):
        hvp(written, (TABLE,), (np.ones(2),), tier="native")
    assert TABLE[0] == 2.0
    assert grad(written, tier="native")(TABLE.copy())[0] == 6.0


def test_arguments_that_share_memory_in_what_works_on_copies():
    def written(x, y):
        x[0] = x[0] * 3.0
        return x[0] * y[0] * y[0]

    x = np.array([2.0])
    with pytest.raises(AliasError):
        hvp(written, (x, x), (np.ones(1), np.ones(1)), tier="native")
    with pytest.raises(AliasError):
        plaingrad.jacobian(written, argnums=(0, 1), tier="native")(x, x)


# -- dispatchers: what Numba compiled ----------------------------------------------------------------------------------


def test_globals_that_a_dispatcher_froze_are_those_it_froze():
    space = globals()

    @numba.njit
    def f(x):
        return RATE * x * x

    assert f(3.0) == 18.0
    space["RATE"] = 7.0
    assert f(3.0) == 18.0
    assert grad(f)(3.0) == grad(f, tier="native")(3.0) == 12.0
    assert jvp(f, (3.0,), (1.0,), tier="native") == (18.0, 12.0)
    assert hvp(f, (3.0,), (1.0,), tier="native") == (4.0,)
    assert grad(lambda x: f(x) * x)(3.0) == 54.0
    assert grad(lambda x: f(x) * x, tier="native")(3.0) == 54.0
    f.recompile()
    assert grad(f)(3.0) == 42.0


def test_a_dispatcher_that_is_not_compiled_yet_would_take_the_globals_of_now():
    space = globals()

    @numba.njit
    def f(x):
        return RATE * x * x

    assert grad(f)(3.0) == 12.0
    space["RATE"] = 7.0
    assert grad(f)(3.0) == 42.0
    assert f(3.0) == 63.0
    space["RATE"] = 1.0
    assert grad(f)(3.0) == 42.0


def test_a_captured_variable_that_a_dispatcher_froze():
    rate = 2.0

    @numba.njit
    def f(x):
        return rate * x * x

    f(3.0)
    rate = 7.0
    assert grad(f)(3.0) == 12.0


def test_dispatchers_that_are_called_froze_theirs():
    space = globals()

    @numba.njit
    def inner(x):
        return RATE * x

    @numba.njit
    def outer(x):
        return inner(x) * x

    assert outer(3.0) == 18.0
    space["RATE"] = 7.0
    assert grad(outer)(3.0) == 12.0
    assert outer(3.0) == 18.0


def test_a_frozen_array_that_was_written_is_a_difference_that_is_told():
    @numba.njit
    def f(x):
        return TABLE[0] * x * x

    assert f(3.0) == 18.0
    TABLE[0] = 7.0
    assert f(3.0) == 18.0
    for tier in ("auto", "native"):
        with pytest.raises(NativeError, match="as it was compiled, returns 18.0"):
            grad(f, tier=tier)(3.0)
    with pytest.raises(NativeError, match="as it was compiled"):
        grad(lambda x: f(x) * x)(3.0)
    with pytest.raises(NativeError, match="as it was compiled"):
        jvp(f, (3.0,), (1.0,), tier="native")


OTHERS = {
    "hvp": lambda f: hvp(f, (3.0,), (1.0,), tier="native"),
    "hessian": lambda f: hessian(f, tier="native")(3.0),
    "derivative": lambda f: derivative(f, tier="native")(3.0),
    "second derivative": lambda f: derivative(f, order=2, tier="native")(3.0),
    "linearize": lambda f: linearize(f, 3.0, tier="native")[1](1.0),
    "jacobian": lambda f: jacobian(f, tier="native")(3.0),
    "vjp": lambda f: vjp(f, 3.0, tier="native")[1](1.0),
}
RIGHT = {"hvp": (4.0,), "hessian": 4.0, "second derivative": 4.0, "vjp": (12.0,)}


@pytest.mark.parametrize("operator", OTHERS)
def test_every_operator_tells_the_difference_first_and_again(operator):
    take = OTHERS[operator]

    @numba.njit
    def f(x):
        return TABLE[0] * x * x

    assert f(3.0) == 18.0
    assert take(f) == RIGHT.get(operator, 12.0)
    TABLE[0] = 7.0
    for _ in range(2):
        with pytest.raises(NativeError, match="as it was compiled, returns 18.0"):
            take(f)
    TABLE[0] = 2.0
    assert take(f) == RIGHT.get(operator, 12.0)


def test_products_with_a_hessian_compare_once_and_only_what_is_compiled(monkeypatch):
    calls = []
    compare = native_call.compare
    monkeypatch.setattr(native_call, "compare", lambda *given: calls.append(given[2]) or compare(*given))

    @numba.njit
    def f(x):
        return np.sum(x**3)

    at, along = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    assert hvp(f, (at,), (along,), tier="native")[0].tolist() == [6.0, 0.0]
    assert calls == []  # it has no machine code of its own yet
    assert f(at) == 9.0
    for _ in range(2):
        assert hvp(f, (at,), (along,), tier="native")[0].tolist() == [6.0, 0.0]
        assert hessian(f, tier="native")(at).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert len(calls) == 1

    def plain(x):
        return np.sum(x**3)

    assert hvp(plain, (at,), (along,), tier="native")[0].tolist() == [6.0, 0.0]
    assert len(calls) == 1


def test_a_function_that_writes_or_draws_is_not_run_for_a_comparison():
    @numba.njit
    def writes(x):
        x[0] = x[0] * x[1]
        return x[0] * x[1]

    at = np.array([2.0, 3.0])
    assert writes(at.copy()) == 18.0
    assert hvp(writes, (at,), (np.array([1.0, 0.0]),), tier="native")[0] == pytest.approx([0.0, 6.0])
    assert at.tolist() == [6.0, 3.0]  # once


def stub(x):
    return x * 100.0


def stub_with_keyword(x, factor=1.0):
    raise NotImplementedError


@numba.extending.overload(stub)
def _of_stub(x):
    return lambda x: x * 2.0


@numba.extending.overload(stub_with_keyword)
def _of_stub_with_keyword(x, factor=1.0):
    if isinstance(x, numba.types.Float):
        return lambda x, factor=1.0: x * x * factor
    return lambda x, factor=1.0: x[0] * factor


@numba.extending.register_jitable
def jitable(x):
    return x * 5.0


def test_an_overload_is_what_compiled_code_calls():
    @numba.njit
    def f(x):
        return stub(x) * x

    @numba.njit
    def by_type(x, a):
        return stub_with_keyword(x, factor=3.0) + stub_with_keyword(a)

    @numba.njit
    def with_jitable(x):
        return jitable(x) * x

    assert grad(f)(3.0) == grad(f, tier="native")(3.0) == 12.0
    assert f(3.0) == 18.0
    assert grad(lambda x: f(x) * x)(3.0) == 54.0
    assert hvp(f, (3.0,), (1.0,), tier="native") == (4.0,)
    x_bar, a_bar = grad(by_type, argnums=(0, 1))(3.0, np.array([4.0]))
    assert (x_bar, *a_bar) == (18.0, 1.0)
    assert grad(with_jitable)(3.0) == 30.0


def test_a_plain_function_calls_the_stub():
    assert grad(lambda x: stub(x) * x, tier="native")(3.0) == 600.0


def test_an_overload_is_not_passed_over_where_the_native_tier_gives_up():
    @numba.njit
    def f(x):
        d = {0: stub(x)}  # derivatives are not followed in dictionaries
        return d[0] * x

    assert f(3.0) == 18.0
    with pytest.raises(NativeError, match="stub"):
        grad(f)(3.0)
    with pytest.raises(NativeError, match="stub"):
        grad(lambda x: f(x))(3.0)


def test_declared_signatures_are_honoured():
    @numba.njit("float64(int64)")
    def whole(x):
        return x * x * 1.0

    @numba.njit("float32(float32)")
    def single(x):
        return x * x

    @numba.njit("float64(float64[:])")
    def strided(a):
        return a[0] * a[1]

    assert whole(3.7) == 9.0
    for tier in ("auto", "native"):
        with pytest.raises(NativeError, match="int64"):
            grad(whole, tier=tier)(3.7)
    y, x_bar = plaingrad.value_and_grad(single)(0.1)
    assert y == single(0.1) and type(x_bar) is float
    assert x_bar == 2.0 * np.float32(0.1)
    assert grad(strided)(np.array([2.0, 3.0])).tolist() == [3.0, 2.0]
    assert grad(lambda a: strided(a) * a[0])(np.array([2.0, 3.0])).tolist() == [12.0, 4.0]
    with pytest.raises(NativeError, match="declared types"):
        grad(strided, tier="native")(2.0)


def test_a_rule_of_the_python_function_serves_the_compiled_one():
    def base(x):
        return x * x

    @plaingrad.rrule(base)
    def base_rrule(x):
        return x * x, lambda y_bar: (y_bar * 1000.0,)

    try:
        compiled = numba.njit(base)
        assert grad(compiled)(3.0) == 1000.0 == grad(base)(3.0)
        assert grad(lambda x: compiled(x) * 2.0)(3.0) == 2000.0
        for f in (base, compiled, lambda x: base(x), lambda x: compiled(x)):
            with pytest.raises(NativeError, match="rule of its own"):
                grad(f, tier="native")(3.0)
    finally:
        plaingrad.rulebook.uncover(base)


# -- what is no Python function ----------------------------------------------------------------------------------------


def test_functions_in_c_are_natively_what_they_are():
    import math

    assert grad(math.sin, tier="native")(1.0) == math.cos(1.0)
    assert grad(np.exp, tier="native")(1.0) == np.exp(1.0)
    assert grad(math.hypot, argnums=(0, 1), tier="native")(3.0, 4.0) == pytest.approx((0.6, 0.8))
    with pytest.raises(NativeError, match="`len`"):
        grad(len, tier="native")(1.0)
    with pytest.raises(NativeError, match="`float`"):
        grad(float, tier="native")(1.0)


def test_what_is_not_for_the_native_tier_is_refused_by_name():
    with pytest.raises(NativeError, match="checkpoint"):
        grad(lambda x: plaingrad.checkpoint(lambda y: y * y, x), tier="native")(1.0)
    with pytest.raises(NativeError, match="nestlevel"):
        grad(lambda x: x * plaingrad.nestlevel(), tier="native")(1.0)


# -- the matrix of a compiled Jacobian ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def polar():
    def polar(p):
        return np.hypot(p[0], p[1]), np.arctan2(p[1], p[0])

    return plaingrad.compiled_jacobian(polar, np.ones(2))


POINT = np.array([3.0, 4.0])
SLOPES = np.array([[0.6, 0.8], [-0.16, 0.12]])


def read_only():
    out = np.zeros((2, 2))
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    "out",
    [
        *[np.zeros((2, 2), dtype) for dtype in (np.float32, np.float16, np.complex128, np.int64, bool)],
        np.zeros(4),
        np.zeros((2, 2, 1)),
        np.broadcast_to(np.zeros(2), (2, 2)),
        read_only(),
        None,
    ],
    ids=lambda out: "none" if out is None else f"{out.dtype} {out.shape} {out.flags.writeable}",
)
def test_a_compiled_jacobian_writes_into_matrices_of_float64_only(polar, out):
    before = None if out is None else out.copy()
    with pytest.raises((plaingrad.ArgumentError, TypeError)):
        polar(POINT, out)
    assert out is None or np.array_equal(out, before)


@pytest.mark.parametrize("shape", [(1, 2), (3, 2), (2, 1), (2, 3), (0, 2)])
def test_a_compiled_jacobian_wants_as_many_rows_and_columns_as_there_are_derivatives(polar, shape):
    with pytest.raises(ValueError, match="row" if shape[1] == 2 else "column"):
        polar(POINT, np.zeros(shape))


def test_a_compiled_jacobian_takes_a_matrix_however_it_lies_in_memory(polar):
    around = np.full((5, 5), 7.0)
    for out in (np.zeros((2, 2), order="F"), np.zeros((2, 2))[::-1, ::-1], around[1:5:2, 1:5:2]):
        assert polar(POINT, out) == (5.0, np.arctan2(4.0, 3.0))
        assert np.allclose(out, SLOPES, rtol=1e-15)
    around[1:5:2, 1:5:2] = 7.0
    assert np.all(around == 7.0)


@pytest.fixture(scope="module")
def scaled():
    """Of 20 numbers, so that the Jacobian is computed in two sweeps, of which the first would overwrite `p`."""

    def scaled(p, w):
        return w[0] * p * p

    return plaingrad.compiled_jacobian(scaled, np.ones(20), np.ones(1))


BLOCK = np.arange(1.0, 421.0)
OVERLAPS = {
    "a row": (lambda b: b.reshape(21, 20)[0], lambda b: b.reshape(21, 20)[:20]),
    "the last row": (lambda b: b.reshape(21, 20)[20], lambda b: b.reshape(21, 20)[1:]),
    "a column": (lambda b: b.reshape(20, 21)[:, 19], lambda b: b.reshape(20, 21)[:, :20]),
    "backwards": (lambda b: b.reshape(20, 21)[::-1, 0], lambda b: b.reshape(20, 21)[:, :20]),
    "a part of a row": (lambda b: b[390:410], lambda b: b[:400].reshape(20, 20)),
    "out upside down": (lambda b: b.reshape(21, 20)[0], lambda b: b.reshape(21, 20)[:20][::-1, ::-1]),
}
APART = {
    "rows": (lambda b: b.reshape(21, 20)[0], lambda b: b.reshape(21, 20)[1:]),
    "columns": (lambda b: b.reshape(20, 21)[:, 20], lambda b: b.reshape(20, 21)[:, :20]),
    "every other row": (lambda b: b.reshape(21, 20)[20], lambda b: b.reshape(21, 20)[:20][::-1]),
    "another block": (lambda b: b[:20], lambda b: np.empty((20, 20), order="F")),
}


@pytest.mark.parametrize("what", OVERLAPS)
def test_a_compiled_jacobian_refuses_a_matrix_in_the_memory_of_an_argument(scaled, what):
    block = BLOCK.copy()
    of_p, of_out = OVERLAPS[what]
    p, out = of_p(block), of_out(block)
    assert np.shares_memory(p, out)
    with pytest.raises(plaingrad.ArgumentError, match="shares memory with an argument"):
        scaled(p, np.array([2.0]), out)
    assert np.array_equal(block, BLOCK)
    other = np.zeros((20, 20))
    with pytest.raises(plaingrad.ArgumentError, match="shares memory"):
        scaled(np.ones(20), other[3, :1], other)  # an argument that is not differentiated
    assert not other.any()


@pytest.mark.parametrize("what", APART)
def test_a_compiled_jacobian_takes_a_matrix_beside_an_argument(scaled, what):
    block = BLOCK.copy()
    of_p, of_out = APART[what]
    p, out = of_p(block), of_out(block)
    assert np.array_equal(scaled(p, np.array([2.0]), out), 2.0 * p * p)
    assert np.array_equal(out, np.diag(4.0 * p))


def test_a_compiled_jacobian_refuses_it_in_tuples_scalars_and_compiled_code(scaled):
    def of_pair(ps):
        return ps[0] * ps[1][0]

    of_pair_too = plaingrad.compiled_jacobian(of_pair, (np.ones(2), np.ones(2)))
    out = np.zeros((2, 4))
    of_pair_too((np.array([2.0, 3.0]), np.array([5.0, 7.0])), out)
    assert out.tolist() == [[5.0, 0.0, 2.0, 0.0], [0.0, 5.0, 3.0, 0.0]]
    with pytest.raises(plaingrad.ArgumentError, match="shares memory"):
        of_pair_too((np.ones(2), out[0, 1:3]), out)

    of_no_axes = plaingrad.compiled_jacobian(lambda a: a[()] * a[()], np.array(1.0))
    one = np.ones((1, 1))
    assert of_no_axes(np.array(3.0), one) == 9.0 and one[0, 0] == 6.0
    with pytest.raises(plaingrad.ArgumentError, match="shares memory"):
        of_no_axes(one[0].reshape(()), one)

    @numba.njit
    def compiled(p, w, out):
        return scaled(p, w, out)

    out = np.zeros((20, 20))
    with pytest.raises(plaingrad.ArgumentError, match="shares memory"):
        compiled(out[4], np.ones(1), out)
    assert compiled(np.ones(20), np.ones(1), out).sum() == 20.0 and np.array_equal(out, 2 * np.eye(20))

    nothing = plaingrad.compiled_jacobian(lambda p: p * 2.0, np.ones(0))
    assert nothing(np.ones(0), np.ones((0, 0))).size == 0


def test_compiled_code_cannot_hand_a_wrong_matrix_to_a_compiled_jacobian(polar):
    @numba.njit
    def call(p, out):
        return polar(p, out)

    out = np.zeros((2, 2))
    call(POINT, out)
    assert np.allclose(out, SLOPES, rtol=1e-15)
    with pytest.raises(plaingrad.ArgumentError, match="float32"):
        call(POINT, np.zeros((2, 2), np.float32))


# -- numbers that are computed and not used ----------------------------------------------------------------------------


def roots(x):
    total = 0.0
    for i in range(len(x)):
        v = np.sqrt(x[i])
        if v > 0.0:
            total += v
    return total


def logarithms(x):
    total = 0.0
    for i in range(len(x)):
        v = np.log(x[i]) * 2.0
        if v > -100.0:
            total += v
    return total


def exponentials(x):
    total = 0.0
    for i in range(len(x)):
        total += min(np.exp(x[i]), 100.0)
    return total


def inverses(x):
    total = 0.0
    for i in range(len(x)):
        r = np.sqrt(x[i] * x[i])
        if r > 1e-3:
            total += 1.0 / r
    return total


def powers(x):
    total = 0.0
    for i in range(len(x)):
        v = x[i] ** 0.5
        total += v if v > 0.0 else x[i]
    return total


def clipped(x):
    return np.sqrt(max(x[0] - 1.0, 0.0)) * x[1]


def early(x):
    v = np.sqrt(x[0])
    w = v * x[1]
    if v > 0.0:
        return w
    return 3.0 * x[1]


def last_one(x):
    total, v = 0.0, 0.0
    for i in range(len(x)):
        v = np.sqrt(x[i])
        total += 2.0 * x[i]
    return total + v


def in_an_inner_loop(x):
    total = 0.0
    for i in range(len(x)):
        v = np.log(x[i])
        for k in range(int(x[i] > 0.0)):
            total += v * (k + 1)
    return total


UNUSED = {
    roots: [0.0, 4.0],
    logarithms: [0.0, 2.0],
    exponentials: [1.0, 1000.0],
    inverses: [0.0, 2.0],
    powers: [0.0, 4.0],
    clipped: [0.5, 2.0],
    early: [0.0, 2.0],
    last_one: [0.0, 2.0],
    in_an_inner_loop: [0.0, 2.0],
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("f", UNUSED, ids=lambda f: f.__name__)
def test_what_is_infinite_and_not_used_makes_no_nan(f):
    x = np.array(UNUSED[f])
    expected = grad(f, tier="plain")(x)
    assert np.all(np.isfinite(expected))
    assert np.allclose(grad(f, tier="native")(x), expected, rtol=1e-14)
    for k, direction in enumerate(np.eye(2)):
        y, y_dot = jvp(f, (x,), (direction,), tier="native")
        assert y_dot == pytest.approx(expected[k], rel=1e-14)
    second = plaingrad.hessian(f, tier="plain")(x)
    assert np.allclose(plaingrad.hessian(f, tier="native")(x), second, rtol=1e-13)
    (product,) = hvp(f, (x,), (np.ones(2),), tier="native")
    assert np.allclose(product, second @ np.ones(2), rtol=1e-13)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_zero_that_has_arrived_counts():
    def product(x):
        return np.sqrt(x) * np.sqrt(x)

    def square(x):
        return (np.sqrt(x) - 1.0) ** 2 if x > 0.5 else x

    def chosen(x):
        v = np.sqrt(x)
        total = 0.0
        if x > 0.5:
            total += (v - 1.0) ** 2
        return total

    assert np.isnan(grad(product, tier="plain")(0.0))
    assert np.isnan(grad(product, tier="native")(0.0))
    for f in (square, chosen):  # at the minimum a cotangent is 0, not its derivative
        assert hvp(f, (1.0,), (1.0,), tier="native") == (pytest.approx(0.5),)
        assert plaingrad.derivative(f, order=2, tier="native")(1.0) == pytest.approx(0.5)


def test_a_tangent_that_is_zero_may_have_a_derivative():
    def f(x):
        v = 0.0
        if x > -1.0:
            v = x * x
        return 1.0 / (1.0 + v)

    assert plaingrad.derivative(f, order=2, tier="native")(0.0) == -2.0
    assert hvp(f, (0.0,), (1.0,), tier="native") == (-2.0,)
    assert plaingrad.derivative(f, order=3, tier="native")(0.5) == pytest.approx(
        plaingrad.derivative(f, order=3, tier="plain")(0.5)
    )


def test_a_dispatcher_that_is_compiled_for_more_types_is_not_another_one(monkeypatch):
    from plaingrad.native.compile import build

    @numba.njit
    def inner(x):
        return RATE * x

    def f(x):
        return inner(x) * inner(2)

    grad(f, tier="native")(3.0)
    monkeypatch.setattr(build, "_derive", None)
    inner(np.float32(1.0))
    assert grad(f, tier="native")(3.0) == 8.0


# -- functions that are gone -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("machine_code")
@pytest.mark.parametrize("compiled", [False, True])
def test_what_was_derived_of_functions_that_are_gone_goes_too(compiled, monkeypatch):
    import gc
    import linecache
    import weakref

    from plaingrad.native.compile import build
    from plaingrad.native.frontend import current

    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", "")
    gone = []
    original = build.Derived.__init__

    def noted(self, run, *others):
        original(self, run, *others)
        gone.append(weakref.ref(run if not isinstance(run, build.Sweeps) else run.forward))

    monkeypatch.setattr(build.Derived, "__init__", noted)

    def kept():
        gc.collect()
        return len(build._built.tables), len(current._versions), len(linecache.cache)

    before = kept()
    for k in range(3):
        rate = float(k)

        def f(x):
            return rate * x * x

        f = numba.njit(f) if compiled else f
        assert grad(f, tier="native")(3.0) == 6.0 * k
        del f
    after = kept()
    assert gone and not any(reference() is not None for reference in gone)
    for a, b in zip(after, before, strict=True):
        assert a <= b  # what others left may go meanwhile


def test_what_is_kept_on_disk_is_told_by_what_is_outside(monkeypatch, tmp_path):
    from plaingrad import rulebook
    from plaingrad.native.compile import cache
    from plaingrad.native.frontend.current import as_now

    monkeypatch.setattr(rulebook, "entered", lambda: iter(()))
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", str(tmp_path / "kept"))
    signature = (numba.types.float64,)

    def key(f):
        return cache.key_of("pullback", as_now(f, signature).py_func, signature, (0,), {})

    space = globals()
    first = [key(f) for f in (by_a_global, by_a_helper)]
    assert None not in first
    space["RATE"] = 7.0
    second = [key(f) for f in (by_a_global, by_a_helper)]
    space["RATE"] = 2.0
    assert None not in second and not set(first) & set(second)
    assert [key(f) for f in (by_a_global, by_a_helper)] == first


def test_a_dispatcher_that_was_compiled_with_a_default_left_out():
    space = globals()

    @numba.njit
    def f(x, factor=1.0):
        return factor * RATE * TABLE[0] * x * x

    assert f(3.0) == 36.0
    space["RATE"] = 7.0
    assert grad(f)(3.0) == 24.0 and f(3.0) == 36.0
    TABLE[0] = 7.0
    with pytest.raises(NativeError, match="compiled"):
        grad(f)(3.0)


# -- nan among what is compared ----------------------------------------------------------------------------------------


def smallest_of_two(x):
    return min(x, 1.0)


def smallest_after_one(x):
    return min(1.0, x)


def largest_of_three(x):
    return max(x, 1.0, 0.5)


def sum_of_floors(x):
    s = 0.0
    for i in range(x.size):
        s += min(x[i], 1.0) * max(0.5, x[i])
    return s


@pytest.mark.parametrize("f", [smallest_of_two, smallest_after_one, largest_of_three])
@pytest.mark.parametrize("x", [np.nan, 0.5, float("1"), 2.0, np.inf])
def test_min_and_max_take_a_nan_that_comes_first_in_both_tiers(f, x):
    slope = 1.0 if f(x) is x else 0.0  # Python's own answer to which one is taken
    for tier in ("plain", "native"):
        assert plaingrad.grad(f, tier=tier)(x) == slope
        assert plaingrad.jvp(f, (x,), (1.0,), tier=tier)[1] == slope


def test_a_loop_over_minima_has_nan_where_a_nan_is_taken():
    x = np.array([0.25, np.nan, 0.75, 3.0] * 20)
    taken = np.where(np.isnan(x) | (x <= 1.0), np.where(x > 0.5, x, 0.5), 0.0)  # d min * max
    by_hand = np.where(np.isnan(x), 0.5, taken + np.where(x > 0.5, np.minimum(x, 1.0), 0.0))
    for tier in ("plain", "native"):
        np.testing.assert_allclose(plaingrad.grad(sum_of_floors, tier=tier)(x), by_hand, rtol=1e-15)


@numba.njit(numba.float64(numba.float64))
def of_the_other_side(x):
    if x >= 0.0:
        return 1.0 - math.exp(-x * x) / (1.0 + x)
    return 1.0 - of_the_other_side(-x)


@numba.vectorize([numba.float64(numba.float64)])
def of_each(x):
    return of_the_other_side(x)


@pytest.mark.parametrize("x", [0.3, -0.3])
def test_a_function_that_calls_itself_may_be_compiled_before_its_name_is_there(x):
    slope = math.exp(-0.09) * (0.6 / 1.3 + 1.0 / 1.69)  # on both sides
    assert plaingrad.grad(of_the_other_side)(x) == pytest.approx(slope, rel=1e-12)
    assert plaingrad.grad(lambda x: of_the_other_side(x))(x) == pytest.approx(slope, rel=1e-12)
    assert plaingrad.jvp(of_each, (x,), (1.0,))[1] == pytest.approx(slope, rel=1e-12)
