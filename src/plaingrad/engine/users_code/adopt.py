"""User classes: C code enters their special methods by itself, so while a level is open these run rewritten.

Adopting a class swaps the `__code__` of its Python special methods, properties and descriptors for the rewritten
code, which finds the level (or none) by itself; when the last level closes, the originals are put back.
"""

from __future__ import annotations

import functools
import gc
import warnings
from _thread import _count as running_threads
from _thread import get_ident
from collections.abc import Callable, Collection
from inspect import CO_GENERATOR
from types import (
    AsyncGeneratorType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

from plaingrad import number_classes, origin, rulebook, systems
from plaingrad.class_keys import is_among, is_own_key, is_subclass, key_of
from plaingrad.critical import exclusively
from plaingrad.engine.compiled import FOR_ANY_LEVEL, core
from plaingrad.engine.memory.kinds import ARRAY, NUMBER, is_heap, kind_of
from plaingrad.engine.users_code import adoption_plans, codes
from plaingrad.engine.users_code.class_versions import tag_of, versions_of
from plaingrad.rewrite import CURRENT, PLAIN, rewritten

_ruled: dict[
    FunctionType, FunctionType
] = {}  # functions with other code and a rule -> the same with their own code
# In the tables of this module a class stands under its `key_of`.
_adopted: dict[Any, type] = {}
_adopting: set[Any] = set()  # those being looked at
_open: dict[Any, int] = {}  # the open levels -> their threads
_is_closing = False  # the last level is being closed
_is_watching = False  # other threads may change adopted classes, which are `watched` then and not `known`

UNTOUCHED = (
    "plaingrad.",
    "numba.",
    "llvmlite.",
    "abc",
    "typing",
    "numbers",
    "fractions",
    *[f"{root}." for root in systems.ROOTS],
)  # modules whose classes only ask about types
# Those among them that compute as user code does.
ORDINARY = ("plaingrad.rules", "plaingrad.tangents", *systems.LIKE_PROGRAMS)
LruCached = functools._lru_cache_wrapper
FORWARDING = (staticmethod, classmethod, functools.partial, MethodType)
NEVER_KNOWN = (GeneratorType, CoroutineType, AsyncGeneratorType)  # each one is looked at
UNSETTLED = (FrameType, ModuleType)

# Callables that are, or may lead to, Python code: what a special method that is no function gives, what C code keeps.
PYTHON_CALLABLES = frozenset((FunctionType, MethodType, functools.partial))

STATIC: frozenset[type] = frozenset(
    (int, float, complex, bool, str, bytes, list, tuple, dict, set, frozenset, type(None), range, slice)
)
STATIC_SCALARS = STATIC - {list, tuple, dict, set, frozenset}
known: set[Any] = set(STATIC)  # classes that need nothing more; read without the lock
settled: set[Any] = {*STATIC, FunctionType, type} - {complex}  # of these, attributes are read natively
# Adopted classes that other threads may change -> (where the version tag is, what it was, "settled").
watched: dict[Any, tuple[Any, int, bool]] = {}


def adopt(cls: type) -> None:
    """Make the special methods of `cls` and its bases run rewritten until the last open level closes."""
    try:
        if _needs_nothing(cls):
            return
    except TypeError:  # no hash
        pass
    exclusively(codes.lock, _adopt, cls)


def _needs_nothing(key: Any) -> bool:
    if key in known:
        return True
    found = watched.get(key)
    return found is not None and found[0].value == found[1]


def _adopt(cls: type) -> None:
    key = key_of(cls)
    if key in watched and not _needs_nothing(key):
        _forget(cls)
    if _needs_nothing(key):
        return
    if not is_heap(cls) or number_classes.find(cls) is not None:  # nobody looks inside such a number
        if cls not in NEVER_KNOWN:
            known.add(cls)
            if kind_of(cls) not in (NUMBER, ARRAY) and cls not in UNSETTLED:
                settled.add(cls)
        return
    if not _open or key in _adopting:
        return
    try:
        try:
            _adopting.add(key)
            _adopt_attributes(cls)
        finally:
            _adopting.discard(key)
    except BaseException:
        _adopting.discard(key)
        raise


def _adopt_attributes(cls: type) -> None:
    if not _is_watching and type(cls) is type and all(is_untouched(b) or not is_heap(b) for b in cls.__mro__):
        _enter(cls, cls, kind_of(cls) not in (NUMBER, ARRAY))  # one of the engine's
        return
    plan = None if _is_watching else adoption_plans.find(cls)
    if plan is not None:
        if type(cls) is not type:
            _adopt(type(cls))
        for f in plan.exchanged():
            _swap(f)
        for base, is_settled in plan.adopted():
            _enter(base, base, is_settled)
        return
    tag = tag_of(cls)
    _adopt_each_attribute(cls)
    if not _is_watching and tag[0].value == tag[1]:
        bases = [base for base in reversed(cls.__mro__) if is_heap(base) and not is_untouched(base)]
        adoption_plans.keep(cls, tag, [(base, base in settled) for base in bases if is_own_key(base)])


def _enter(key: Any, cls: type, is_settled: bool) -> None:
    _adopted[key] = cls
    known.add(key)
    if is_settled:
        settled.add(key)


def _adopt_each_attribute(cls: type) -> None:
    tags = [(base, _version(base)) for base in cls.__mro__ if is_heap(base) and not is_untouched(base)]
    for base, _ in tags:
        for name, value in list(vars(base).items()):
            _adopt_attribute(name, value)
    if type(cls) is not type:
        _adopt(type(cls))
    if not any(base is cls for base, _ in tags):
        tags.append((cls, _version(cls)))
    for base, tag in reversed(tags):  # only now: other threads look at `known` without the lock
        _adopt_one(base, tag)


def _version(cls: type) -> tuple[Any, int]:
    """As `tag_of`, and of what that says nothing about: the metaclass of `cls`, and the classes of its descriptors."""
    if not _is_watching:
        return tag_of(cls)
    user_classes = [base for base in cls.__mro__ if _is_replaceable(base)]
    values = [value for base in user_classes for value in list(vars(base).values())]
    descriptors = [x for x in values if _is_replaceable(type(x)) and hasattr(type(x), "__get__")]
    meta = [type(cls)] if _is_replaceable(type(cls)) else []
    return versions_of([cls, *meta], descriptors) if meta or descriptors else tag_of(cls)


def _is_replaceable(cls: type) -> bool:
    """Whether a program may give `cls` other methods: nobody does that to classes of the standard library."""
    return is_heap(cls) and not is_untouched(cls) and not origin.is_standard(cls.__module__)


def may_change(x: Any) -> bool:
    """Whether `x` is a class that other threads may change, so that no decision about it lasts."""
    return _is_watching and isinstance(x, type) and is_heap(x)


def other_threads() -> bool:
    """Whether there are threads that may change adopted classes unseen."""
    return _is_watching or bool(running_threads())


def is_untouched(x: Any) -> bool:
    """Whether a class or function belongs to the engine, or to a module whose classes only ask about types."""
    module = x.__module__
    return isinstance(module, str) and module.startswith(UNTOUCHED) and not module.startswith(ORDINARY)


def _adopt_one(cls: type, tag: tuple[Any, int]) -> None:
    key = key_of(cls)
    is_settled = kind_of(cls) not in (NUMBER, ARRAY) and not any(
        has_cached_property(base) for base in cls.__mro__ if is_heap(base) and not is_untouched(base)
    )
    if _is_watching:
        _adopted[key] = cls
        watched[key] = (*tag, is_settled)
    else:
        _enter(key, cls, is_settled)


def has_cached_property(cls: type) -> bool:
    """Whether a property of `cls` is computed by an `lru_cache`d function, which has to be met before it is called."""
    return any(type(behind(x.fget)) is LruCached for x in list(vars(cls).values()) if type(x) is property)


def forget(cls: type) -> None:
    """Look at `cls` and its subclasses again: one of its attributes, or bases, was replaced."""
    exclusively(codes.lock, _forget, cls)


def _forget(cls: type) -> None:
    changed = {key: other for key, other in _adopted.items() if is_subclass(other, cls)}
    _drop(changed)
    for key in changed:
        _adopted.pop(key, None)
    for other in changed.values():
        _adopt(other)
    for calls in rulebook.watchers():
        calls.classes_changed()


def _drop(keys: Collection[Any]) -> None:
    known.difference_update(keys)
    settled.difference_update(keys)
    if core is not None:
        core.classes_dropped()
    for key in keys:
        watched.pop(key, None)


def _adopt_attribute(name: str, value: Any) -> None:
    is_special = name.startswith("__") and name.endswith("__")
    if isinstance(value, FunctionType):
        if is_special:
            _swap(value)
    elif isinstance(value, property):
        for accessor in (value.fget, value.fset, value.fdel):
            _adopt_callable(accessor)
    elif type(value) is LruCached or isinstance(value, FORWARDING):
        if name.startswith("__"):
            _adopt_callable(value)
    elif hasattr(type(value), "__get__"):
        if is_special:
            _bind_rewritten(type(value))
        _adopt(type(value))
        if not isinstance(_getter(type(value)), FunctionType):  # compiled: it may keep what it calls
            for f in gc.get_referents(value):
                if isinstance(f, FunctionType):
                    _swap(f)
    elif is_special and callable(value):
        _adopt_callable(value)


def is_python_special(method: Any) -> bool:
    """Whether a special method is Python code: a function, or an object that is called or gives what is called."""
    cls = type(behind(method))
    if cls is FunctionType:
        return True
    return is_heap(cls) and any(
        isinstance(vars(base).get(name), FunctionType)
        for base in cls.__mro__
        for name in ("__get__", "__call__")
    )


def _bind_rewritten(cls: type) -> None:
    """Let descriptors of `cls` (partialmethod, say) give what runs rewritten: C code calls what it gets from them."""
    get = _getter(cls)
    if isinstance(get, FunctionType) and get not in _ruled and not is_untouched(get):
        codes.put_back(get)
        codes.exchange(get, _binding)


def _getter(cls: type) -> Any:
    return next((vars(base)["__get__"] for base in cls.__mro__ if "__get__" in vars(base)), None)


def _binding(get: FunctionType, code: CodeType) -> CodeType:
    """Code for `__get__`: as `code`, and inside a level what to call for a callable that it returns."""
    return _through(get, code, lambda level, *args: _prepared(level, level.prep(get)(*args)))


def _prepared(level: Any, bound: Any) -> Any:
    return level.prep(bound) if is_among(type(bound), PYTHON_CALLABLES) else level.meet(bound)


def _adopt_callable(value: Any) -> None:
    """What C code calls for an attribute: a function, one behind a `functools.partial`, say, or an object."""
    while type(value := behind(value)) is LruCached:
        value = body_of(value)
    if isinstance(value, FunctionType):
        _swap(value)
    elif is_heap(type(value)) and not isinstance(value, type):
        _adopt(type(value))


def behind(value: Any) -> Any:
    """What is called where `value`, which may be a partial or a method, is called; functions with caches stay."""
    while isinstance(value, FORWARDING):
        value = value.func if isinstance(value, functools.partial) else value.__func__
    return value


def body_of(cached: Any) -> Any:
    """The function behind an `lru_cache`d one."""
    body = getattr(cached, "__wrapped__", None)
    return next(x for x in gc.get_referents(cached) if callable(x)) if body is None else body


def adopt_function(f: FunctionType) -> None:
    """Make `f`, which C code keeps to call later, run rewritten until the last open level closes."""
    if _open:
        exclusively(codes.lock, _swap, f)


def _swap(f: FunctionType) -> None:
    if not (codes.runs_rewritten(f) or (is_untouched(f) and f.__module__.startswith("plaingrad."))):
        codes.exchange(f, _code_for)


def _code_for(f: FunctionType, code: CodeType) -> CodeType:
    """What runs instead of `code`, the code of `f`."""
    return rewritten(code, FOR_ANY_LEVEL) if rulebook.find(f) is None else _by_rule(f, code)


def _by_rule(f: FunctionType, code: CodeType) -> CodeType:
    """Code for a special method with a rule: inside a level it calls what the level decides, else the original."""
    return _through(f, code, lambda level, *args, **kwargs: level.prep(f)(*args, **kwargs))


def _through(f: FunctionType, code: CodeType, inside: Callable[..., Any]) -> CodeType:
    """Code for `f` that calls inside(level, ...) while a level is in force, else what `code` says."""
    plain = FunctionType(code, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    plain.__kwdefaults__ = f.__kwdefaults__

    _ruled[f] = plain

    def call(args: Any, kwargs: Any) -> Any:
        level = CURRENT.get()
        return plain(*args, **kwargs) if level is PLAIN else inside(level, *args, **kwargs)

    captured = code.co_freevars  # the code must have as many free variables as the function has cells
    source = f"def outer({', '.join(captured)}):\n def method(*args, **kwargs):\n"
    # A function keeps its kind, generator or not: CPython deprecates to exchange them.
    result = "(yield from 'call'(args, kwargs))" if code.co_flags & CO_GENERATOR else "'call'(args, kwargs)"
    source += f"  if 0: ({', '.join([*captured, ''])})\n  return {result}\n return method"
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a text is called, for now
        exec(source, names)
    template = names["outer"](*captured).__code__
    constants = tuple([call if constant == "call" else constant for constant in template.co_consts])
    return template.replace(
        co_consts=constants,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )


def plain_form(f: FunctionType) -> FunctionType:
    """`f` with its own code, where it has other for now."""
    return _ruled.get(f, f)


def rules_changed(f: Any) -> None:
    """The rule of `f` was entered or removed: where it is a special method of a class that is in use, look again."""
    exclusively(codes.lock, _look_again, f)


def _look_again(f: Any) -> None:
    if type(f) is FunctionType and codes.is_exchanged(f):
        codes.put_back(f)
        _ruled.pop(f, None)
        _swap(f)


def level_opened(level: Any) -> None:
    """Count `level` in."""
    _open[level] = get_ident()
    if _is_closing:
        exclusively(codes.lock, int)  # wait for the thread that closes the last one
    if not _is_watching and running_threads():
        exclusively(codes.lock, _begin_to_watch)


def level_closed(level: Any) -> None:
    """Count `level` out; after the last one, put the original code back. It may be done twice."""
    global _is_closing
    _open.pop(level, None)
    if not _open and (_adopted or _adopting or _is_watching or codes.any_exchanged()):
        _is_closing = True  # before the look at `_open` that counts: see `level_opened`
        exclusively(codes.lock, _put_back)


def _begin_to_watch() -> None:
    """Other threads run, which may change adopted classes: look at them, and at their tags, again."""
    global _is_watching
    _is_watching = True
    _drop(_adopted)


def _put_back() -> None:
    global _is_closing, _is_watching
    if not _open:
        codes.put_all_back()
        _ruled.clear()
        _drop(_adopted)
        _adopted.clear()
        _adopting.clear()  # where several exceptions have left something
        _is_watching = False
    _is_closing = False


def open_levels() -> list[Any]:
    """The open levels, of all threads."""
    return list(_open)


def close_others(kept: set[Any]) -> None:
    """Close the levels of threads that are no more, all but this thread's and those in `kept`."""
    here = get_ident()
    gone = [level for level, thread in _open.items() if thread != here and level not in kept]
    for level in gone:
        _open.pop(level, None)
    exclusively(codes.lock, _put_back)  # also where one of them was about to
