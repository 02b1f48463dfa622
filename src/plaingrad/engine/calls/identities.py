"""The table of identities of a level: which numbers and which memory are active, and what is made active next.

An active number is known by its `id`, memory by that of its owner; the table keeps both alive, and lets go of what only
it still holds (the sweep).
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from plaingrad.critical import if_free
from plaingrad.engine.calls.system_arrays import finds_written, written_roots
from plaingrad.engine.fusion.hot_hooks import SWEEP_BYTES, sweep, sweep_inside
from plaingrad.engine.memory.entries import items_of
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.memory.memory import lender_of, overlaps_itself, owner_of
from plaingrad.engine.memory.tape import ArraySlot, NumberSlot, Tree
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.values import texts
from plaingrad.engine.values.borrowed import Borrowed
from plaingrad.engine.values.fresh import fresh_number, has_attributes, is_users_number, put_field, rebuilt
from plaingrad.engine.values.records import refuse_bits
from plaingrad.engine.values.twins import Twin
from plaingrad.rewrite import PLAIN, in_force
from plaingrad.rewrite.hooks import Hooks
from plaingrad.tangents.fields import fields_of, parts_of

if TYPE_CHECKING:
    from plaingrad.engine.calls.calls import Calls
    from plaingrad.engine.values.texts import Texts


class Identities(Hooks):
    """A level's table, and the derivatives' places of what an operation is given and makes."""

    __slots__ = (
        "_array_bytes",
        "_array_limit",
        "activating",
        "alive",
        "arrays",
        "borrowed",
        "calls",
        "captured",
        "fresh",
        "index",
        "may_sweep",
        "own_arrays",
        "parent",
        "recorder",
        "sweeping",
        "texts",
        "twins",
    )

    parent: Any  # the next level out, or `PLAIN`
    calls: Calls
    recorder: Any  # what holds the numbers of the table where the hooks are compiled, or None
    # id of an active number, or of an active array's owner -> where its derivative is; a negative int: a twin
    index: Any
    alive: list[Any]  # the numbers in `index`
    arrays: list[Any]  # the owners of memory in `index`
    captured: dict[int, Any]  # id of an owner that some pullback reads -> the owner
    borrowed: Borrowed
    twins: list[Twin]
    fresh: dict[Any, Twin]  # where a fresh argument array's derivative is -> its twin
    texts: Texts  # numbers that left as text
    own_arrays: bool  # the rules of arithmetic of arrays are plaingrad's own
    activating: Any  # a lock; reentrant: a finaliser may run while it is held
    sweeping: Any  # a lock that is held during a sweep
    may_sweep: bool

    @property
    def order(self) -> int:
        """How many derivatives this level takes at once: more than one in Taylor mode."""
        return 1

    def outside(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """f(*args, **kwargs) with the next level out in force; engine and rule code runs rewritten there."""
        parent = self.parent
        return in_force(parent, f if parent is PLAIN else parent.calls.inside(f), *args, **kwargs)

    def add_number(self, x: Any) -> Any:
        """File the fresh number `x` as active; what the table says of it."""
        raise NotImplementedError

    def add_region(self, owner: Any) -> Any:
        """File the memory that `owner` holds as active; what the table says of it."""
        raise NotImplementedError

    def region(self, a: np.ndarray) -> Any:
        """What the table says of the memory that array `a` lies in, or None if it is not active."""
        if a.base is None:
            i = self.index.get(id(a))
        else:
            owner = owner_of(a)
            i = self.index.get(id(owner))
            if i is None and owner.base is not None:
                i = self.index.get(id(lender_of(owner)))  # that of an argument, by another name
                if i is None:
                    self._refuse_hidden_memory(a, owner)
        if i is None:
            return None
        if type(i) is int and i < 0:
            return self._twin_region(a)
        if a.dtype.kind not in "fc" and a.dtype.names is None:
            refuse_bits(a)
        return i

    def _refuse_hidden_memory(self, a: np.ndarray, owner: np.ndarray) -> None:
        """Memory that `owner` has borrowed by its address may be that of an active array."""
        if self.texts.raw:
            texts.check_bytes(self, lender_of(owner))
        if self.borrowed.finds_active(a, owner) or (written_roots and finds_written(cast("Any", self), a)):
            missing_rule(
                np.asarray, "It reaches differentiated numbers by their address (`__array_interface__`)."
            )

    def _twin_region(self, a: np.ndarray) -> None:
        for twin in self.twins:
            if np.may_share_memory(a, twin.original):
                twin.touched = True
                twin.check()
        return None

    def owns_region(self, owner: Any) -> bool:
        """Whether the memory that `owner` holds is active."""
        i = self.index.get(id(owner))
        return i is not None and not (type(i) is int and i < 0)

    def slot_of(self, x: Any, seen: dict[int, Any] | None = None) -> Any:
        """Where the cotangent of `x` goes, or None if nothing in `x` is active."""
        kind = kind_of(type(x))
        if kind == NUMBER:
            i = self.index.get(id(x))
            return None if i is None else NumberSlot(i, x)
        if kind == ARRAY:
            i = self.region(x)
            if i is not None:
                return ArraySlot(i, x)
            return self._tree(enumerate(x.flat), x, seen) if x.dtype.kind == "O" else None
        if kind == NOTHING:
            return None
        if kind == SEQUENCE:
            return self._tree(enumerate(list(x)), x, seen)
        if kind == MAPPING:
            return self._tree(items_of(x), x, seen)
        if type(x) is ModuleType:
            return None
        parts = parts_of(x)
        return self._tree(list(parts.items()), x, seen) if parts else None

    def _tree(self, items: Any, x: Any, seen: dict[int, Any] | None) -> Tree | None:
        seen = {} if seen is None else seen
        if id(x) in seen:
            return seen[id(x)]  # in two places, the cotangents of both arrive; inside itself, None
        seen[id(x)] = None
        slots = {}
        for key, value in items:
            kind = kind_of(type(value))
            if kind == NOTHING:
                continue
            slot = self.slot_of(value, seen)
            if slot is not None:
                slots[key] = slot
        if slots:
            seen[id(x)] = tree = Tree(slots)
            return tree
        return None

    def is_active(self, x: Any) -> bool:
        """Whether `x`, or something in it, depends on the inputs."""
        return self.slot_of(x) is not None

    def numbers(self) -> list[Any]:
        """The numbers in the table."""
        return self.alive if self.recorder is None else [*self.alive, *self.index.numbers()]

    def _sweep_numbers(self) -> int:
        self._sweep_alone(self.alive)
        if self.recorder is None:
            return len(self.alive)
        return len(self.alive) + (self.recorder.sweep() if self.may_sweep else 0)

    def _sweep_alone(self, values: list[Any]) -> bool:
        """Sweep `values`, unless another thread is at it, or a segment needs them; whether that was done."""
        return self.may_sweep and if_free(self.sweeping, self._sweep, values)

    def _sweep(self, values: list[Any]) -> bool:
        if not self.may_sweep:  # by now
            return False
        if self.parent is PLAIN:
            sweep(values, self.index)
            return True
        tables = []
        outer = self.parent
        while outer is not PLAIN:
            tables.append(outer.index)
            outer = outer.parent
        sweep_inside(values, self.index, tables)
        return True

    def _sweep_arrays(self) -> None:
        if self._sweep_alone(self.arrays):
            self._array_bytes = 0
            held = [getattr(owner, "nbytes", 0) for owner in self.arrays[:]]
            # To look at an array takes a twentieth of the time of an operation on a small one: so many may be dead as
            # are alive where they are small, and a quarter of the memory where they are large.
            self._array_limit = SWEEP_BYTES + max(sum(held) // 4, 800 * len(held))
            if self.recorder is not None:
                self.recorder.array_bytes, self.recorder.array_limit = 0, self._array_limit

    def fresh_number(self, y: Any) -> Any:
        """A new object equal to the number `y`, which still depends on whatever `y` depends on further out."""
        if type(y) is float:  # as `fresh_number` does
            return y * 1.0 if self.parent is PLAIN else self.parent.mul(y, 1.0)
        return self.outside(fresh_number, y)

    def renewed(self, y: Any) -> Any:
        """A number or array that a rule returned, as an object, and memory, of its own."""
        if kind_of(type(y)) == NUMBER:
            if id(y) in self.index or not is_users_number(type(y)):
                return self.fresh_number(y)
            return y
        owner = owner_of(y)
        if (
            id(owner) in self.index
            or id(owner) in self.captured
            or (y.base is not None and overlaps_itself(y))
        ):
            return self.outside(np.array, y)
        return y

    def add_outputs(self, y: Any) -> tuple[Any, Any]:
        """(y, slots) for the result of a rule: its numbers made fresh, its arrays filed."""
        kind = kind_of(type(y))
        if kind == NUMBER:
            y = self.renewed(y)
            return y, NumberSlot(self.add_number(y), y)
        if kind == ARRAY:
            if y.dtype.kind not in "fcV":
                return y, None
            y = self.renewed(y)
            return y, ArraySlot(self.add_region(owner_of(y)), y)
        if kind == SEQUENCE:
            parts = [self.add_outputs(part) for part in y]
            slots = {key: slot for key, (_, slot) in enumerate(parts)}
            if all(slot is None for slot in slots.values()):
                return y, None
            y = rebuilt(y, [value for value, _ in parts])
            return y, Tree(slots, y)
        if kind == MAPPING or (kind == OBJECT and has_attributes(y)):
            return self._add_fields(y, kind)
        return y, None

    def _add_fields(self, y: Any, kind: int) -> tuple[Any, Any]:
        """A dictionary, or an object of the program, that a rule has made: its entries are replaced in it."""
        slots: dict[Any, Any] = {}
        for key, part in list(y.items() if kind == MAPPING else fields_of(y).items()):
            new, slots[key] = self.add_outputs(part)
            if new is not part:
                put_field(y, key, new, kind)
        return y, Tree(slots, y) if any(slot is not None for slot in slots.values()) else None
