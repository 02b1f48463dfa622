"""Validation by compiled code (pydantic's): it keeps the numbers that it is given, or converts them, and computes none.

Functions of the program that it calls run rewritten. What comes out is compared with what went in: an active number
that is there again is the same object, and depends on the inputs; one that is not there, while a new number equals it,
was converted, and its derivative is lost.
"""

from __future__ import annotations

import datetime
import functools
import gc
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.engine.calls import elsewhere
from plaingrad.engine.memory.kinds import ARRAY, NOTHING, NUMBER, kind_of
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.users_code.adopt import is_python_special
from plaingrad.engine.users_code.class_attributes import lookup
from plaingrad.engine.values import text_into_c, texts
from plaingrad.engine.values.nesting import outwards
from plaingrad.tangents.fields import fields_of

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

MODULE = "pydantic_core._pydantic_core"
VALIDATING = frozenset(("validate_python", "validate_assignment"))
AFTERWARDS = ("model_post_init", "__post_init__", "__init__")  # what compiled code calls of a class, by name
VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
TIMES = (datetime.timedelta, datetime.date, datetime.time)


def method(t: type, name: str, descriptor: Any, level: Level) -> Callable[..., Any] | None:
    """What to call instead of a method of a validator or serializer; None for others."""
    if t.__module__ != MODULE:
        return None
    if t.__name__ == "SchemaValidator" and name in VALIDATING:
        return validating(level, descriptor, True)
    if t.__name__ == "SchemaSerializer" and name == "to_python":
        return validating(level, descriptor, False)
    if t.__name__ == "SchemaSerializer" and name == "to_json":
        return writing(level, descriptor)
    return None


def writing(level: Level, f: Any) -> Callable[..., Any]:
    """A method that makes text: the numbers in it are remembered."""

    def written(schema: Any, *args: Any, **kwargs: Any) -> Any:
        adopt_functions(schema)
        for x in args:
            level.meet_all(x)
            adopt_computed(x)
            for _, part in leaves(x):
                texts.remember(level, part)
        return f(schema, *args, **kwargs)

    return written


def validating(level: Level, f: Any, reads: bool) -> Callable[..., Any]:
    """A method that gives out what it is given, in another structure; `reads`: numbers from text, too."""

    def validated(schema: Any, *args: Any, **kwargs: Any) -> Any:
        if level.texts and reads:
            text_into_c.check_arguments(level, f, "reading", args, kwargs)
        compiled = adopt_functions(schema)
        for x in (*args, *kwargs.values()):
            level.meet_all(x)
            adopt_computed(x)
        given = dict(leaves((args, kwargs)))
        if any(hasattr(type(x), "__next__") for x in given.values()):
            missing_rule(f, "It goes through an iterator, whose numbers nobody sees.")
        active = [x for x in given.values() if is_active(level, x)]
        if active and compiled is not None:
            missing_rule(
                compiled, f"It is called by `{f.__qualname__}`, which is given differentiated numbers."
            )
        result = f(schema, *args, **kwargs)
        if active:
            kept = dict(
                leaves((result, kwargs.get("self_instance"), args if f.__name__ in ASSIGNING else ()))
            )
            lost = [x for x in active if id(x) not in kept]
            new = [x for key, x in kept.items() if key not in given and not is_active(level, x)]
            if lost and new:
                singles = [x for x in lost if isinstance(x, np.floating)]
                if reads and singles and len(args) == 1 and f.__name__ == "validate_python":
                    again = with_floats(level, args[0], set(map(id, singles)))
                    if again is not args[0]:
                        return validated(schema, again, **kwargs)
                check(level, f, lost, new)
        return result

    return validated


ASSIGNING = frozenset(("validate_assignment",))


def check(level: Level, f: Any, lost: list[Any], new: list[Any]) -> None:
    """Refuse a conversion of an active number; note one that has become text."""
    for x in new:
        if isinstance(x, str):
            for y in lost:
                if kind_of(type(y)) == NUMBER:
                    level.texts.remember(y)
        elif isinstance(x, TIMES) or any(are_equal(x, y) for y in lost):
            missing_rule(f, "It makes a new number of a differentiated one.")


