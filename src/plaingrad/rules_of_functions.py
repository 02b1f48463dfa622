"""Rules of Python functions, each kept by its function alone: both are released together.

A rule refers to its function, most pullbacks do too, and so a table of rules, also a weak one, would keep every
function with a rule for ever, with all that its closure holds. CPython has no ephemerons. But a function owns its
`__dict__`, and the collector of garbage follows what is in there. So that becomes a `Namespace`, with the same entries,
and the rule beside them; who looks at the attributes of the function, or copies or pickles them, does not see it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import partial
from types import FunctionType
from typing import Any


class Namespace(dict[str, Any]):
    """The `__dict__` of a function that has a rule."""

    __slots__ = ("rule",)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)


_functions: dict[int, weakref.ref[FunctionType]] = {}  # by identity, those with a rule


def get(f: FunctionType) -> Any:
    """The rule of `f`, or None."""
    reference = _functions.get(id(f))
    if reference is None or reference() is not f:
        return None
    space = f.__dict__
    return space.rule if type(space) is Namespace else None


def has(f: FunctionType) -> bool:
    """Whether `f` has a rule, or one that had its identity did."""
    return id(f) in _functions


def put(f: FunctionType, rule: Any) -> None:
    """Let `f` have `rule`."""
    space = f.__dict__
    if type(space) is not Namespace:
        new = Namespace(space)
        new.rule = rule
        f.__dict__ = new
    else:
        space.rule = rule
    # The callback is C code: an exception that arrives in Python code called by the collector is only printed.
    _functions[id(f)] = weakref.ref(f, partial(_functions.pop, id(f)))


def pop(f: FunctionType) -> Any:
    """Take the rule of `f` away, and return it; None if it has none."""
    rule = get(f)
    if rule is not None:
        _functions.pop(id(f), None)
        f.__dict__ = dict(f.__dict__)
    return rule


def every() -> Iterator[Any]:
    """The rules of the functions that are alive."""
    for reference in list(_functions.values()):
        f = reference()
        rule = None if f is None else get(f)
        if rule is not None:
            yield rule
