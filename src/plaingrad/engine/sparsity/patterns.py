"""Which inputs a value depends on: a level that carries index sets where forward mode carries tangents.

Sets are numbers (see `index_sets`). What an operation does to them is said in `dependence`; this file is the table of
identities and the memory of arrays. A dependence is never missed; it may be over-estimated, where an operation has no
entry in `dependence` and mixes its arguments.

Sets are not differentiated, so nothing here is done one level out but the primal itself.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad import number_classes, rulebook
from plaingrad.define import pair_of
from plaingrad.engine.calls.level import Level
from plaingrad.engine.calls.rule_application import argument_at
from plaingrad.engine.fusion.own_operators import arithmetic_setter
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.memory.memory import address, extent, overlaps_itself, owner_of
from plaingrad.engine.memory.structure import ArrayNode, NumberNode
from plaingrad.engine.memory.tape import ArraySlot, NumberSlot, Tree
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.reverse.inputs import Inputs, with_fresh
from plaingrad.engine.sparsity import dependence
from plaingrad.engine.sparsity.dependent_calls import Call, has_partial
from plaingrad.engine.sparsity.index_sets import Ids, IndexSets
from plaingrad.engine.values.fresh import has_attributes, put_field, rebuilt
from plaingrad.engine.values.records import refuse_bits
from plaingrad.errors import ArgumentError
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.rulebook import Rule
from plaingrad.tangents.fields import fields_of

WRAPPERS = ("__array_wrap__", "__array_prepare__")  # methods that return their second argument
SWEEP_EVERY = 4096  # numbers filed between two looks for dead ones


class SetsOfMemory:
    """The sets of the memory that one object owns: one for every `grain` bytes, the size of a real number in it."""

    __slots__ = ("grain", "ids", "start")

    def __init__(self, owner: np.ndarray) -> None:
        self.start, size = extent(owner)
        self.grain = grain_of(owner.dtype)
        self.ids = np.zeros(-(-size // self.grain), np.int64)

    def parts(self, a: np.ndarray) -> list[Ids]:
        """The sets of array or view `a`, as views of its shape: one, or for complex numbers and records several."""
        count = a.itemsize // self.grain
        if a.size == 0:
            return [np.zeros(a.shape, np.int64)]
        offset = address(a) - self.start
        steps = [stride for n, stride in zip(a.shape, a.strides, strict=True) if n > 1]
        if a.itemsize % self.grain or any(step % self.grain for step in [offset, *steps]):
            missing_rule(
                np.ndarray.view, "It looks at differentiated numbers across their borders in memory."
            )
        strides = tuple([stride // self.grain * 8 for stride in a.strides])
        first = offset // self.grain * 8
        return [np.ndarray(a.shape, np.int64, self.ids, first + 8 * k, strides) for k in range(count)]


class PatternLevel(Level):
    """A search for dependences in progress: `index` maps a number to its set, an owner of memory to `SetsOfMemory`."""

    __slots__ = ("sets", "users_rules")

    def __init__(self, parent: Any) -> None:
        self.sets = IndexSets(0)
        self.users_rules: set[str] = set()  # names of the functions whose rules are the program's own
        super().__init__(parent)

    def hot_hooks(self) -> dict[str, Any]:
        """None: all arithmetic goes the general way."""
        return {"unary": lambda f, partial, module, general: general}

    def choose_arithmetic(self) -> None:
        """All arithmetic goes the general way."""
        self.own_arrays = False
        arithmetic_setter(frozenset())(self, self.hot)

    # -- filing ----------------------------------------------------------------------------------------------------

    def add_number(self, x: Any) -> int:
        """File the fresh number `x` as active, with the empty set for now."""
        if number_classes.system_of(x) is not None:
            raise ArgumentError(
                "patterns are those of numbers and arrays of NumPy; an array of PyTorch or JAX has none here.\n"
                "  To go on: take an array of NumPy, and make the other of it inside the function.\n"
                "  See docs: errors#argument"
            )
        self.alive.append(x)  # first, so that no other object gets its identity
        self.index[id(x)] = 0
        if len(self.alive) % SWEEP_EVERY == 0:
            self._sweep_numbers()
        return 0

    def add_region(self, owner: Any) -> SetsOfMemory:
        """File the memory that `owner` holds as active, with empty sets for now."""
        region = SetsOfMemory(owner)
        self.arrays.append(owner)
        self.index[id(owner)] = region
        self._array_bytes += 2 * getattr(owner, "nbytes", 64) + 1000
        if self._array_bytes > self._array_limit:
            self._sweep_arrays()
        return region

    def file(self, y: Any, ids: Any, args: Any = ()) -> Any:
        """`y`, a result, or a fresh copy of it, filed with sets `ids`."""
        kind = kind_of(type(y))
        if kind == NUMBER:
            found = int(np.max(ids, initial=0)) if np.size(ids) == 1 else int(self.everything_in(ids))
            if not found:
                return y
            if id(y) in self.index or any(y is x for x in args):
                y = self.fresh_number(y)
            self.add_number(y)
            self.index[id(y)] = found
            return y
        if kind == ARRAY:
            if y.dtype.kind not in "fcV" or not np.any(ids):
                return y
            owner = owner_of(y)
            if id(owner) in self.index or any(y is x for x in args):
                y = self.outside(np.array, y)
                owner = owner_of(y)
            self.write_ids(self.add_region(owner), y, ids)
            return y
        if kind == SEQUENCE:
            return rebuilt(y, [self.file(part, of, args) for part, of in zip(y, ids, strict=True)])
        if kind == MAPPING or (kind == OBJECT and has_attributes(y)):
            for key, part in list(parts_in(y, kind)):
                new = self.file(part, ids[key], args)
                if new is not part:
                    put_field(y, key, new, kind)
        return y

    # -- sets of values --------------------------------------------------------------------------------------------

    def read_ids(self, region: SetsOfMemory, a: np.ndarray) -> Ids:
        """The sets of the elements of active array `a`; may be a view of what is kept."""
        parts = region.parts(a)
        return parts[0] if len(parts) == 1 else self.sets.union(*parts)

    def write_ids(self, region: SetsOfMemory, a: np.ndarray, ids: Any) -> None:
        """The sets of the elements of `a` become `ids`."""
        self.write_item(region, a, Ellipsis, ids)

    def write_item(self, region: SetsOfMemory, a: np.ndarray, k: Any, ids: Any) -> None:
        """The sets of a[k] become `ids`."""
        if overlaps_itself(a) and a.size:  # which of several writes to one place lasts is not asked
            whole = self.everything_in(ids)
            for part in region.parts(a):
                part[...] = self.sets.union_of_two(whole, self.everything_in(part))
            return
        for part in region.parts(a):
            part[k] = ids

    def ids_of(self, x: Any) -> Any:
        """The set of a number, the sets of an array in its shape, a list of those of a container's entries."""
        kind = kind_of(type(x))
        if kind == NUMBER:
            found = self.index.get(id(x), 0)
            return found
        if kind == ARRAY and x.dtype.kind != "O":
            region = self.region(x)
            return np.zeros(x.shape, np.int64) if region is None else self.read_ids(region, x)
        if kind == SEQUENCE or kind == ARRAY:
            return [self.ids_of(part) for part in (x.flat if kind == ARRAY else x)]
        return self.everything_in(self.slot_of(x)) if kind != NOTHING else 0

    def everything_in(self, tree: Any) -> int:
        """The union of all sets in an array of them, a list, or behind a slot."""
        if type(tree) is NumberSlot:
            return tree.index
        if type(tree) is ArraySlot:
            return self.everything_in(self.read_ids(tree.index, tree.x))
        if type(tree) is Tree:
            tree = list(tree.slots.values())
        if isinstance(tree, (list, tuple)):
            found = 0
            for part in tree:
                found = self.sets.union_of_two(found, self.everything_in(part))
            return found
        if tree is None:
            return 0
        tree = np.asarray(tree)
        return int(tree) if tree.ndim == 0 else int(self.sets.reduce(tree.ravel(), (0,)))

    # -- operations ------------------------------------------------------------------------------------------------

    def by_rule(
        self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any, numbers: bool
    ) -> Any:
        """The primal, and the sets of the result by what is known of the function."""
        y = self.primal(rule, f, args, kwargs)
        if rule.users:
            self.users_rules.add(rule.name)
        kind = kind_of(type(y))
        if kind == NOTHING or (kind == ARRAY and y.dtype.kind == "m"):
            return y
        may_add = (
            rule.users and rule.kind == "full"
        )  # a derivative of its own for what it returns as it got it
        if kind == ARRAY:
            if y.dtype.kind == "O" and type(args[0]) is np.ndarray:
                return self.to_objects(args[0])
            if not may_add and y.base is not None and self.owns_region(owner_of(y)):
                return y  # a view of active memory
        if not may_add and any(y is x for x in args):
            if kind == ARRAY and y is not args[0] and getattr(f, "__name__", "") not in WRAPPERS:
                missing_rule(f, "It was given its output array by position; pass it by keyword, out=...")
            return y
        if numbers and kind == NUMBER:
            ids = 0
            for position, slot in inputs:
                if rule.kind != "scalar" or has_partial(rule, position):
                    ids = self.sets.union_of_two(ids, slot.index)
            return self.file(y, ids, args)
        return self.file(y, self.result_sets(rule, f, args, kwargs, inputs, y), args)

    def primal(self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """f(*args, **kwargs) as the next level out sees it, by the rule: some refuse what they cannot do."""
        call = rule.frule or rule.rrule
        if call is None or (rule.kind == "scalar" and rule.own):
            return self.native(f, args, kwargs)
        return pair_of(rule, self.outside(call, *args, **kwargs))[0]

    def result_sets(self, rule: Rule, f: Any, args: Any, kwargs: Any, inputs: Any, y: Any) -> Any:
        """The sets of result `y`, with its structure."""
        positions = [position for position, _ in inputs]
        xs = [argument_at(rule, position, args, kwargs) for position in positions]
        ids = {position: self.ids_of(x) for position, x in zip(positions, xs, strict=True)}
        call = Call(rule, f, args, kwargs, ids, y, self.sets, self.outside)
        found = dependence.of(call)
        return self.mixed(ids, y) if found is None else found

    def mixed(self, ids: dict[int, Any], y: Any) -> Any:
        """Every entry of `y` depends on everything."""
        whole = self.everything_in(list(ids.values()))

        def everywhere(y: Any) -> Any:
            kind = kind_of(type(y))
            if kind == SEQUENCE:
                return [everywhere(part) for part in y]
            if kind == MAPPING or (kind == OBJECT and has_attributes(y)):
                return {key: everywhere(part) for key, part in parts_in(y, kind)}
            return np.full(np.shape(y), whole) if kind == ARRAY else whole

        return everywhere(y)

    def whole_arithmetic(self, name: str, f: Any, a: Any, b: Any) -> Any:
        """None: by the rules."""
        return None

    def elementwise(self, rule: Rule, f: np.ufunc, x: np.ndarray) -> Any:
        """None: by the rules."""
        return None

    # -- memory ----------------------------------------------------------------------------------------------------

    def read_array(self, a: np.ndarray, k: Any) -> Any:
        """a[k]: a view needs nothing, a number or a copy gets its sets."""
        region = self.region(a)
        z = a[k] if self.parent is PLAIN else self.parent.getitem(a, k)
        if region is None:
            return z
        if isinstance(z, np.ndarray):
            if self.owns_region(owner_of(z)):
                return z
        elif kind_of(type(z)) != NUMBER:
            refuse_bits(a)
        return self.file(z, self.sets.union(*[part[k] for part in region.parts(a)]))

    def write_array(self, v: Any, a: np.ndarray, k: Any) -> None:
        """a[k] = v."""
        if type(k) is str:  # a field of records
            a, k = a[k], Ellipsis
        super().write_array(v, a, k)

    def write_number(self, region: Any, v: Any, a: np.ndarray, k: Any) -> bool:
        """Nothing has a short way here."""
        return False

    def write_value(self, region: Any, kind: int, v: Any, a: np.ndarray, k: Any) -> None:
        """a[k] = v of a value of a kind."""
        ids: Any = 0
        if kind != NOTHING and a.dtype.kind in "fcV":
            ids = np.array(self.ids_of(v))
            if type(v) is np.ndarray and np.may_share_memory(a, v):
                self.check_overlap(v, a, k)
        self._meet_write(a if a.base is None else owner_of(a), a)
        if region is None and np.any(ids):
            self.may_activate(a)
        self._native_write(v, a, k)
        if region is None:
            if not np.any(ids):
                return
            region = self._activate(a)
        self._written(region)
        self.write_item(region, a, k, ids)

    def in_place_array(self, name: str, a: np.ndarray, b: Any) -> Any:
        """a op= b in the memory of `a`."""
        region = self.region(a)
        inputs = [(n, slot) for n, slot in ((0, self.slot_of(a)), (1, self.slot_of(b))) if slot is not None]
        self._meet_write(a if a.base is None else owner_of(a), a)
        if not inputs or a.dtype.kind not in "fc":
            return self._native_in_place(name, a, b)  # integers: the derivative ends here (or NumPy refuses)
        f = getattr(operator, name[1:])
        rule = rulebook.find(f)
        if rule is None or not (rule.gives_derivative or rule.kind == "no_tangent"):
            missing_rule(
                getattr(operator, name), "It writes an array that depends on the differentiated inputs."
            )
        ids = 0 if rule.kind == "no_tangent" else self.result_sets(rule, f, (a, b), {}, inputs, a)
        if region is None:
            self.may_activate(a)
        self._native_in_place(name, a, b)
        region = self._activate(a) if region is None else region
        self._written(region)
        self.write_ids(region, a, ids)
        return a

    # -- in and out ------------------------------------------------------------------------------------------------

    def number_inputs(self, nodes: list[Any]) -> None:
        """Give every differentiated number, in order, a set of its own."""
        leaves: list[Any] = []
        for node in nodes:
            leaves_of(node, leaves, set())
        n = sum(leaf.x.size if type(leaf) is ArrayNode else 1 for leaf in leaves)
        self.sets = IndexSets(n)
        first = 1
        for leaf in leaves:
            if type(leaf) is NumberNode:
                self.index[id(leaf.x)] = first
                first += 1
            else:
                ids = np.arange(first, first + leaf.x.size).reshape(leaf.x.shape)
                self.write_ids(self.index[id(owner_of(leaf.x))], leaf.x, ids)
                first += leaf.x.size


def find_pattern(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    argnums: tuple[int, ...],
    kwargs: dict[str, Any],
    leaves: Callable[[Any], list[Any]],
    users_rules: set[str] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(starts, columns): which inputs each number of the result depends on, in compressed rows.

    Args:
        f: the function.
        args: its positional arguments.
        argnums: those whose numbers are the inputs.
        kwargs: its keyword arguments.
        leaves: the arrays and numbers of a result, in order.
        users_rules: gets the names of the functions whose rules, the program's own, took part.
    """
    level = PatternLevel(CURRENT.get())

    def run(inputs: Inputs) -> list[np.ndarray]:
        level.number_inputs(inputs.nodes)
        value = level.run(f, inputs.args, kwargs)
        return [np.ravel(level.ids_of(leaf)) for leaf in leaves(value)]

    ids = with_fresh(level, args, argnums, run)
    if users_rules is not None:
        users_rules |= level.users_rules
    columns, starts = level.sets.members(np.concatenate([np.zeros(0, np.int64), *ids]))
    return starts, columns.astype(np.int64)


def parts_in(y: Any, kind: int) -> Any:
    """(key, value) of the entries of a mapping, or of the fields of an object."""
    return (y if kind == MAPPING else fields_of(y)).items()


def leaves_of(node: Any, leaves: list[Any], seen: set[int]) -> None:
    """Append the leaves of a node in order, each once."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if type(node) in (NumberNode, ArrayNode):
        leaves.append(node)
    else:
        entries = node.entries
        for inner in entries.values() if isinstance(entries, dict) else entries:
            leaves_of(inner, leaves, seen)


def grain_of(dtype: np.dtype) -> int:
    """The size of a real number in elements of `dtype`."""
    if dtype.kind == "c":
        return dtype.itemsize // 2
    if dtype.kind != "V":
        return dtype.itemsize
    grain = dtype.itemsize
    for field, offset, *_ in (dtype.fields or {}).values():
        grain = math.gcd(grain, offset, grain_of(field.base))
    return max(grain, 1)
