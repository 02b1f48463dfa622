"""Derived programs compiled: by Numba, the GIL released, once for each function, argument types and mode."""

from __future__ import annotations

import functools
import itertools
import linecache
import re
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

import numba
from numba.core.errors import NumbaWarning

from plaingrad import rulebook
from plaingrad.critical import Lock, exclusively, shared_lock
from plaingrad.errors import NativeError
from plaingrad.native.analysis.memory import Memory
from plaingrad.native.compile import cache
from plaingrad.native.compile.garbage import seldom_collected
from plaingrad.native.finish.pipeline import polished
from plaingrad.native.forward.forward import (
    chunk_program,
    columns_program,
    gradient_program,
    jacobian_program,
    pushforward_program,
    tangents_program,
)
from plaingrad.native.frontend.translation import program
from plaingrad.native.frontend.typed_ir import listing
from plaingrad.native.loops.forms import FORMS
from plaingrad.native.lowering.prepare import prepared
from plaingrad.native.lowering.split_tuples import exploded
from plaingrad.native.program.dispatchers import (
    identity,
    is_dispatcher,
    is_parallel,
    options_inside,
    options_of,
    python_function,
)
from plaingrad.native.program.emit import source
from plaingrad.native.program.ir import Program
from plaingrad.native.program.per_function import PerFunction
from plaingrad.native.reverse.cotangents import cotangents_program
from plaingrad.native.reverse.reverse import enclosed_sweeps, pullback_program, pullback_sweeps
from plaingrad.native.runtime import declare
from plaingrad.native.runtime.workspace import Arena
from plaingrad.progress import told

WIDTHS = (2, 4, 8, 16)  # of chunks of tangents
TRANSFORMS: dict[str, Callable[..., Program | tuple[Program, ...]]] = {
    "pullback": functools.partial(pullback_sweeps, forms=FORMS),
    "enclosed": functools.partial(enclosed_sweeps, forms=FORMS),
    "fused": pullback_program,
    "cotangents": cotangents_program,
    "inside": functools.partial(cotangents_program, with_results=True),
    "tangents": tangents_program,
    "pushforward": pushforward_program,
    **{f"pushforward{n}": functools.partial(chunk_program, n) for n in WIDTHS},
    **{f"columns{n}": functools.partial(columns_program, n) for n in WIDTHS},
    **{f"gradient{n}": functools.partial(gradient_program, n) for n in WIDTHS},
    **{f"jacobian{n}": functools.partial(jacobian_program, n) for n in WIDTHS},
}
OF_CALLEES = {  # the modes in which functions that are called are derived, where that is another one
    "pullback": "enclosed",
    "cotangents": "fused",
    "inside": "fused",
    **{f"{mode}{n}": f"pushforward{n}" for mode in ("columns", "gradient", "jacobian") for n in WIDTHS},
}
OF_CHUNKS = frozenset(f"pushforward{n}" for n in WIDTHS)
UNPOLISHED = frozenset(("cotangents", "inside", "tangents"))  # these are differentiated again

CALLED = re.compile(r"\b([A-Za-z_]\w*?)(?:_\d+)?\(")  # a name may have a number, where two would be alike

