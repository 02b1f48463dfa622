"""Rules in reverse mode: the primal, and one step on the tape with the pullback."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from plaingrad import number_classes
from plaingrad.define import module_for, pair_of
from plaingrad.engine.calls.rule_application import argument_at
from plaingrad.engine.memory.kinds import FLOAT64, NUMBER, is_heap, kind_of
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.memory.tape import (
    CALLED,
    STEP,
    ArraySlot,
    RuleStep,
    Tree,
    attach,
    elementwise_back,
)
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.reverse.exchange import ExchangeStep
from plaingrad.engine.reverse.recording import Recording
from plaingrad.engine.reverse.transpose import Recorder, pullback_of
from plaingrad.rewrite import PLAIN
from plaingrad.rulebook import Rule


class ReverseRules(Recording):
    """What a reverse level does with a function that has a rule, where an argument is active."""

    __slots__ = ()

    record: ClassVar[Recorder]  # the class `Run`, which enters itself; it turns rules round
    pull_through: Any  # the function of that name in `run`

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
        elif self.parent is PLAIN and rule.own and not is_heap(type(f)):  # its methods may run rewritten now
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
            n, place = self.add_region(y), y
            if rule.kind == "linear" and rule.own and self.recorder is not None:
                inputs = [(position, formed(self.recorder, x)) for position, x in inputs]
                place = self.recorder.form(y)
            self.tape.extend((n, STEP, RuleStep(ArraySlot(n, place), tuple(inputs), pullback, rule)))
            return y
        y, outputs = self.add_outputs(y)
        if rule.kind == "full":  # only now: a result that the pullback holds needs no copy
            self._capture_held(pullback, 0)
        if outputs is not None:
            self.tape.extend((-1, STEP, RuleStep(outputs, tuple(inputs), pullback, rule)))
        return y

    def by_exchange(self, xs: list[Any], ys: list[Any], exchange: Any) -> list[Any]:
        """One step on the tape, which the way back always takes: other ranks wait for it."""
        slots = [self.slot_of(x) for x in xs]
        ys, outputs = self.add_outputs(ys)
        places = [None] * len(ys) if outputs is None else list(outputs.slots.values())
        self.tape.extend((-1, STEP, ExchangeStep(places, slots, exchange)))
        return ys

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
        if number_classes.known:
            self.working = number_classes.note_precision(self.working, z)
        z, outputs = self.add_outputs(z)
        if outputs is not None:
            self.tape.extend((-1, STEP, RuleStep(outputs, tuple(inputs), pullback, rule)))
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


def formed(recorder: Any, slot: Any) -> Any:
    """`slot`, its large arrays replaced by what only has their place in memory; see `_form` in the compiled core."""
    if type(slot) is ArraySlot:
        x = recorder.form(slot.x)
        return slot if x is slot.x else ArraySlot(slot.index, x)
    if type(slot) is Tree and type(slot.x) is tuple and not slot.x:  # no container of its own
        return Tree({key: formed(recorder, part) for key, part in slot.slots.items()})
    return slot
