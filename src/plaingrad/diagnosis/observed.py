"""Observed levels: derivatives whose every step is looked at, with the line of the program that made it.

They are levels without the compiled core, each of whose hooks is wrapped. A hook that has run is a `Step`: its name,
operands and result, which of them are active, and where the program is. Nothing of this exists at other levels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from plaingrad.diagnosis.compiled_code import RAISED, compiled_form, is_compiled
from plaingrad.diagnosis.finite import bad_in, is_array
from plaingrad.diagnosis.places import Place, Site, place_of, site
from plaingrad.engine.forward.forward import ForwardLevel
from plaingrad.engine.fusion.hot_hooks import forward_hooks, reverse_hooks
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NUMBER, SEQUENCE, kind_of
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.memory.tape import CALLED, STEP, ArraySlot, NumberSlot, RuleStep, Tree
from plaingrad.engine.refusals.blame import name_of
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.engine.users_code import codes
from plaingrad.rewrite import is_rewritten
from plaingrad.rewrite.hooks import BINARY, COMPARE, HOOKED, IN_PLACE, UNARY

SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">=", "neg": "-", "getitem": "[]",
    "contains": "in",
}  # fmt: skip
DEEPEST = 3  # containers in containers whose active entries are looked for


class Step:
    """One operation of the program.

    Attributes:
        name: what was done: a sign, or the name of a function.
        at: where.
        operands: what it was given.
        result: what came out.
        consumed: the indices of the active operands.
        produced: those of the result; empty where it does not depend on the inputs.
    """

    __slots__ = ("at", "consumed", "f", "had_bad", "kind", "name", "operands", "produced", "result")

    def __init__(self, name: str, kind: str, at: Site | None, operands: tuple[Any, ...]) -> None:
        self.name = name
        self.kind = kind
        self.at = at
        self.operands = operands
        self.result: Any = None
        self.f: Any = None  # the function that was called
        self.had_bad = False  # an operand was not finite
        self.consumed: tuple[Any, ...] = ()
        self.produced: tuple[Any, ...] = ()

    @property
    def place(self) -> Place | None:
        """The line of the program."""
        return place_of(self.at)


class MarkedTape(list[Any]):
    """A tape that knows of each triple which step it belongs to."""

    def __init__(self, level: Any) -> None:
        super().__init__()
        self.level = level
        self.steps: list[Step] = []
        self.edges: list[tuple[tuple[int, ...], tuple[int, ...]]] = []  # (inputs, outputs) of each triple

    def extend(self, triples: Iterable[Any]) -> None:
        """Append triples."""
        triples = tuple(triples)
        step = self.level.running or Step("reading", "access", site(), ())
        for k in range(0, len(triples), 3):
            self.steps.append(step)
            self.edges.append(edge(*triples[k : k + 3]))
        super().extend(triples)


def edge(output: Any, index: Any, partial: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(the indices that a triple of the tape takes cotangents to, those that it has them from), as far as is known."""
    if index >= 0:
        return (index,), (output,)
    if index == CALLED:
        name, given = partial.__name__, output
        first = given[0]
        if name in CALLED_INPUTS:
            places = CALLED_INPUTS[name]
            inputs = tuple([given[k] for k in places if given[k] is not None])
            return inputs, (first,)
        return (), (first,) if type(first) is int else ()
    if index == STEP:
        if type(partial) is RuleStep:
            inputs = [i for _, slot in partial.inputs for i in indices_in(slot)]
            return tuple(inputs), tuple(indices_in(partial.outputs))
        outputs = [getattr(partial, "index", None), *indices_in(getattr(partial, "output", None))]
        known = tuple([n for n in outputs if type(n) is int and n >= 0])
        inputs = []
        for name in ("slot", "v_slot", "b_slot"):
            inputs += indices_in(getattr(partial, name, None))
        if not known and type(output) is int and output >= 0:
            known = (output,)
        if not known:  # a write: what is written goes into the memory
            known = tuple(indices_in(getattr(partial, "slot", None)))
        return tuple(inputs), known
    return (), ()


CALLED_INPUTS = {
    "array_sum_back": (3, 5), "array_difference_back": (3, 5), "array_product_back": (3, 5),
    "array_quotient_back": (3, 5), "elementwise_back": (3,), "read_number_back": (1,), "write_number_back": (3,),
    "whole_sum_back": (1, 2), "whole_multiple_back": (1,),
}  # fmt: skip


