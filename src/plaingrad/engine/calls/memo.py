"""`functools.lru_cache` inside a level.

A call whose arguments are compared without looking at an active number goes to the user's cache itself: it hands out
the object that it holds, and a miss runs the function's rewritten code and fills it, as in a plain call. A call in
which an active number is part of the key has a memo of the level instead, keyed by the identity of that number: the
user's cache, which compares values, could answer with a constant, or give a later call what depends on these inputs.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from plaingrad.class_keys import all_among, is_among
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.users_code import adopt
from plaingrad.engine.users_code.adopt import LruCached
from plaingrad.engine.values.nesting import outwards
from plaingrad.rules.derivatives import PASSING_CACHES
from plaingrad.tangents.fields import parts_of

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

_KEYWORD = object()
_BY_IDENTITY = frozenset((*adopt.STATIC_SCALARS - {float, complex}, FunctionType, MethodType, type))


class Made(dict[int, Any]):
    """Active results that misses left in caches of the program, while a function is differentiated in several runs.

    A later run must not take them for constants: what is found here runs again, at the later run's level.
    """


REPEATED: ContextVar[tuple[Made, ...]] = ContextVar("REPEATED", default=())


@contextlib.contextmanager
def several_runs() -> Iterator[None]:
    """The function is called several times for one derivative: what one run leaves in caches is not the next one's."""
    token = REPEATED.set((*REPEATED.get(), Made()))
    try:
        yield
    finally:
        REPEATED.reset(token)


class Memos:
    """The cached functions that one level has met, and what they returned for active arguments."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.made = REPEATED.get()
        self.of: dict[int, tuple[weakref.ref[Any], Memo]] = {}

    def of_function(self, f: Any) -> Memo:
        """The memo of the cached function `f` at this level; it goes when `f` does."""
        key = id(f)
        found = self.of.get(key)
        if found is None:
            known = self.of
            reference = weakref.ref(f, functools.partial(known.pop, key))
            found = known[key] = reference, Memo(self.level, f)
        return found[1]

    def drop_results(self) -> None:
        """Forget what was returned; the counts stay."""
        for _, memo in list(self.of.values()):
            memo.entries.clear()

    def renew(self) -> None:
        """The level is opened again, perhaps for one of several runs."""
        self.made = REPEATED.get()

    def caller(self, f: Any) -> Callable[..., Any]:
        """What to call instead of the cached function `f`, which has no rule."""
        memo = self.of_function(f)
        memo.decided = True
        return MethodType(memo.call, f)

    def decided(self, f: Any) -> Callable[..., Any] | None:
        """The same, where it is known that there is no rule; else None."""
        found = self.of.get(id(f))
        return MethodType(found[1].call, f) if found is not None and found[1].decided else None

    def rulebook_changed(self) -> None:
        """There may be a rule now."""
        for _, memo in list(self.of.values()):
            memo.decided = False

    def info(self, f: Any) -> Any:
        """f.cache_info(): the calls with active arguments count, too."""
        info = f.cache_info()
        for level in outwards(self.level):
            memo = level.calls.memos.of_function(f)
            size = info.currsize + len(memo.entries)
            info = info._replace(
                hits=info.hits + memo.hits,
                misses=info.misses + memo.misses,
                currsize=size if info.maxsize is None else min(size, info.maxsize),
            )
        return info

    def forget(self, f: Any) -> None:
        """f.cache_clear()."""
        f.cache_clear()
        for level in outwards(self.level):
            memo = level.calls.memos.of_function(f)
            memo.entries.clear()
            memo.hits = memo.misses = 0


class Memo:
    """What one cached function returned at one level for active arguments, least recently used first."""

    __slots__ = (
        "body",
        "decided",
        "entries",
        "hits",
        "in_several",
        "level",
        "maxsize",
        "misses",
        "native",
        "typed",
    )

    def __init__(self, level: Level, f: Any) -> None:
        self.level = level
        parameters = f.cache_parameters()
        self.maxsize = parameters["maxsize"]
        self.typed = parameters["typed"]
        self.entries: OrderedDict[Any, Any] = OrderedDict()
        self.hits = self.misses = 0
        self.body = function_behind(f)
        self.native = self._prepare()
        self.in_several = bool(level.calls.memos.made)
        self.decided = False

    def _prepare(self) -> bool:
        """Let the function run rewritten when C code calls it; False if it is C code itself."""
        body = self.body
        if type(body) is FunctionType:
            adopt.adopt_function(body)
            return True
        cls = body if isinstance(body, type) else type(body)
        adopt.adopt(cls)
        return type(getattr(cls, "__call__" if cls is type(body) else "__init__", None)) is FunctionType

    def call(self, f: Any, /, *args: Any, **kwargs: Any) -> Any:
        """f(*args, **kwargs) of the cached function `f`."""
        level = self.level
        active = ()
        values = (*args, *kwargs.values()) if kwargs else args
        if not all_among(values, _BY_IDENTITY):
            for x in values:
                level.meet(x)  # C code hashes and compares it
            active = tuple(active_parts(level, values))
        if active:
            depth = min(active)[0]
            if depth:  # it depends on the inputs of a level further out only
                level = next(itertools.islice(outwards(level), depth, None))
                return level.calls.memos.of_function(f).remembered(self.level, f, args, kwargs, active)
        elif PASSING_CACHES.get():
            return self.remembered(level, f, args, kwargs, ())
        elif self.native or not self._sees_active(f, args, kwargs):
            if self.in_several:
                return self._in_one_of_several_runs(f, args, kwargs)
            return f(*args, **kwargs)
        return self.remembered(level, f, args, kwargs, active)

    def _in_one_of_several_runs(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """f(*args, **kwargs), where a number that another run left in the cache is computed again."""
        level = self.level
        misses = f.cache_info().misses
        value = f(*args, **kwargs)
        if f.cache_info().misses != misses:
            if level.calls.finds_active(value):
                level.calls.memos.made[-1][id(value)] = value, level
            return value
        for made in level.calls.memos.made:
            found = made.get(id(value))
            if found is not None and found[0] is value and found[1] not in outwards(level):
                return self.remembered(level, f, args, kwargs, ())
        return value

    def _sees_active(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether C code behind the cache could compute with active numbers that are no part of the key."""
        finds_active = self.level.calls.finds_active
        return any(map(finds_active, (*args, *kwargs.values(), *bound_to(adopt.body_of(f)))))

    def remembered(
        self, level: Level, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], active: Any
    ) -> Any:
        """f(*args, **kwargs), where `active` is part of the key; a miss runs the function at `level`."""
        entries = self.entries
        key = (*args, *itertools.chain.from_iterable((_KEYWORD, *item) for item in kwargs.items()))
        key += (_KEYWORD, *[identity for _, identity in active])
        if self.typed:
            key += tuple(map(type, (*args, *kwargs.values())))
        try:
            found = entries.get(key)
        except TypeError:
            for x in (*args, *kwargs.values()):
                hash(x)  # says what is unhashable as a plain call would
            raise
        if found is not None:
            self.hits += 1
            try:
                entries.move_to_end(key)
            except KeyError:  # another thread has dropped it
                pass
            return found[0]
        self.misses += 1
        value = level.prep(adopt.body_of(f))(*args, **kwargs)
        if self.maxsize != 0:
            entries[key] = (value,)
            if self.maxsize is not None and len(entries) > self.maxsize:
                entries.popitem(last=False)
        return value


