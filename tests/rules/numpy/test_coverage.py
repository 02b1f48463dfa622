"""Everything in NumPy's namespaces is ruled, is Python code, or is refused for a written reason."""

import types

import numpy as np
import pytest
from tests.rules.numpy.composed_samples import COMPOSED, RANDOM
from tests.rules.numpy.samples import SAMPLES

import plaingrad  # noqa: F401 (all rules)
from plaingrad import rulebook
from plaingrad.rules.numpy.random_numbers import GENERATORS, around_zero, drawn_choice, drawn_gamma
from plaingrad.rules.numpy.refused import NEUTRAL, REFUSED
from plaingrad.rules.numpy.ufuncs import without_rule

ArrayFunction = type(np.sum)


def names_of(namespace):
    return sorted(name for name, f in vars(namespace).items() if not name.startswith("_") and callable(f))


def is_python(f):
    if isinstance(f, ArrayFunction):
        f = getattr(f, "_implementation", None) or getattr(f, "__wrapped__", None)
    if isinstance(f, type):
        return bool(f.__flags__ & (1 << 9)) or issubclass(f, BaseException)  # made by a class statement
    return isinstance(f, types.FunctionType) or type(f).__module__.startswith("numpy._pytesttester")


@pytest.mark.parametrize("namespace", [np, np.linalg, np.fft], ids=lambda m: m.__name__)
def test_every_function_is_ruled_or_python_or_refused_for_a_reason(namespace):
    unknown = []
    for name in names_of(namespace):
        f = vars(namespace)[name]
        if rulebook.find(f) is None and not is_python(f) and name not in REFUSED and name not in NEUTRAL:
            unknown.append(name)
    assert unknown == []


# Special methods that C code or the interpreter enters, and those that make no number.
MACHINERY = frozenset("""
    __new__ __repr__ __str__ __doc__ __class_getitem__ __format__ __array_function__ __buffer__ __hash__ __getattribute__
""".split())


@pytest.mark.parametrize("cls", [np.ndarray, np.generic, np.flatiter], ids=lambda t: t.__name__)
def test_every_method_is_ruled_or_refused_for_a_reason(cls):
    unknown = []
    for name, f in vars(cls).items():
        if name in MACHINERY or not (callable(f) or type(f) is types.GetSetDescriptorType):
            continue
        if rulebook.find(f) is None and f"ndarray.{name}" not in REFUSED:
            unknown.append(name)
    expected = {
        np.ndarray: [],
        np.generic: ["view", "getfield", "setfield", "resize", "setflags", "data", "__array_interface__", "__array_struct__"],
        np.flatiter: ["__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__", "__len__", "__delitem__", "base", "index", "coords"],
    }
    assert [name for name in unknown if name not in expected[cls]] == []


ALWAYS_REFUSE = (without_rule, drawn_choice, drawn_gamma, around_zero)
DRAWN = [method for method, _ in RANDOM.values()]  # sampled there


def test_every_rule_with_a_pullback_has_samples():
    unsampled = []
    for rule in rulebook.rules():
        code = getattr(rule.rrule, "__code__", None)
        module = rule.source.replace("\\", "/")
        if rule.kind in ("linear", "bilinear", "full") and code is not None and "/rules/numpy/" in module:
            if rule.function not in SAMPLES and rule.function not in (*ALWAYS_REFUSE, *DRAWN, *IMPLEMENTATIONS) and getattr(rule.function, "__objclass__", None) is not np.generic:
                unsampled.append(getattr(rule.function, "__qualname__", repr(rule.function)))
    assert unsampled == []


# The C code behind a dispatcher has the dispatcher's rule.
IMPLEMENTATIONS = [f.__wrapped__ for f in (*SAMPLES, *COMPOSED) if isinstance(f, ArrayFunction)]

# Definitions whose tests are in test_programs.
ELSEWHERE = {
    np.vectorize._vectorize_call, *(vars(np.flatiter)[name] for name in ("__getitem__", "__setitem__", "__iter__", "__next__")),
    *(vars(np.flatiter)[name] for name in ("copy", "__array__")),
    *(vars(np.ndarray)[name] for name in ("__iter__", "__array_ufunc__", "__complex__", "resize", "byteswap")),
    *(f for f in vars(np.generic).values() if rulebook.find(f) is not None),
    # of subclasses: in tests/hazards/test_14_subclasses_of_arrays.py
    np.nditer, np.ndarray.__array_function__, np.ma.MaskedArray.std, np.ma.power,
    *(f.__call__ for f in (np.ma.core._MaskedUnaryOperation, np.ma.core._MaskedBinaryOperation, np.ma.core._DomainedBinaryOperation)),
    *(vars(g)[name] for g in GENERATORS for name in ("random", "standard_normal", "standard_exponential") if name in vars(g)),
}  # fmt: skip


def test_every_definition_has_samples():
    unsampled = []
    for rule in rulebook.rules():
        if rule.kind == "composed" and "/rules/numpy/" in rule.source.replace("\\", "/"):
            if rule.function not in COMPOSED and rule.function not in DRAWN and rule.function not in (*ELSEWHERE, *IMPLEMENTATIONS):
                unsampled.append(getattr(rule.function, "__qualname__", repr(rule.function)))
    assert unsampled == []
