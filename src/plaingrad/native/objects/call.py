"""The door of this room: a call of a function of objects, as one of a function of numbers and arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

import numpy as np

from plaingrad.errors import NativeError
from plaingrad.native.analysis.effects import effects_of
from plaingrad.native.analysis.users_functions import has_own_rule
from plaingrad.native.border import call as border
from plaingrad.native.border.conversion import bound, opened, signature_of
from plaingrad.native.border.records import as_real
from plaingrad.native.border.shortcuts import by_shortcut
from plaingrad.native.frontend.meaning import refuse_source
from plaingrad.native.objects import calls, compiled, expressions, layouts, results, statements, structure
from plaingrad.native.objects.engine import Frame, Steps, Whole, function_home
from plaingrad.native.objects.values import UNKNOWN, Leaf, Refused, State
from plaingrad.native.objects.writing import Change, changes, put
from plaingrad.native.program.dispatchers import is_dispatcher, python_function
from plaingrad.native.program.per_function import PerFunction
from plaingrad.rewrite import PLAIN, in_force

STEPS = Steps(expressions.evaluate, calls.call, statements.body, statements.follow)
_made = PerFunction()  # of functions: the structure of the arguments -> `Flat`


@dataclass(frozen=True, slots=True)
class Flat:
    """A function of numbers and arrays that was made of one of objects; or why there is none.

    Attributes:
        whole: all that was made, and what it depends on.
        run: the function, if it returns one number or array; else None.
        results: the function that returns all numbers and arrays in the result, a tuple if these are not one; or None.
        returned: the structure of the result: see `results`.
        count: how many numbers and arrays are in it.
        changes: what is left in the objects of the arguments.
        extra: how many numbers and arrays that is. Then `run` returns a pair, with a tuple of these, and `results` has
            them last.
        alone: `run` without these.
        refusal: what stands in the way: (what, the file, the line, the function).
        refused: types and positions -> why Numba takes it not.
        compared: the types for which the value was compared with that of the user's compiled function.
    """

    whole: Whole
    run: Any = None
    results: Any = None
    returned: Any = None
    count: int = 0
    changes: tuple[Change, ...] = ()
    extra: int = 0
    alone: Any = None
    refusal: tuple[Any, ...] = ()
    refused: dict[Any, str] = field(default_factory=dict)
    compared: set[Any] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of objects.

    Attributes:
        function: the Python function.
        compiled: the dispatcher that it is of, or None.
        given: its arguments by parameter.
        kind: what is known of them.
        leaves: the numbers and arrays in them.
        positions: of those that are differentiated.
        wanted: of the parameters that are differentiated, each with where its numbers and arrays begin.
        starts: where the numbers and arrays of every parameter begin, and where the last ones end.
        first: how many parameters come before the arguments: of the object of a method.
        rows: whether long lists are arrays, one for each field of their entries.
        enters: whether functions that the user compiled are followed too.
        bare: whether variables that are None hold nothing.
    """

    function: FunctionType
    given: tuple[Any, ...]
    kind: Any
    leaves: tuple[Any, ...]
    positions: tuple[int, ...]
    wanted: tuple[tuple[int, int], ...]
    starts: tuple[int, ...]
    first: int
    rows: bool
    compiled: Any = None
    enters: bool = False
    bare: bool = False

    def ranges(self, count: int) -> list[tuple[int, int]]:
        """Where the numbers and arrays of each of so many arguments begin and end."""
        return [(self.starts[k], self.starts[k + 1]) for k in range(self.first, self.first + count)]

    def gradients(self, found: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the wanted arguments, from those at `positions`."""
        bars: list[Any] = [None] * len(self.leaves)
        for k, bar in zip(self.positions, found, strict=True):
            bars[k] = bar
        return tuple(
            [structure.mirrored(self.given[k], iter(bars[start:]), self.rows) for k, start in self.wanted]
        )


def call_of(
    f: Any, args: tuple[Any, ...], positions: tuple[int, ...], kwargs: dict[str, Any], rows: bool = True
) -> Call:
    """f(*args), of which the arguments at `positions` are differentiated, taken apart.

    Raises:
        NativeError: it is no call of a Python function, or an argument cannot be taken apart.
    """
    if any(isinstance(args[k], np.ndarray) and args[k].dtype.kind in "iu" for k in positions):
        raise structure.refused("an array of whole numbers is differentiated by")
    args = tuple([as_real(x) if k in positions else x for k, x in enumerate(args)])
    function, first, more = opened(f)
    dispatcher = function if is_dispatcher(function) else None
    function = python_function(function)
    if not isinstance(function, FunctionType) or function.__code__.co_flags & 0x0C:
        raise structure.refused("what is called is no Python function with parameters that are known")
    given = bound(function, (*first, *args), {**more, **kwargs})
    if dispatcher is not None:
        if has_own_rule(dispatcher):
            raise NativeError(f"`{dispatcher.__name__}` has a rule of its own.\n  See docs: errors#native")
        refuse_source(dispatcher, signature_of(given))
    wanted = tuple([k + len(first) for k in positions])
    leaves: list[Any] = []
    at: list[int] = []
    kinds: list[Any] = []
    starts: list[int] = []
    seen: set[int] = set()
    for k, x in enumerate(given):
        before = len(leaves)
        starts.append(before)
        kinds.append(structure.flattened(x, leaves, seen, rows))
        if k in wanted:
            at += [n for n in range(before, len(leaves)) if structure.has_tangent(leaves[n])]
    places = tuple([(k, starts[k]) for k in wanted])
    starts.append(len(leaves))
    return Call(
        function,
        given,
        tuple(kinds),
        tuple(leaves),
        tuple(at),
        places,
        tuple(starts),
        len(first),
        rows,
        dispatcher,
        dispatcher is not None,
    )


def flat_of(call: Call) -> Flat:
    """The function of numbers and arrays for a call, made once for every structure of arguments.

    Raises:
        NativeError: the call changes what it also reads from outside.
    """
    known = _made.of(call.function)
    key = (
        call.kind,
        call.enters,
        call.bare,
        tuple(sorted(compiled.options_of(call.compiled).items(), key=repr)),
    )
    found = known.get(key)
    if found is None or not found.whole.is_current():
        found = known[key] = followed(call)
    if found.changes and found.whole.tables:
        if any(x is table for x in objects_of(call) for table in found.whole.tables):
            raise structure.refused("something is changed that the function also reads from outside")
    return found  # type: ignore[no-any-return]


def followed(call: Call, to_the_end: bool = False) -> Flat:
    """The function of numbers and arrays for a call, made now; with `to_the_end` also of what is refused in part."""
    return in_force(PLAIN, _followed, call, to_the_end)  # type: ignore[no-any-return]


def _followed(call: Call, to_the_end: bool) -> Flat:
    f, whole = call.function, Whole(steps=STEPS, enters=call.enters, bare=call.bare)
    if to_the_end:
        whole.obstacles, whole.space[UNKNOWN.name] = [], None
    whole.space.update({k: f.__globals__[k] for k in ("__name__", "__builtins__") if k in f.__globals__})
    home = function_home(f)
    frame = Frame(whole, home, State(), line=f.__code__.co_firstlineno)
    try:
        node = calls.node_of(whole, f)
        if node is None:
            raise frame.refuse("the source of the function is not found, or is not what runs")
        if has_own_rule(f):
            raise frame.refuse("the function has a rule of its own")
        leaves = iter([Leaf(f"x{k}") for k in range(len(call.leaves))])
        names = f.__code__.co_varnames
        given = {
            name: structure.abstract(frame, x, leaves, call.rows)
            for name, x in zip(names, call.given, strict=False)
        }
        made = calls.make(frame, node, home, given)
        if whole.obstacles:
            return Flat(whole, results=whole.space[made.name])
        if made.state is None:
            raise frame.refuse("the function never returns")
        ends = made.state
        returned, leaves_of, tests = results.returned(frame, ends.names["return"], ends, set(made.held))
        if not any(isinstance(x, Leaf) for x in leaves_of):
            raise frame.refuse("what is returned has no number or array that depends on an argument")
        extra: list[Any] = []
        left = tuple(changes(frame, made, places_of(frame, given, made), extra))
        is_number = isinstance(returned, results.Part)
        all_of = results.with_results(frame, made, [*leaves_of, *extra], node.lineno, None, tests)
        run = alone = all_of
        if extra:
            run, alone = (
                results.with_results(frame, made, leaves_of, node.lineno, more, tests)
                for more in (extra, None)
            )
        run, alone, all_of = (compiled.like(call.compiled, x) for x in (run, alone, all_of))
    except Refused as error:
        return Flat(whole, refusal=error.args)
    except RecursionError:
        return Flat(whole, refusal=("the program is too deep", home.file, frame.line, home.name))
    why = () if is_number else ("what is returned is no number or array", home.file, frame.line, home.name)
    run, alone = (run, alone) if is_number else (None, None)
    return Flat(whole, run, all_of, returned, len(leaves_of), left, len(extra), alone, why)


def places_of(frame: Frame, given: dict[str, Any], made: Any) -> dict[int, int]:
    """The objects of the arguments in the function that was made, each with its place among them."""
    outside = calls.things_in(frame.state.heap, given)
    inside = dict(zip(outside, made.things, strict=True))
    return {inside[at]: k for k, at in enumerate(frame.whole.given) if at in inside}


def attempts(call: Call) -> Iterator[tuple[Call, Flat]]:
    """The ways of taking a call apart: functions that the user compiled as they are, then followed too; see `Whole`."""
    found = flat_of(call)
    yield call, found
    if found.whole.compiled and not call.enters:
        call = replace(call, enters=True)
        found = flat_of(call)
        yield call, found
    if found.whole.some_none:
        call = replace(call, bare=True)
        yield call, flat_of(call)


def refusal_of(found: Flat) -> str:
    """What stands in the way, with the place."""
    why, file, line, name = found.refusal
    return f"{why} ({file}:{line}, in `{name}`)"


def value_and_gradient(
    f: Any, args: tuple[Any, ...], positions: tuple[int, ...], kwargs: dict[str, Any], has_aux: bool = False
) -> tuple[Any, tuple[Any, ...]]:
    """(f(*args), the gradient of each of the arguments at `positions`), natively: as it stands, else taken apart.

    Raises:
        NativeError: neither is possible.
    """
    known = None
    if not kwargs and not has_aux:
        known = by_shortcut(f, args, positions) or layouts.by_layout(f, args, positions)
    if known is not None:
        return known  # type: ignore[no-any-return]
    function = python_function(opened(f)[0])
    is_apart = isinstance(function, FunctionType) and _made.of(function)
    if not is_apart:
        try:
            return border.value_and_gradient(f, args, positions, kwargs, has_aux)
        except NativeError as error:
            refusal = error
    else:
        refusal = None
    if has_aux or not isinstance(function, FunctionType):
        if refusal is None:
            return border.value_and_gradient(f, args, positions, kwargs, has_aux)
        raise refusal
    reason = ""
    try:
        for call, found in attempts(call_of(f, args, positions, kwargs)):
            key = signature_of(call.leaves), call.positions
            if found.run is None:
                reason = f"\n  Taken apart, it is refused too: {refusal_of(found)}."
            elif key in found.refused:
                reason = found.refused[key]
            else:
                try:
                    return _run(f, args, positions, kwargs, call, found)
                except NativeError as error:
                    reason = f"\n  Taken apart, it is refused too: {error}"
                    if (
                        found.whole.compiled or found.whole.some_none
                    ):  # it is tried in another way, now and the next time
                        found.refused[key] = reason
    except NativeError as error:  # the arguments are nothing that can be taken apart
        reason = f"\n  Taken apart, it is refused too: {error}"
    if refusal is None:
        try:
            return border.value_and_gradient(f, args, positions, kwargs)
        except NativeError as error:
            refusal = error
    raise NativeError(f"{refusal}{reason}") from refusal


def _run(
    f: Any, args: tuple[Any, ...], positions: tuple[int, ...], kwargs: dict[str, Any], call: Call, found: Flat
) -> tuple[Any, tuple[Any, ...]]:
    restore: Callable[[], None] = lambda: None
    try:
        done = None if found.changes or found.extra else by_shortcut(found.run, call.leaves, call.positions)
        if done is None:
            restore = restoring(call, found)
            own = None if once(call, found) else compiled.own_value(call.compiled, call.given, found.compared)
            y, bars = border.value_and_gradient(found.run, call.leaves, call.positions, {}, bool(found.extra))
            y, parts = y if found.extra else (y, ())
            compiled.compare(call.compiled, own, y)
            gradients = call.gradients(bars)
            leave(call, found, parts)
        else:
            y, gradients = done[0], call.gradients(done[1])
    except NativeError:
        restore()
        raise
    except Exception:
        restore()
        if not once(call, found):
            f(*args, **kwargs)  # which raises what Python raises, and says what Python says
        raise
    if not kwargs:
        layouts.keep(f, args, positions, call, found, bool(once(call, found)))
    return y, gradients


def once(call: Call, found: Flat) -> str:
    """What the call does that must not be done twice, in words: it is not made again for what Python says."""
    return border.plainly(effects_of, found.results, signature_of(call.leaves)).once  # type: ignore[no-any-return]


def run(f: Any, args: tuple[Any, ...], kwargs: Any, taken: tuple[Call, Flat], work: Any, *given: Any) -> Any:
    """work(*given), which does the call `taken`; an exception is the one that f(*args, **kwargs) raises."""
    restore = restoring(*taken)
    try:
        return work(*given)
    except NativeError:
        restore()
        raise
    except Exception:
        restore()
        if not once(*taken):
            f(*args, **kwargs)
        raise


def restoring(call: Call, found: Flat) -> Callable[[], None]:
    """A function that writes what the arrays among the arguments hold now into them again.

    Raises:
        NativeError: an exception might have to be asked of the plain call, and that would do something a second time.
    """
    effects = border.plainly(effects_of, found.results, signature_of(call.leaves))
    if effects.once and found.whole.vague:
        raise NativeError(
            f"it {effects.once}, and what it raises is known by calling it again ({found.whole.vague})"
        )
    before = [(x, x.copy()) for x in call.leaves if isinstance(x, np.ndarray)] if effects.writes else []

    def restore() -> None:
        for x, was in before:
            x[...] = was

    return restore


def leave(call: Call, found: Flat, parts: Any) -> None:
    """Leave in the arguments what the function leaves there."""
    if found.changes:
        put(list(found.changes), objects_of(call), call.leaves, parts)


def objects_of(call: Call) -> list[Any]:
    """The objects of the arguments."""
    return [x for arg in call.given for x in structure.objects_in(arg, call.rows)]


__all__ = ["run", "value_and_gradient"]
