"""User classes: C code enters their special methods by itself, so while a level is open these run rewritten.

Adopting a class swaps the `__code__` of its Python special methods, properties and descriptors for the rewritten
code, which finds the level (or none) by itself; when the last level closes, the originals are put back.
"""

from __future__ import annotations

import functools
import gc
import threading
import warnings
from types import (
    AsyncGeneratorType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    ModuleType,
)
from typing import Any

from plaingrad import rulebook
from plaingrad.engine.kinds import ARRAY, NUMBER, is_heap, kind_of
from plaingrad.rewrite import CURRENT, PLAIN, is_rewritten, rewritten

_lock = threading.RLock()
_swapped: list[tuple[FunctionType, Any, Any]] = []  # (function, its code, the rewritten code)
_ruled: dict[FunctionType, FunctionType] = {}  # of these, those with rules -> the same with their own code
_adopted: set[type] = set()  # heap classes in `known`
_adopting: set[type] = set()  # those being looked at
_open_levels = 0

UNTOUCHED = (
    "plaingrad.",
    "abc",
    "typing",
    "numbers",
    "fractions",
)  # modules whose classes only ask about types
ORDINARY = ("plaingrad.rules", "plaingrad.tangents")  # of ours, those that compute as user code does
LruCached = functools._lru_cache_wrapper
NEVER_KNOWN = (GeneratorType, CoroutineType, AsyncGeneratorType)  # each one is looked at
UNSETTLED = (FrameType, ModuleType)

STATIC: frozenset[type] = frozenset(
    (int, float, complex, bool, str, bytes, list, tuple, dict, set, frozenset, type(None), range, slice)
)
STATIC_SCALARS = STATIC - {list, tuple, dict, set, frozenset}
known: set[type] = set(STATIC)  # classes that need nothing more; read without the lock
settled: set[type] = {*STATIC, FunctionType, type} - {complex}  # of these, attributes are read natively


def adopt(cls: type) -> None:
    """Make the special methods of `cls` and its bases run rewritten until the last open level closes."""
    if cls in known:
        return
    with _lock:
        if not is_heap(cls):
            if cls in NEVER_KNOWN:
                return
            known.add(cls)
            if kind_of(cls) not in (NUMBER, ARRAY) and cls not in UNSETTLED:
                settled.add(cls)
            return
        if _open_levels == 0 or cls in _adopting:
            return
        _adopting.add(cls)
        try:
            done = [cls]
            for base in cls.__mro__:
                if is_heap(base) and not is_untouched(base):
                    for name, value in list(vars(base).items()):
                        _adopt_attribute(name, value)
                    done.append(base)
            if type(cls) is not type:
                adopt(type(cls))
            for base in reversed(done):  # only now: other threads look at `known` without the lock
                _adopt_one(base)
        finally:
            _adopting.discard(cls)


def is_untouched(x: Any) -> bool:
    """Whether a class or function belongs to the engine, or to a module whose classes only ask about types."""
    module = x.__module__
    return isinstance(module, str) and module.startswith(UNTOUCHED) and not module.startswith(ORDINARY)


def _adopt_one(cls: type) -> None:
    known.add(cls)
    _adopted.add(cls)
    if kind_of(cls) not in (NUMBER, ARRAY) and not any(map(has_cached_property, cls.__mro__)):
        settled.add(cls)


def has_cached_property(cls: type) -> bool:
    """Whether a property of `cls` is computed by an `lru_cache`d function, which has to be met before it is called."""
    return any(type(x) is property and type(x.fget) is LruCached for x in vars(cls).values())


def forget(cls: type) -> None:
    """Look at `cls` and its subclasses again: one of its attributes, or bases, was replaced."""
    with _lock:
        changed = [other for other in _adopted if cls in other.__mro__]
        for other in changed:
            known.discard(other)
            settled.discard(other)
            _adopted.discard(other)
        for other in changed:
            adopt(other)


def _adopt_attribute(name: str, value: Any) -> None:
    if isinstance(value, FunctionType):
        if name.startswith("__") and name.endswith("__"):
            _swap(value)
    elif isinstance(value, (staticmethod, classmethod)):
        if name.startswith("__") and isinstance(value.__func__, FunctionType):
            _swap(value.__func__)
    elif isinstance(value, property):
        for accessor in (value.fget, value.fset, value.fdel):
            if type(accessor) is LruCached:
                accessor = body_of(accessor)
            if isinstance(accessor, FunctionType):
                _swap(accessor)
    elif type(value) is LruCached:
        if name.startswith("__") and isinstance(body_of(value), FunctionType):
            _swap(body_of(value))
    elif hasattr(type(value), "__get__"):
        adopt(type(value))


def body_of(cached: Any) -> Any:
    """The function behind an `lru_cache`d one."""
    body = getattr(cached, "__wrapped__", None)
    return next(x for x in gc.get_referents(cached) if callable(x)) if body is None else body


def adopt_function(f: FunctionType) -> None:
    """Make `f`, which C code keeps to call later, run rewritten until the last open level closes."""
    with _lock:
        if _open_levels:
            _swap(f)


def _swap(f: FunctionType) -> None:
    code = f.__code__
    if is_rewritten(code) or (is_untouched(f) and f.__module__.startswith("plaingrad.")):
        return
    new = rewritten(code) if rulebook.find(f) is None else _by_rule(f, code)
    f.__code__ = new
    _swapped.append((f, code, new))


def _by_rule(f: FunctionType, code: CodeType) -> CodeType:
    """Code for a special method with a rule: inside a level it calls what the level decides, else the original."""
    plain = FunctionType(code, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    plain.__kwdefaults__ = f.__kwdefaults__

    _ruled[f] = plain

    def call(args: Any, kwargs: Any) -> Any:
        level = CURRENT.get()
        return plain(*args, **kwargs) if level is PLAIN else level.prep(f)(*args, **kwargs)

    captured = code.co_freevars  # the code must have as many free variables as the function has cells
    source = f"def outer({', '.join(captured)}):\n def method(*args, **kwargs):\n"
    source += f"  if 0: ({', '.join([*captured, ''])})\n  return 'call'(args, kwargs)\n return method"
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
    with _lock:
        for k, (function, code, new) in enumerate(_swapped):
            if function is f:
                if f.__code__ is new:
                    f.__code__ = code
                del _swapped[k]
                _ruled.pop(f, None)
                _swap(f)
                return


def level_opened() -> None:
    """Count a level in."""
    global _open_levels
    with _lock:
        _open_levels += 1


def level_closed() -> None:
    """Count a level out; after the last one, put the original code back."""
    global _open_levels
    with _lock:
        _open_levels -= 1
        if _open_levels == 0:
            while _swapped:
                f, code, new = _swapped.pop()
                if f.__code__ is new:
                    f.__code__ = code
            _ruled.clear()
            known.difference_update(_adopted)
            settled.difference_update(_adopted)
            _adopted.clear()
