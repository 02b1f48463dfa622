"""Classes, attributes, exceptions, references, locks and queues: C code that keeps or hands on what it is given."""

from __future__ import annotations

import _queue
import _thread
import abc
import builtins
import contextvars
import copyreg
import functools
import gc
import os
import sys
import time
import types
import typing
import weakref
from collections.abc import Callable
from typing import Any

from plaingrad.class_keys import is_subclass
from plaingrad.define import composed, higher_order, mover, no_tangent
from plaingrad.rules.python.containers import enter_methods

no_tangent(os.urandom, id, hash, isinstance, issubclass, callable, type, sys.getsizeof, sys.getrefcount, gc.is_tracked,
           gc.get_referents, gc.get_referrers, time.sleep)
no_tangent(abc._abc_instancecheck, abc._abc_subclasscheck, abc._abc_register, abc._abc_init)
mover(type.__new__, type.__init__, type.__setattr__, type.__delattr__, type.__getattribute__, type.mro,
      type.__instancecheck__, type.__subclasscheck__, type.__prepare__)
mover(property, staticmethod, classmethod)
mover(object, object.__new__, object.__init__, object.__setattr__, object.__delattr__, object.__getattribute__,
      object.__eq__, object.__ne__, object.__lt__, object.__le__, object.__gt__, object.__ge__, object.__hash__,
      object.__reduce__, object.__reduce_ex__, object.__sizeof__, object.__dir__, object.__init_subclass__,
      object.__subclasshook__)
if hasattr(object, "__getstate__"):
    mover(object.__getstate__)
if isinstance(getattr(typing, "_idfunc", None), types.BuiltinFunctionType):
    mover(typing._idfunc)  # what NewType calls
if hasattr(copyreg, "_reconstructor") and isinstance(copyreg._reconstructor, types.BuiltinFunctionType):
    mover(copyreg._reconstructor)

# Exceptions carry values in `args`.
EXCEPTIONS = tuple(cls for cls in vars(builtins).values() if isinstance(cls, type) and issubclass(cls, BaseException))
mover(*EXCEPTIONS)
enter_methods(*EXCEPTIONS)

# Functions, cells, modules and descriptors.
CALLABLES = (types.FunctionType, types.MethodType, functools.partial, staticmethod)
mover(types.MethodType, types.CellType, types.FunctionType, types.ModuleType)
enter_methods(*CALLABLES, types.CellType, types.ModuleType, types.GenericAlias, types.UnionType,
              types.GetSetDescriptorType, types.MemberDescriptorType, types.GeneratorType, types.CoroutineType,
              types.AsyncGeneratorType, property, classmethod)


def call(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """f(*args, **kwargs), for f.__call__(*args, **kwargs)."""
    return f(*args, **kwargs)


for _cls in (types.FunctionType, types.MethodType):
    composed(_cls.__call__)(call)


@composed(functools.partial.__call__)
def call_partial(f: functools.partial[Any], /, *args: Any, **kwargs: Any) -> Any:
    """The call of a partial; `f` may be of a subclass, whose own `__call__` comes here."""
    return functools.partial(f.func, *f.args, **f.keywords)(*args, **kwargs)


@composed(staticmethod.__call__)
def call_static(f: staticmethod[Any, Any], /, *args: Any, **kwargs: Any) -> Any:
    """The call of a static method, likewise."""
    return f.__func__(*args, **kwargs)


@composed(type.__call__)
def make(cls: Any, /, *args: Any, **kwargs: Any) -> Any:
    """A new instance, made and initialised; with `type` itself, the class of an object."""
    if cls is type and len(args) == 1 and not kwargs:
        return type(args[0])
    made = cls.__new__(cls, *args, **kwargs)
    if is_subclass(type(made), cls):
        type(made).__init__(made, *args, **kwargs)
    return made


@composed(property.__get__)
def property_get(descriptor: property, o: Any, owner: Any = None, /) -> Any:
    """What the getter says, for a property that is asked by hand."""
    if o is None:
        return descriptor
    if descriptor.fget is None:
        raise AttributeError("property has no getter")
    return descriptor.fget(o)


@composed(types.GenericAlias.__call__)
def call_alias(alias: Any, /, *args: Any, **kwargs: Any) -> Any:
    """What list[int](...) makes; instances of classes learn the alias, as from the interpreter."""
    made = alias.__origin__(*args, **kwargs)
    if hasattr(made, "__dict__"):
        made.__orig_class__ = alias
    return made

# References, context variables, locks, queues.
enter_methods(weakref.ref)
mover(weakref.ref, weakref.ref.__new__, weakref.ref.__init__, weakref.proxy, weakref.getweakrefcount, weakref.getweakrefs)
mover(contextvars.ContextVar, contextvars.copy_context)
enter_methods(contextvars.ContextVar, contextvars.Token, _queue.SimpleQueue, _thread.LockType,
              _thread.RLock, _thread._local)
enter_methods(*[cls for cls in (getattr(_thread, n, None) for n in ("_ThreadHandle",)) if cls is not None])
for _name in ("get", "items", "keys", "values", "copy", "__getitem__", "__contains__", "__iter__", "__len__"):
    mover(contextvars.Context.__dict__[_name])
mover(_queue.SimpleQueue, _thread.allocate_lock, _thread.RLock, _thread.LockType, _thread.get_ident, _thread._local)


def _run(context: contextvars.Context, f: Callable[[], Any]) -> Any:
    return context.run(f)


higher_order(_run)


@composed(contextvars.Context.run)
def context_run(context: contextvars.Context, f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """f(*args, **kwargs) in the context."""
    return _run(context, functools.partial(f, *args, **kwargs))
