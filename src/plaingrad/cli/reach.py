"""What becomes of a callable that a derivative passes through, as far as it can be said without calling it.

A function with a rule is what its rule is. Python code without one is followed down to functions with rules, through
every callable that its bytecode names; compiled functions without a rule that it names on the way are its obstacles.
"""

from __future__ import annotations

import builtins
import functools
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType, WrapperDescriptorType
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.cli.references import FINDERS, Reference, constructors, references, unbound
from plaingrad.engine.calls.calls import HARMLESS_CLASSES, ArrayFunction, LruCached, is_own
from plaingrad.engine.calls.specials import is_special
from plaingrad.engine.memory.kinds import MAPPING, NUMBER, SEQUENCE, is_heap, kind_of
from plaingrad.engine.users_code.class_attributes import lookup, makers
from plaingrad.extend.listing import full_name
from plaingrad.origin import is_standard
from plaingrad.rulebook import Rule
from plaingrad.rules.numpy.refused import NEUTRAL, REFUSED

RULED, FOLLOWED, NO_TANGENT, DEPENDS, REFUSES = "rule", "followed", "no tangent", "depends", "refused"
STATUSES = (RULED, FOLLOWED, NO_TANGENT, DEPENDS, REFUSES)
CONSTANT_KINDS = ("no_tangent", "inspector", "outside", "asks")
# Modules of the standard library whose C functions take numbers apart or make them; of the others nothing is expected.
WITH_NUMBERS = frozenset("_ctypes _decimal _pickle _struct array cmath ctypes math struct".split())
# Compiled callables that are asked about shapes, seeds, lengths and types only, whoever calls them, or used as types.
WITHOUT_NUMBERS = frozenset(
    "numpy._core._multiarray_umath._make_extobj numpy.core._multiarray_umath._make_extobj "
    "numpy.lib.array_utils.normalize_axis_index numpy.core._multiarray_umath.normalize_axis_index "
    "numpy._core._multiarray_umath.normalize_axis_index numpy.core.multiarray.normalize_axis_index "
    "numpy.random._generator.default_rng numpy.random.default_rng numpy.random._generator.Generator "
    "numpy.random.mtrand.RandomState numpy.random.bit_generator.SeedSequence "
    "numpy.random.bit_generator.BitGenerator numpy.random._bit_generator.SeedSequence "
    "numpy.random._bit_generator.BitGenerator ndarray.__new__ numpy.void numpy.object_ numpy.str_ numpy.bytes_ "
    "scipy.fft._pocketfft.pypocketfft.good_size scipy.fft._duccfft.pyduccfft.good_size "
    "scipy.special._comb._comb_int numpy._ArrayFunctionDispatcher.__call__".split()
)
OF_PYBIND = re.compile(r"pybind11_detail_function_record_\w+\.")
MOST = 4000  # functions that are gone through for one


