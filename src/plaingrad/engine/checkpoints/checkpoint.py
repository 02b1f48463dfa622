"""Checkpoints: a function whose tape is dropped after the call and made again in the reverse pass.

The call is recorded in a segment. If nothing that the segment has computed is known to anybody but through the
result, and no older memory was written, its tape goes, and the level keeps the function, its arguments and what is
needed for a second run to be like the first. Otherwise the tape stays: right, without the saving.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import gc
import random
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

import numpy as np

from plaingrad import rulebook
from plaingrad.class_keys import all_among
from plaingrad.critical import closing
from plaingrad.engine.checkpoints.segment import Segment, file, here, keep, leaves_of, lend, seed, take_back
from plaingrad.engine.memory.entries import entries_of, has_fields, put
from plaingrad.engine.memory.holders import fingerprint, looked_into
from plaingrad.engine.memory.kinds import ARRAY, FLAT, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.memory.memory import Shadow, owner_of
from plaingrad.engine.memory.tape import STEP, reverse
from plaingrad.engine.refusals.refuse import name_of, refuse
from plaingrad.engine.reverse.exclusive import acquire, release
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.engine.values.borrowed import is_lent
from plaingrad.engine.values.fresh import rebuilt
from plaingrad.errors import CheckpointError, PlaingradError
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.tangents.fields import fields_of

LOOKED_THROUGH = 10_000  # objects that a function can reach, at most, in the search for arrays and generators


@functools.cache
def generators_of_numbers() -> tuple[type, ...]:
    """The classes of generators of random numbers; NumPy imports its own now."""
    return np.random.Generator, np.random.RandomState, random.Random


def checkpointed_call(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """f(*args, **kwargs); in reverse mode its tape is made again when the reverse pass comes by."""
    level = CURRENT.get()
    if not isinstance(level, ReverseLevel):
        return level.prep(f)(*args, **kwargs)
    arrays, generators = surroundings(f, args, kwargs)
    again = Again(f, args, kwargs, generators)
    segment = Segment(level, level.parent)
    return segment.during(_recorded_or_repeated, segment, level, again, arrays, f, args, kwargs)


def _recorded_or_repeated(
    segment: Segment,
    level: ReverseLevel,
    again: Again,
    arrays: list[Any],
    f: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    segment.watched.update([id(owner_of(a)) for a in arrays])
    try:
        y = segment.run(f, args, kwargs)
    except BaseException:
        keep(segment)
        raise
    again.drew()
    slots = list(leaves_of(segment.slot_of(y)))
    lent = any(is_lent(owner_of(a)) for a in arrays)  # it may be gone when the function would be run again
    if segment.wrote_outside or lent or has_escaped(segment, slots) or segment.wrote_outside:
        keep(segment)
        return y
    imported = segment.index.imported
    if is_stored([slot for slot in slots if slot.index not in imported], f, args, kwargs):
        keep(segment)
        return y
    filed: dict[int, int] = {}
    for slot in slots:
        if slot.index not in imported and slot.index not in filed:
            filed[slot.index] = file(level, slot)
    if filed:
        level._capture([*args, *kwargs.values()])
        again.expect(segment, y)
        outputs = [filed.get(slot.index) for slot in slots]
        level.tape.extend((-1, STEP, Rerun(level, again, outputs)))
    segment.drop()
    return y


def has_escaped(segment: Segment, slots: list[Any]) -> bool:
    """Whether something that `segment` has computed is known elsewhere; garbage in cycles does not count."""
    if not segment.escaped(slots):
        return False
    gc.collect(1)
    return bool(segment.escaped(slots))


@looked_into
class Again:
    """What it takes to call a function as it was called before, and to see that it did the same.

    Attributes:
        f: the function; what its cells held then is in cells of its own.
        args: its arguments; mutable containers are copies.
        kwargs: its keyword arguments, likewise.
        patches: (container, key, value): entries of differentiated arguments as they were then.
        draws: (generator of random numbers, its state then), for those that the function drew from.
        context: the context variables then.
        errors: NumPy's floating point error handling then.
        imports: indices at the level of the values that it met there.
        mark: of the result.
        fingerprint: of the tape.
        plain: no derivative was being taken further out: the tape is then another one.
    """

    __slots__ = (
        "args",
        "context",
        "draws",
        "errors",
        "f",
        "fingerprint",
        "imports",
        "kwargs",
        "mark",
        "patches",
        "plain",
    )

    def __init__(self, f: Any, args: Any, kwargs: Any, generators: list[Any]) -> None:
        memo: dict[int, Any] = {}
        self.args, self.kwargs = held(args, memo), held(kwargs, memo)
        self.f = frozen(f)
        self.patches = patches_at(CURRENT.get())
        self.context = contextvars.copy_context()
        self.errors = errors_raised()
        self.draws = [(generator, state_of(generator)) for generator in generators]

    def drew(self) -> None:
        """Forget the states of those generators that were not used."""
        self.draws = [(g, before) for g, before in self.draws if state_of(g) != before]

    def expect(self, segment: Segment, y: Any) -> None:
        """Remember what the first run did."""
        self.imports = set(segment.imports)
        self.mark = mark_of(y)
        self.fingerprint = fingerprint(segment.tape, segment.index)
        self.plain = segment.parent is PLAIN

    def run(self, segment: Segment) -> Any:
        """The value, recorded in `segment`."""
        try:
            y = patched(
                segment, self.patches, drawn_again, self.draws, self.context.copy().run, self._run, segment
            )
        except PlaingradError:
            raise
        except Exception as error:
            differs(self.f, f"it raised {type(error).__name__}: {error}", error)
        if mark_of(y) != self.mark:
            differs(self.f, "its result is another one")
        if segment.wrote_outside:
            differs(self.f, "it wrote to an array that it did not make")
        segment.slot_of(y)
        if set(segment.imports) != self.imports:
            differs(self.f, "it met other differentiated values")
        if (
            self.plain == (segment.parent is PLAIN)
            and fingerprint(segment.tape, segment.index) != self.fingerprint
        ):
            differs(self.f, "it computed something else on the way")
        return y

    def _run(self, segment: Segment) -> Any:
        memo: dict[int, Any] = {}
        with np.errstate(**self.errors):
            return segment.run(frozen(self.f), held(self.args, memo), held(self.kwargs, memo))


@looked_into
class Rerun:
    """A call whose tape is made again in the reverse pass."""

    __slots__ = ("again", "base", "outputs")

    def __init__(self, base: ReverseLevel, again: Again, outputs: list[Any]) -> None:
        self.base = base
        self.again = again
        self.outputs = outputs  # the index at the level of each active leaf of the result; None if it came in

    def account(self) -> int:
        """What it shares with its like."""
        return self.again.fingerprint

    def back(self, shadow: Shadow, undone: list[Any]) -> None:
        """Run the function again, and reverse that."""
        self.pull(shadow)  # `back` may run rewritten; what it calls does not

    def pull(self, shadow: Shadow) -> None:
        """Record the call in a new segment, seed its results, and reverse it."""
        if all(i is None or shadow.bars[i] is None for i in self.outputs):
            return
        segment = Segment(self.base, CURRENT.get())
        slots, pairs, tape, inner = segment.during(self._recorded, segment)
        lend(shadow, inner, pairs)
        for i, slot in zip(self.outputs, slots, strict=True):
            if i is not None and shadow.bars[i] is not None:
                seed(shadow, i, inner, slot)
        del slots
        here(reverse, tape, inner, [])
        take_back(shadow, inner, pairs)
        segment.drop()

    def _recorded(self, segment: Segment) -> tuple[list[Any], list[Any], list[Any], Shadow]:
        """(slots of the result, imports, tape, new shadow) of the second run."""
        y = self.again.run(segment)
        slots = list(leaves_of(segment.slot_of(y)))
        came_in = [slot.index in segment.index.imported for slot in slots]
        if came_in != [i is None for i in self.outputs]:
            differs(self.again.f, "other parts of its result depend on the inputs")
        return slots, list(segment.imports.items()), segment.tape, Shadow(segment.new_index())


def differs(f: Any, how: str, error: BaseException | None = None) -> NoReturn:
    """Refuse a second run that is not like the first."""
    code = getattr(getattr(f, "__func__", f), "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    try:
        refuse(
            CheckpointError,
            f"`{name_of(f)}`{place} is checkpointed, and was run again in the reverse pass: {how}",
            why="The derivative of the second run is not that of the first. It depends on something that has changed "
            "since: a global, an attribute, a file, a generator of random numbers.",
            fix="pass what it depends on as arguments, or call it without a checkpoint",
            anchor="checkpoint",
        )
    except CheckpointError as refusal:
        raise refusal from error


# -- the world as it was -----------------------------------------------------------------------------------------------


def held(x: Any, memo: dict[int, Any] | None = None) -> Any:
    """`x` with its mutable containers copied, so that later changes to them do not matter; leaves are the same."""
    memo = {} if memo is None else memo
    t = type(x)
    if t is float or t is int or t is str or t is np.ndarray:
        return x
    if id(x) in memo:
        return memo[id(x)]
    if t is list or t is deque:
        memo[id(x)] = copy = t() if t is list else deque(maxlen=x.maxlen)
        copy.extend([held(part, memo) for part in x])
        return copy
    if kind_of(t) == SEQUENCE and (t is tuple or hasattr(x, "_fields")):
        parts = [held(part, memo) for part in x]
        if all(a is b for a, b in zip(parts, x, strict=True)):
            return x
        return rebuilt(x, parts)
    if t is dict:
        memo[id(x)] = copy = {}
        for key, value in x.items():
            copy[key] = held(value, memo)
        return copy
    if t is set:
        return set(x)
    if dataclasses.is_dataclass(t) and t.__new__ is object.__new__:
        memo[id(x)] = copy = object.__new__(t)
        for name, value in fields_of(x).items():
            object.__setattr__(copy, name, held(value, memo))
        return copy
    return x


def frozen(f: Any) -> Any:
    """`f` with cells of its own: a loop variable, say, may go on."""
    if type(f) is functools.partial:
        return functools.partial(frozen(f.func), *f.args, **f.keywords)
    if type(f) is MethodType:
        return MethodType(frozen(f.__func__), f.__self__)
    if type(f) is not FunctionType or f.__closure__ is None or rulebook.find(f) is not None:
        return f
    cells = []
    for cell in f.__closure__:
        try:
            cells.append(CellType(cell.cell_contents))
        except ValueError:  # not bound yet
            cells.append(cell)
    copy = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, tuple(cells))
    copy.__kwdefaults__ = f.__kwdefaults__
    return functools.update_wrapper(copy, f)


def reachable(todo: list[Any]) -> Iterator[Any]:
    """What functions among `todo` can reach: arguments, cells, defaults, self, named globals, and what is in these.

    Of a container that holds nothing but plain numbers and the like, the container only.
    """
    seen: set[int] = set()
    while todo and len(seen) < LOOKED_THROUGH:
        x = todo.pop()
        t = type(x)
        kind = kind_of(t)
        if kind == NOTHING or id(x) in seen or isinstance(x, ModuleType):
            continue
        seen.add(id(x))
        yield x
        if t is FunctionType:
            todo += x.__defaults__ or ()
            todo += (x.__kwdefaults__ or {}).values()
            for cell in x.__closure__ or ():
                with contextlib.suppress(ValueError):
                    todo.append(cell.cell_contents)
            space = x.__globals__
            todo += [space[name] for name in x.__code__.co_names if name in space]
        elif t is MethodType:
            todo += (x.__func__, x.__self__)
        elif kind in (SEQUENCE, MAPPING):
            if not all_among(parts := list(x.values() if kind == MAPPING else x), FLAT):
                todo += parts
        elif kind == OBJECT and not isinstance(x, generators_of_numbers()) and has_fields(x):
            todo += fields_of(x).values()


def surroundings(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """(arrays, generators of random numbers) that `f` can reach."""
    arrays: list[Any] = []
    generators: list[Any] = [random, np.random]
    for x in reachable([f, args, kwargs]):
        if isinstance(x, np.ndarray):
            arrays.append(x)
        elif isinstance(x, generators_of_numbers()):
            generators.append(x)
    return arrays, generators


def is_stored(slots: list[Any], f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a part of the result can be reached from `f`, too: its next run would begin with it."""
    results = {id(slot.x) for slot in slots}
    objects = [x for x in (*args, *kwargs.values()) if kind_of(type(x)) == OBJECT and held(x) is x]
    for x in reachable([f, *objects]):
        if id(x) in results:
            return True
        if type(x) is list or type(x) is tuple or type(x) is dict:
            if not results.isdisjoint(map(id, x.values() if type(x) is dict else x)):
                return True
    return False


