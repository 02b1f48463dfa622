"""One derivative being taken: its table of identities, and what it does with an operation, in any mode.

A level evaluates primals and rules through the hooks of the next level out (`parent`), which is how derivatives of
derivatives come about. Nothing here is global: the level in force is the value of the context variable `CURRENT`.
"""

from __future__ import annotations

import functools
import operator
import threading
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from types import FunctionType, GeneratorType, ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from plaingrad import rulebook
from plaingrad.class_keys import is_among, is_instance, is_subclass
from plaingrad.critical import exclusively, if_free
from plaingrad.engine.calls.calls import Calls
from plaingrad.engine.calls.comparisons import comparisons
from plaingrad.engine.calls.frames import CsvReader
from plaingrad.engine.calls.operands import in_place_with_object, with_object
from plaingrad.engine.fusion.fused import may_fuse
from plaingrad.engine.fusion.hot_hooks import SWEEP_BYTES, sweep, sweep_inside
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, is_heap, kind_of
from plaingrad.engine.memory.memory import (
    is_borrowed,
    lender_of,
    overlaps_itself,
    overwrites_unread,
    owner_of,
)
from plaingrad.engine.memory.tape import ARRAY_ARITHMETIC, ArraySlot, NumberSlot, Tree
from plaingrad.engine.refusals.answered import settled
from plaingrad.engine.refusals.refuse import missing_rule, name_of_object, refuse, where
from plaingrad.engine.users_code import adopt, earlier_frames
from plaingrad.engine.users_code.class_attributes import is_own_method, lookup
from plaingrad.engine.values import records, subclasses, texts, truncated
from plaingrad.engine.values.borrowed import Borrowed, describe, refuse_write
from plaingrad.engine.values.users_numbers import by_value, constant, is_users
from plaingrad.errors import AliasError, RuleError
from plaingrad.rewrite import CURRENT, PLAIN, in_force
from plaingrad.rewrite.hooks import BINARY, IN_PLACE, Hooks, set_hooks, setter
from plaingrad.rulebook import Rule
from plaingrad.rules.numpy import objects
from plaingrad.tangents import has_tangent_space
from plaingrad.tangents.fields import fields_of, parts_of

HOT = ("add", "sub", "mul", "truediv", "pow", "neg")  # operators that have hot hooks
FLOAT64 = np.dtype(float)
UFUNCS = {  # what an operator on arrays is
    getattr(operator, name): getattr(np, ufunc)
    for name, ufunc in [
        *[(name, name) for name in ("add", "matmul", "pow", "neg", "pos", "abs", "invert")],
        *[("sub", "subtract"), ("mul", "multiply"), ("truediv", "true_divide"), ("pow", "power")],
        *[("floordiv", "floor_divide"), ("mod", "remainder"), ("neg", "negative"), ("pos", "positive")],
    ]
    if hasattr(np, ufunc)
}


VIEWS = ("dict_keys", "dict_values", "dict_items")  # how the names of such types end
UNFILED = frozenset((set, frozenset, memoryview, array))  # their entries cannot be replaced
STREAMS = ("_iterator", "_keyiterator", "_valueiterator", "_itemiterator", *VIEWS)


class Twin:
    """A differentiated argument array was copied on entry; its original may be reachable under another name."""

    __slots__ = ("copy", "lent", "name", "original", "other", "torn", "touched", "written")

    def __init__(self, original: np.ndarray, copy: np.ndarray, name: str) -> None:
        self.original = original
        self.copy = copy
        self.name = name
        self.touched = False
        self.written = False
        self.torn = False
        self.other: str | None = None
        self.lent = False  # the original lies in memory that others can read past us

    def check(self) -> None:
        """Raise if the two names have come apart: one was written while the other is in use."""
        if self.written and self.touched:
            self.torn = True
            refuse(
                AliasError,
                f"the array passed as {self.name} is also reachable as {self.other or name_of_object(self.original)}, "
                "and one of the two is written",
                why="Differentiated arrays are copied on entry, so a write by one name would not show in the other.",
                fix="pass a copy (`x.copy()`) under one of the names, or pass the array once",
                anchor="alias",
            )


