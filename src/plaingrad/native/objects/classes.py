"""New objects of users' classes: what `__init__` does, and what that of a dataclass or named tuple would."""

from __future__ import annotations

import dataclasses
from types import FunctionType
from typing import Any

from plaingrad.native.objects import attributes, jitclasses, outside
from plaingrad.native.objects.engine import MISSING, Frame
from plaingrad.native.objects.values import UNSET, Instance, Ref, Static, Tup


def made_object(f: Frame, cls: type, args: list[Any], named: dict[str, Any]) -> Any:
    """A new object of a user's class."""
    if issubclass(cls, BaseException):
        raise f.refuse("an exception that is not raised at once")
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        given = dict(zip(cls._fields, args, strict=False)) | named
        defaults = {k: outside.known(f, v, k) for k, v in cls._field_defaults.items()}
        try:
            return Tup(tuple([given[n] if n in given else defaults[n] for n in cls._fields]), cls)
        except KeyError as error:
            raise f.refuse(f"a {cls.__name__} without `{error.args[0]}`") from None
    cls = jitclasses.class_like(cls) or cls
    if cls.__module__.split(".")[0] in ("builtins", "numpy", "numba"):
        return outside.outside_call(f, Static(cls), args, named)
    if type(cls) is not type and type(cls).__name__ != "ABCMeta":
        raise f.refuse(f"the class of `{cls.__name__}` has a class of its own")
    if f.whole.check(attributes.in_class, cls, "__new__") is not object.__new__:
        raise f.refuse(f"`{cls.__name__}` makes objects in a way of its own")
    for x in (*args, *named.values()):
        f.storable(x)
    fields = attributes.fields_of_dataclass(cls)
    made = f.object(Instance(cls, {}))
    found = f.whole.check(attributes.in_class, cls, "__init__")
    if fields is not None:
        fill(f, made, cls, fields, args, named)
    elif found is not object.__init__ and found is not MISSING:
        if not isinstance(found, FunctionType):
            raise f.refuse(f"`{cls.__name__}.__init__` is no Python function")
        f.call(Static(found), [made, *args], named)
        if f.state is None:
            return UNSET
    elif args or named:
        raise f.refuse(f"`{cls.__name__}` takes no arguments")
    return made


def fill(f: Frame, made: Ref, cls: type, fields: list[Any], args: list[Any], named: dict[str, Any]) -> None:
    """What the `__init__` of a dataclass does."""
    given = dict(zip([x.name for x in fields if x.init and not x.kw_only], args, strict=False)) | named
    for x in fields:
        if x.init and x.name in given:
            value = given[x.name]
        elif x.default is not dataclasses.MISSING:
            value = outside.known(f, x.default, x.name)
        elif x.default_factory is not dataclasses.MISSING:
            value = f.call(Static(x.default_factory), [], {})
        elif not x.init:
            continue
        else:
            raise f.refuse(f"a {cls.__name__} without `{x.name}`")
        f.thing(made).fields[x.name] = value
    after = f.whole.check(attributes.in_class, cls, "__post_init__")
    if isinstance(after, FunctionType):
        f.call(Static(after), [made], {})


__all__ = ["made_object"]
