"""Fresh inputs: every differentiated leaf becomes a new object on entry, and the caller's own comes back after.

A new float or a copied array is nobody else's, so `f(x0)` where `f` also reads a global that is `x0`
differentiates only the argument, and `[1.0, 1.0]` has two leaves. Lists, dictionaries and objects keep their own
identity and are patched for the duration of the call; tuples are rebuilt.
"""

from __future__ import annotations

from _thread import get_ident
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.engine.calls.level import Level
from plaingrad.engine.calls.opening import restore_errors
from plaingrad.engine.compiled import core
from plaingrad.engine.memory.entries import entries_of, has_fields, is_of_floats, put
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.memory.memory import lender_of, overlaps_itself, owner_of
from plaingrad.engine.memory.structure import (
    ArrayNode,
    FloatsNode,
    MappingNode,
    NumberNode,
    ObjectNode,
    ObjectsNode,
    SequenceNode,
)
from plaingrad.engine.refusals.refuse import users_frames
from plaingrad.engine.reverse.exclusive import acquire, at_work, collect, release
from plaingrad.engine.reverse.unfit_arguments import describe_type, too_deep, way_out
from plaingrad.engine.values import array_classes, subclasses
from plaingrad.engine.values.borrowed import describe, is_lent, is_private, is_there, refuse_lent
from plaingrad.engine.values.shared_tensors import note_memory
from plaingrad.engine.values.twins import Twin
from plaingrad.errors import ArgumentError
from plaingrad.rewrite import PLAIN
from plaingrad.tangents.fields import fields_of


