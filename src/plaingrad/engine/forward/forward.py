"""Forward mode: a level whose table holds the tangents themselves, so that memory follows what is alive.

With a chunk of n, every tangent has a leading axis of length n: n derivatives are taken in one run. Levels that
carry something else along the same ways (Taylor coefficients, index sets) override the `push_` methods.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Any, ClassVar

import numpy as np

from plaingrad import rulebook
from plaingrad.define import module_for, pair_of
from plaingrad.engine.calls.calls import fields_of
from plaingrad.engine.calls.level import (
    FLOAT64,
    Level,
    argument_at,
    arithmetic_setter,
    has_attributes,
    own_operators,
    put_field,
    rebuilt,
    refuse_bits,
)
from plaingrad.engine.forward import pushing
from plaingrad.engine.fusion.fused import ForwardBlocks, cells_of
from plaingrad.engine.fusion.hot_hooks import forward_hooks
from plaingrad.engine.memory import regions
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.memory.regions import Region
from plaingrad.engine.memory.tape import ArraySlot, NumberSlot, Tree
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.refusals.rule_faults import here, name_rule
from plaingrad.engine.reverse.run import Run
from plaingrad.engine.reverse.transpose import pushforward_of
from plaingrad.engine.values import records, texts, truncated
from plaingrad.errors import RuleError
from plaingrad.rewrite import PLAIN, in_force
from plaingrad.rulebook import Rule
from plaingrad.tangents import NoTangent, Tangent, Thunk, ZeroTangent, unthunk
from plaingrad.tangents.fields import parts_of

QUIET = {"all": "ignore"}  # the primal has warned, if there was anything to warn of


class ForwardLevel(Level):
    """A forward-mode derivative in progress: `index` maps a number to its tangent, an owner of memory to a `Region`.

    Attributes:
        lead: the leading axes of every tangent: () for one, (n,) for a chunk of n.
    """

    __slots__ = ("lead",)

    region_class: ClassVar[type[Region]] = Region
    has_hot_hooks: ClassVar[bool] = True  # arithmetic on floats is what `engine.hot` does
    takes_native_rules: ClassVar[bool] = True

    def __init__(self, parent: Any, chunk: int | None = None) -> None:
        self.lead: tuple[int, ...] = () if chunk is None else (chunk,)
        super().__init__(parent)

    def hot_hooks(self) -> dict[str, Any]:
        """The hooks that run most; see `engine.hot`."""
        if not self.has_hot_hooks:
            return {"unary": None}
        make = forward_hooks(self.parent is not PLAIN, bool(self.lead))
        hot = make(self, self.index, self.alive, self._sweep_numbers)
        if self.parent is PLAIN:
            self.blocks = ForwardBlocks(self, cells_of(hot))
        return hot

    def choose_arithmetic(self) -> None:
        """Let the hot hooks do what is plaingrad's own; an operator with a user's rule goes the general way."""
        own, self.own_arrays, fuses = own_operators(rulebook.changes())
        self.fuses = fuses and self.has_hot_hooks and self.parent is PLAIN
        arithmetic_setter(own if self.has_hot_hooks else frozenset())(self, self.hot)

    # -- tangents --------------------------------------------------------------------------------------------------

    def add_number(self, x: Any) -> Any:
        """File the fresh number `x` as active, with a tangent still to be set."""
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
                return np.zeros(self.lead, type(x)) if self.lead else type(x)(0)
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

    def computed(self, f: Callable[..., Any], *args: Any) -> Any:
        """f(*args), arithmetic on tangents, one level out and without warnings."""
        with np.errstate(**QUIET):
            return f(*args) if self.parent is PLAIN else self.outside(f, *args)

    # -- rules -----------------------------------------------------------------------------------------------------

    def by_rule(
        self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any, numbers: bool
    ) -> Any:
        """The primal, and the tangent of the result filed under it."""
        if rule.frule is None:
            if rule.kind == "scalar":
                return (
                    self.push_numbers(rule, f, args, inputs)
                    if numbers
                    else self.push_row(rule, f, args, inputs)
                )
            if rule.kind == "linear":
                return self.push_linear(rule, f, args, kwargs, inputs)
            if rule.kind == "bilinear":
                return self.push_bilinear(rule, f, args, kwargs, inputs)
        return self.push_full(rule, f, args, kwargs, inputs)

    def push_numbers(self, rule: Rule, f: Any, args: tuple[Any, ...], inputs: Any) -> Any:
        """A scalar row on numbers."""
        z = self.native(f, args, {})
        if (kind_of(type(z)) != NUMBER and type(z) is not np.ndarray) or id(z) in self.index:
            return z  # an integer, or the very argument
        positions = [position for position, _ in inputs]
        dots = [slot.index for _, slot in inputs]
        m = module_for(f, args)
        z_dot = self.computed(pushing.row, rule.partials, m, args, z, positions, dots, self.lead)
        return z if z_dot is None else self.file(z, z_dot)

    def push_row(self, rule: Rule, f: Any, args: tuple[Any, ...], inputs: Any) -> Any:
        """A scalar row on arrays, elementwise."""
        z = self.native(f, args, {})
        if self._is_settled(z, args, rule):
            return self._settled(z, args)
        positions, dots = self._varying(inputs, args)
        if not positions:
            return z
        m = module_for(f, args)
        z_dot = self.computed(pushing.row, rule.partials, m, args, z, positions, dots, self.lead)
        return self.file(z, z_dot, rule.own and not any(z_dot is x_dot for x_dot in dots))

    def _varying(self, inputs: Any, args: Any) -> tuple[list[int], list[Any]]:
        found = [(position, self.dot_at(slot, args[position])) for position, slot in inputs]
        found = [(position, x_dot) for position, x_dot in found if x_dot is not ZeroTangent]
        return [position for position, _ in found], [x_dot for _, x_dot in found]

    def push_linear(self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any) -> Any:
        """A function linear in its first argument."""
        self._only(rule, inputs, 1)
        y = self.native(f, args, kwargs)
        if len(args) > 1 and y is args[1] and getattr(f, "__name__", "") in ("conj", "conjugate"):
            missing_rule(f, "It was given its output array by position; pass it by keyword, out=...")
        if self._is_settled(y, args, rule) or (type(y) is np.ndarray and self.owns_region(owner_of(y))):
            return self._settled(y, args)
        x_dot = self.dot_at(inputs[0][1], args[0])
        if x_dot is ZeroTangent:
            return y
        if rule.chunked_frule is not None and self.lead:
            return self.push_full(rule, f, args, kwargs, inputs)
        y_dot = self.computed(pushing.linear, f, args[0], x_dot, args[1:], kwargs, self.lead)
        return self.file(y, y_dot, y_dot is not x_dot)

    def push_bilinear(self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any) -> Any:
        """A function linear in each of its first two arguments."""
        self._only(rule, inputs, 2)
        if rule.chunked_frule is not None and self.lead:
            return self.push_full(rule, f, args, kwargs, inputs)
        a, b = (argument_at(rule, position, args, kwargs) for position in (0, 1))
        y = self.native(f, args, kwargs)
        positions, dots = self._varying(inputs, (a, b))
        if not positions:
            return y
        found = dict(zip(positions, dots, strict=True))
        named = rule.parameters[:2]
        options = {name: x for name, x in kwargs.items() if name not in named}
        y_dot = self.computed(
            pushing.bilinear, f, a, b, found.get(0), found.get(1), args[2:], options, self.lead
        )
        return self.file(y, y_dot, True)

    def _only(self, rule: Rule, inputs: Any, count: int) -> None:
        for position, _ in inputs:
            if position >= count:
                missing_rule(
                    rule.function,
                    f"Its argument {position} depends on the inputs, and the rule knows no derivative for it.",
                )

    def push_full(self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any) -> Any:
        """Any rule, by its pushforward or the transpose of its pullback."""
        positions = [position for position, _ in inputs]
        xs = [argument_at(rule, position, args, kwargs) for position in positions]
        dots = [self.dot_at(slot, x) for (_, slot), x in zip(inputs, xs, strict=True)]
        chunked = bool(self.lead) and rule.chunked_frule is not None
        frule = rule.chunked_frule if chunked else rule.frule
        if frule is not None:
            count = max(len(args), len(rule.parameters), *[position + 1 for position in positions])
            every: list[Any] = [ZeroTangent] * count
            for position, x_dot in zip(positions, dots, strict=True):
                every[position] = x_dot
            if rule.dual is not None and not self.lead:
                try:
                    y, y_dot = self.outside(rule.dual, args, every, kwargs)
                except Exception as error:
                    if rule.users:
                        name_rule(error, rule, "frule", here())
                    raise
                return self._settled(y, args) if self._is_settled(y, args, rule) else self.file(y, y_dot)
            y, push = pair_of(rule, self.outside(frule, *args, **kwargs), "frule", "pushforward")
            if self._is_settled(y, args, rule) or (
                rule.kind == "linear" and type(y) is np.ndarray and self.owns_region(owner_of(y))
            ):
                return self._settled(y, args)
            part, push_dots = "pushforward", self.computed
            work: tuple[Any, ...] = (pushing.by_pushforward, push, tuple(every), self.lead, chunked)
        else:
            assert rule.rrule is not None
            y, pullback = pair_of(rule, self.outside(rule.rrule, *args, **kwargs))
            if self._is_settled(y, args, rule):
                return self._settled(y, args)
            part, push_dots = "pullback", self.beside
            work = (self._transposed, pullback, y, positions, xs, dots, rule)
        try:
            y_dot = push_dots(*work)
        except Exception as error:
            if rule.users:
                name_rule(error, rule, part, here())
            raise
        return self.file(y, y_dot, rule.own and not any(y_dot is x_dot for x_dot in dots))

    def _is_settled(self, y: Any, args: Any, rule: Rule) -> bool:
        """Whether a result needs no tangent of its own: no number, an array of objects, one of the arguments.

        What the rule of a user gives for an argument that it returns counts, though (a reversed gradient, say).
        """
        kind = kind_of(type(y))
        if kind == NOTHING or (kind == ARRAY and y.dtype.kind in "mO"):
            return True
        return any(y is x for x in args) and not (rule.users and rule.kind == "full")

    def _settled(self, y: Any, args: Any) -> Any:
        """Such a result, or a view; the objects made of an active array are numbers that carry its tangents."""
        if type(y) is np.ndarray and y.dtype.kind == "O" and type(args[0]) is np.ndarray:
            return self.to_objects(args[0])
        return y

    def _transposed(self, pullback: Any, y: Any, positions: Any, xs: Any, dots: Any, rule: Rule) -> Any:
        push = pushforward_of(Run, pullback, y, positions, xs, rule.name, rule.users)
        if not self.lead:
            return push(dots)
        each = [push([self.outside(pushing.chosen, x_dot, k) for x_dot in dots]) for k in range(self.lead[0])]
        return pushing.stacked(each) if self.parent is PLAIN else self.outside(pushing.stacked, each)

    def beside(self, f: Callable[..., Any], *args: Any) -> Any:
        """f(*args), engine code that is not rewritten, with the next level out in force."""
        return in_force(self.parent, f, *args)

    # -- arithmetic of arrays --------------------------------------------------------------------------------------

    def whole_arithmetic(self, name: str, f: Any, a: Any, b: Any) -> Any:
        """a op b of float64 arrays and real numbers, in a few steps of its own; None if it is something else."""
        if self.parent is not PLAIN or not self.has_hot_hooks:
            return None
        found = []
        for x in (a, b):
            t = type(x)
            if t is np.ndarray:
                if x.dtype.kind not in "fiub":
                    return None
                region = self.region(x)
                if region is not None and x.dtype is not FLOAT64:
                    return None
                found.append(None if region is None else region.read(x))
            elif t is float or t is np.float64:
                found.append(self.index.get(id(x)))
            elif t is int:
                found.append(None)
            else:
                return None
        a_dot, b_dot = found
        z = f(a, b)
        if a_dot is None and b_dot is None:
            return z
        if type(z) is not np.ndarray or z.dtype is not FLOAT64 or z.base is not None:
            return None
        lead = self.lead
        with np.errstate(**QUIET):
            if lead:
                a_dot = None if a_dot is None else pushing.aligned(a_dot, a, z.ndim, lead)
                b_dot = None if b_dot is None else pushing.aligned(b_dot, b, z.ndim, lead)
            z_dot = np.asarray(ARRAY_TANGENTS[name](a, b, z, a_dot, b_dot))
            if z_dot.shape != lead + z.shape:
                z_dot = np.array(np.broadcast_to(z_dot, lead + z.shape))
            elif z_dot is a_dot or z_dot is b_dot or z_dot.base is not None:
                z_dot = np.array(z_dot)
        self.add_region(z).dot = z_dot
        return z

    def elementwise(self, rule: Rule, f: np.ufunc, x: np.ndarray) -> Any:
        """f(x) of a float64 array by a scalar row; None if it is something else."""
        if x.dtype is not FLOAT64 or self.parent is not PLAIN or not self.has_hot_hooks:
            return None
        region = self.region(x)
        x_dot = None if region is None else region.read(x)
        if x_dot is None:
            return f(x)
        partial = rule.partials[0]
        if not callable(partial) or rule.frule is not None:
            return None
        z = f(x)
        if type(z) is not np.ndarray or z.dtype is not FLOAT64 or z.base is not None:
            return None
        with np.errstate(**QUIET):
            z_dot = np.asarray(partial(np, x, z) * x_dot)
        self.add_region(z).dot = z_dot
        return z

    # -- arrays: reading and writing -------------------------------------------------------------------------------

    def read_array(self, a: np.ndarray, k: Any) -> Any:
        """a[k]: a view needs nothing, a number or a copy gets its tangent."""
        region = self.region(a)
        z = a[k] if self.parent is PLAIN else self.parent.getitem(a, k)
        if region is None:
            return z
        if type(k) is int and self._is_plain_row(a):
            dot = region.read(a)
            if dot is not None:
                self.add_number(z)
                self.index[id(z)] = np.array(dot[:, k]) if self.lead else dot.item(k)
            return z
        if isinstance(z, np.ndarray):
            if self.owns_region(owner_of(z)):
                return z
        elif kind_of(type(z)) != NUMBER:
            refuse_bits(a)
        z_dot = self.computed(regions.read_item, region, a, k)
        if z_dot is None:
            return z
        if isinstance(z, np.ndarray):
            return self.file_array(z, z_dot, True)
        return self.file_number(z, z_dot)

    def _is_plain_row(self, a: np.ndarray) -> bool:
        """Whether an element of `a`, and its tangent, can be read and written in one step."""
        is_row = a.ndim == 1 and a.dtype is FLOAT64 and type(a) is np.ndarray
        return is_row and self.parent is PLAIN and self.has_hot_hooks

    def write_array(self, v: Any, a: np.ndarray, k: Any) -> None:
        """a[k] = v."""
        if self.texts and texts.holds_text(v):
            texts.check_conversion(self, v, a)
        region = self.region(a)
        if region is not None and type(k) is int and type(v) is float and self._is_plain_row(a):
            self._meet_write(a if a.base is None else owner_of(a), a)
            a[k] = v
            self._written(region)
            v_dot = self.index.get(id(v), 0.0)
            region.writable(a)[(slice(None), k) if self.lead else k] = v_dot
            return
        kind = kind_of(type(v))
        if kind == SEQUENCE and a.dtype.kind != "O":
            if a.dtype.names is not None and self.is_active(v):
                records.refuse_write(a)
            v = v if a.dtype.names is not None else self.prep(np.array)(v)
            kind = ARRAY
        slot = self.slot_of(v) if kind != NOTHING and a.dtype.kind in "fcV" else None
        self._meet_write(a if a.base is None else owner_of(a), a)
        if region is None and slot is None:
            if self.texts.truncated:
                truncated.check_times(self, a, (v,))
            self._native_write(v, a, k)
            return
        v_dot = None if slot is None else self.dot_at(slot, v)
        if type(v) is np.ndarray and v_dot is not None and np.may_share_memory(a, v):
            self.check_overlap(v, a, k)
            v_dot = self.outside(np.array, v_dot)
        if region is None:
            self.may_activate(a)
        self._native_write(v, a, k)
        if region is None:
            region = self._activate(a)
        self._written(region)
        self.computed(regions.write_item, region, a, k, None if v_dot is ZeroTangent else v_dot)

    def in_place_array(self, name: str, a: np.ndarray, b: Any) -> Any:
        """a op= b in the memory of `a`, and of its tangent."""
        region = self.region(a)
        slot = self.slot_of(b)
        self._meet_write(a if a.base is None else owner_of(a), a)
        if (region is None and slot is None) or a.dtype.kind not in "fc":
            return self._native_in_place(name, a, b)  # integers: the derivative ends here (or NumPy refuses)
        plain_name = name[1:]
        f = getattr(operator, plain_name)
        rule = rulebook.find_for(f, (a, b))
        if rule is None or not (rule.gives_derivative or rule.kind == "no_tangent"):
            missing_rule(
                getattr(operator, name), "It writes an array that depends on the differentiated inputs."
            )
        if region is None:
            self.may_activate(a)
            region = self._activate(a)
        self._written(region)
        if plain_name in ("add", "sub") and rule.own and self._is_shared_sum(a, b):
            b_dot = None if slot is None else self.dot_at(slot, b)
            self._native_in_place(name, a, b)
            if b_dot is not None and b_dot is not ZeroTangent:
                b_dot = self.computed(pushing.aligned, b_dot, b, a.ndim, self.lead)
                self.computed(regions.add_to_whole, region, a, b_dot, 1 if plain_name == "add" else -1)
            return a
        z_dot = None
        if rule.kind != "no_tangent":
            z = self.apply(rule, f, (a, b), {})  # a new array, with its tangent
            z_slot = self.slot_of(z)
            z_dot = None if z_slot is None else self.dot_at(z_slot, z)
            if z_dot is ZeroTangent:
                z_dot = None
        self._native_in_place(name, a, b)
        if z_dot is not None:
            z_dot = self.computed(pushing.array_tangent, z_dot, a, self.lead)
        self.computed(regions.update_whole, region, a, z_dot)
        return a

    def _is_shared_sum(self, a: np.ndarray, b: Any) -> bool:
        """Whether the tangents of a += b may be added in place: they are of one kind and lie apart."""
        if isinstance(b, np.ndarray):
            return b.dtype == a.dtype and not np.may_share_memory(a, b)
        return a.dtype.kind == "f" and isinstance(b, (float, int))

    # -- in and out ------------------------------------------------------------------------------------------------

    def seed(self, node: Any, x: Any, x_dot: Any) -> None:
        """Give a differentiated argument its tangent. `node` mirrors it, `x_dot` has its structure."""
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
        elif kind == ARRAY:
            if not is_zero:
                region = self.index[id(owner_of(x))]
                x_dot = self.computed(pushing.array_tangent, x_dot, x, self.lead)
                self.computed(regions.update_whole, region, x, x_dot)
        elif not is_zero:
            entries = node.entries
            parts = fields_of(x) if kind == OBJECT else x
            for key in range(len(entries)) if kind == SEQUENCE else entries:
                if entries[key] is not None:
                    self.seed(entries[key], parts[key], entry_of(x_dot, key))

    def tangent_of(self, y: Any, made: dict[int, Any] | None = None) -> Any:
        """The tangent of a result, with its structure; None for what has none."""
        made = {} if made is None else made
        kind = kind_of(type(y))
        if kind == NUMBER:
            y_dot = self.index.get(id(y))
            if y_dot is not None:
                return y_dot
            return np.zeros(self.lead, number_type(y)) if self.lead else type(y)(0)
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


def sum_tangent(a: Any, b: Any, z: Any, a_dot: Any, b_dot: Any) -> Any:
    """z = a + b; a tangent that is None is zero."""
    if a_dot is None:
        return b_dot
    return a_dot if b_dot is None else a_dot + b_dot


def difference_tangent(a: Any, b: Any, z: Any, a_dot: Any, b_dot: Any) -> Any:
    """z = a - b."""
    if a_dot is None:
        return -b_dot
    return a_dot if b_dot is None else a_dot - b_dot


def product_tangent(a: Any, b: Any, z: Any, a_dot: Any, b_dot: Any) -> Any:
    """z = a * b."""
    if a_dot is None:
        return a * b_dot
    return a_dot * b if b_dot is None else a_dot * b + a * b_dot


def quotient_tangent(a: Any, b: Any, z: Any, a_dot: Any, b_dot: Any) -> Any:
    """z = a / b."""
    if b_dot is None:
        return a_dot / b
    return -z * b_dot / b if a_dot is None else (a_dot - z * b_dot) / b


ARRAY_TANGENTS = {
    "add": sum_tangent,
    "sub": difference_tangent,
    "mul": product_tangent,
    "truediv": quotient_tangent,
}


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
