"""What a dictionary of the program answers, asked by a number that depends on the inputs, or by what was made of one.

A program may keep results in a table of its own (`if x in memo: return memo[x]`), or in one of a library it uses. What
an earlier call has put there, plain or differentiated, is a constant of the derivative that is taken now: its numbers
are refused. What this derivative has put there is found with its derivatives. Keys may also be made of such numbers:
their bytes, hashes and checksums, which are remembered with the texts of the level.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plaingrad import rulebook
from plaingrad.class_keys import is_among
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, SEQUENCE, kind_of
from plaingrad.engine.values import texts
from plaingrad.engine.values.nesting import outwards
from plaingrad.engine.values.search import is_in_reach
from plaingrad.tangents.fields import parts_of

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

METHODS = ("get", "pop", "setdefault", "__getitem__")
FLAT = frozenset((str, int, bytes, bool, type(None), type))
MOST = 1000  # so many values are looked at in what a table answers
_MISSING = object()


class Probe:
    """A key that finds which key of a dictionary equals another one."""

    __slots__ = ("found", "k")

    def __init__(self, k: Any) -> None:
        self.k, self.found = k, _MISSING

    def __hash__(self) -> int:
        return hash(self.k)

    def __eq__(self, other: Any) -> bool:
        if other is self.k or other == self.k:
            self.found = other
            return True
        return False


def check_found(level: Level, table: Any, k: Any, v: Any) -> Any:
    """`v`, which `table` has at `k`; refused if it is a constant only because an earlier call has put it there."""
    if kind_of(type(v)) == NOTHING or is_plain_key(level, k) or not holds_numbers(v):
        return v
    if is_mark(level, k):
        if not level.calls.finds_active(v) and (id(table), k) not in level.texts.kept:
            refuse(level)
        return v
    for outer in outwards(level):
        if depends(outer, k) and not is_in_reach(outer, v):
            if not depends(outer, stored_key(table, k)):
                refuse(level)
    return v


def stored_key(table: Any, k: Any) -> Any:
    """The key of a dictionary that equals `k`."""
    probe = Probe(k)
    if dict.__contains__(table, probe):
        return probe.found
    wanted = hash(k)  # `==` of the key's own class does not ask a probe
    return next((key for key in dict.keys(table) if hash(key) == wanted and key == k), None)


def is_plain_key(level: Level, k: Any) -> bool:
    """Whether a look at the class of a key tells that it does not depend on the inputs."""
    t = type(k)
    if t is tuple or isinstance(k, (tuple, frozenset)):
        return all(is_plain_key(level, part) for part in k)
    if t is float:
        return False
    if is_among(t, FLAT):
        return not level.texts
    return isinstance(k, enum.Enum) or (kind_of(t) != NUMBER and t.__hash__ is object.__hash__)


def depends(level: Level, k: Any) -> bool:
    """Whether a key is, or is compared by, a number that is active at this level."""
    if isinstance(k, (tuple, frozenset)):
        return any(depends(level, part) for part in k)
    t = type(k)
    if is_among(t, FLAT):
        return False
    if kind_of(t) == NUMBER:
        return id(k) in level.index
    return t.__hash__ is not object.__hash__ and is_in_reach(level, k)


def is_mark(level: Level, k: Any) -> bool:
    """Whether a key is a hash or checksum of a number that depends on the inputs, or its bytes.

    Text that such a number was written to is none: nobody knows which entries this derivative has made by that.
    """
    held = level.texts
    if not held:
        return False
    if isinstance(k, (tuple, frozenset)):
        return any(is_mark(level, part) for part in k)
    if isinstance(k, (str, bytes, int)) and not isinstance(k, bool):
        return k in held.marks or (isinstance(k, bytes) and bool(held.raw) and held.raw.find(k))
    return False


def keep(level: Level, table: Any, k: Any) -> None:
    """table[k] = ... comes next: if the key is a mark, this derivative has put there what is found later."""
    if level.texts and is_mark(level, k):
        level.texts.kept[id(table), k] = table


def holds_numbers(v: Any) -> bool:
    """Whether a value is or holds numbers that could have had derivatives."""
    todo, seen = [v], 0
    while todo and seen < MOST:
        x = todo.pop()
        seen += 1
        kind = kind_of(type(x))
        if kind == NUMBER:
            return True
        if kind == ARRAY:
            if x.dtype.kind in "fc" or x.dtype.names is not None:
                return bool(x.size)
            todo += list(x.flat) if x.dtype.kind == "O" else ()
        elif kind == SEQUENCE:
            todo += list(x)
        elif kind == MAPPING:
            todo += list(x.values())
        elif kind != NOTHING:
            todo += parts_of(x).values()
    return bool(todo)


def remember(level: Level, mark: Any) -> None:
    """`mark` was made of a number that depends on the inputs: a hash, a checksum, or what makes one."""
    if isinstance(mark, (str, bytes, int)) or type(mark).__hash__ is object.__hash__:
        level.texts.remember_mark(mark)


def is_made_of_inputs(level: Level, x: Any) -> bool:
    """Whether what is hashed depends on the inputs."""
    if level.texts and (is_mark(level, x) or is_in_marks(level, x)):
        return True
    if isinstance(x, (tuple, frozenset)):
        return any(is_made_of_inputs(level, part) for part in x)
    if isinstance(x, texts.TEXT):
        return bool(level.texts) and level.texts.find(texts.decoded(x)) is not None
    if is_among(type(x), FLAT) or (kind_of(type(x)) != ARRAY and type(x).__hash__ is object.__hash__):
        return False
    return level.calls.finds_active(x)


def is_in_marks(level: Level, x: Any) -> bool:
    """Whether `x` makes a checksum of what it was given before."""
    return type(x).__hash__ is object.__hash__ and x in level.texts.marks


def digested(level: Level, args: tuple[Any, ...], result: Any) -> None:
    """C code that makes checksums has made `result`: a mark, if it was made of a number that depends on the inputs."""
    if any(is_made_of_inputs(level, x) for x in args):
        if result is None:  # more was put into the first
            remember(level, args[0])
        elif not isinstance(result, (bool, list, tuple)):
            remember(level, result)


def hashing(level: Level) -> Callable[..., Any]:
    """hash(x)."""
    rule = rulebook.find(hash)
    plain = hash if rule is None else level.calls.applier(rule, hash)

    def hash_(x: Any, /) -> int:
        if type(x) is str and not level.texts:
            return hash(x)
        made: int = plain(x)
        if (level.texts or not is_plain_key(level, x)) and is_made_of_inputs(level, x):
            remember(level, made)
        return made

    return hash_


def method_of(level: Level, name: str, method: Any) -> Callable[..., Any]:
    """A method of dictionaries that answers with an entry: what is found is looked at."""

    def found_at_level(table: Any, *args: Any) -> Any:
        level.calls.meet_all(args)
        if name == "pop" and args and is_looked_at(level, args[0]):
            check_found(level, table, args[0], dict.get(table, args[0]))
        if name == "setdefault" and args and is_mark(level, args[0]) and args[0] not in table:
            keep(level, table, args[0])
        v = method(table, *args)
        return v if name == "pop" else check_found(level, table, args[0], v)

    return found_at_level


def is_looked_at(level: Level, k: Any) -> bool:
    """Whether a dictionary may be asked for a key once more, and the key may depend on the inputs."""
    if isinstance(k, (tuple, frozenset)):
        return any(is_looked_at(level, part) for part in k)
    return kind_of(type(k)) in (NOTHING, NUMBER) and not is_plain_key(level, k)


def refuse(level: Level) -> None:
    """Refuse a number that an earlier call has left in a table."""
    texts.refuse_round_trip(
        level,
        "a table answers with numbers that an earlier call has put there",
        "It is asked by a number that depends on the inputs, or by its hash, bytes or checksum, and what it has kept "
        "is a constant: the derivative would be lost.",
        "empty the table before (`memo.clear()`), turn the cache off, or use functools.lru_cache, which is followed; "
        "plaingrad.stop_gradient(x) as the key if the table is one of constants",
    )