class Inputs:
    """The arguments of one differentiated call: `args` to call with, `nodes` that mirror the differentiated ones."""

    __slots__ = (
        "args",
        "arrays",
        "attributes",
        "containers",
        "floats",
        "leaves",
        "level",
        "nodes",
        "originals",
        "patched",
        "patches",
    )

    def __init__(self, level: Level, args: tuple[Any, ...]) -> None:
        self.level = level
        # id of a container -> (the container, id of fresh -> (fresh, original))
        self.patches: dict[int, tuple[Any, dict[int, Any]]] = {}
        # (container, key, fresh), or (list, range of keys, several)
        self.patched: list[tuple[Any, Any, Any]] = []
        self.floats: list[tuple[Any, Any]] = []  # (list or tuple, its `FreshFloats`), of the compiled core
        self.arrays: list[tuple[np.ndarray, np.ndarray, int]] = []  # (original, copy, index)
        self.attributes: list[tuple[np.ndarray, np.ndarray, dict[str, Any]]] = []  # (original, copy, its own)
        self.originals: dict[int, tuple[Any, Any]] = {}  # id of fresh -> (fresh, original)
        self.containers: dict[int, Any] = {}
        self.nodes: list[Any] = []
        self.args, self.leaves = list(args), 0

    def make_fresh(self, argnums: tuple[int, ...]) -> None:
        """Make the leaves of the arguments at `argnums` fresh, once no other thread has them; until `restore`."""
        args = tuple(self.args)
        for n in argnums:
            if type(args[n]) is not float:
                try:
                    collect(args[n], self.containers, set())
                except RecursionError:
                    raise too_deep(n) from None
        acquire(self.level, self.containers)
        memo: dict[int, Any] = {}
        for n in argnums:
            if type(args[n]) is float:
                self.args[n], node = self._fresh_number(args[n])
                self.nodes.append(node)
                continue
            name = f"argument {n}"
            leaves, seen = self.leaves, id(args[n]) in memo
            try:
                self.args[n], node = self._fresh(args[n], name, memo, as_real=True)
            except RecursionError:
                raise too_deep(n) from None
            if self.leaves == leaves and not seen:
                raise ArgumentError(
                    f"{name} is {describe_type(args[n])}, which holds no real or complex number, so it has no "
                    f"tangent.\n  {way_out(args[n])}\n  See docs: errors#argument"
                )
            self.nodes.append(node)
        if self.level.twins:
            self._find_twins()
        if self.patched:
            self.level.patched = self.patched

    # -- making fresh ----------------------------------------------------------------------------------------------

    def _fresh(self, x: Any, name: str, memo: dict[int, Any], as_real: bool) -> tuple[Any, Any]:
        """(what to pass instead of `x`, its node or None)."""
        kind = kind_of(type(x))
        if as_real and not isinstance(x, bool) and isinstance(x, (int, np.integer)):
            x = float(x)
            kind = NUMBER
        if kind == NUMBER:
            system = number_classes.system_of(x) if number_classes.known else None
            return (x, None) if system is not None and not system.varies(x) else self._fresh_number(x)
        if kind == ARRAY and x.dtype.kind != "O":
            return self._fresh_array(x, name, as_real)
        if id(x) in memo:
            return memo[id(x)]
        if kind == ARRAY:
            return fresh_objects(self, x, name, memo)
        if kind == SEQUENCE:
            return self._fresh_sequence(x, name, memo)
        if kind == MAPPING:
            entries = {}
            memo[id(x)] = x, (node := MappingNode(entries))
            for key, value in list(x.items()):
                new, entries[key] = self._fresh(value, f"{name}[{key!r}]", memo, False)
                if new is not value:
                    self._patch(x, key, value, new)
            return x, node
        if kind == OBJECT and has_fields(x):
            fields = fields_of(x)
            leaves = self.leaves
            entries = {}
            memo[id(x)] = x, (node := ObjectNode(type(x), entries))
            for key, value in fields.items():
                new, entries[key] = self._fresh(value, f"{name}.{key}", memo, False)
                if new is not value:
                    self._patch(x, key, value, new)
            if self.leaves == leaves and not any(node is not None for node in entries.values()):
                memo[id(x)] = x, None
                return x, None
            return x, node
        return x, None

    def _fresh_number(self, x: Any) -> tuple[Any, NumberNode]:
        new = self.level.fresh_number(x)
        if number_classes.known:
            note_memory(new)
        self.originals[id(new)] = new, x
        self.leaves += 1
        return new, NumberNode(self.level.add_number(new), new)

    def _fresh_array(self, x: np.ndarray, name: str, as_real: bool) -> tuple[Any, Any]:
        level = self.level
        if x.dtype.kind not in "fc" and not (as_real and x.dtype.kind in "iu"):
            return x, None
        copy = fresh_copy(level, x) if x.dtype.kind in "fc" else x.astype(float)
        if type(x) is not np.ndarray:
            self.attributes.append((x, copy, subclasses.attributes_of(copy)))
        if not x.flags.writeable:
            copy.flags.writeable = False
        index = level.add_region(owner_of(copy))  # a masked array's copy is a view
        self.leaves += 1
        self.originals[id(copy)] = copy, x
        level.twins.append(Twin(x, copy, name))
        if x.base is not None or not x.flags.owndata:
            owner = owner_of(x)
            if is_lent(owner) and not is_private(owner):
                level.twins[-1].lent = True
        if overlaps_itself(x):  # the copy's elements have each their own memory
            level.twins[-1].touched = True
            level.twins[-1].other = "overlapping elements of itself"
        level.fresh[index] = level.twins[-1]
        self.arrays.append((x, copy, index))  # only now: `restore` asks for the twin
        return copy, ArrayNode(index, copy)

    def _fresh_sequence(self, x: Any, name: str, memo: dict[int, Any]) -> tuple[Any, Any]:
        entries: list[Any] = []
        mutable = isinstance(x, (list, deque))
        if mutable:
            memo[id(x)] = x, SequenceNode(x, entries)
        values = []
        changed = False
        if is_of_floats(x):
            if self.level.recorder is not None:
                return self._fresh_in_core(x, memo)
            values = self._fresh_floats(x, entries)
            if mutable:
                x[:] = values
                self.patched += [(x, key, new) for key, new in enumerate(values)]
                return memo[id(x)]
            new = tuple(values)
            self.originals[id(new)] = new, x
            return new, SequenceNode(x, entries)
        for key, value in enumerate(list(x)):
            new, node = self._fresh(value, f"{name}[{key}]", memo, False)
            entries.append(node)
            values.append(new)
            if new is not value:
                changed = True
                if mutable:
                    self._patch(x, key, value, new)
        if mutable:
            return memo[id(x)]
        node = SequenceNode(x, entries)
        if changed:
            new = type(x)(*values) if hasattr(x, "_fields") else type(x)(values)
            self.originals[id(new)] = new, x
            x = new
        return x, node

    def _fresh_in_core(self, x: Any, memo: dict[int, Any]) -> tuple[Any, Any]:
        """As `_fresh_sequence`, of a list or tuple of floats at a level that is compiled."""
        recorder = self.level.recorder
        first = recorder.next_index()
        olds = tuple(x)  # another thread may be changing a list
        values = recorder.fresh(olds)
        self.leaves += len(values)
        self.floats.append((x, core.FreshFloats(values, olds)))
        node = FloatsNode(x, values, first)
        if type(x) is tuple:
            new = tuple(values)
            self.originals[id(new)] = new, x
            return new, node
        x[:] = values
        self.patched.append((x, range(len(values)), values))
        memo[id(x)] = x, node
        return x, node

    def _fresh_floats(self, x: Any, entries: list[Any]) -> list[Any]:
        """Fresh floats for those of `x`, a list or tuple, and their nodes; a list is about to be patched with them."""
        level, originals = self.level, self.originals
        table: dict[int, Any] = self.patches.setdefault(id(x), (x, {}))[1] if type(x) is list else {}
        values = list(map(level.fresh_number, x))
        for new, value in zip(values, x, strict=True):
            originals[id(new)] = table[id(new)] = new, value
            entries.append(NumberNode(level.add_number(new), new))
        self.leaves += len(values)
        return values

    def _patch(self, container: Any, key: Any, old: Any, new: Any) -> None:
        self.patches.setdefault(id(container), (container, {}))[1][id(new)] = new, old  # before it is done
        put(container, key, new)
        self.patched.append((container, key, new))

    def _find_twins(self) -> None:
        """Arrays that the caller can reach under two names."""
        level = self.level
        twins = level.twins
        for k, twin in enumerate(twins):
            for other in twins[:k]:
                if np.may_share_memory(twin.original, other.original):
                    twin.touched = other.touched = True
                    twin.other, other.other = other.name, twin.name
            owner = owner_of(twin.original)
            lender = lender_of(owner)
            for memory in (owner,) if lender is None else (owner, lender):
                if id(memory) not in level.index:
                    level.index[id(memory)] = -1 - k
                    level.arrays.append(memory)

    # -- afterwards ------------------------------------------------------------------------------------------------

    def check_lent(self) -> None:
        """Refuse arguments whose memory the function has changed by another way than as that array."""
        for twin in self.level.twins:
            if twin.lent and not twin.torn and is_there(twin.original):
                if not np.array_equal(twin.original, twin.copy, equal_nan=True):
                    twin.torn = True
                    whose = describe(twin.original)
                    refuse_lent(
                        f"the array passed as {twin.name} lies in memory of {whose}, which was changed otherwise"
                    )

    def restore(self) -> None:
        """Put the caller's own objects back, with what the function wrote into its arguments; it may be done twice."""
        level = self.level
        if self.arrays:
            torn = any(twin.torn for twin in level.twins)
            for original, copy, index in self.arrays:
                if level.fresh[index].written and not torn:
                    level.outside(write_back, original, copy)
            self.arrays = []
        for original, copy, before in self.attributes:
            subclasses.hand_back(original, copy, before)
        self.attributes = []
        for container, floats in self.floats:
            if type(container) is list:
                floats.restore(container)
        for container, table in self.patches.values():
            if type(container) is list:
                for key, value in enumerate(container[:]):
                    found = table.get(id(value))
                    if found is not None and found[0] is value:
                        container[key] = found[1]
                continue
            for key, value in entries_of(container):
                found = table.get(id(value))
                if found is not None and found[0] is value:
                    put(container, key, found[1])
        if any(twin.lent for twin in level.twins):
            self._forget_lent()
        self.patches = {}
        if self.containers:
            release(level, self.containers)
            self.containers = {}

    def _forget_lent(self) -> None:
        """Let go of memory that the caller may want to give back after the call."""
        level = self.level
        for k, owner in reversed(list(enumerate(level.arrays))):
            i = level.index.get(id(owner))
            if type(i) is int and i < 0:
                del level.index[id(owner)], level.arrays[k]
        for index in [index for index, twin in level.fresh.items() if twin.lent]:
            del level.fresh[index]
        level.twins[:] = [twin for twin in level.twins if not twin.lent]
        self.arrays.clear()

    def own(self, y: Any) -> Any:
        """The result, with fresh inputs in it replaced by the caller's own objects."""
        found = self.originals.get(id(y))
        if found is not None and found[0] is y:
            return found[1]
        if type(y) is float:
            for _, floats in self.floats:
                if (old := floats.find(y)) is not None:
                    return old
            return y
        if type(y) is tuple:
            parts = [self.own(part) for part in y]
            return y if all(a is b for a, b in zip(parts, y, strict=True)) else tuple(parts)
        if type(y) is list or type(y) is dict:
            for key, value in entries_of(y):
                new = self.own(value)
                if new is not value:
                    put(y, key, new)
        return y


