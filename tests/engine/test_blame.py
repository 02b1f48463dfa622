"""Refusals name the user's line, the public function that he called there, and names that can be imported."""

import ctypes
import ctypes.util
import functools
import importlib
import inspect
import re
import weakref
import zlib
from decimal import Decimal

import numpy as np
import pytest

import plaingrad
from plaingrad.engine.refusals import refuse
from plaingrad import MissingRuleError, grad, jvp, rulebook

scipy = pytest.importorskip("scipy")
import scipy.integrate  # noqa: E402
import scipy.linalg.lapack  # noqa: E402
import scipy.special.cython_special  # noqa: E402
import scipy.stats  # noqa: E402


def integrated(x):
    return scipy.integrate._quadpack._qagse(lambda t: t * x, 0.0, 1.0, (), 0, 1e-8, 1e-8, 50)[0]


def a_distribution(x):
    return scipy.stats.levy_stable.pdf(x, 1.5, 0.2)


def special(x):
    return scipy.special.cython_special.erf(x)


def summed_up(x):
    return len(zlib.compress(np.array([x]))) * x


def lapack(x):
    return scipy.linalg.lapack.dsyev(np.array([[x]]))[0]


def reduced(x):
    return functools.reduce(scipy.special.cython_special.beta, [x, 2.0])


def buffered(x):
    return np.nested_iters([np.array([[x]])], [[0], [1]])[0].operands[0].sum()


BLAMED = [
    (integrated, "scipy.integrate._quadpack._qagse"), (a_distribution, "scipy.stats._levy_stable.levy_stable_gen.pdf"),
    (special, "scipy.special.cython_special.erf"), (summed_up, "zlib.compress"),
    (lapack, "scipy.linalg.lapack.dsyev"), (reduced, "scipy.special.cython_special.beta"), (buffered, "numpy.nested_iters"),
]


def message(f, x=0.5):
    texts = []
    for attempt in (grad(f), lambda x: jvp(f, (x,), (1.0,))):
        with pytest.raises(MissingRuleError) as caught:
            attempt(x)
        texts.append(str(caught.value))
    assert texts[0] == texts[1], "both modes say the same"
    return texts[0]


def resolved(name):
    """What a full name leads to."""
    module, parts = name, []
    while True:
        try:
            thing = importlib.import_module(module)
            break
        except ImportError:
            module, _, part = module.rpartition(".")
            parts.insert(0, part)
    return functools.reduce(getattr, parts, thing)


@pytest.mark.parametrize("f, public", BLAMED, ids=lambda x: getattr(x, "__name__", None))
def test_the_users_line_and_the_function_that_he_called(f, public):
    text = message(f)
    line = inspect.getsourcelines(f)[1] + 1
    assert text.startswith(f"`{public}` at {__file__}:{line}, in `{f.__name__}`, ")
    for name in re.findall(r"`([\w]+\.[\w.]+)`", text):
        assert resolved(name) is not None, name
    assert f"@plaingrad.rrule({public})" in text
    assert "nondifferentiable" not in text, "a number is no answer to a question"


@pytest.mark.parametrize("f, public", BLAMED, ids=lambda x: getattr(x, "__name__", None))
def test_the_advice_works(f, public):
    """A rule for the function that the message names is asked."""
    g = resolved(public)
    if isinstance(g, type) or public.endswith(".pdf"):
        pytest.skip("a class, or a method that every distribution has")
    asked = []

    def rule(*args, **kwargs):
        asked.append(public)
        return g(*args, **kwargs), lambda y_bar: (plaingrad.NoTangent,) * len(args)

    plaingrad.rrule(g)(rule)
    try:
        plaingrad.vjp(f, 0.5)
    finally:
        rulebook.remove(g)
    assert asked


def test_the_place_inside_a_package_is_named_too():
    text = message(a_distribution)
    assert re.search(r"needs the derivative of `scipy.stats._levy_stable.levyst.\w+`, which is C code", text)
    assert re.search(r"It is called at scipy.stats._levy_stable.__init__\.py:\d+, in `_pdf_single_value_piecewise_post_rounding_Z0`", text)


def test_a_callback_does_not_hide_what_calls_it():
    text = message(integrated)
    assert "which returns a differentiated value to it" in text and "`<lambda>` is C code" not in text


def test_functions_without_a_home_are_named_as_they_are():
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    libm.erf.restype, libm.erf.argtypes = ctypes.c_double, [ctypes.c_double]

    def by_ctypes(x):
        return libm.erf(x)

    text = message(by_ctypes)
    assert text.startswith("`erf` at ") and "a rule for a function of yours that calls it, @plaingrad.rrule(by_ctypes)" in text


def test_a_function_that_only_answers_a_question_may_be_declared_so():
    pandas = pytest.importorskip("pandas")
    text = message(lambda x: pandas._libs.lib.is_all_arraylike([x]))
    assert text.startswith("`pandas._libs.lib.is_all_arraylike` at ")
    assert "plaingrad.nondifferentiable(pandas._libs.lib.is_all_arraylike)" in text


def test_a_proxy_of_a_function_is_not_one():
    def f(x):
        return x

    assert refuse.described(weakref.proxy(f)) == "is C code without a derivative rule"


def test_what_returns_none_may_keep_what_it_is_given():
    typed = pytest.importorskip("numba").typed

    def f(x):
        kept = typed.List()
        kept.append(x)
        return kept[0]

    text = message(f)
    assert text.startswith("`numba.typed.typedlist.List.append` at ")
    assert "nondifferentiable" not in text and "stop_gradient" in text


def test_a_constructor_is_named_by_its_class():
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):
        x: Decimal  # made anew, in C

    text = message(lambda x: float(Model(x=x).x))
    assert text.startswith("`Model` at ") and "nondifferentiable" not in text


def test_a_generator_from_outside_is_no_c_code():
    def running():
        while True:
            yield scale[0] * 2.0

    scale = [1.0]
    outside = running()
    next(outside)

    def advanced(x):
        scale[0] = x
        return next(outside)

    text = message(advanced)
    assert "began outside the differentiated call" in text and "C code" not in text


def test_round_trips_name_the_user_too():
    import json

    def through_json(x):
        return json.loads(json.dumps({"x": x}))["x"]

    with pytest.raises(plaingrad.errors.RoundTripError) as caught:
        grad(through_json)(0.123)
    line = inspect.getsourcelines(through_json)[1] + 1
    assert f"at {__file__}:{line}, in `through_json`, inside `json.loads`" in str(caught.value)


def test_a_list_of_ints_says_what_to_write():
    with pytest.raises(plaingrad.ArgumentError, match=r"write reals, \[1.0, 2.0\]"):
        grad(lambda v: v[0] * v[1])([1, 2])
    with pytest.raises(plaingrad.ArgumentError, match=r"write reals, \{'rate': 1.0\}"):
        grad(lambda v: v["rate"])({"rate": 1})
    with pytest.raises(plaingrad.ArgumentError, match=r"write reals, \[\[1.0, 2.0\], \[3.0, 4.0\]\]"):
        grad(lambda v: v[0][0])([[1, 2], [3, 4]])


def test_an_argument_nested_deeper_than_the_stack_is_no_recursion_error():
    nested = [2.0]
    for _ in range(5000):
        nested = [nested]
    with pytest.raises(plaingrad.ArgumentError, match="nested deeper"):
        grad(lambda v: 1.0)(nested)