_lock = shared_lock(60.0)
_built = PerFunction()  # of `Derived`, or `NativeError`
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived function: `run` is compiled, `python` is the same program for CPython, `text` its source.

    Attributes:
        run: the dispatcher; for a pullback its `Sweeps`.
        text: the source.
        writes: whether it writes into its array arguments, as the function that it is derived from does.
        calls: the names of the functions that it calls.
        result: the type of the result of the function that it is derived from.
    """

    run: Any
    text: str
    writes: bool
    calls: frozenset[str]
    result: str

    @property
    def python(self) -> Any:
        """The same program, run by CPython, with everything that it calls: for a debugger."""
        if isinstance(self.run, Sweeps):
            forward, backward = uncompiled(self.run.forward, {}), uncompiled(self.run.backward, {})
            return replace(self.run, forward=forward, backward=backward)
        return uncompiled(self.run, {})


@dataclass(frozen=True, slots=True)
class Sweeps:
    """The two functions of a pullback; called, it runs both: (results, cotangents of the scalar arguments).

    Attributes:
        forward: takes the header of an arena and the arguments; returns the results and the frame.
        backward: takes the header, the frame, seeds and shadows; returns cotangents of the scalar arguments.
        arguments: the number of arguments.
        results: the number of results, tuples in parts.
    """

    forward: Any
    backward: Any
    arguments: int
    results: int

    @property
    def __name__(self) -> str:
        """For messages."""
        return getattr(self.forward, "__name__", "").removesuffix("_forward")

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        arena = Arena()
        out = self.forward(arena.header, *given[: self.arguments])
        bars = self.backward(arena.header, *out[self.results :], *given[self.arguments :])
        return (*out[: self.results], *bars)

    def recorded(self, *args: Any) -> Recorded:
        """The forward sweep done, the reverse sweep to come, as often as it is wanted."""
        arena = Arena()
        out = self.forward(arena.header, *args)
        return Recorded(self.backward, arena, out[: self.results], out[self.results :])


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a forward sweep has left.

    Attributes:
        backward: the reverse sweep.
        arena: holds the memory of the tapes.
        results: of the function, tuples in parts.
        frame: what the reverse sweep takes over.
        lock: held by the thread that is in the reverse sweep: shadows of arrays made on the way forward are shared.
    """

    backward: Any
    arena: Arena
    results: tuple[Any, ...]
    frame: tuple[Any, ...]
    lock: Lock = field(default_factory=Lock)

    @property
    def __name__(self) -> str:
        """For messages."""
        return getattr(self.backward, "__name__", "").removesuffix("_backward")

    def pulled(self, *given: Any) -> tuple[Any, ...]:
        """The cotangents of the scalar arguments; `given` are seeds and shadows."""
        return self.lock.hold(self.backward, self.arena.header, *self.frame, *given)  # type: ignore[no-any-return]

    def compile(self, *given: Any) -> None:
        """Compile the reverse sweep for seeds and shadows of these types."""
        if hasattr(self.backward, "compile"):  # Numba may be told not to compile
            values = (self.arena.header, *self.frame, *given)
            self.backward.compile(tuple([numba.typeof(x) for x in values]))


def uncompiled(f: Any, known: dict[Any, Any]) -> Any:
    """The Python function behind a dispatcher, with the dispatchers that it names undone likewise."""
    f = python_function(f)
    if f in known or not isinstance(f, FunctionType):
        return known.get(f, f)
    named = [f.__globals__.get(name) for name in f.__code__.co_names]
    if not any(map(is_dispatcher, named)):
        return f
    space = dict(f.__globals__)
    known[f] = FunctionType(f.__code__, space, f.__name__, f.__defaults__, f.__closure__)
    for name in f.__code__.co_names:
        if is_dispatcher(space.get(name)):
            space[name] = uncompiled(space[name], known)
    return known[f]