def fresh_objects(inputs: Inputs, x: np.ndarray, name: str, memo: dict[int, Any]) -> tuple[Any, Any]:
    """An array of Python objects, which is a container: it keeps its identity, its elements are made fresh."""
    if type(x) is not np.ndarray or not x.flags.writeable:
        raise ArgumentError(
            f"{name} is an array of Python objects that cannot be written, or of a class of its own; pass a list, "
            "or an array of floats.\n  See docs: errors#argument"
        )
    leaves = inputs.leaves
    entries: dict[tuple[int, ...], Any] = {}
    memo[id(x)] = x, (node := ObjectsNode(x.shape, entries))
    for key, value in list(np.ndenumerate(x)):
        new, entries[key] = inputs._fresh(value, f"{name}[{', '.join(map(str, key))}]", memo, False)
        if new is not value:
            inputs._patch(x, key, value, new)
    if inputs.leaves == leaves:
        memo[id(x)] = x, None
    return memo[id(x)] if inputs.leaves == leaves else (x, node)


def inputs_of(level: Level, given: Any) -> Inputs:
    """Those that the compiled core has made fresh, and put back."""
    made = Inputs(level, ())
    news, olds = zip(*given.tuples, strict=True) if given.tuples else ((), ())
    for new, old in zip((*given.fresh, *news), (*given.olds, *olds), strict=True):
        made.originals[id(new)] = new, old
    for twin in given.arrays:
        made.originals[id(twin.copy)] = twin.copy, twin.original
    return made


