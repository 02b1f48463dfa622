"""Objects that hand out numbers which no table can file: sets, generators, views of dictionaries, closures."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from plaingrad.class_keys import is_among
from plaingrad.engine.memory.kinds import OBJECT, kind_of
from plaingrad.engine.users_code import adopt, earlier_frames
from plaingrad.tangents import has_tangent_space

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

VIEWS = ("dict_keys", "dict_values", "dict_items")  # how the names of such types end
UNFILED = frozenset((set, frozenset, memoryview, array))  # their entries cannot be replaced
STREAMS = ("_iterator", "_keyiterator", "_valueiterator", "_itemiterator", *VIEWS)


def is_stream(x: Any) -> bool:
    """Whether `x` hands out values one by one: a generator, an iterator, a view of a dictionary."""
    t = type(x)
    return earlier_frames.is_generator(t) or earlier_frames.is_iterator(t) or t.__name__.endswith(STREAMS)


def hides_numbers(y: Any) -> bool:
    """Whether numbers may be in the result of a rule that cannot be filed: it is a set, a generator, a closure."""
    if kind_of(type(y)) != OBJECT:
        return False
    if is_among(type(y), adopt.PYTHON_CALLABLES):
        return has_tangent_space(y)
    return is_among(type(y), UNFILED) or is_stream(y)


def hides_active(level: Level, x: Any) -> bool:
    """Whether a rule could get active numbers out of `x` which are no entries or fields of it."""
    if type(x) is set or type(x) is frozenset or type(x).__name__.endswith(VIEWS):
        return any(map(level.is_active, x))
    return is_stream(x)