class Level(Hooks):
    """A derivative in progress; an instance is the set of hooks that rewritten code calls.

    What is done with an operation on active values is left to the modes, `ReverseLevel` and `ForwardLevel`.
    """

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
        "heirs",
        "hot",
        "index",
        "is_closed",
        "may_sweep",
        "own_arrays",
        "parent",
        "patched",
        "refusal",
        "sweeping",
        "texts",
        "twins",
        "unary",
    )

    takes_native_rules: ClassVar[bool] = False  # a compiled function may be one step of its derived rule

    def __init__(self, parent: Any) -> None:
        self.parent = parent
        self.is_closed = False
        # id of an active number, or of an active array's owner -> where its derivative is; a negative int: a twin
        self.index: dict[int, Any] = {}
        self.alive: list[Any] = []  # the numbers in `index`
        self.arrays: list[Any] = []  # the owners of memory in `index`
        self.borrowed = Borrowed(self)
        self.captured: dict[int, Any] = {}  # id of an owner that some pullback reads -> the owner
        self.texts = texts.texts_for(parent)  # numbers that left as text
        self.twins: list[Twin] = []
        self.fresh: dict[Any, Twin] = {}  # where a fresh argument array's derivative is -> its twin
        self.heirs: list[weakref.ref[Level]] = []  # closed levels inside this one, whose hooks are this one's
        self.refusal: BaseException | None = None  # one that the program only printed or logged
        self.activating = threading.RLock()  # reentrant: a finaliser may run while it is held
        self.sweeping: Any = threading.RLock()  # held during a sweep
        self.may_sweep = True
        # (container, key, fresh leaf) of what was patched in the arguments: code that is run again finds them by it.
        self.patched: list[tuple[Any, Any, Any]] = []
        self._array_bytes = 0
        self._array_limit = SWEEP_BYTES
        self.fuses = False
        self.blocks = {}
        self.hot = self.hot_hooks()
        self.unary = self.hot["unary"]
        calls = Calls(self)
        self.calls = calls
        self.choose_arithmetic()
        self.pos = _unary_general(self, "pos")
        self.invert = _unary_general(self, "invert")
        self.lt, self.le, self.eq, self.ne, self.gt, self.ge = comparisons(self)
        self.contains = self._contains
        self.getitem = self._getitem
        self.setitem = self._setitem
        self.attr, self.method, self.set_attr = calls.attr, calls.method, calls.set_attr
        self.prep = calls.prep
        self.iterable, self.meet, self.text = self._iterable, calls.meet, self._text

    # -- what a mode does ------------------------------------------------------------------------------------------

    def hot_hooks(self) -> dict[str, Any]:
        """The hooks that run most; those of numbers replace the general ones where the rules are plaingrad's own."""
        raise NotImplementedError

    def choose_arithmetic(self) -> None:
        """Let the hot hooks do what is plaingrad's own; an operator with a user's rule goes the general way."""
        raise NotImplementedError

    def add_number(self, x: Any) -> Any:
        """File the fresh number `x` as active; what the table says of it."""
        raise NotImplementedError

    def add_region(self, owner: Any) -> Any:
        """File the memory that `owner` holds as active; what the table says of it."""
        raise NotImplementedError

    def by_rule(
        self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any, numbers: bool
    ) -> Any:
        """f(*args, **kwargs) by its rule, where `inputs`, (position, slot) pairs, are active.

        Args:
            rule: the rule of `f`.
            f: the function.
            args: its arguments.
            kwargs: its keyword arguments.
            inputs: the active ones.
            numbers: all arguments are numbers.
        """
        raise NotImplementedError

    def whole_arithmetic(self, name: str, f: Any, a: Any, b: Any) -> Any:
        """a op b of float64 arrays and real numbers, in a few steps of its own; None if it is something else."""
        raise NotImplementedError

    def elementwise(self, rule: Rule, f: np.ufunc, x: np.ndarray) -> Any:
        """f(x) of a float64 array by a scalar row; None if it is something else."""
        raise NotImplementedError

    def read_array(self, a: np.ndarray, k: Any) -> Any:
        """a[k]: a view needs nothing, a number or a copy does."""
        raise NotImplementedError

    def write_array(self, v: Any, a: np.ndarray, k: Any) -> None:
        """a[k] = v."""
        raise NotImplementedError

    def in_place_array(self, name: str, a: np.ndarray, b: Any) -> Any:
        """a op= b in the memory of `a`; `b` is a number or an array."""
        raise NotImplementedError

    # -- opening and closing ---------------------------------------------------------------------------------------

    def run(self, f: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """f(*args, **kwargs) with this level in force; closed at the end, however that comes."""
        before = CURRENT.get()
        token = None
        try:  # see `plaingrad.critical`
            try:
                try:
                    try:
                        try:
                            adopt.level_opened(self)
                            token = CURRENT.set(self)
                            value = self.prep(f)(*args, **kwargs)
                        finally:
                            if token is not None:
                                CURRENT.reset(token)
                            self.close()
                    except BaseException:
                        self._leave(before)
                        raise
                except BaseException:
                    self._leave(before)
                    raise
            except BaseException:
                self._leave(before)
                raise
        except BaseException as error:
            self._leave(before)
            if self.refusal is not None and error is not self.refusal and isinstance(error, Exception):
                raise settled(self.refusal, error)  # noqa: B904 - what it led to is its context
            raise
        if self.refusal is not None:
            raise settled(self.refusal)
        return value

    def _leave(self, before: Any) -> None:
        """Close it after an exception, with `before` in force again."""
        if CURRENT.get() is not before:
            CURRENT.set(before)
        self.close()

    def close(self) -> None:
        """Close it, which may be done twice.

        Frames that outlive it (generators, threads) go on with the hooks of the next open level out.
        """
        if not self.is_closed:
            self._hand_over()
            self.is_closed = True
        adopt.level_closed(self)

    def _hand_over(self) -> None:
        outer = self.parent
        while outer is not PLAIN and not outer.calls.open:
            outer = outer.parent
        closed = [self, *[level for level in [heir() for heir in self.heirs] if level is not None]]
        for level in closed:
            level.fuses = False
            set_hooks(level, outer)
        if outer is not PLAIN:
            outer.heirs += map(weakref.ref, closed)
        self.calls.closed()

    # -- evaluation one level out ----------------------------------------------------------------------------------

    def outside(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """f(*args, **kwargs) with the next level out in force; engine and rule code runs rewritten there."""
        parent = self.parent
        return in_force(parent, f if parent is PLAIN else parent.calls.inside(f), *args, **kwargs)

    def native(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The primal f(*args, **kwargs) of a function with a rule, which further out is followed too."""
        parent = self.parent
        if parent is PLAIN and not any_exact(args):
            return f(*args, **kwargs) if kwargs else f(*args)  # C code may tell an empty dictionary from none
        if parent is PLAIN or type(f) is not FunctionType or rulebook.find(f) is None:
            return self.outside(f, *args, **kwargs)
        return in_force(parent, parent.prep(f), *args, **kwargs)

    # -- identity --------------------------------------------------------------------------------------------------

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
        if self.borrowed.finds_active(a, owner):
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
            return self._tree(list(x.items()), x, seen)  # another thread may change it
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

    def _sweep_numbers(self) -> int:
        self._sweep_alone(self.alive)
        return len(self.alive)

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
            held = sum([getattr(owner, "nbytes", 0) for owner in self.arrays[:]])
            self._array_limit = SWEEP_BYTES + held // 2

    # -- new active values -----------------------------------------------------------------------------------------

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

    # -- rules -----------------------------------------------------------------------------------------------------

    def apply(self, rule: Rule, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """f(*args, **kwargs) by its rule, with what the rule computes one level out."""
        index = self.index
        inputs = []
        numbers_only = not kwargs
        for position, x in enumerate(args):
            t = type(x)
            if t is np.ndarray and x.dtype.kind in "fcbiu":
                numbers_only = False
                i = self.region(x)
                if i is not None:
                    inputs.append((position, ArraySlot(i, x)))
                continue
            kind = kind_of(t)
            if kind == NUMBER:
                i = index.get(id(x))
                if t is not float and t is not int and rule.own and is_users(x):
                    args = by_value(self, f, args)
                    x = args[position]
                if i is not None:
                    inputs.append((position, NumberSlot(i, x)))
            elif kind != NOTHING:
                numbers_only = False
                if (
                    (kind == ARRAY and type(x) is not np.ndarray)
                    or (kind == SEQUENCE and subclasses.among_entries(x))
                    or (kind == OBJECT and is_heap(type(x)) and subclasses.has_protocol(type(x)))
                ):
                    z = subclasses.apply(self, rule, f, args, kwargs)
                    if z is not subclasses.PLAIN_CALL:
                        return z
                if (
                    kind == OBJECT
                    and rule.own
                    and (
                        rule.kind == "scalar"
                        or type(x) is np.flatiter
                        or (is_heap(type(x)) and self._is_operand(x))
                    )
                ):
                    return self._apply_to_object(rule, f, args, kwargs, position)
                if kind == SEQUENCE and rule.kind == "scalar" and any(type(a) is np.ndarray for a in args):
                    make = self.prep(np.array)
                    args = tuple([make(a) if kind_of(type(a)) == SEQUENCE else a for a in args])
                    return self.apply(rule, f, args, kwargs)
                slot = self.slot_of(x)
                if slot is None and kind == OBJECT and rule.users and self._hides_active(x):
                    missing_rule(
                        rule.function,
                        f"Its argument {position} is a {type(x).__qualname__}, in which the rule would find "
                        "differentiated numbers unseen; pass a list.",
                    )
                if slot is not None:
                    if rule.users and type(slot) is Tree:
                        attach(slot, x)
                    if kind == ARRAY and x.dtype.kind in "OV":
                        if x.dtype.kind == "O":
                            return self._apply_to_objects(rule, f, args, kwargs)
                        records.check_call(f, x)
                    inputs.append((position, slot))
        if kwargs:
            if subclasses.among(kwargs.values()):
                z = subclasses.apply(self, rule, f, args, kwargs)
                if z is not subclasses.PLAIN_CALL:
                    return z
            self._keyword_inputs(rule, kwargs, inputs)
        if not inputs:
            y = self.native(f, args, kwargs)
            if self.texts and any(map(texts.holds_text, args)):
                texts.check_conversion(self, args, y)
            if self.texts.truncated and (rule.kind != "scalar" or f in truncated.SUMS):
                truncated.check_times(self, y, args)
            return y
        y = self.by_rule(rule, f, args, kwargs, inputs, numbers_only)
        if y is None and rule.users:
            raise RuleError(
                f"the rule for {rule.name} was applied to differentiated values and returned None, which has no "
                "derivative.\n  If the function writes into its arguments, say so (mutates=..., plaingrad.defined_as); "
                "for an `__init__`, give the rule for the class; if nothing matters, plaingrad.nondifferentiable.\n"
                "  See docs: errors#rule"
            )
        if rule.users and hides_numbers(y):
            missing_rule(
                rule.function, f"Its rule returned a {type(y).__qualname__}, whose derivative would be lost."
            )
        if type(y) is np.timedelta64 or (type(y) is np.ndarray and y.dtype.kind == "m"):
            missing_rule(f, "It makes time spans, which have no tangent.")
        return y

    def _hides_active(self, x: Any) -> bool:
        """Whether a rule could get active numbers out of `x` which are no entries or fields of it."""
        if type(x) is set or type(x) is frozenset or type(x).__name__.endswith(VIEWS):
            return any(map(self.is_active, x))
        return is_stream(x)

    def _is_operand(self, x: Any) -> bool:
        """Whether a user's object stands for numbers: it converts itself to an array, or holds active ones."""
        t = type(x)
        return hasattr(t, "__array__") or hasattr(t, "__array_function__") or self.is_active(x)

    def _apply_to_object(self, rule: Rule, f: Any, args: Any, kwargs: Any, position: int) -> Any:
        """A rule of numbers and arrays met with a user's object: its own conversions come first."""
        x = args[position]
        self.calls.meet(x)
        t = type(x)
        module = getattr(f, "__module__", None)
        if module == "math" and hasattr(t, "__float__") and not hasattr(t, f"__{f.__name__}__"):
            x = t.__float__(x)
        elif module == "cmath" and hasattr(t, "__complex__"):
            x = t.__complex__(x)
        elif hasattr(t, "__array__") and not subclasses.speaks(UFUNCS.get(f, f), t):
            x = self.calls.method(x, "__array__")()
        elif rule.kind == "full":
            if self.is_active(x):
                missing_rule(
                    f, f"Its argument {position} is a `{t.__qualname__}` that holds differentiated numbers."
                )
            return self.native(f, args, kwargs)
        else:
            array_code = isinstance(f, np.ufunc) or str(module).startswith("numpy")
            for at, operand in enumerate(args):
                self.calls.meet(operand)
                if (
                    array_code
                    and at != position
                    and not hasattr(t, "__array_ufunc__")
                    and self.is_active(operand)
                ):
                    missing_rule(
                        f, f"It combines differentiated numbers with an object of type `{t.__qualname__}`."
                    )
            return f(*args, **kwargs)  # C code enters the object's own methods
        return self.apply(rule, f, (*args[:position], x, *args[position + 1 :]), kwargs)

    def _keyword_inputs(self, rule: Rule, kwargs: dict[str, Any], inputs: list[Any]) -> None:
        for name, x in kwargs.items():
            slot = self.slot_of(x)
            if slot is not None:
                names = rule.parameters
                if name not in names:
                    missing_rule(
                        rule.function,
                        f"Its argument {name!r} depends on the inputs, and the rule knows no derivative for it.",
                    )
                inputs.append((names.index(name), slot))

    # -- operators -------------------------------------------------------------------------------------------------

    def binary(self, name: str, a: Any, b: Any) -> Any:
        """a op b for anything that the hot hooks pass on."""
        f = getattr(operator, name)
        ta, tb = type(a), type(b)
        if self.own_arrays and name in ARRAY_ARITHMETIC and is_array_arithmetic(ta, tb):
            z = self.whole_arithmetic(name, f, a, b)
            if z is not None:
                return z
        ka, kb = kind_of(ta), kind_of(tb)
        if (ka != OBJECT and is_heap(ta)) or (kb != OBJECT and is_heap(tb)):
            z = self._own_operator(name, a, b)
            if z is not NotImplemented:
                return z
        if ta is str or ta is bytes:
            if name == "mod":
                texts.remember(self, b)
                return f(a, b)
        if ka in (NUMBER, ARRAY) or kb in (NUMBER, ARRAY):
            return self._arithmetic(name, f, a, b, ka, kb)
        if self.texts.truncated and ta is not tb and name in truncated.SUMS:
            truncated.check_times(self, a, (b,))
            truncated.check_times(self, b, (a,))
        if ka >= OBJECT or kb >= OBJECT:
            self.calls.meet(a)
            self.calls.meet(b)
        if ka == OBJECT or kb == OBJECT or self.parent is PLAIN:
            return f(a, b)
        return getattr(self.parent, name)(a, b)

    def _own_operator(self, name: str, a: Any, b: Any) -> Any:
        """a op b by Python code of a subclass of a number, array or container; NotImplemented if C code decides."""
        ta, tb = type(a), type(b)
        plain_name = name.rstrip("_")
        method, reflected = lookup(ta, f"__{plain_name}__"), lookup(tb, f"__r{plain_name}__")
        z = NotImplemented
        may_reflect = ta is not tb and is_own_method(reflected)
        if may_reflect and is_subclass(tb, ta) and reflected is not lookup(ta, f"__r{plain_name}__"):
            may_reflect = False
            z = self._call_own(reflected, b, a)
        if z is NotImplemented and is_own_method(method):
            z = self._call_own(method, a, b)
        elif may_reflect and method is not None and not isinstance(a, (list, tuple, str, bytes, deque)):
            if subclasses.takes(method, a, b):
                return NotImplemented  # C code of the first operand takes it
        if z is NotImplemented and may_reflect:
            z = self._call_own(reflected, b, a)
        return z

    def _call_own(self, method: Any, a: Any, *others: Any) -> Any:
        if type(method) is FunctionType:
            return self.prep(method)(a, *others)
        return self.prep(method.__get__(a, type(a)) if hasattr(method, "__get__") else method)(*others)

    def _arithmetic(self, name: str, f: Any, a: Any, b: Any, ka: int, kb: int) -> Any:
        if ka == OBJECT or kb == OBJECT:
            return with_object(self, name, a, b)
        if ka == NUMBER and type(a) is not float and type(a) is not int:
            a = constant(self, a)
        if kb == NUMBER and type(b) is not float and type(b) is not int:
            b = constant(self, b)
        if ka == SEQUENCE and kb == ARRAY:
            a = self.prep(np.array)(a)
        elif kb == SEQUENCE and ka == ARRAY:
            b = self.prep(np.array)(b)
        if (ka == ARRAY and a.dtype.kind == "O") or (kb == ARRAY and b.dtype.kind == "O"):
            if self.is_active(a) or self.is_active(b):
                if name == "matmul":
                    return self.calls.inside(objects.dot_of_objects)(a, b)
                return self._elementwise(f, a, b)
        rule = rulebook.find_for(f, (a, b))
        if rule is None or not rule.gives_derivative:
            if rule is None and (self.is_active(a) or self.is_active(b)):
                missing_rule(f, "One of its operands depends on the differentiated inputs.")
            return self.native(f, (a, b), {})
        return self.apply(rule, f, (a, b), {})

    def _apply_to_objects(self, rule: Rule, f: Any, args: Any, kwargs: Any) -> Any:
        """A function of an array of Python objects: references are moved natively, the rest is done one by one."""
        definition = objects.DEFINITIONS.get(f)
        if definition is not None:
            return self.calls.inside(definition)(*args, **kwargs)
        if f in objects.OPERATORS and not kwargs:
            return self._elementwise(objects.OPERATORS[f], *args)
        if f in objects.MOVES or rule.source.partition(":")[0].endswith(objects.MOVING_MODULES):
            for x in args:
                if type(x) is np.ndarray and x.dtype.kind == "O":
                    self.calls.meet_elements(list(x.ravel()))
            y = f(*args, **kwargs)
            if isinstance(y, np.ndarray) and y.dtype.kind in "fc":  # numbers out of objects
                return self.prep(np.array)(list(args[0].ravel()), dtype=y.dtype).reshape(y.shape)
            return y
        missing_rule(f, "One of its arguments is an array of Python objects with differentiated numbers.")

    def _elementwise(self, op: Any, *operands: Any) -> Any:
        return self.calls.inside(objects.elementwise)(op, *operands)

    def to_objects(self, a: np.ndarray) -> np.ndarray:
        """The elements of an active array as Python numbers in an array of objects."""
        result = np.empty(a.shape, object)
        number = self.prep(complex if a.dtype.kind == "c" else float)
        for place in np.ndindex(a.shape):
            result[place] = number(self.read_array(a, place))
        return result

    def in_place(self, name: str, a: Any, b: Any) -> Any:
        """a op= b."""
        ta = type(a)
        ka = kind_of(ta)
        if ka != OBJECT and is_heap(ta):
            method = lookup(ta, f"__{name.rstrip('_')}__")
            if is_own_method(method):
                z = self._call_own(method, a, b)
                if z is not NotImplemented:
                    return z
        if ka == ARRAY:
            if a.dtype.kind == "O" and (self.is_active(a) or self.is_active(b)):
                a[...] = self._elementwise(getattr(operator, name[1:]), a, b)
                return a
            if kind_of(type(b)) == SEQUENCE:
                b = self.prep(np.array)(b)
            if type(a) is not np.ndarray or subclasses.is_subclassed(b):
                return subclasses.in_place(self, name, a, b)
            if self.texts.truncated and name in truncated.SUMS:
                truncated.check_times(self, a, (b,))
            return self.in_place_array(name, a, b)
        kb = kind_of(type(b))
        if ka == NUMBER or (kb in (NUMBER, ARRAY) and ka == NOTHING):
            return getattr(self, without_assignment(name))(a, b)
        if ka == OBJECT and kb in (NUMBER, ARRAY):
            return in_place_with_object(self, name, a, b)
        f = getattr(operator, name)
        if ka == SEQUENCE and kb == ARRAY:  # arrays have the say: a list has no arithmetic of its own
            return getattr(self, without_assignment(name))(a, b)
        if self.texts.truncated and ta is not type(b) and name in truncated.SUMS:
            truncated.check_times(self, a, (b,))
        self.calls.meet(a)
        self.calls.meet(b)
        if ka == OBJECT or kb == OBJECT or self.parent is PLAIN:
            return f(a, b)
        return getattr(self.parent, name)(a, b)

    def _native_in_place(self, name: str, a: np.ndarray, b: Any) -> Any:
        if self.parent is PLAIN:
            return getattr(operator, name)(a, b)
        return getattr(self.parent, name)(a, b)

    # -- arrays: reading and writing -------------------------------------------------------------------------------

    def _getitem(self, o: Any, k: Any) -> Any:
        t = type(o)
        if t is list or t is tuple:
            return o[k]
        if t is np.ndarray:
            return self.read_array(o, k)
        if t is dict:
            try:
                known = type(k) in adopt.known
            except TypeError:  # a class without hash
                known = False
            if known:
                return o[k]
        if kind_of(t) == ARRAY and lookup(t, "__getitem__") is subclasses.GETITEM:
            return subclasses.read(self, o, k)
        return self.calls.getitem(o, k)

    def _setitem(self, v: Any, o: Any, k: Any) -> None:
        t = type(o)
        if t is np.ndarray and (type(v) is float or type(v) is np.ndarray or not subclasses.is_subclassed(v)):
            self.write_array(v, o, k)
            return
        try:
            is_plain = t is list or (t is dict and type(k) in adopt.known)
        except TypeError:  # a class without hash
            is_plain = False
        if is_plain:
            o[k] = v
        elif kind_of(t) == ARRAY and lookup(t, "__setitem__") is subclasses.SETITEM:
            subclasses.write(self, v, o, k)
        else:
            self.calls.setitem(v, o, k)

    def check_overlap(self, v: np.ndarray, a: np.ndarray, k: Any) -> None:
        """Refuse a[k] = v where NumPy overwrites elements of `v`, in the memory of `a`, before it reads them."""
        if overwrites_unread(a[k], v):
            raise AliasError(
                f"the assignment {where()} puts a vector into one that shares elements with it, a row into a column, "
                "say:\n  NumPy overwrites some of them before it reads them, and the result depends on how the "
                "array lies in memory.\n"
                "  Assign a copy: `a[k] = v.copy()`.\n  See docs: errors#alias"
            )

    def write_through(self, v: Any, m: memoryview, k: Any) -> None:
        """m[k] = v, where `m` looks at an array that a pullback reads."""
        self._native_write(v, m, k)

    def _native_write(self, v: Any, a: Any, k: Any) -> None:
        if self.parent is PLAIN:
            a[k] = v
        else:
            self.parent.setitem(v, a, k)

    def _meet_write(self, owner: Any, a: np.ndarray) -> None:
        """Memory of `owner` is about to be written through `a`: is it one of two names of an argument?"""
        i = self.index.get(id(owner))
        if i is None and owner.base is not None:
            i = self.index.get(id(lender_of(owner)))
        if type(i) is int and i < 0:
            for twin in self.twins:
                if np.may_share_memory(a, twin.original):
                    twin.touched = twin.written = True
                    twin.check()

    def may_activate(self, a: np.ndarray) -> None:
        """Active values are about to be written into `a`, which holds none: refused where we could not follow them."""
        owner = owner_of(a)
        if is_borrowed(owner):
            self.borrowed.check_write(a, owner)

    def _activate(self, a: np.ndarray) -> Any:
        owner = owner_of(a)
        # Two threads may fill one array, and it has one place in the table.
        return exclusively(self.activating, self._index_of_memory, owner)

    def _index_of_memory(self, owner: Any) -> Any:
        return self.index[id(owner)] if self.owns_region(owner) else self.add_region(owner)

    def _written(self, i: Any) -> None:
        twin = self.fresh.get(i)
        if twin is not None and not twin.written:
            if twin.lent:
                twin.torn = True
                whose = describe(twin.original)
                refuse_write(f"the array passed as {twin.name}, which lies in memory of {whose}, is written")
            twin.written = True
            twin.check()

    # -- other hooks -----------------------------------------------------------------------------------------------

    def _contains(self, x: Any, container: Any) -> bool:
        self.calls.meet(x)
        self.calls.meet(container)
        t = type(container)
        if t is not dict and t is not set and t is not frozenset:
            self.calls.meet_elements(container)
        return x in container

    def _iterable(self, o: Any) -> Any:
        t = type(o)
        if t is list or t is tuple or t is range or t is dict or t is str:
            return o
        if t is np.ndarray:
            if o.ndim == 1 and o.dtype.kind in "fc":
                return self._elements(o)
            self.region(o)
            if o.dtype.names is not None and self.calls.finds_active(o):
                records.refuse_record(o)
            return o
        if kind_of(t) == ARRAY and lookup(t, "__iter__") is subclasses.ITER:
            return subclasses.elements(self, o)
        if o is self.calls.made:
            self.calls.made = None  # nothing of ours is to hold on to what it goes through
            return o
        if t is GeneratorType or earlier_frames.is_generator(t) or earlier_frames.is_iterator(t):
            return self._foreign(o)
        if t is np.flatiter:
            return self.inside_rule(np.flatiter.__iter__, o)
        if t is CsvReader and self.texts:
            return self._parsed_rows(o)
        if t is memoryview and self.calls.finds_active(o):
            missing_rule(memoryview, "It reads differentiated numbers out of raw memory.")
        if t is np.broadcast and any(self.is_active(part.base) for part in o.iters):
            missing_rule(np.broadcast, "It makes new numbers from differentiated arrays.")
        adopt.adopt(t)
        if is_heap(t) and not hasattr(t, "__next__") and type(lookup(t, "__iter__")) is FunctionType:
            it = iter(o)
            adopt.adopt(type(it))
            return self._foreign(it)
        return o

    def _parsed_rows(self, rows: Any) -> Iterator[Any]:
        for row in rows:
            texts.check_number(self, row)
            yield row

    def _foreign(self, it: Any) -> Any:
        """`it`, or where it was made outside the level its items, looked at step by step."""
        if not earlier_frames.is_foreign(it):
            return it
        earlier_frames.check(self, it)
        return (
            earlier_frames.checked(self, it)
            if type(it) is GeneratorType or earlier_frames.is_iterator(type(it))
            else it
        )

    def inside_rule(self, f: Any, *args: Any) -> Any:
        """f(*args) by its rule."""
        rule = rulebook.find(f)
        return f(*args) if rule is None else self.calls.applier(rule, f)(*args)

    def _elements(self, a: np.ndarray) -> Iterator[Any]:
        read = self.read_array
        return (read(a, k) for k in range(len(a)))

    def _text(self, o: Any) -> Any:
        texts.remember(self, o)
        return o


def _unary_general(level: Level, name: str) -> Callable[[Any], Any]:
    f = getattr(operator, name)

    def unary(a: Any) -> Any:
        kind = kind_of(type(a))
        if kind != OBJECT and is_heap(type(a)):
            method = lookup(type(a), f"__{name}__")
            if is_own_method(method):
                return level._call_own(method, a)
        if kind == NUMBER or kind == ARRAY:
            rule = rulebook.find_for(f, (a,))
            if rule is not None and rule.gives_derivative:
                return level.apply(rule, f, (a,), {})
        elif kind == OBJECT:
            level.calls.meet(a)
            return f(a)
        return level.native(f, (a,), {})

    return unary


def _binary_general(name: str) -> Callable[[Level, Any, Any], Any]:
    def general(self: Level, a: Any, b: Any) -> Any:
        return self.binary(name, a, b)

    return general


def _in_place_general(name: str) -> Callable[[Level, Any, Any], Any]:
    def general(self: Level, a: Any, b: Any) -> Any:
        return self.in_place(name, a, b)

    return general


for _name in BINARY:
    setattr(Level, "general_" + _name, _binary_general(_name))
for _name in IN_PLACE:
    setattr(Level, "general_" + _name, _in_place_general(_name))
Level.general_neg = lambda self, a: _unary_general(self, "neg")(a)


@functools.lru_cache(1)
def own_operators(changes: int) -> tuple[frozenset[str], bool, bool]:
    """The hot hooks whose rules are plaingrad's own; whether arrays' are; whether runs may be fused."""

    def is_own(name: str) -> bool:
        rule = rulebook.find(getattr(operator, name))
        return rule is not None and rule.own

    plain = [name for name in HOT if is_own(name)]
    own = frozenset([*plain, *(f"i{name}" for name in plain if f"i{name}" in IN_PLACE)])
    return own, all(map(is_own, ARRAY_ARITHMETIC)), len(plain) == len(HOT) and may_fuse()


@functools.lru_cache(16)
def arithmetic_setter(own: frozenset[str]) -> Callable[[Level, dict[str, Any]], None]:
    """The function of a level and its hot hooks that sets those in `own`, and the general ones of other operators."""
    names = (*BINARY, *IN_PLACE, "neg")
    lines = [
        f"level.{name} = " + (f"hot['{name}']" if name in own else f"level.general_{name}") for name in names
    ]
    return setter(lines, "level", "hot")


def without_assignment(name: str) -> str:
    """The operator behind an in-place one."""
    return name[1:] + "_" if name in ("iand", "ior") else name[1:]


def is_array_arithmetic(ta: type, tb: type) -> bool:
    """Whether operands of these types are two arrays, or an array and a real number."""
    other = tb if ta is np.ndarray else ta if tb is np.ndarray else None
    return other is np.ndarray or other is float or other is int or other is np.float64


def any_exact(args: tuple[Any, ...]) -> bool:
    """Whether a fraction or a decimal number is among the arguments of a function."""
    for x in args:
        t = type(x)
        if t is not np.ndarray and t is not float and t is not int and is_instance(x, (Fraction, Decimal)):
            return True
    return False


def argument_at(rule: Rule, position: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The argument that a rule knows by `position`."""
    return args[position] if position < len(args) else kwargs[rule.parameters[position]]


# -- small pieces that run one level out ----------------------------------------------------------------------------


def fresh_number(y: Any) -> Any:
    """A new object equal to the number `y`."""
    t = type(y)
    if t is float:
        return y * 1.0
    if t is complex:
        return complex(y.real, y.imag)
    if is_users_number(t) and isinstance(y, (float, complex)):
        base = float if isinstance(y, float) else complex
        copy = base.__new__(t, y)
        for name, value in fields_of(y).items():
            object.__setattr__(copy, name, value)
        return copy
    if isinstance(y, np.generic):
        return y.copy()
    if isinstance(y, Decimal):
        return y.copy_sign(y)  # a sum would round it to the precision of the context
    return y + type(y)(0)


def is_users_number(t: type) -> bool:
    """Whether `t` is a subclass of a number that has attributes and operators of its own."""
    return is_heap(t) and t is not Fraction and t is not Decimal


def attach(tree: Tree, x: Any) -> None:
    """Note in the slots of a container what it is: the cotangents that a user's rule gives are compared with it."""
    if tree.x is x:
        return
    tree.x = x
    if isinstance(x, (list, tuple, deque)):
        tree.count = len(x)
        parts: Any = x
    elif isinstance(x, np.ndarray):
        return
    else:
        parts = x if is_instance(x, Mapping) else parts_of(x)
    for key, inner in tree.slots.items():
        if type(inner) is Tree:
            attach(inner, parts[key])


def is_stream(x: Any) -> bool:
    """Whether `x` hands out values one by one: a generator, an iterator, a view of a dictionary."""
    t = type(x)
    return earlier_frames.is_generator(t) or earlier_frames.is_iterator(t) or t.__name__.endswith(STREAMS)


def hides_numbers(y: Any) -> bool:
    """Whether numbers may be in the result of a rule that cannot be filed: it is a set, a generator, a closure."""
    if kind_of(type(y)) != OBJECT:
        return False
    if is_among(type(y), adopt.PYTHON_CALLABLES):
        return has_tangent_space(y)
    return is_among(type(y), UNFILED) or is_stream(y)


def has_attributes(x: Any) -> bool:
    """Whether `x` is an object of a class of the program, with fields that may hold numbers."""
    t = type(x)
    return (is_heap(t) and not isinstance(x, type) and not str(t.__module__).startswith("plaingrad.")) or (
        t is SimpleNamespace
    )


def put_field(x: Any, key: Any, value: Any, kind: int) -> None:
    """Replace one entry of a dictionary or object, past any method of its own."""
    if kind == MAPPING:
        dict.__setitem__(x, key, value)
        return
    fields = getattr(x, "__dict__", None)
    if type(fields) is dict and key in fields:
        fields[key] = value
    else:
        object.__setattr__(x, key, value)


def rebuilt(y: Any, values: list[Any]) -> Any:
    """A sequence like `y` with other entries."""
    return type(y)(*values) if hasattr(y, "_fields") else type(y)(values)


def frozen_key(k: Any) -> Any:
    """An index that later changes to its arrays and lists do not reach."""
    t = type(k)
    if t is int or t is slice or t is type(Ellipsis) or k is None:
        return k
    if t is tuple:
        return tuple([frozen_key(part) for part in k])
    if t is list or isinstance(k, np.ndarray):
        return (
            np.array(k)
            if len(np.shape(k)) == 0 or np.size(k)
            else np.array(k, np.intp if t is list else None)
        )
    return k


def refuse_bits(a: np.ndarray) -> None:
    """Refuse an array of integers or objects that shares memory with differentiated numbers."""
    if a.dtype.names is not None:
        records.refuse_record(a)
    missing_rule(
        np.ndarray.view,
        f"It looks at the bits of differentiated numbers as {a.dtype}; that has no derivative.",
    )
