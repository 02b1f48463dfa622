"""Copies, shallow and deep, also of instances of classes without hash: the module `copy` looks classes up in tables."""

from __future__ import annotations

import copy
from typing import Any

from plaingrad.class_keys import is_heap, is_own_key


def shallow_copy(x: Any) -> Any:
    """copy.copy(x)."""
    if is_own_key(type(x)):
        return copy.copy(x)
    own = getattr(type(x), "__copy__", None)
    return own(x) if own is not None else _reconstructed(x, None)


def deep_copy(x: Any, memo: dict[int, Any] | None = None) -> Any:
    """copy.deepcopy(x, memo); what is in `memo` afterwards is copied."""
    memo = {} if memo is None else memo
    tried = dict(memo)
    try:
        found = copy.deepcopy(x, tried)
    except TypeError:  # perhaps for a class without hash, somewhere in it
        return _deep(x, memo)
    memo.update(tried)
    return found


def _deep(x: Any, memo: dict[int, Any]) -> Any:
    if id(x) in memo:
        return memo[id(x)]
    if isinstance(x, type):
        return x
    memo.setdefault(id(memo), []).append(x)  # as `copy` does: no other object gets its identity meanwhile
    cls = type(x)
    if cls is list:
        memo[id(x)] = made = []
        made.extend([_deep(part, memo) for part in x])
        return made
    if cls is dict:
        memo[id(x)] = made = {}
        for key, part in x.items():
            made[_deep(key, memo)] = _deep(part, memo)
        return made
    if cls is tuple:
        parts = [_deep(part, memo) for part in x]
        return memo.setdefault(id(x), tuple(parts))  # it may be in one of its parts
    own = getattr(cls, "__deepcopy__", None)
    if own is not None:
        memo[id(x)] = made = own(x, memo)
        return made
    if is_own_key(cls) and not (is_heap(cls) and cls.__reduce_ex__ is object.__reduce_ex__):
        return copy.deepcopy(x, memo)
    return _reconstructed(x, memo)


def _reconstructed(x: Any, memo: dict[int, Any] | None) -> Any:
    """A copy by the protocol of `__reduce_ex__`; deep, where there is a `memo`."""
    reduced = x.__reduce_ex__(4)
    if isinstance(reduced, str):
        return x
    make, args, state, items, pairs = (*reduced, None, None, None)[:5]

    def part(y: Any) -> Any:
        return y if memo is None else _deep(y, memo)

    made = make(*map(part, args))
    if memo is not None:
        memo[id(x)] = made
    if state is not None:
        state = part(state)
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            fields, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            if fields:
                made.__dict__.update(fields)
            for name, value in (slots or {}).items():
                setattr(made, name, value)
    for y in items or ():
        made.append(part(y))
    for key, value in pairs or ():
        made[part(key)] = part(value)
    return made