@dataclass(slots=True)
class _Begun:
    """A function that is being derived, and the globals of those that call it and wait for it.

    Attributes:
        name: what its program will be called.
        in_sweeps: whether it has two.
        spaces: the globals.
    """

    name: str
    in_sweeps: bool
    spaces: list[dict[str, Any]] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its programs."""
        return (f"{self.name}_forward", f"{self.name}_backward") if self.in_sweeps else (self.name,)

    def stand_in(self) -> ByName | Sweeps:
        """What stands for it until it is there."""
        made = [ByName(name) for name in self.names]
        return Sweeps(*made, 0, 0) if self.in_sweeps else made[0]


class ByName:
    """Stands for a derived function inside its own program, or inside one that it calls."""

    is_own_name = True

    def __init__(self, name: str) -> None:
        self.name = name


def derived(
    mode: str, f: Any, signature: tuple[Any, ...], active: tuple[int, ...], zeros: tuple[int, ...] = ()
) -> Derived:
    """The pullback or pushforward of `f` for arguments of types `signature`, of which `active` are differentiated.

    It holds for arguments that are 0.0 at the positions `zeros`.

    Raises:
        NativeError: it cannot be derived.
    """
    function = python_function(f)
    options = options_of(f)  # which the derivative keeps
    key = (mode, signature, active, str(options), is_parallel(f), rulebook.changes(), zeros)
    found = _built.of(function).get(key)
    if found is None:
        found = exclusively(
            _lock, _known_or_derived, key, function, mode, f, signature, active, options, zeros
        )
    if isinstance(found, NativeError):
        raise type(found)(str(found))
    return found


def _with_less_freedom(
    mode: str, function: Any, options: dict[str, Any], how: tuple[Any, ...]
) -> Derived | None:
    """What is derived of a function without its `fastmath`, which what it calls may not have; None if it is refused.

    A function without that freedom cannot be put into one that has it; without it both can be compiled as one.
    """
    signature, active, _, zeros = how
    fewer = {k: value for k, value in options.items() if k != "fastmath"}
    strict = numba.njit(**fewer)(function)
    try:
        return seldom_collected(_derive, mode, strict, function, signature, active, fewer, {}, zeros)  # type: ignore[no-any-return]
    except NativeError:
        return None


def _too_deep(function: Any) -> NativeError:
    code = function.__code__
    return NativeError(
        f"`{code.co_name}` at {code.co_filename}:{code.co_firstlineno} is too deep to be differentiated natively: "
        "too many branches that leave it, or a `try` with too much in it.\n"
        "  To go on: tier='plain' differentiates it as it is; or put parts of it into functions of their own.\n"
        "  See docs: errors#native"
    )


def _known_or_derived(key: Any, function: Any, mode: str, f: Any, *how: Any) -> Derived | NativeError:
    known = _built.of(function)
    found = known.get(key)
    if found is None:
        signature, active, options, zeros = how
        name = f"{mode} of {getattr(f, '__name__', 'a function')}, natively"
        told(name, 0, 1)
        try:
            found = seldom_collected(_derive, mode, f, function, signature, active, options, {}, zeros)
        except (
            RecursionError,
            IndentationError,
        ):  # of Python's limits, as in hundreds of returns one after another
            found = _too_deep(function)
        except NativeError as error:
            found = type(error)(str(error))  # without the frames of Numba that the other one holds
            if "fastmath" in options:
                found = _with_less_freedom(mode, function, options, how) or found
        known[key] = found
        told(name, 1, 1)
    return found  # type: ignore[no-any-return]


def _derive(
    mode: str,
    f: Any,
    function: Any,
    signature: Any,
    active: Any,
    options: dict[str, Any],
    above: dict[Any, _Begun],
    zeros: tuple[int, ...] = (),
) -> Derived:
    words = " ".join([mode, *([str(zeros)] if zeros else []), *(["parallel"] if is_parallel(f) else [])])
    key = cache.key_of(words, function, signature, active, options)
    kept = cache.load(key)
    if kept is not None:
        return _found(vars(kept), kept.NAMES, kept.TEXT, kept.WRITES, kept.COUNTS, kept.RESULT)
    original = prepared(program(f, signature))
    original = replace(original, zeros=frozenset(original.params[k] for k in zeros))
    number = next(_numbers)
    me = _Begun(_name_of(original.name, mode, key, number), mode == "enclosed")
    if any(other.name == me.name for other in above.values()):
        me.name += f"_{number}"
    inside = above if mode in OF_CALLEES or zeros else {**above, (function, signature, active): me}
    callers: list[_Begun] = []

    def callee(g: Any, types_of: Any, positions: Any) -> Any:
        inner = python_function(g)
        for (other, kinds, wanted), begun in inside.items():
            if identity(inner) == identity(other) and types_of == kinds and positions == wanted:
                callers.append(begun)
                return begun.stand_in()
        inner_mode, its = OF_CALLEES.get(mode, mode), options_inside(options, g)
        if inner_mode == "enclosed":
            try:
                return _derive("enclosed", g, inner, types_of, positions, its, inside).run
            except NativeError:
                return _derive("fused", g, inner, types_of, positions, its, {}).run
        return _derive(inner_mode, g, inner, types_of, positions, its, inside).run

    derivative = TRANSFORMS[mode](original, [original.params[k] for k in active], callee)
    made = list(derivative) if isinstance(derivative, tuple) else [derivative]
    if mode not in UNPOLISHED:
        made = [polished(p) for p in made]
    for p, name in zip(made, me.names if mode != "pullback" else (), strict=False):
        p.name = name
    names = tuple(p.name for p in made)
    text, space = source(*made)
    writes, counts = _writes_and_counts(original)
    flags = {p.name: backward_options(options) if p.backward else options for p in made}
    if mode in OF_CHUNKS:  # Python has no arrays of lanes
        flags = {name: {**given, "no_cpython_wrapper": True} for name, given in flags.items()}
    result = str(original.result)
    kept = cache.keep(key, flags, text, space, WRITES=writes, COUNTS=counts, RESULT=result)
    if kept is not None:
        return _found(vars(kept), names, text, writes, counts, result)
    programs = _compiled(f"<plaingrad native {original.name}_{mode} {number}>", names, text, space, flags)
    for begun in callers:
        begun.spaces.append(space)
    for other in me.spaces:
        other.update(programs)
    return _found(programs, names, text, writes, counts, result)


def _name_of(name: str, mode: str, key: str | None, number: int) -> str:
    """The name of a derived program; one of its own where others call it, who tell functions by their code."""
    return f"{name}_{mode}" if mode not in UNPOLISHED else f"{name}_{mode}_{key[:12] if key else number}"


def _writes_and_counts(original: Program) -> tuple[bool, tuple[int, int]]:
    """(whether a program writes into its arguments, (how many it has, how many parts its result has))."""
    parts, results, leaves = exploded(original)
    memory = Memory(parts)
    writes = any(memory.is_written(leaf) for parts_of in leaves.values() for leaf in parts_of)
    return writes, (len(original.params), len(results))


def _compiled(
    filename: str, names: tuple[str, ...], text: str, space: dict[str, Any], flags: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """The programs of a text, which shows under `filename`, as dispatchers."""
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    space["__name__"] = __name__  # a module that exists: Numba looks it up for a function that calls itself
    exec(compile(text, filename, "exec"), space)
    # not in their own globals, which Numba keeps for as long as those are there: they would never go
    programs = {name: declare.program(space.pop(name), flags[name]) for name in names}
    weakref.finalize(programs[names[0]], linecache.cache.pop, filename, None)
    return programs


def _found(
    space: dict[str, Any],
    names: tuple[str, ...],
    text: str,
    writes: bool,
    counts: tuple[int, int],
    result: str,
) -> Derived:
    for name in names:
        _silence(space[name])
    run = space[names[0]] if len(names) == 1 else Sweeps(*[space[name] for name in names], *counts)
    return Derived(run, text, writes, frozenset(CALLED.findall(text)), result)


def _silence(run: Any) -> None:
    """Let Numba compile without warnings, about which a user can do nothing, and with fewer collections of garbage."""
    compile_it = getattr(run, "compile", None)
    if compile_it is None or hasattr(compile_it, "is_silent"):  # Numba may be told not to compile
        return

    def silently(signature: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)
            return seldom_collected(compile_it, signature)

    silently.is_silent = True  # type: ignore[attr-defined]
    run.compile = silently


def backward_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a reverse sweep: it raises nothing, and may contract a*b + c, which no decision depends on."""
    fastmath = options.get("fastmath", False)
    if fastmath is not True:
        fastmath = {"contract", *(fastmath or ())}
    return {"fastmath": fastmath, "error_model": "numpy"}


def stages(f: Any, signature: tuple[Any, ...], active: tuple[int, ...]) -> str:
    """What stands between `f` and its compiled derivatives, with the user's line numbers: typed IR, then programs.

    Raises:
        NativeError: `f` cannot be derived in either mode.
    """
    original = prepared(program(f, signature))
    kinds = ", ".join(map(str, signature))
    typed = "".join(f"# {line}\n" for line in listing(f, signature).splitlines())
    parts = [
        f"# {original.name}({kinds}), typed IR of Numba\n{typed}",
        f"# {original.name}({kinds}), structured\n{source(original)[0]}",
    ]
    refusals = []
    for mode in ("pushforward", "pullback"):
        try:
            text = derived(mode, f, signature, active).text
        except NativeError as error:
            refusals.append(error)
            text = "".join(f"# {line}\n" for line in str(error).splitlines())
        parts.append(f"# {mode} of {original.name}\n{text}")
    if len(refusals) == 2:
        raise refusals[1]
    return "\n".join(parts)


__all__ = ["Derived", "derived", "is_dispatcher", "stages"]