@dataclass(frozen=True)
class Obstacle:
    """Something that a function may call and that refuses numbers that depend on the inputs.

    Attributes:
        name: of the callable.
        why: it refuses.
        way: the functions by which it is reached, the first named by the function itself.
    """

    name: str
    why: str
    way: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What becomes of a callable: one of `STATUSES`, why, and for Python code what it may meet."""

    status: str
    why: str = ""
    obstacles: tuple[Obstacle, ...] = ()


def verdict(value: Any, owner: type | None = None) -> Verdict:
    """What becomes of a callable, a method of `owner` if that is given."""
    start = unbound(value, owner)
    leaf = at_once(start)
    if isinstance(leaf, Verdict):
        return leaf
    obstacles = found_from(leaf)
    if not obstacles:
        return Verdict(FOLLOWED)
    more = f", and {len(obstacles) - 1} more" if len(obstacles) > 1 else ""
    first = obstacles[0]
    by_way = f" by way of {first.way[-1]}" if first.way else ""
    return Verdict(DEPENDS, f"reaches {first.name}{by_way}{more}: {first.why}", tuple(obstacles))


def found_from(start: Iterable[Reference]) -> list[Obstacle]:
    """The obstacles that are reached from what a function names, the nearest first."""
    found: dict[str, Obstacle] = {}
    todo: deque[tuple[Reference, tuple[str, ...]]] = deque()
    none: tuple[str, ...] = ()
    todo.extend((one, none) for one in start)
    seen = {(id(value), id(owner)) for value, owner in start}
    while todo and len(seen) < MOST:
        reference, way = todo.popleft()
        leaf = at_once(reference)
        if isinstance(leaf, Verdict):
            if leaf.status == REFUSES and name_of(reference) not in WITHOUT_NUMBERS:
                found.setdefault(name_of(reference), Obstacle(name_of(reference), leaf.why, way))
            continue
        further = (*way, name_of(reference))
        for one in leaf:
            key = (id(one.value), id(one.owner))
            if key not in seen:
                seen.add(key)
                todo.append((one, further))
    if todo:
        found.setdefault("...", Obstacle("...", f"more than {MOST} functions are named on the way"))
    return list(found.values())


def at_once(reference: Reference) -> Verdict | tuple[Reference, ...]:
    """What becomes of a callable if that is known from itself; otherwise what it names."""
    value, owner = reference
    key = (id(value), id(owner), rulebook.changes())
    if key not in _known:
        _known[key] = (decided(value, owner), value, owner)  # which stay alive, as do their identities
    return _known[key][0]


_known: dict[tuple[int, int, int], tuple[Verdict | tuple[Reference, ...], Any, Any]] = {}


def decided(value: Any, owner: type | None) -> Verdict | tuple[Reference, ...]:
    """The same, looked at anew; in the order in which the engine decides a call."""
    if is_special(value):
        return Verdict(RULED)
    rule = rulebook.find(value)
    if rule is not None:
        return of_rule(rule)
    t = type(value)
    if t is np.ufunc:
        return Verdict(REFUSES, "a ufunc without a derivative rule")
    if isinstance(value, type):
        return of_class(value)
    if t is FunctionType:
        if is_own(value) or is_standard(value.__module__) or value.__name__ in FINDERS:
            return Verdict(FOLLOWED)
        return tuple([unbound(*one) for one in references(value, owner) if one.value is not value])
    if t is ArrayFunction:
        implementation = getattr(value, "_implementation", None)
        return (Reference(implementation),) if type(implementation) is FunctionType else compiled(value)
    if t is functools.partial:
        return (unbound(value.func, None),)
    if t is LruCached:
        return (Reference(value.__wrapped__),)
    if isinstance(value, property):
        return (Reference(value.fget, owner),)
    inner = getattr(value, "py_func", None)
    if type(inner) is FunctionType:  # compiled by Numba
        return (Reference(inner),)
    call = lookup(t, "__call__")
    if is_heap(t) and type(call) is FunctionType:
        return (Reference(call, t),)
    if not callable(value) or (t is WrapperDescriptorType and value.__name__ == "__call__"):
        return Verdict(FOLLOWED)  # what is called stands elsewhere
    return compiled(value)


def of_rule(rule: Rule) -> Verdict:
    """What a rule says."""
    if rule.refuses:
        return Verdict(REFUSES, rule.refuses)
    if rule.kind in CONSTANT_KINDS:
        return Verdict(NO_TANGENT)
    return Verdict(RULED)


def of_class(cls: type) -> Verdict | tuple[Reference, ...]:
    """What making an instance of `cls` does."""
    if issubclass(cls, (BaseException, property)) or cls.__module__ in ("builtins", "types", "typing"):
        return Verdict(FOLLOWED)
    if cls in HARMLESS_CLASSES or issubclass(cls, np.dtype) or is_standard(cls.__module__):
        return Verdict(FOLLOWED)
    kind = kind_of(cls)
    for maker in makers(cls):
        if maker in (object, type, set, frozenset, functools.partial) or kind in (SEQUENCE, MAPPING):
            continue
        if kind == NUMBER and rulebook.find(lookup(maker, "__new__")) is not None:
            continue
        rule = rulebook.find(maker)
        if rule is not None and not rule.refuses:
            continue
        if issubclass(cls, np.ndarray) and maker is np.ndarray or is_neutral(maker):
            continue
        return Verdict(REFUSES, f"{name_of(Reference(maker))} is a compiled class without a derivative rule")
    return tuple(constructors(cls)) or Verdict(FOLLOWED)


def compiled(function: Any) -> Verdict:
    """What becomes of a compiled function that has no rule."""
    name = getattr(function, "__name__", "")
    home = module_of(function)
    if is_neutral(function) or is_builtin(function, home) or home.startswith("plaingrad."):
        return Verdict(NO_TANGENT)
    if is_standard(home) and home != "builtins":
        if home not in WITH_NUMBERS:
            return Verdict(NO_TANGENT)
    elif home.partition(".")[0] == "numpy":
        of_method = f"{getattr(getattr(function, '__objclass__', None), '__name__', '')}.{name}"
        if name in REFUSED or of_method in REFUSED:
            return Verdict(REFUSES, REFUSED.get(name) or REFUSED[of_method])
    return Verdict(REFUSES, "compiled code without a derivative rule")


def is_builtin(function: Any, home: str) -> bool:
    """Whether it is one of Python's own; C code that does not know its module says "builtins", too."""
    owner = getattr(function, "__objclass__", None) or getattr(function, "__self__", None) or function
    owner = owner if isinstance(owner, (type, BuiltinFunctionType)) else type(owner)
    return home == "builtins" and (
        isinstance(owner, BuiltinFunctionType) or hasattr(builtins, owner.__name__)
    )


def is_neutral(value: Any) -> bool:
    """Whether it is one of NumPy's callables that never see a number that could be differentiated."""
    return module_of(value).partition(".")[0] == "numpy" and getattr(value, "__name__", "") in NEUTRAL


def module_of(value: Any) -> str:
    """The name of the module of a compiled callable, as far as it says."""
    owner = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
    if isinstance(owner, ModuleType):
        return owner.__name__
    module = getattr(value, "__module__", None)
    if not isinstance(module, str):
        module = getattr(owner if isinstance(owner, type) else type(owner or value), "__module__", "")
    return module if isinstance(module, str) else ""


def name_of(reference: Reference) -> str:
    """The name of a callable, for lists."""
    name = OF_PYBIND.sub("", full_name(reference.value))
    if isinstance(reference.value, np.ufunc):  # they do not know their module
        name = reference.value.__name__
        return f"numpy.{name}" if getattr(np, name, None) is reference.value else f"scipy.special.{name}"
    if type(reference.value).__name__ == "fortran":
        return f"scipy.linalg.lapack.{name.removeprefix('function ')}"
    return name
