"""What functions that are given to another system have captured, which it would take for constants: it is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType, WrapperDescriptorType
from typing import TYPE_CHECKING, Any

from plaingrad import number_classes
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, SEQUENCE, kind_of
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.values.nesting import outwards
from plaingrad.engine.values.shared_tensors import has_memory_of_active, is_in_array
from plaingrad.systems.scripts import held_by_script

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

C_CODE = frozenset((BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType))
WHY = "It has captured what depends on the differentiated inputs; make it an argument."


def check_captured(level: Level, f: Any) -> None:
    """Refuse a function that has captured what is active, itself or by a function that it has captured."""
    if type(f) in C_CODE or isinstance(f, type) or not callable(f):
        return
    seen: set[int] = set()
    todo = [f]
    while todo:
        inner = todo.pop()
        if id(inner) in seen:
            continue
        seen.add(id(inner))
        if number_classes.known and any(has_memory_of_active(level, x) for x in held_by_script(inner)):
            missing_rule(f, WHY)
        for held in held_by_function(inner):
            if type(held) in (FunctionType, MethodType, functools.partial):
                todo.append(held)
            elif kind_of(type(held)) != NOTHING and level.calls.finds_active(held):
                missing_rule(f, WHY)


def held_by_function(f: Any) -> Iterator[Any]:
    """What a function has captured, its defaults, what a method or a partial application is bound to."""
    if type(f) is functools.partial:
        yield from (f.func, *f.args, *f.keywords.values())
    if type(f) is MethodType:
        yield f.__func__
        if not is_module(f.__self__):
            yield f.__self__
    for cell in getattr(f, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # empty
            continue
    if type(f) is FunctionType:
        yield from f.__defaults__ or ()
        yield from (f.__kwdefaults__ or {}).values()
    wrapped = getattr(f, "__wrapped__", None)
    if wrapped is not None:
        yield wrapped


def is_module(x: Any) -> bool:
    """Whether `x` is a module of PyTorch: its parameters are arguments of its own."""
    return any(c.__module__ == "torch.nn.modules.module" for c in type(x).__mro__)


def runs_users_code(f: Any, args: Any, kwargs: Any) -> bool:
    """Whether a function of a system may run code of the program, or use what an object holds."""
    if type(f) in C_CODE:
        return False
    if type(f) is not FunctionType or f.__closure__ or "__wrapped__" in f.__dict__:
        return True
    return any(map(is_callable_or_object, (*args, *kwargs.values())))


def is_callable_or_object(x: Any) -> bool:
    """Whether `x` is no value, container or array: what it holds, and is used in a call, is not among the arguments."""
    return callable(x) or kind_of(type(x)) not in (NOTHING, NUMBER, ARRAY, SEQUENCE, MAPPING)


def watch(level: Level, f: Any) -> Callable[[Any], None]:
    """What refuses an active number or array that the system comes upon while it runs `f`."""

    def refuse_active(x: Any) -> None:
        kind = kind_of(type(x))
        if kind == NUMBER:
            is_active = any(id(x) in at.index for at in outwards(level)) or is_in_array(level, x)
        else:
            is_active = kind == ARRAY and level.calls.finds_active(x)
        if is_active:
            missing_rule(f, WHY)

    return refuse_active


def puts_elsewhere(f: Any, args: Any, y: Any) -> bool:
    """Whether a function that returned `y`, without arrays, may have put what it was given into an object."""
    if any(map(is_module, (getattr(f, "__self__", None), *args[:1]))):
        return True
    module = getattr(f, "__module__", None) or ""
    return y is None and type(f) not in C_CODE and not module.startswith(("torch.testing", "jax."))