def with_fresh(
    level: Any,
    args: tuple[Any, ...],
    argnums: tuple[int, ...],
    work: Callable[..., Any],
    *more: Any,
    kind: type[Inputs] = Inputs,
) -> Any:
    """work(inputs, *more) with the arguments at `argnums` made fresh; then the caller has its own objects back."""
    context = copy_context()
    inputs = kind(level, args)
    try:  # see `plaingrad.critical`
        try:
            try:
                try:
                    try:
                        at_work[level] = inputs, get_ident()
                        inputs.make_fresh(argnums)
                        result = work(inputs, *more)
                        inputs.check_lent()
                        return result
                    finally:
                        inputs.restore()
                        at_work.pop(level, None)
                except BaseException as error:
                    _leave(level, inputs, context, error)
                    raise
            except BaseException as error:
                _leave(level, inputs, context, error)
                raise
        except BaseException as error:
            _leave(level, inputs, context, error)
            raise
    except BaseException as error:
        _leave(level, inputs, context, error)
        error.__traceback__ = users_frames(error.__traceback__)
        raise


def _leave(level: Any, inputs: Inputs, context: Context, error: BaseException) -> None:
    """Put everything back, after an exception."""
    inputs.restore()
    at_work.pop(level, None)
    if not isinstance(error, Exception):
        restore_errors(context)


def fresh_copy(level: Level, x: np.ndarray) -> np.ndarray:
    """A copy of `x`, which depends on whatever `x` depends on further out."""
    if level.parent is PLAIN and type(x) is np.ndarray:
        return x.copy("K")
    recorder = None if level.parent is PLAIN else level.parent.recorder
    copy = recorder.copied(x) if hasattr(recorder, "copied") else None
    return level.outside(copied, x) if copy is None else copy


def copied(x: np.ndarray) -> np.ndarray:
    """A copy of `x` in its own memory layout."""
    return np.ndarray.copy(x, order="K")


def write_back(original: np.ndarray, copy: np.ndarray) -> None:
    """original[...] = copy."""
    array_classes.bare(original)[...] = array_classes.bare(copy)


if core is not None:
    core.set_arrays(Twin, fresh_copy, write_back)
