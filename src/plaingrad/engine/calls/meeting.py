"""Classes are met before C code enters their Python code: from then on that runs rewritten, while a level is open."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.class_keys import all_among, classes_of, is_among
from plaingrad.engine.compiled import core
from plaingrad.engine.memory.kinds import ARRAY, NUMBER, is_heap, kind_of
from plaingrad.engine.users_code import adopt, earlier_frames

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


class Meeting:
    """How one level meets objects."""

    level: Level
    met: dict[int, list[Any]]  # long heaps that were looked through

    def meet(self, o: Any) -> Any:
        """`o` itself, its class adopted; a class is adopted too."""
        t = type(o)
        try:
            known = t in adopt.known
        except TypeError:  # a class without hash
            known = False
        if not known:
            if earlier_frames.is_generator(t):
                earlier_frames.check(self.level, o)
                return o
            adopt.adopt(t)
        if isinstance(o, type):
            adopt.adopt(o)
        return o

    def meet_heap(self, heap: list[Any]) -> None:
        """Adopt the classes of a heap's entries; a long one is looked through at its first push or pop only."""
        if len(heap) > 64:
            if self.met.get(id(heap)) is heap:
                self.meet(heap[0])
                self.meet(heap[-1])
                return
            if len(self.met) > 256:
                self.met.clear()
            self.met[id(heap)] = heap
        self.meet_elements(heap)

    def meet_all(self, o: Any) -> Any:
        """`o` itself, met together with the entries of containers in it, which C code compares or hashes too."""
        if not NEEDS_NOTHING(o):
            self.meet(o)
            self.meet_elements(o)
        return o

    def meet_elements(self, container: Any) -> None:
        """Adopt the classes of a container's entries, at any depth, before C code compares or hashes them."""
        todo = [container]
        seen: set[int] = set()
        while todo:
            x = todo.pop()
            entries = entries_of(x)
            if not entries or id(x) in seen or all_among(entries, SIMPLE):
                continue
            seen.add(id(x))
            for t in classes_of(entries):
                adopt.adopt(t)
                if is_holder(t):
                    todo += [y for y in entries if type(y) is t]

    def met_items(self, it: Any) -> Any:
        """An iterator over what `it` gives, which C code will compare or hash: each is met before."""
        return _met_items(iter(it), self.meet_all)


def entries_of(x: Any) -> Collection[Any]:
    """What C code compares or hashes where it compares or hashes `x`."""
    t = type(x)
    if issubclass(t, (list, tuple, set, frozenset, deque)):
        base = next(b for b in SEQUENCES if issubclass(t, b))
        while t is not tuple:
            try:
                return list(base.__iter__(x))  # as it is now
            except RuntimeError:  # another thread changed it meanwhile: a search for garbage lets that run
                continue
        return x
    if issubclass(t, dict):
        x = dict.copy(x)  # in one step: another thread may change it
        return [*x.keys(), *x.values()]
    if issubclass(t, np.ndarray):
        return np.ndarray.tolist(np.ndarray.ravel(x)) if x.dtype.kind == "O" else ()
    if t is slice:
        return x.start, x.stop, x.step
    if is_among(t, DICT_VIEWS):
        return list(x)
    if t is SimpleNamespace:
        return list(vars(x).values())
    if issubclass(t, weakref.ref):
        referent = weakref.ref.__call__(x)
        return () if referent is None else (referent,)
    return ()


def is_holder(t: type) -> bool:
    """Whether `entries_of` knows where the entries of instances of `t` are."""
    return issubclass(t, HOLDERS) or t is slice or is_among(t, UNUSUAL)


def runs_code(x: Any) -> bool:
    """Whether C code that has `x` may enter Python code: of its class, or of an entry's."""
    todo, seen = [x], set()
    while todo:
        x = todo.pop()
        t = type(x)
        if is_heap(t) and kind_of(t) not in (NUMBER, ARRAY) and t is not COPY_MODE:
            return True
        if is_holder(t) and id(x) not in seen:
            seen.add(id(x))
            todo += entries_of(x)
    return False


def _all_simple(o: Any) -> bool:
    return is_among(type(o), SIMPLE)


def _met_in_python(iterator: Iterator[Any], meet_all: Callable[[Any], Any]) -> Iterator[Any]:
    for x in iterator:
        meet_all(x)
        yield x


COPY_MODE = getattr(
    np, "_CopyMode", None
)  # NumPy's own, for `copy=`: its __bool__ sees nothing of the program's
SIMPLE = adopt.STATIC_SCALARS - {slice}  # of these, instances hold nothing
SEQUENCES = (list, tuple, set, frozenset, deque)
HOLDERS = (*SEQUENCES, dict, np.ndarray, weakref.ref)
DICT_VIEWS = frozenset(type(view) for d in ({}, OrderedDict()) for view in (d.keys(), d.values(), d.items()))
# Classes whose entries only `entries_of` finds.
UNUSUAL = DICT_VIEWS | {deque, set, frozenset, weakref.ref, SimpleNamespace}
#: NEEDS_NOTHING(o): no class in `o` has to be met before C code has it.
NEEDS_NOTHING: Callable[[Any], bool] = _all_simple
_met_items: Callable[[Iterator[Any], Callable[[Any], Any]], Any] = _met_in_python
if core is not None:
    core.set_known(adopt.known, UNUSUAL)
    NEEDS_NOTHING, _met_items = core.needs_nothing, core.MetItems