def function_behind(f: Any) -> Any:
    """What a call of the cached function `f` reaches: past partial functions, bound methods and other caches."""
    while True:
        t = type(f)
        if t is LruCached:
            f = adopt.body_of(f)
        elif t is MethodType:
            f = f.__func__
        elif t is functools.partial:
            f = f.func
        else:
            return f


def bound_to(body: Any) -> list[Any]:
    """What C code behind a cache is given besides the arguments of a call."""
    found: list[Any] = []
    while type(body) is functools.partial:
        found += (*body.args, *body.keywords.values())
        body = body.func
    if type(body) is BuiltinFunctionType or type(body) is MethodType:
        found.append(body.__self__)
    elif not isinstance(body, type):
        found.append(body)
    return found


def active_parts(level: Level, x: Any) -> Iterator[tuple[int, int]]:
    """The active numbers by which `x` is compared with others: how many levels further out, and the identity."""
    seen: dict[int, Any] = {}
    todo = [x]
    while todo:
        x = todo.pop()
        kind = kind_of(type(x))
        if kind == NUMBER:
            for depth, outer in enumerate(outwards(level)):
                if id(x) in outer.index:
                    yield depth, id(x)
                    break
            continue
        if kind == NOTHING or kind == ARRAY or id(x) in seen:
            continue
        seen[id(x)] = x
        if kind == SEQUENCE or type(x) is frozenset:
            todo += [part for part in x if not is_among(type(part), _BY_IDENTITY)]
        elif kind == MAPPING:
            todo += [*x.values(), *x.keys()]
        elif kind == OBJECT and type(x).__eq__ is not object.__eq__:
            level.meet(x)
            todo += parts_of(x).values()