def indices_in(slot: Any) -> list[int]:
    """The indices that a slot names."""
    if type(slot) is NumberSlot or type(slot) is ArraySlot:
        return [slot.index] if type(slot.index) is int else []
    if type(slot) is Tree:
        return [n for inner in slot.slots.values() for n in indices_in(inner)]
    return []


class Observed:
    """What an observed level has beside its mode's: `watcher` is told of each step when it is done."""

    __slots__ = ()

    def observe(self, watcher: Callable[[Any, Step], None] | None) -> None:
        """Wrap the hooks."""
        self.watcher = watcher
        self.running: Step | None = None
        self.compiled = 0  # how many functions that Numba compiled are being run as Python
        self.unseen = self.prep
        for name in (*BINARY, *IN_PLACE, *UNARY):
            setattr(self, name, self._hook(name, "operator"))
        for name in COMPARE:
            setattr(self, name, self._hook(name, "comparison"))
        self.contains = self._hook("contains", "comparison")
        self.getitem = self._hook("getitem", "access")
        self.setitem = self._hook("setitem", "write")
        self.text = self._hook("text", "text")
        self.prep = self._preparing(self.prep)
        self.method = self._methods(self.method)

    def _hook(self, name: str, kind: str) -> Callable[..., Any]:
        inner = getattr(self, name)
        shown = SIGNS.get(name.removeprefix("i") if name in IN_PLACE else name, name)

        def hook(*operands: Any) -> Any:
            return self.step(inner, operands, {}, shown, kind)

        return hook

    def _preparing(self, inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def prep(f: Any) -> Any:
            if type(f) is functools.partial and is_programs(inner(f.func)):
                return inner(f)
            return self._as_source(inner(f)) if is_compiled(f) else self._called(f, inner(f))

        return prep

    def _methods(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def method(o: Any, name: str) -> Any:
            found = inner(o, name)
            bound = (o,) if is_number(kind_of(type(o))) else ()
            return self._called(attribute(o, name, found), found, bound)

        return method

    def _as_source(self, instead: Any) -> Any:
        """`instead`, the Python source of a compiled function."""

        def run(*args: Any, **kwargs: Any) -> Any:
            self.compiled += 1
            try:
                with np.errstate(all="ignore"):  # compiled code does not warn
                    return instead(*args, **kwargs)
            finally:
                self.compiled -= 1

        return run

    def _called(self, f: Any, instead: Any, bound: tuple[Any, ...] = ()) -> Any:
        """`instead`, looked at when it is called, unless it is Python code of the program."""
        if is_programs(instead) or type(instead) is Seen or instead in LEFT_ALONE:
            return instead
        return Seen(self, f, instead, bound)

    def step(
        self, inner: Any, operands: Any, kwargs: Any, name: str, kind: str, bound: Any = (), f: Any = None
    ) -> Any:
        """inner(*operands, **kwargs), as one step."""
        before = self.running
        if before is not None and name.startswith("plaingrad.") and kind == "call":
            name = before.name  # a part of its definition
        made = Step(name, kind, site(), (*bound, *operands, *kwargs.values()))
        made.f = f
        made.consumed = self.indices(made.operands)
        made.had_bad = any(bad_in(x) is not None for x in made.operands)
        self.running = made
        try:
            result = self._result(inner, made, operands, kwargs)
        finally:
            self.running = before
        made.result = operands[1] if kind == "write" and len(operands) > 1 else result
        made.produced = self.indices((made.result,))
        if self.watcher is not None:
            self.watcher(self, made)
        return result

    def _result(self, inner: Any, made: Step, operands: Any, kwargs: Any) -> Any:
        """inner(*operands, **kwargs); in code that Numba compiles inf and nan where Python raises."""
        try:
            return inner(*operands, **kwargs)
        except RAISED:
            form = compiled_form(made.f, made.name, made.kind, operands) if self.compiled else None
            if form is None:
                raise
        with np.errstate(all="ignore"):
            return self.unseen(form)(*operands)

    def indices(self, values: Iterable[Any], depth: int = 0) -> tuple[Any, ...]:
        """What the table says of the numbers and arrays among `values`, and in lists of them."""
        found: list[Any] = []
        for x in values:
            kind = kind_of(type(x))
            if kind == NUMBER:
                i = self.index.get(id(x))
            elif kind == ARRAY and is_array(x):
                i = self.index.get(id(x if x.base is None else owner_of(x)))  # without a refusal
                i = None if type(i) is int and i < 0 else i
            elif kind in (SEQUENCE, MAPPING) and depth < DEEPEST:
                entries = x.values() if kind == MAPPING else x
                found += self.indices(list(entries)[:1000], depth + 1)
                continue
            else:
                continue
            if i is not None:
                found.append(i if type(i) is int else id(x))
        return tuple(found)


class Seen:
    """A callable whose calls are steps of an observed level."""

    __slots__ = ("bound", "f", "instead", "level")

    def __init__(self, level: Any, f: Any, instead: Any, bound: tuple[Any, ...]) -> None:
        self.level = level
        self.f = f
        self.instead = instead
        self.bound = bound

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The call, as a step."""
        if is_mover(self.f):
            return self.instead(*args, **kwargs)
        return self.level.step(self.instead, args, kwargs, called(self.f), "call", self.bound, self.f)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.instead, name)


def attribute(o: Any, name: str, found: Any) -> Any:
    """What `o.name` is, found without running code of the program."""
    t = type(o)
    if issubclass(t, ModuleType):
        return vars(o).get(name, found)
    for cls in (o, *o.__mro__) if issubclass(t, type) else t.__mro__:
        if name in vars(cls):
            return vars(cls)[name]
    return found


@functools.lru_cache(4096)
def _name(f: Any) -> str:
    return name_of(f)


def called(f: Any) -> str:
    """The name of a function."""
    try:
        return _name(f)
    except TypeError:
        return name_of(f)


MOVERS = (
    "append",
    "extend",
    "insert",
    "len",
    "id",
    "isinstance",
    "hash",
    "type",
    "hasattr",
    "getattr",
    "setattr",
)
MOVERS += (
    "zeros_like",
    "ones_like",
    "empty_like",
    "shape",
    "ndim",
    "size",
    "print",
    "iter",
    "callable",
    "issubclass",
)


def is_mover(f: Any) -> bool:
    """Whether a function only passes references on, or asks what does not depend on numbers."""
    return getattr(f, "__name__", "") in MOVERS


def is_number(kind: int) -> bool:
    """Whether a kind is that of numbers or arrays."""
    return kind in (NUMBER, ARRAY)


class _LeftAlone:
    """Callables that look at who calls them, or that are asked what they are."""

    def __contains__(self, f: Any) -> bool:
        return isinstance(f, type) or getattr(f, "__name__", "") in (
            "locals",
            "vars",
            "dir",
            "eval",
            "exec",
            "super",
        )


LEFT_ALONE = _LeftAlone()


def is_programs(f: Any) -> bool:
    """Whether `f` is Python code of the program, whose own operations are looked at."""
    if type(f) is MethodType:
        return is_programs(f.__func__)
    if type(f) is FunctionType:
        return (
            is_rewritten(f.__code__) or codes.runs_rewritten(f) or not f.__module__.startswith("plaingrad.")
        )
    return False


class ObservedReverse(Observed, ReverseLevel):
    """A reverse-mode derivative whose steps are looked at."""

    __slots__ = ("compiled", "running", "unseen", "watcher")

    takes_native_rules = False  # of a compiled function the Python source is run, so that it has lines

    def hot_hooks(self) -> dict[str, Any]:
        """The hooks that run most, in their Python form."""
        self.tape = MarkedTape(self)
        self.running = None
        hot = reverse_hooks(False)(self, self.index, self.alive, self.tape, self._sweep_numbers)
        self.new_index = hot["new_index"]
        return hot

    def choose_arithmetic(self) -> None:
        """One hook for each operation."""
        super().choose_arithmetic()
        self.fuses, self.form = False, HOOKED

    def _look_compiled(self) -> None:
        pass


class ObservedForward(Observed, ForwardLevel):
    """A forward-mode derivative whose steps are looked at."""

    __slots__ = ("compiled", "running", "unseen", "watcher")

    takes_native_rules = False

    def hot_hooks(self) -> dict[str, Any]:
        """The hooks that run most, in their Python form."""
        return forward_hooks(False, bool(self.lead))(self, self.index, self.alive, self._sweep_numbers)

    def choose_arithmetic(self) -> None:
        """One hook for each operation."""
        super().choose_arithmetic()
        self.fuses, self.form = False, HOOKED

    def _look_compiled(self) -> None:
        pass
