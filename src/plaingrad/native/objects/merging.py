"""Where ways meet: one abstract state for several, with variables that each of the ways assigns."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from plaingrad.native.objects.values import (
    CLASH,
    FROZEN,
    GIVEN,
    UNKNOWN,
    UNSET,
    Instance,
    Items,
    Leaf,
    Maybe,
    Ref,
    Refused,
    Rows,
    State,
    Static,
    Tup,
    assign,
    contents,
    is_number,
    label,
    load,
    same,
    with_contents,
)


def atom(x: Any) -> ast.expr:
    """A number that is known, or a variable, as an expression."""
    return load(x.name) if isinstance(x, Leaf) else ast.Constant(x.value)


class Merged:
    """The state that stands for several.

    Attributes:
        target: it.
        stand_in: what a variable that is None holds, for Numba to know its type.
        moves: (a variable of it, what it is assigned in each of the states; None for nothing).
        made: the names of variables that are new.
    """

    def __init__(
        self,
        states: list[State],
        fresh: Callable[[str], str],
        new: Callable[[], int],
        stand_in: Callable[[Any], Any] = lambda _: UNSET,
    ) -> None:
        self.states = states
        self.stand_in = stand_in
        self.fresh = fresh
        self.new = new
        self.target = State()
        self.moves: list[tuple[str, list[Any]]] = []
        self.made: set[str] = set()
        self.things: dict[tuple[int | None, ...], int] = {}
        names = dict.fromkeys(name for s in states for name in s.names)
        for name in names:
            values = [s.names.get(name, UNSET) for s in states]
            kept = len(self.moves), dict(self.things), dict(self.target.heap)
            try:
                self.target.names[name] = self.value(values, name)
            except Refused:
                if not name.isidentifier() or name == "return":
                    raise
                self.target.names[name] = CLASH  # refused if it is read
                del self.moves[kept[0] :]
                self.things, self.target.heap = kept[1:]
        self._freeze()

    def value(self, values: list[Any], name: str) -> Any:
        """One value for one of each state."""
        known = [v for v in values if v is not UNSET]
        first = known[0] if known else UNSET
        if UNKNOWN in known:
            return UNKNOWN
        if any(v is CLASH for v in known):
            raise Refused(f"`{name}` is of different kinds, depending on which way is taken")
        is_everywhere = len(known) == len(values) or not isinstance(first, Leaf)
        if (
            is_everywhere
            and all(same(first, v) for v in known)
            and not isinstance(first, Ref)
            and not contents(first)
        ):
            return first
        if all(isinstance(v, Leaf) or is_number(v) for v in known):
            return self.leaf(values, name)
        if all(isinstance(v, Ref) for v in known):
            return Ref(self.thing([v.at if isinstance(v, Ref) else None for v in values], name))
        if any(isinstance(v, Maybe) or is_nothing(v) for v in known):
            return self.maybe(values, name)
        if all(label(v) == label(first) for v in known) and not isinstance(first, (Leaf, Static, Ref)):
            return with_contents(first, self.columns(values, len(contents(first)), name))
        what = sorted({described(v) for v in known})
        raise Refused(f"`{name}` is {' or '.join(what)}, depending on which way is taken")

    def maybe(self, values: list[Any], name: str) -> Any:
        """None in some of the states, or what may be None there."""
        tests: list[Any] = []
        inside: list[Any] = []
        for v in values:
            if isinstance(v, Maybe):
                tests.append(v.is_none)
                inside.append(v.value)
            else:
                tests.append(UNSET if v is UNSET else Static(is_nothing(v)))
                inside.append(UNSET if is_nothing(v) else v)
        some = next((v for v in inside if v is not UNSET), UNSET)
        inside = [self.stand_in(some) if is_nothing(v) else x for v, x in zip(values, inside, strict=True)]
        return Maybe(self.value(tests, name), self.value(inside, name))

    def leaf(self, values: list[Any], name: str) -> Leaf:
        """A new variable."""
        made = self.fresh(name)
        self.made.add(made)
        self.moves.append((made, [None if v is UNSET else v for v in values]))
        return Leaf(made)

    def columns(self, values: list[Any], count: int, name: str) -> list[Any]:
        """What is inside of structures that are alike."""
        inside = [[UNSET] * count if v is UNSET else contents(v) for v in values]
        return [self.value([row[k] for row in inside], name) for k in range(count)]

    def thing(self, at: list[int | None], name: str) -> int:
        """One object for one of each state."""
        key = tuple(at)
        found = self.things.get(key)
        if found is not None:
            return found
        one = at[0]  # an object that is in every state keeps its place: pinned values refer to it
        made = self.things[key] = one if one is not None and len(set(at)) == 1 else self.new()
        things = [UNSET if k is None else s.heap[k] for k, s in zip(at, self.states, strict=True)]
        known = [x for x in things if x is not UNSET]
        frozen = frozen_as(known)
        if all(label(x) == label(known[0]) for x in known):
            self.target.heap[made] = known[0]  # for objects that refer to themselves
            new = with_contents(known[0], self.columns(things, len(contents(known[0])), name))
        elif all(isinstance(x, (Items, Rows)) for x in known):
            new = self.widened(things, name)
        else:
            what = sorted({described(x) for x in known})
            raise Refused(f"`{name}` is {' or '.join(what)}, depending on which way is taken")
        new.frozen = frozen
        self.target.heap[made] = new
        return made

    def widened(self, things: list[Any], name: str) -> Rows:
        """A list of unknown length for lists some of which have a known one."""
        pattern: Any = None
        columns: list[list[Any]] = []
        for x, s in zip(things, self.states, strict=True):
            if isinstance(x, Rows) and x.given:
                raise Refused(
                    f"`{name}` is a list that was given, or one that was made, depending on which way is taken"
                )
            if isinstance(x, Rows):
                pattern = agreed(pattern, x.pattern, name)
            elif x is not UNSET:
                for v in x.items:
                    pattern = agreed(pattern, pattern_of(v, s)[0], name)
        if pattern is None:
            raise Refused(f"`{name}` is a list of which nothing is known")
        count = len(list(leaves_in(pattern)))
        if not count:
            raise Refused(f"`{name}` is a list of unknown length that holds no numbers")
        for x, s in zip(things, self.states, strict=True):
            if x is UNSET:
                columns.append([UNSET] * count)
            elif isinstance(x, Rows):
                columns.append(list(x.columns))
            else:
                rows = [pattern_of(v, s)[1] for v in x.items]
                columns.append([[row[k] for row in rows] for k in range(count)])
        return Rows(pattern, [self.leaf([c[k] for c in columns], name) for k in range(count)])

    def _freeze(self) -> None:
        """What is one object in a state, and several from now on, must not be changed any more."""
        for k in range(len(self.states)):
            seen: dict[int, int] = {}
            for at, made in self.things.items():
                mine = at[k]
                if mine is None:
                    continue
                other = seen.setdefault(mine, made)
                if other != made:
                    if not isinstance(self.states[k].heap[mine], Rows):  # else both are the same lists
                        for one in (other, made):
                            self.target.heap[one].frozen |= FROZEN

    def assignments(self, k: int, names: dict[str, str] | None = None) -> list[ast.stmt]:
        """What the way of state `k` assigns at its end; `names` are other names for variables."""
        names = names or {}
        pairs = [(names.get(name, name), values[k]) for name, values in self.moves if values[k] is not None]
        pairs = [(name, v) for name, v in pairs if not (isinstance(v, Leaf) and v.name == name)]
        targets = {name for name, _ in pairs}
        first: list[ast.stmt] = []
        last: list[ast.stmt] = []
        for name, v in pairs:
            if isinstance(v, list):
                first.append(assign(name, ast.List([atom(x) for x in v], ast.Load())))
            elif isinstance(v, Leaf) and v.name in targets:
                held = self.fresh(name)
                first.append(assign(held, load(v.name)))
                last.append(assign(name, load(held)))
            else:
                last.append(assign(name, atom(v)))
        return first + last


def zeros(x: Any) -> Any:
    """What stands for a value where that is None: zeros in the place of numbers."""
    if isinstance(x, Leaf) or is_number(x):
        return Static(0)
    return with_contents(x, list(map(zeros, contents(x)))) if isinstance(x, Tup) else UNSET


def is_nothing(x: Any) -> bool:
    """Whether a value is None."""
    return isinstance(x, Static) and x.value is None


def frozen_as(known: list[Any]) -> int:
    """What is known of changes to what stands for several things."""
    given = GIVEN if all(x.frozen & GIVEN for x in known) else 0
    return given | max(x.frozen & FROZEN for x in known)


def described(x: Any) -> str:
    """What a value is called in messages."""
    if isinstance(x, Leaf):
        return "a number or array"
    if isinstance(x, Static):
        return repr(x.value)
    if isinstance(x, Instance):
        return f"a {x.cls.__name__}"
    names = {
        "Tup": "a tuple",
        "Items": "a list",
        "Rows": "a list",
        "Keys": "a dictionary",
        "Ref": "an object",
    }
    return names.get(type(x).__name__, "a function")


# -- structure of entries of lists ----------------------------------------------------------------------------------


def pattern_of(v: Any, s: State) -> tuple[Any, list[Any]]:
    """(the structure of a value, with nameless leaves; its numbers and leaves). Objects in it are frozen by that."""
    if isinstance(v, Leaf) or is_number(v):
        return Leaf(""), [v]
    if isinstance(v, Ref):
        thing = s.heap[v.at]
        if isinstance(thing, Rows):
            raise Refused("a list of unknown length is an entry of another one")
        thing.frozen |= FROZEN
        v = thing
    inside = [pattern_of(x, s) for x in contents(v)]
    made = with_contents(v, [p for p, _ in inside])
    if hasattr(made, "frozen"):
        made.frozen = FROZEN  # patterns are compared
    return made, [leaf for _, leaves in inside for leaf in leaves]


def agreed(x: Any, y: Any, name: str) -> Any:
    """The pattern that two have in common."""
    if x is not None and repr(x) != repr(y):
        raise Refused(f"`{name}` is a list of unknown length with entries of several kinds")
    return y


def leaves_in(pattern: Any) -> Iterator[Leaf]:
    """The leaves of a pattern."""
    if isinstance(pattern, Leaf):
        yield pattern
    for x in contents(pattern):
        yield from leaves_in(x)


def instance_of(pattern: Any, leaves: Iterator[Any], s: State, new: Callable[[], int]) -> Any:
    """A value of this structure, its objects frozen: there may be others of them."""
    if isinstance(pattern, Leaf):
        return next(leaves)
    made = with_contents(pattern, [instance_of(x, leaves, s, new) for x in contents(pattern)])
    if isinstance(pattern, (Instance, Items)) or hasattr(pattern, "frozen"):
        made.frozen = True
        at = new()
        s.heap[at] = made
        return Ref(at)
    return made


# -- shape ----------------------------------------------------------------------------------------------------------


def shape(s: State, roots: list[Any], is_own: Callable[[str], bool]) -> tuple[Any, list[str], list[int]]:
    """(the structure of values, the leaves that are "own", the objects), each in the order in which they are met."""
    leaves: list[str] = []
    things: list[int] = []

    def of(x: Any) -> Any:
        if isinstance(x, Leaf):
            if x != UNKNOWN and is_own(x.name):
                leaves.append(x.name)
                return "leaf"
            return x.name
        if isinstance(x, Static):
            exact = isinstance(x.value, (int, float, complex, str, bool))
            return (type(x.value), repr(x.value)) if exact else (type(x.value), id(x.value))
        if isinstance(x, Ref):
            if x.at in things:
                return "object", things.index(x.at)
            things.append(x.at)
            thing = s.heap[x.at]
            return label(thing), thing.frozen, tuple([of(part) for part in contents(thing)])
        return label(x), tuple([of(part) for part in contents(x)])

    return tuple([of(x) for x in roots]), leaves, things