def errors_raised() -> dict[str, Any]:
    """NumPy's floating point error handling, for a second run: what was said once is not said again."""
    return {what: how if how in ("raise", "call") else "ignore" for what, how in np.geterr().items()}


def state_of(generator: Any) -> Any:
    """The state of a generator of random numbers, or of those of a module, to be compared and to be set again."""
    if generator is random or isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.Generator):
        return Flat(generator.bit_generator.state)
    return Flat(generator.get_state(legacy=False))


def set_state(generator: Any, state: Any) -> None:
    """Make `generator` draw on from `state`."""
    if generator is random or isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state.state
    else:
        generator.set_state(state.state)


class Flat:
    """A state of NumPy's generators, which can be compared."""

    __slots__ = ("parts", "state")

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state
        self.parts = mark_of(state)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flat) and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]


def drawn_again(draws: list[tuple[Any, Any]], work: Callable[..., Any], *args: Any) -> Any:
    """work(*args) while generators draw what they drew; then they go on from where they were."""
    now = [(generator, state_of(generator)) for generator, _ in draws]

    def begin() -> Any:
        for generator, state in draws:
            set_state(generator, state)
        return work(*args)

    def end() -> None:
        for generator, state in now:
            set_state(generator, state)

    return closing(begin, end)


def root_of(level: Any) -> Any:
    """The level that segments stand in for."""
    while isinstance(level, Segment):
        level = level.base
    return level


