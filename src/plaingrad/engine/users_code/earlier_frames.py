"""Generators and iterators that were made outside the level: their Python frames and callbacks are not rewritten.

They may run as long as they cannot see a differentiated value; that is looked at again before every step, since
their world may become active while they are suspended.
"""

from __future__ import annotations

import functools
import gc
import itertools
from collections.abc import Iterator
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CodeType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import rulebook
from plaingrad.class_keys import is_among
from plaingrad.engine.compiled import is_ours
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.users_code.codes import runs_rewritten
from plaingrad.rewrite import is_rewritten

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

CALLED_BY_C = frozenset((BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, np.ufunc, type))
_CALLING = (map, filter, zip, enumerate, reversed, type(iter(int, 1)))
_ITERTOOLS = tuple(v for v in vars(itertools).values() if isinstance(v, type))
GROUPING = frozenset((itertools.groupby, *[t for t in _ITERTOOLS if t.__name__ == "_grouper"]))
BY_INDEX = type(iter(np.zeros(1)))  # of arrays, and of what has __getitem__ and no __iter__
ITERATORS = frozenset(
    (*_CALLING, *_ITERTOOLS, BY_INDEX)
)  # C iterators that call functions or step other iterators


def is_generator(cls: type) -> bool:
    """Whether `cls` is that of generators, coroutines or asynchronous generators."""
    return cls is GeneratorType or cls is CoroutineType or cls is AsyncGeneratorType


def is_iterator(cls: type) -> bool:
    """Whether `cls` is one of C iterators that call functions or step other iterators."""
    return is_among(cls, ITERATORS)


def code_of(generator: Any) -> CodeType:
    """The code of a generator, coroutine or asynchronous generator."""
    t = type(generator)
    if t is GeneratorType:
        return generator.gi_code
    return generator.cr_code if t is CoroutineType else generator.ag_code


def frame_of(generator: Any) -> Any:
    """The suspended frame of a generator, coroutine or asynchronous generator; None when it has ended."""
    t = type(generator)
    if t is GeneratorType:
        return generator.gi_frame
    return generator.cr_frame if t is CoroutineType else generator.ag_frame


def is_own_frame(frame: Any) -> bool:
    """Whether the frame of a generator is the engine's; of one that has ended too."""
    return frame is None or frame.f_globals.get("__name__", "").startswith("plaingrad.")


def is_rewritten_generator(it: Any) -> bool:
    """Whether `it` is a generator whose own code runs rewritten."""
    return type(it) is GeneratorType and is_rewritten(it.gi_code)


def is_foreign(it: Any) -> bool:
    """Whether iterator `it` may run Python code that is not rewritten."""
    return not is_rewritten_generator(it) and next(_parts(it), None) is not None


def check(level: Level, it: Any) -> None:
    """Refuse iterator `it` if foreign code in it can see an active value."""
    if is_rewritten_generator(it):
        return
    parts = list(_parts(it))
    items = _data_behind(it) if parts and is_iterator(type(it)) else []
    for part in parts:
        if any(level.calls.finds_active(value) for value in itertools.chain(_world(part), items)):
            missing_rule(
                it if isinstance(part, np.ndarray) else part,
                "It was made outside the differentiated call, so it is not rewritten, and sees differentiated values.",
            )


def checked(level: Level, it: Any) -> Iterator[Any]:
    """The items of the foreign iterator `it`, looked at before every step."""
    step = it.__next__
    while True:
        if level.calls.open:
            check(level, it)
        try:
            item = step()
        except StopIteration:
            return
        yield item


def _parts(it: Any) -> Iterator[Any]:
    """The generators and functions in iterator `it` that are not rewritten, and accumulators of whatever.

    Also vectors that it takes elements out of: those are new numbers, of which nothing is known.
    """
    seen: set[int] = set()
    todo = [it]
    while todo:
        x = todo.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        t = type(x)
        if is_generator(t):
            if not is_rewritten(code_of(x)) and not is_own_frame(frame_of(x)):
                yield x
        elif t is FunctionType:
            if not runs_rewritten(x) and not str(x.__module__).startswith("plaingrad.") and not only_looks(x):
                yield x
        elif t is itertools.accumulate:
            todo += _inside(x)
            if not any(
                type(part) is FunctionType or type(part) is MethodType for part in gc.get_referents(x)
            ):
                yield x
        elif x is type or is_ours(x):
            continue
        elif is_among(t, CALLED_BY_C):
            if not only_looks(_descriptor(x)):
                yield x
        elif is_among(t, GROUPING):  # classes in it are keys
            todo += [part for part in _inside(x) if type(part) is not type]
        elif is_iterator(t) or t is MethodType or t is functools.partial or t is tuple:
            todo += _inside(x)
            if t is BY_INDEX or t is reversed or t is itertools.chain:
                yield from [a for a in _data_behind(x) if isinstance(a, np.ndarray) and a.ndim == 1]


def only_looks(f: Any) -> bool:
    """Whether the rule of `f` says that it makes no new numbers with derivatives."""
    rule = rulebook.find(f)
    return rule is not None and rule.kind in ("mover", "inspector", "no_tangent", "higher_order")


def _descriptor(f: Any) -> Any:
    """What a rule for the C callable `f` is filed under: for a bound method, the method of the class."""
    owner = getattr(f, "__self__", None)
    if type(f) is not BuiltinFunctionType or owner is None or type(owner) is ModuleType:
        return f
    cls = owner if isinstance(owner, type) else type(owner)
    return next((base.__dict__[f.__name__] for base in cls.__mro__ if f.__name__ in base.__dict__), f)


def _inside(x: Any) -> list[Any]:
    """What `x` holds, without its own class."""
    return [part for part in gc.get_referents(x) if part is not type(x)]


def _world(part: Any) -> list[Any]:
    """What foreign code can see: locals, cells, defaults, and the globals that it names."""
    t = type(part)
    if is_generator(t):
        frame = frame_of(part)
        return [] if frame is None else [*frame.f_locals.values(), *_named(frame.f_code, frame.f_globals)]
    if t is FunctionType:
        seen = list(part.__defaults__ or ()) + list((part.__kwdefaults__ or {}).values())
        for cell in part.__closure__ or ():
            try:
                seen.append(cell.cell_contents)
            except ValueError:
                continue
        return seen + _named(part.__code__, part.__globals__)
    if isinstance(part, np.ndarray):
        return [part]
    return _data_behind(part) if t is itertools.accumulate else []


def _data_behind(it: Any) -> list[Any]:
    """What a C iterator draws its items from, through iterators of its own."""
    found = []
    todo = [it]
    while todo:
        for x in gc.get_referents(todo.pop()):
            if type(x) is tuple or is_iterator(type(x)) or type(x).__name__.endswith("_iterator"):
                todo.append(x)
            elif not callable(x):
                found.append(x)
    return found


def _named(code: CodeType, space: dict[str, Any]) -> list[Any]:
    values = [space[name] for name in code.co_names if name in space]
    return [v for v in values if not isinstance(v, (ModuleType, type))]