def are_equal(x: Any, y: Any) -> bool:
    """Whether `x` may have been made of `y`."""
    if kind_of(type(y)) == ARRAY:
        return True
    try:
        if complex(y) != complex(y):  # nan may have become any nan
            return complex(x) != complex(x)
        return bool(complex(x) == complex(y)) or bool(np.float32(x) == np.float32(y))
    except (TypeError, ValueError, OverflowError):
        return True


def is_active(level: Level, x: Any) -> bool:
    """Whether a number or array depends on the inputs, of this derivative or one further out."""
    return kind_of(type(x)) in (NUMBER, ARRAY) and any(outer.is_active(x) for outer in outwards(level))


def leaves(x: Any) -> Iterator[tuple[int, Any]]:
    """Numbers, arrays, texts and times in containers and objects, by identity."""
    todo, seen = [x], set()
    while todo:
        x = todo.pop()
        t = type(x)
        if kind_of(t) in (NUMBER, ARRAY) or isinstance(x, (str, *TIMES, Decimal)) or hasattr(t, "__next__"):
            yield id(x), x
            continue
        if id(x) in seen or isinstance(x, (type, FunctionType, int, bytes)) or x is None:
            continue
        seen.add(id(x))
        if isinstance(x, dict):
            todo += x
            todo += x.values()
        elif isinstance(x, (list, tuple, set, frozenset, deque, *VIEWS)):
            todo += x
        elif kind_of(t) != NOTHING or t.__module__ == MODULE or getattr(x, "__dict__", None):
            todo += fields_of(x).values()
            todo += (getattr(x, name, None) for name in ("__pydantic_private__", "__pydantic_extra__"))


def with_floats(level: Level, x: Any, identities: set[int]) -> Any:
    """`x` with floats for its scalars of NumPy of these identities, in containers of Python's own."""
    if id(x) in identities:
        return level.prep(float)(x)
    t = type(x)
    if t is dict:
        parts = {key: with_floats(level, part, identities) for key, part in x.items()}
        return parts if any(parts[key] is not x[key] for key in x) else x
    if t is list or t is tuple:
        made = [with_floats(level, part, identities) for part in x]
        return t(made) if any(new is not old for new, old in zip(made, x, strict=True)) else x
    if t.__module__ == MODULE and t.__name__ == "ArgsKwargs":
        args = with_floats(level, tuple(x.args), identities)
        kwargs = with_floats(level, dict(x.kwargs or {}), identities)
        return t(args, kwargs)
    return x


def adopt_functions(schema: Any) -> Any:
    """The program's functions that a validator or serializer calls run rewritten until the level closes.

    Returns a function of C that it calls, if there is one.
    """
    todo, seen, compiled = [schema], set(), None
    while todo:
        x = todo.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        t = type(x)
        if t.__module__ == MODULE:
            todo += gc.get_referents(x) if t.__name__ in ("SchemaValidator", "SchemaSerializer") else ()
        elif isinstance(x, type):
            if x.__module__ != MODULE:
                elsewhere.adopt_callbacks((x,))
                found = [lookup(x, name) for name in AFTERWARDS]
                todo += [f for f in found if type(f) is FunctionType]
        elif t is functools.partial:
            todo.append(x.func)
        elif t is MethodType:
            todo.append(x.__func__)
        elif t is FunctionType:
            elsewhere.adopt_callback(x)
        elif callable(x):
            if is_python_special(lookup(t, "__call__")):
                elsewhere.adopt_callback(x)
            else:
                compiled = x
    return compiled


def adopt_computed(x: Any) -> None:
    """The same of properties that compiled code looks up in a model, as computed fields."""
    decorators = getattr(type(x), "__pydantic_decorators__", None)
    for decorator in getattr(decorators, "computed_fields", {}).values():
        wrapped = getattr(decorator, "func", None)
        for f in (wrapped, getattr(wrapped, "wrapped", None)):
            f = getattr(f, "fget", None) or getattr(f, "func", None) or f
            if type(f) is FunctionType:
                elsewhere.adopt_callbacks((f,))