def patches_at(level: ReverseLevel) -> list[tuple[Any, Any, Any]]:
    """(container, key, value): what the entries that the level patched in its arguments are now."""
    found = []
    last: Any = None
    entries: dict[Any, Any] = {}
    for container, keys, _ in root_of(level).patched:
        if container is not last:
            last, entries = container, dict(entries_of(container))
        for key in keys if type(keys) is range else (keys,):
            if key in entries:
                found.append((container, key, entries[key]))
    return found


def patched(
    segment: Segment, patches: list[tuple[Any, Any, Any]], work: Callable[..., Any], *args: Any
) -> Any:
    """work(*args) with arguments whose entries the level had made fresh as they were during its run."""
    containers = {id(container): container for container, _, _ in patches}
    undo = []

    def begin() -> Any:
        acquire(segment, containers)
        entries_now = {i: dict(entries_of(container)) for i, container in containers.items()}
        for container, key, value in patches:
            entries = entries_now[id(container)]
            if key in entries and entries[key] is not value:
                undo.append((container, key, entries[key]))
                put(container, key, value)
        return work(*args)

    def end() -> None:
        for container, key, value in undo:
            put(container, key, value)
        release(segment, containers)

    return closing(begin, end)


# -- comparing runs ----------------------------------------------------------------------------------------------------


def mark_of(x: Any, seen: frozenset[int] = frozenset()) -> Any:
    """What two results must share to count as the same: every number to the last bit, arrays by their checksum."""
    t = type(x)
    if t is float:
        return x.hex()
    kind = kind_of(t)
    if kind == NUMBER:
        return (t, x.tobytes()) if isinstance(x, np.generic) else (t, repr(x))
    if kind == ARRAY:
        if x.dtype.kind == "O":
            return x.shape, tuple([mark_of(part, seen) for part in x.flat])
        data = np.ascontiguousarray(x)
        return x.shape, x.dtype.str, zlib.crc32(data.reshape(-1).view(np.uint8).data) if x.size else 0
    if kind == NOTHING:
        return x if isinstance(x, (int, str, bytes, type(None))) else type(x)
    if id(x) in seen or len(seen) > 100:
        return None
    seen |= {id(x)}
    if kind == SEQUENCE:
        return tuple([mark_of(part, seen) for part in x])
    if kind == MAPPING:
        return tuple([(mark_of(key, seen), mark_of(value, seen)) for key, value in x.items()])
    if has_fields(x):
        return type(x), tuple([(name, mark_of(value, seen)) for name, value in fields_of(x).items()])
    return type(x)
