"""The table of tangents of a forward level: filed under what they belong to, read, seeded and handed out."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Any, ClassVar

import numpy as np

from plaingrad import number_classes, rulebook
from plaingrad.engine.calls.level import Level
from plaingrad.engine.compiled import core
from plaingrad.engine.forward import pushing
from plaingrad.engine.fusion.fused import ForwardBlocks, cells_of
from plaingrad.engine.fusion.hot_hooks import forward_hooks
from plaingrad.engine.fusion.own_operators import (
    arithmetic_setter,
    has_own_numbers,
    own_compiled,
    own_operators,
)
from plaingrad.engine.memory import regions
from plaingrad.engine.memory.entries import is_of_floats
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.memory.regions import Region
from plaingrad.engine.memory.tape import ArraySlot, NumberSlot, Tree
from plaingrad.engine.values.fresh import has_attributes, put_field, rebuilt
from plaingrad.errors import RuleError
from plaingrad.rewrite import PLAIN
from plaingrad.rewrite.hooks import EXPRESSIONS, FUSED, HOOKED
from plaingrad.tangents import NoTangent, Tangent, Thunk, ZeroTangent, unthunk
from plaingrad.tangents.fields import fields_of, parts_of

QUIET = {"all": "ignore"}  # the primal has warned, if there was anything to warn of


class Tangents(Level):
    """A level whose table maps a number to its tangent, and an owner of memory to a `Region`."""

    __slots__ = ("lead",)

    region_class: ClassVar[type[Region]] = Region
    has_hot_hooks: ClassVar[bool] = True  # arithmetic on floats is what `fusion.hot_hooks` does

    def __init__(self, parent: Any, chunk: int | None = None) -> None:
        self.lead: tuple[int, ...] = () if chunk is None else (chunk,)
        super().__init__(parent)

    def hot_hooks(self) -> dict[str, Any]:
        """The hooks that run most; see `fusion.hot_hooks`."""
        if not self.has_hot_hooks:
            return {"unary": None}
        if core is not None and self.parent is PLAIN:
            self.recorder = core.ChunkPusher(self) if self.lead else core.ArrayPusher(self)
            self.index = self.recorder.index
            return self.recorder.hooks()
        make = forward_hooks(self.parent is not PLAIN, bool(self.lead))
        hot = make(self, self.index, self.alive, self._sweep_numbers)
        if self.parent is PLAIN:
            self.blocks = ForwardBlocks(self, self.index.get, cells_of(hot))
        return hot

    def choose_arithmetic(self) -> None:
        """Let the hot hooks do what is plaingrad's own; an operator with a user's rule goes the general way."""
        own, self.own_arrays, fuses = own_operators(rulebook.changes())
        self.fuses = fuses and self.has_hot_hooks and self.parent is PLAIN and self.recorder is None
        compiled = frozenset() if self.recorder is None else own_compiled(rulebook.changes())
        arithmetic_setter(own if self.has_hot_hooks else frozenset(), compiled)(self, self.hot)
        if self.recorder is not None:
            self.recorder.own_arrays = self.own_arrays
            self.recorder.own_numbers = has_own_numbers(own)
        self.form = FUSED if self.fuses else EXPRESSIONS if self.recorder is not None else HOOKED

    def add_number(self, x: Any) -> Any:
        """File the fresh number `x` as active, with a tangent still to be set."""
        if self.recorder is not None and (type(x) is float or type(x) is np.float64):
            self.recorder.file(x, 0.0)
            return x
        self.alive.append(x)  # first, so that no other object gets its identity
        self.index[id(x)] = 0.0
        if len(self.alive) % 4096 == 0:
            self._sweep_numbers()
        return x

    def add_region(self, owner: Any) -> Region:
        """File the memory that `owner` holds as active, with a tangent of zero."""
        region = self.region_class(self.lead)
        self.arrays.append(owner)
        self.index[id(owner)] = region
        self._array_bytes += getattr(owner, "nbytes", 64) * (1 + sum(self.lead)) + 1000
        if self._array_bytes > self._array_limit:
            self._sweep_arrays()
        return region

    def file_number(self, x: Any, x_dot: Any) -> Any:
        """`x`, or a new number equal to it, filed with tangent `x_dot`."""
        x = self.renewed(x)
        x_dot = self.computed(pushing.number_tangent, x_dot, x, self.lead)
        if self.recorder is not None and (type(x) is float or type(x) is np.float64):
            self.recorder.file(x, x_dot)
            return x
        self.alive.append(x)
        self.index[id(x)] = x_dot
        if len(self.alive) % 4096 == 0:
            self._sweep_numbers()
        return x

    def file_array(self, x: np.ndarray, x_dot: Any, is_new: bool) -> np.ndarray:
        """`x`, or a copy, with `x_dot` for its tangent; `is_new`: its memory was made for it."""
        x = self.renewed(x)
        owner = owner_of(x)
        region = self.add_region(owner)
        x_dot = self.computed(pushing.array_tangent, x_dot, x, self.lead)
        if owner is x:
            if not is_new or x_dot.base is not None or self.parent is not PLAIN:
                x_dot = self.outside(np.array, x_dot)
            region.dot = x_dot
        else:
            self.computed(regions.update_whole, region, x, x_dot)
        return x

    def file(self, y: Any, y_dot: Any, is_new: bool = False) -> Any:
        """`y`, a result, with its numbers made fresh and tangent `y_dot` filed."""
        if type(y_dot) is Thunk:
            y_dot = self.outside(unthunk, y_dot)
        if y_dot is None or y_dot is ZeroTangent or y_dot is NoTangent:
            return y
        kind = kind_of(type(y))
        if kind == NUMBER:
            return self.file_number(y, y_dot)
        if kind == ARRAY:
            return self.file_array(y, y_dot, is_new) if y.dtype.kind in "fcV" else y
        if kind == SEQUENCE:
            values = []
            for k, part in enumerate(y):
                try:
                    values.append(self.file(part, y_dot[k], is_new))
                except (TypeError, IndexError, KeyError):
                    raise RuleError(
                        f"a pushforward returned {type(y_dot).__name__} for a result with {len(y)} entries"
                    ) from None
            return rebuilt(y, values)
        if kind == MAPPING or (kind == OBJECT and has_attributes(y)):
            for key, part in list(y.items() if kind == MAPPING else fields_of(y).items()):
                new = self.file(part, entry_of(y_dot, key), is_new)
                if new is not part:
                    put_field(y, key, new, kind)
        return y

    def dot_at(self, slot: Any, x: Any) -> Any:
        """The tangent that `slot` names; containers are filled up with explicit zeros."""
        kind = type(slot)
        if kind is NumberSlot:
            return slot.index
        if kind is ArraySlot:
            x_dot = slot.index.read(x) if self.parent is PLAIN else self.outside(read_region, slot.index, x)
            return ZeroTangent if x_dot is None else x_dot
        return self._filled(slot, x)

    def _filled(self, slot: Any, x: Any) -> Any:
        kind = kind_of(type(x))
        if slot is None:
            if kind == NUMBER:
                return self._zero(x)
            if kind == ARRAY:
                return np.zeros(self.lead + x.shape, x.dtype)
            if kind == NOTHING and isinstance(x, (int, np.integer)) and not isinstance(x, bool):
                return np.zeros(self.lead) if self.lead else 0
        inner = slot.slots if type(slot) is Tree else {}
        if slot is None or type(slot) is Tree:
            if kind == SEQUENCE:
                return rebuilt(x, [self._filled(inner.get(k), part) for k, part in enumerate(x)])
            if kind == MAPPING:
                return {key: self._filled(inner.get(key), part) for key, part in x.items()}
            if type(slot) is Tree and kind == OBJECT:
                return Tangent(
                    type(x), {name: self._filled(inner.get(name), v) for name, v in parts_of(x).items()}
                )
            return x
        x_dot = self.dot_at(slot, x)
        return self._filled(None, x) if x_dot is ZeroTangent else x_dot

    def _zero(self, x: Any) -> Any:
        """The zero tangent of a number, or of each of a chunk."""
        system = number_classes.system_of(x) if self.lead and number_classes.known else None
        if system is not None:
            return system.stacked([number_classes.zero(x)] * self.lead[0])
        return np.zeros(self.lead, number_type(x)) if self.lead else number_classes.zero(x)

    def computed(self, f: Callable[..., Any], *args: Any) -> Any:
        """f(*args), arithmetic on tangents, one level out and without warnings."""
        with np.errstate(**QUIET):
            return f(*args) if self.parent is PLAIN else self.outside(f, *args)

    def seed(self, node: Any, x: Any, x_dot: Any, seen: set[Any] | None = None) -> None:
        """Give a differentiated argument its tangent. `node` mirrors it, `x_dot` has its structure.

        Args:
            seen: which nodes have their tangents: a list, dictionary or object may hold itself.
        """
        if node is None:
            return
        kind = kind_of(type(x))
        is_zero = x_dot is None or x_dot is ZeroTangent or x_dot is NoTangent
        if kind == NUMBER:
            if type(x) is float and type(x_dot) is float and not self.lead and self.has_hot_hooks:
                self.index[id(x)] = x_dot
                return
            if is_zero:
                x_dot = np.zeros(self.lead) if self.lead else 0.0
            self.index[id(x)] = self.computed(pushing.number_tangent, x_dot, x, self.lead)
        elif kind == ARRAY and x.dtype.kind == "O":
            for key, inner in node.entries.items():
                self.seed(inner, x[key], x_dot if is_zero else x_dot[key])
        elif kind == ARRAY:
            if not is_zero:
                region = self.index[id(owner_of(x))]
                x_dot = self.computed(pushing.array_tangent, x_dot, x, self.lead)
                self.computed(regions.update_whole, region, x, x_dot)
        elif not is_zero:
            if self.recorder is not None and is_of_floats(x):
                if self.lead:
                    if isinstance(x_dot, (list, tuple)) and self.recorder.seed(x, x_dot):
                        return
                elif is_of_floats(x_dot):
                    self.recorder.seed(x, x_dot)
                    return
            seen = set() if seen is None else seen
            if (id(node), id(x_dot)) in seen:
                return
            seen.add((id(node), id(x_dot)))
            entries = node.entries
            parts = fields_of(x) if kind == OBJECT else x
            for key in range(len(entries)) if kind == SEQUENCE else entries:
                if entries[key] is not None:
                    self.seed(entries[key], parts[key], entry_of(x_dot, key), seen)

    def tangent_of(self, y: Any, made: dict[int, Any] | None = None) -> Any:
        """The tangent of a result, with its structure; None for what has none."""
        made = {} if made is None else made
        kind = kind_of(type(y))
        if kind == NUMBER:
            y_dot = self.index.get(id(y))
            if y_dot is not None:
                return y_dot
            return self._zero(y)
        if kind == ARRAY:
            if y.dtype.kind == "O":
                return made.setdefault(id(y), self._tangent_of_objects(y, made))
            if y.dtype.kind not in "fc":
                return None
            region = self.region(y)
            y_dot = None if region is None else self.dot_at(ArraySlot(region, y), y)
            if y_dot is None or y_dot is ZeroTangent:
                return np.zeros(self.lead + y.shape, y.dtype)
            return self.outside(np.array, y_dot)
        if kind == NOTHING or id(y) in made:
            return made.get(id(y))
        if kind == SEQUENCE:
            if not isinstance(y, tuple):
                made[id(y)] = whole = []
                whole += [self.tangent_of(part, made) for part in y]
                return whole
            parts = [self.tangent_of(part, made) for part in y]
            return type(y)(*parts) if hasattr(y, "_fields") else tuple(parts)
        if kind == MAPPING:
            made[id(y)] = found = {}
            for key, part in y.items():
                found[key] = self.tangent_of(part, made)
            return found
        fields = {} if isinstance(y, (FunctionType, MethodType, ModuleType, type)) else fields_of(y)
        if not fields:
            return None
        inner: dict[str, Any] = {}
        made[id(y)] = Tangent(type(y), inner)
        for name, part in fields.items():
            inner[name] = self.tangent_of(part, made)
        if all(part is None for part in inner.values()):
            made[id(y)] = None
        return made[id(y)]

    def _tangent_of_objects(self, y: np.ndarray, made: dict[int, Any]) -> Any:
        whole = np.empty(y.shape, object)
        for place in np.ndindex(y.shape):
            whole[place] = self.tangent_of(y[place], made)
        return whole


def read_region(region: Region, x: np.ndarray) -> Any:
    """The tangent of `x`; for calls one level out."""
    return region.read(x)


def entry_of(x_dot: Any, key: Any) -> Any:
    """The tangent of one entry of a container or object; None where it is not given."""
    if isinstance(x_dot, dict) or type(x_dot) is Tangent:
        return x_dot[key] if key in x_dot else None  # noqa: SIM401 - a field may be named `get`
    return x_dot[key]


def number_type(x: Any) -> Any:
    """The dtype of a chunk of tangents of `x`."""
    return type(x) if isinstance(x, (np.inexact, complex)) else float
