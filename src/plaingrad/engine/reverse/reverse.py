"""Reverse mode: a level that records what is done with active values on a tape, for the way back."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, ClassVar

import numpy as np

from plaingrad import rulebook
from plaingrad.define import module_for, pair_of
from plaingrad.engine.calls.level import (
    FLOAT64,
    Level,
    argument_at,
    arithmetic_setter,
    attach,
    frozen_key,
    own_operators,
    refuse_bits,
)
from plaingrad.engine.fusion.fused import Blocks, PairedBlocks, cells_of, may_pair
from plaingrad.engine.fusion.hot_hooks import reverse_hooks
from plaingrad.engine.memory.kinds import NOTHING, NUMBER, SEQUENCE, kind_of
from plaingrad.engine.memory.memory import (
    address,
    byte_offsets,
    extent,
    overlaps_itself,
    owner_of,
    whole_multiple_back,
    whole_sum_back,
)
from plaingrad.engine.memory.tape import (
    ARRAY_ARITHMETIC,
    CALLED,
    STEP,
    ArraySlot,
    InPlaceRule,
    InPlaceSum,
    ReadArray,
    ReadNumber,
    RuleStep,
    Tree,
    Write,
    WriteCotangent,
    elementwise_back,
    read_number_back,
    write_number_back,
)
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.reverse.reverse_in_forward import paired_hooks
from plaingrad.engine.reverse.transpose import Recorder, pullback_of
from plaingrad.engine.values import records, texts, truncated
from plaingrad.engine.values.borrowed import is_lent
from plaingrad.rewrite import PLAIN
from plaingrad.rulebook import Rule


class ReverseLevel(Level):
    """A reverse-mode derivative in progress.

    The table gives active numbers and memory an index, under which the reverse pass keeps their cotangents.
    """

    __slots__ = ("inputs", "new_index", "tape")

    has_own_table: ClassVar[bool] = True
    takes_native_rules: ClassVar[bool] = True
    record: ClassVar[Recorder]  # the class `Run`, which enters itself; it turns rules round

    def __init__(self, parent: Any) -> None:
        self.tape: list[Any] = []
        self.inputs = 0  # no argument has an index of this or above
        super().__init__(parent)

    def hot_hooks(self) -> dict[str, Any]:
        """The hooks that run most; see `engine.hot`."""
        make = reverse_hooks(self.parent is not PLAIN)
        hot = make(self, self.index, self.alive, self.tape, self._sweep_numbers)
        self.new_index: Callable[[], int] = hot["new_index"]
        self.blocks = PairedBlocks(self, cells_of(hot)) if may_pair(self) else Blocks(cells_of(hot))
        if may_pair(self):
            hot = paired_hooks(self.blocks, hot)
        return hot

    def choose_arithmetic(self) -> None:
        """Let the hot hooks do what is plaingrad's own; an operator with a user's rule goes the general way."""
        own, self.own_arrays, fuses = own_operators(rulebook.changes())
        arithmetic_setter(own)(self, self.hot)
        self.fuses = fuses and (self.parent is PLAIN or may_pair(self))

    def add_number(self, x: Any) -> int:
        """File the fresh number `x` as active; its index."""
        n = self.new_index()
        self.alive.append(x)  # first, so that no other object gets its identity
        self.index[id(x)] = n
        return n

    def add_region(self, owner: Any) -> int:
        """File the memory that `owner` holds as active; its index."""
        n = self.new_index()
        self.arrays.append(owner)
        self.index[id(owner)] = n
        self._array_bytes += getattr(owner, "nbytes", 64) + 1000
        if self._array_bytes > self._array_limit:
            self._sweep_arrays()
        return n

    def by_rule(
        self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any, numbers: bool
    ) -> Any:
        """Primal and pullback by the rule, and one step on the tape."""
        if rule.kind == "scalar":
            if numbers:
                return self._apply_to_numbers(rule, f, args, inputs)
            if rule.own and not kwargs and len(inputs) == 1:
                z = self._row_of_array(rule, f, args, inputs[0])
                if z is not None:
                    return z
        if kwargs or (not numbers and (len(args) > len(inputs) or type(inputs[0][1]) is Tree)):
            args, kwargs = self._kept_arguments(rule, args, kwargs, inputs)
        rrule = rule.rrule
        if rrule is None:
            assert rule.frule is not None
            y, push = pair_of(rule, self.outside(rule.frule, *args, **kwargs), "frule", "pushforward")
            positions = [position for position, _ in inputs]
            xs = [argument_at(rule, position, args, kwargs) for position in positions]
            pullback = pullback_of(
                self.record, push, positions, xs, max(len(args), *[p + 1 for p in positions]), rule.name
            )
        elif self.parent is PLAIN and rule.own:
            y, pullback = rrule(*args, **kwargs)
        else:
            y, pullback = pair_of(rule, self.outside(rrule, *args, **kwargs))
        if type(y) is np.ndarray and y.dtype.kind == "O" and type(args[0]) is np.ndarray:
            return self.to_objects(args[0])
        if type(y) is np.ndarray and y.dtype.kind == "m":
            return y
        if rule.kind == "linear":
            same = any(y is x for x in args)
            if (type(y) is np.ndarray and id(owner_of(y)) in self.index or same) and not (
                same and rule.users
            ):
                if len(args) > 1 and y is args[1] and getattr(f, "__name__", "") in ("conj", "conjugate"):
                    missing_rule(f, "It was given its output array by position; pass it by keyword, out=...")
                return y  # a view of the argument, or the argument itself: nothing to record
            self._capture(args[1:])
        elif rule.kind != "full" and (rule.kind != "scalar" or any(map(callable, rule.partials))):
            self._capture(args)
            if kwargs:
                self._capture(tuple(kwargs.values()))
            if type(y) is np.ndarray and rule.kind == "scalar":
                self._capture((y,))
        if type(y) is np.ndarray and rule.kind != "full" and y.base is None and y.dtype.kind in "fc":
            n = self.add_region(y)
            self.tape.extend((n, STEP, RuleStep(ArraySlot(n, y), tuple(inputs), pullback, rule)))
            return y
        y, outputs = self.add_outputs(y)
        if rule.kind == "full":  # only now: a result that the pullback holds needs no copy
            self._capture_held(pullback, 0)
        if outputs is not None:
            self.tape.extend((-1, STEP, RuleStep(outputs, tuple(inputs), pullback, rule)))
        return y

    def _kept_arguments(
        self, rule: Rule, args: Any, kwargs: dict[str, Any], inputs: Any
    ) -> tuple[Any, dict[str, Any]]:
        """The arguments for a rule, whose pullback keeps them: what lies in borrowed memory is copied."""
        captured, index = self.captured, self.index
        for position, x in enumerate(args):
            t = type(x)
            if t is np.ndarray:
                if x.base is None and (id(x) in captured or id(x) in index or x.flags.owndata):
                    continue
                if type(x.base) is np.ndarray and id(x.base) in index:
                    continue
            elif t is float or t is int:
                continue
            copy = self.borrowed.kept(x)
            if copy is not x:
                args = (*args[:position], copy, *args[position + 1 :])
                if rule.users:
                    for at, slot in inputs:
                        if at == position and type(slot) is Tree:
                            attach(slot, copy)
        for x in kwargs.values():
            if type(x) is list or isinstance(x, np.ndarray):
                return args, {name: self.borrowed.kept(x) for name, x in kwargs.items()}
        return args, kwargs

    def _apply_to_numbers(self, rule: Rule, f: Any, args: tuple[Any, ...], inputs: list[Any]) -> Any:
        """A scalar row on numbers: one triple per active argument where everything is real."""
        for _, slot in inputs:
            if not isinstance(slot.x, (float, np.floating)):
                return self._apply_row(rule, args, inputs)
        z = self.native(f, args, {})
        if (kind_of(type(z)) != NUMBER and type(z) is not np.ndarray) or id(z) in self.index:
            return z  # an integer, or the very argument
        if not isinstance(z, (float, np.floating)):
            return self._apply_row(rule, args, inputs)
        m = module_for(f, args)
        triples: list[Any] = []
        plain = self.parent is PLAIN
        for position, slot in inputs:
            partial = rule.partials[position] if position < len(rule.partials) else None
            if partial is None:
                continue
            if callable(partial):
                if plain and m is np:
                    with np.errstate(all="ignore"):  # the primal has warned, if there was anything to warn of
                        slope = partial(m, *args, z)
                else:
                    slope = partial(m, *args, z) if plain else self.outside(partial, m, *args, z)
                if plain and type(slope) is np.float64:
                    slope = float(slope)
                elif id(slope) in self.index:
                    slope = self.fresh_number(slope)
            else:
                slope = float(partial)
            triples += (None, slot.index, slope)
        if not triples:
            return z
        n = self.add_number(z)
        triples[::3] = [n] * (len(triples) // 3)
        self.tape.extend(triples)
        return z

    def _apply_row(self, rule: Rule, args: tuple[Any, ...], inputs: list[Any]) -> Any:
        assert rule.rrule is not None
        z, pullback = self.outside(rule.rrule, *args)
        if id(z) in self.index:
            return z
        z, outputs = self.add_outputs(z)
        if outputs is not None:
            self.tape.extend((-1, STEP, RuleStep(outputs, tuple(inputs), pullback, rule)))
        return z

    def _capture(self, values: Any) -> None:
        captured = self.captured
        for x in values:
            if type(x) is np.ndarray or isinstance(x, np.ndarray):
                owner = x if x.base is None else owner_of(x)
                if owner.base is None or id(owner) in self.index or not is_lent(owner):
                    captured[id(owner)] = owner
            elif type(x) is list or type(x) is tuple or type(x) is dict:
                self._capture(x.values() if type(x) is dict else x)

    def _held(self, x: np.ndarray, i: Any) -> np.ndarray:
        """`x`, of region `i` or not active, for the way back; a copy if its memory is lent."""
        if x.base is None:
            key = id(x)
            if key in self.captured:
                return x
            if i is not None or x.flags.owndata:
                self.captured[key] = x
                return x
        if i is None:
            x = self.borrowed.kept_array(x)
        self._capture((x,))
        return x

    def _capture_held(self, pullback: Any, depth: int) -> None:
        """Capture the arrays that a pullback holds in its cells, directly or through functions and containers."""
        if depth > 6:
            return
        if type(pullback) is FunctionType:
            for cell in pullback.__closure__ or ():
                try:
                    held = cell.cell_contents
                except ValueError:
                    continue
                if isinstance(held, (np.ndarray, list, tuple, dict)):
                    self._capture((held,))
                elif callable(held):
                    self._capture_held(held, depth + 1)
        elif type(pullback) is MethodType:
            self._capture(vars(pullback.__self__).values() if hasattr(pullback.__self__, "__dict__") else ())
        elif type(pullback) is functools.partial:
            self._capture(pullback.args)
            self._capture(pullback.keywords.values())
            self._capture_held(pullback.func, depth + 1)

    def whole_arithmetic(self, name: str, f: Any, a: Any, b: Any) -> Any:
        """a op b of float64 arrays and real numbers, in a few steps of its own; None if it is something else."""
        z = self._sum_or_multiple(name, f, a, b)
        return self._array_arithmetic(name, f, a, b) if z is None else z

    def _sum_or_multiple(self, name: str, f: Any, a: Any, b: Any) -> Any:
        """a op b of float64 arrays where the reverse pass needs indices only, so that the arrays may go; else None."""
        is_a, is_b = type(a) is np.ndarray, type(b) is np.ndarray
        index = self.index
        i, j = index.get(id(a)), index.get(id(b))
        if is_a and is_b:
            if name not in ("add", "sub") or a.shape != b.shape:
                return None
        else:
            number, at = (b, j) if is_a else (a, i)
            t = type(number)
            if (t is not float and t is not int) or at is not None or (name == "truediv" and not is_a):
                return None
        for at, x, is_array in ((i, a, is_a), (j, b, is_b)):
            if is_array and (x.base is not None or x.dtype is not FLOAT64 or (at is not None and at < 0)):
                return None
        if i is None and j is None:
            return None
        z = f(a, b) if self.parent is PLAIN else getattr(self.parent, name)(a, b)
        if type(z) is not np.ndarray or z.dtype is not FLOAT64 or z.base is not None:
            return None
        n = self.add_region(z)
        if name == "add" or name == "sub":
            self.tape.extend(((n, i, j, name == "sub"), CALLED, whole_sum_back))
        elif is_a:
            self.tape.extend(((n, i, b, name == "truediv"), CALLED, whole_multiple_back))
        else:
            self.tape.extend(((n, j, a, False), CALLED, whole_multiple_back))
        return z

    def _array_arithmetic(self, name: str, f: Any, a: Any, b: Any) -> Any:
        """a op b of float64 arrays and real numbers; None if it is something else."""
        operands = []
        active = False
        for x in (a, b):
            t = type(x)
            if t is np.ndarray:
                if x.dtype.kind not in "fiub":
                    return None
                i = self.region(x)
                if i is not None and x.dtype is not FLOAT64:
                    return None
            elif t is float or t is np.float64:
                i = self.index.get(id(x))
            elif t is int:
                i = None
            else:
                return None
            active = active or i is not None
            operands.append(i)
        if not active:
            return self.native(f, (a, b), {})
        z = f(a, b) if self.parent is PLAIN else getattr(self.parent, name)(a, b)
        if type(z) is not np.ndarray or z.dtype is not FLOAT64 or z.base is not None:
            return None
        i, j = operands
        if name == "mul":
            if i is not None and type(b) is np.ndarray:
                b = self._held(b, j)
            if j is not None and type(a) is np.ndarray:
                a = self._held(a, i)
        elif name == "truediv":
            if type(b) is np.ndarray:
                b = self._held(b, j)
            if j is not None:
                self._held(z, j)
            a = None if i is None else a  # the way back needs z instead
        elif i is None:  # a sum: the way back needs nothing of it
            a = None
        elif j is None:
            b = None
        n = self.add_region(z)
        self.tape.extend(((n, z, a, i, b, j), CALLED, ARRAY_ARITHMETIC[name]))
        return z

    def elementwise(self, rule: Rule, f: np.ufunc, x: np.ndarray) -> Any:
        """f(x) of a float64 array by a scalar row; None if it is something else."""
        if x.dtype is not FLOAT64:
            return None
        i = self.region(x)
        if i is None:
            return f(x) if self.parent is PLAIN else None
        return self._row_of_array(rule, f, (x,), (0, ArraySlot(i, x)))

    def _row_of_array(self, rule: Rule, f: Any, args: tuple[Any, ...], only: Any) -> Any:
        """A scalar row on one active float64 array, beside plain numbers; None if it is something else."""
        position, slot = only
        x = slot.x
        partial = rule.partials[position] if position < len(rule.partials) else None
        if type(x) is not np.ndarray or x.dtype is not FLOAT64 or not callable(partial):
            return None
        if any(type(a) is not int and type(a) is not float for a in args if a is not x):
            return None
        z = self.native(f, args, {})
        if type(z) is not np.ndarray or z.dtype is not FLOAT64 or z.base is not None or z.shape != x.shape:
            return None
        if id(z) in self.index:
            return None
        self._capture((x, z))
        n = self.add_region(z)
        self.tape.extend(((n, z, x, slot.index, partial, args), CALLED, elementwise_back))
        return z

    def in_place_array(self, name: str, a: np.ndarray, b: Any) -> Any:
        """a op= b in the memory of `a`, with what the reverse pass needs put by."""
        i = self.region(a)
        b_slot = self.slot_of(b)
        plain_name = name[1:]
        if i is None and b_slot is None:
            save = self._save(a, Ellipsis)
            self._native_in_place(name, a, b)
            self._saved(save)
            return a
        if a.dtype.kind not in "fc":
            return self._native_in_place(name, a, b)  # integers: the derivative ends here (or NumPy refuses)
        if i is None:
            self.may_activate(a)
            i = self._activate(a)
        self._written(i)
        b = self.borrowed.kept(b) if b_slot is None else b
        slot = ArraySlot(i, a)
        save = self._save(a, Ellipsis)
        if plain_name in ("add", "sub") and not (type(b) is np.ndarray and np.may_share_memory(a, b)):
            self._native_in_place(name, a, b)
            self.tape.extend((i, STEP, InPlaceSum(slot, b_slot, 1 if plain_name == "add" else -1)))
        else:
            f = getattr(operator, plain_name)
            rule = rulebook.find_for(f, (a, b))
            if rule is not None and rule.kind == "no_tangent":
                self.write_array(self.native(f, (a, b), {}), a, Ellipsis)
                return a
            if rule is None or not rule.gives_derivative:
                missing_rule(
                    getattr(operator, name), "It writes an array that depends on the differentiated inputs."
                )
            old = self.outside(np.array, a)
            if type(b) is np.ndarray and np.may_share_memory(a, b):
                # b's cotangent belongs to what b held before the write: read it from a copy, recorded as such
                b = self.prep(np.array)(b)
                b_slot = self.slot_of(b)
            _, pullback = self.outside(rule.rrule, old, b)
            self._capture((b,))
            self._native_in_place(name, a, b)
            self.tape.extend((i, STEP, InPlaceRule(slot, b_slot, pullback)))
        self._saved(save)
        return a

    def read_array(self, a: np.ndarray, k: Any) -> Any:
        """a[k]: a view needs no record, a number or a copy does."""
        i = self.region(a)
        if i is None:
            if self.parent is PLAIN:
                return a[k]
            return self.parent.getitem(a, k)
        if type(k) is int and a.ndim == 1 and a.dtype is FLOAT64 and type(a) is np.ndarray:
            z = a[k] if self.parent is PLAIN else self.parent.getitem(a, k)
            n = self.add_number(z)
            self.tape.extend(((n, i, a, k), CALLED, read_number_back))
            return z
        k = frozen_key(k)
        z = a[k] if self.parent is PLAIN else self.parent.getitem(a, k)
        if isinstance(z, np.ndarray):
            owner = z if z.base is None else owner_of(z)
            if id(owner) in self.index:
                return z
            n = self.add_region(owner)
            self.tape.extend((n, STEP, ReadArray(ArraySlot(n, z), ArraySlot(i, a), k, may_repeat(a, k))))
            return z
        if kind_of(type(z)) != NUMBER:
            refuse_bits(a)
        if id(z) in self.index:
            z = self.fresh_number(z)
        n = self.add_number(z)
        self.tape.extend((n, STEP, ReadNumber(n, ArraySlot(i, a), k)))
        return z

    def write_array(self, v: Any, a: np.ndarray, k: Any) -> None:
        """a[k] = v."""
        if self.texts and texts.holds_text(v):
            texts.check_conversion(self, v, a)
        i = self.region(a)
        by_element = type(k) is int and a.ndim == 1 and a.dtype is FLOAT64
        if by_element and (type(v) is float or type(v) is np.float64):
            j = self.index.get(id(v))
            if i is not None or j is not None:
                self._write_number(i, j, v, a, k)
                return
        kind = kind_of(type(v))
        if kind == SEQUENCE and a.dtype.kind != "O":
            if a.dtype.names is not None and self.is_active(v):
                records.refuse_write(a)
            v = v if a.dtype.names is not None else self.prep(np.array)(v)
        v_slot = self.slot_of(v) if kind != NOTHING and a.dtype.kind != "O" else None
        if a.dtype.kind not in "fcV":
            v_slot = None
        if i is None and v_slot is None:
            if self.texts.truncated:
                truncated.check_times(self, a, (v,))
            save = self._save(a, k)
            self._native_write(v, a, k)
            self._saved(save)
            return
        if by_element and kind in (NUMBER, NOTHING) and v_slot is None:
            self._write_number(i, None, v, a, k)
            return
        if i is None:
            self.may_activate(a)
        k = frozen_key(k)
        if type(v) is np.ndarray and np.may_share_memory(a, v):
            self.check_overlap(v, a, k)
            v = self.prep(np.array)(v)
            v_slot = self.slot_of(v)
        save = self._save(a, k)
        self._native_write(v, a, k)
        if i is None:
            i = self._activate(a)
        self._written(i)
        self.tape.extend((i, STEP, WriteCotangent(ArraySlot(i, a), k, v_slot, winners(a, k))))
        self._saved(save)

    def _write_number(self, i: int | None, j: int | None, v: Any, a: np.ndarray, k: int) -> None:
        """a[k] = v of a number, of index `j`, and an element of a float64 vector, of index `i`."""
        if i is None:
            self.may_activate(a)
        save = self._save(a, k)
        self._native_write(v, a, k)
        if i is None:
            i = self._activate(a)
        self._written(i)
        self.tape.extend(((i, a, k, j), CALLED, write_number_back))
        self._saved(save)

    def write_through(self, v: Any, m: memoryview, k: Any) -> None:
        """m[k] = v, where `m` looks at an array that a pullback reads."""
        save = self._save(np.asarray(m), k)
        self._native_write(v, m, k)
        self._saved(save)

    def _save(self, a: np.ndarray, k: Any) -> Write | None:
        """What a write to a[k] will overwrite, if some pullback may read it."""
        owner = a if a.base is None else owner_of(a)
        self._meet_write(owner, a)
        if id(owner) not in self.captured:
            return None
        if a.dtype.kind == "O":
            return None
        saved = np.array(a[k]) if self.parent is PLAIN else self.outside(snapshot, a, k)
        return Write(a, k, saved)

    def _saved(self, save: Write | None) -> None:
        if save is not None:
            self.tape.extend((-1, STEP, save))


def snapshot(a: np.ndarray, k: Any) -> np.ndarray:
    """A copy of a[k]."""
    return np.array(a[k])


def may_repeat(a: np.ndarray, k: Any) -> bool:
    """Whether a[k] may read one element twice: repeated entries of integer arrays, or elements that share bytes."""
    if overlaps_itself(a):
        return True
    parts = k if type(k) is tuple else (k,)
    whole = [part for part in parts if isinstance(part, np.ndarray) and part.dtype.kind in "iu"]
    if len(whole) == 1 and whole[0].ndim == 1:
        if len(parts) == 1 and a.shape[0]:
            return bool(np.unique(whole[0] % a.shape[0]).size < whole[0].size)
    return bool(whole)


def winners(a: np.ndarray, k: Any) -> np.ndarray | None:
    """Where an integer-array key repeats an element, which of the writes lasted; None where nothing repeats."""
    parts = k if type(k) is tuple else (k,)
    if not any(
        isinstance(part, np.ndarray) and part.dtype.kind in "iu" for part in parts
    ) and not overlaps_itself(a):
        return None
    places = np.arange(a.size).reshape(a.shape)[k] if not overlaps_itself(a) else _byte_places(a)[k]
    flat = places.ravel()
    last = {place: at for at, place in enumerate(flat.tolist())}
    if len(last) == flat.size:
        return None
    mask = np.zeros(flat.size, bool)
    mask[list(last.values())] = True
    return mask.reshape(places.shape)


def _byte_places(a: np.ndarray) -> np.ndarray:
    return byte_offsets(a, min(address(a), extent(a)[0]))
