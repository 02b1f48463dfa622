"""Derived programs compiled: by Numba, the GIL released, once for each function, argument types and mode."""

from __future__ import annotations

import functools
import itertools
import linecache
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numba

from plaingrad import rulebook
from plaingrad.errors import NativeError
from plaingrad.native import cache
from plaingrad.native.activity import Memory
from plaingrad.native.emit import source
from plaingrad.native.explode import exploded
from plaingrad.native.forward import chunk_program, columns_program, jacobian_program, pushforward_program
from plaingrad.native.frontend import is_dispatcher, listing, options_of, program, python_function
from plaingrad.native.polish import polished
from plaingrad.native.prepare import prepared
from plaingrad.native.reverse import pullback_program
from plaingrad.native.tree import Program

WIDTHS = (2, 4, 8, 16)  # of chunks of tangents
TRANSFORMS: dict[str, Callable[..., Program]] = {
    "pullback": pullback_program,
    "pushforward": pushforward_program,
    **{f"pushforward{n}": functools.partial(chunk_program, n) for n in WIDTHS},
    **{f"columns{n}": functools.partial(columns_program, n) for n in WIDTHS},
    **{f"jacobian{n}": functools.partial(jacobian_program, n) for n in WIDTHS},
}
OF_CALLEES = {  # the modes in which functions that are called are derived, where that is another one
    f"{mode}{n}": f"pushforward{n}" for mode in ("columns", "jacobian") for n in WIDTHS
}

_lock = threading.RLock()
_built: dict[Any, Derived | NativeError] = {}
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived function: `run` is compiled, `python` is the same program for CPython, `text` its source.

    Attributes:
        run: the dispatcher.
        text: the source.
        writes: whether it writes into its array arguments, as the function that it is derived from does.
    """

    run: Any
    text: str
    writes: bool

    @property
    def python(self) -> Any:
        """The same program, run by CPython, with everything that it calls: for a debugger."""
        return uncompiled(self.run, {})


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
    """A function that is being derived, and the globals of those that call it and wait for it."""

    name: str
    spaces: list[dict[str, Any]] = field(default_factory=list)


class ByName:
    """Stands for a derived function inside its own program, or inside one that it calls."""

    is_own_name = True

    def __init__(self, name: str) -> None:
        self.name = name


def derived(mode: str, f: Any, signature: tuple[Any, ...], active: tuple[int, ...]) -> Derived:
    """The pullback or pushforward of `f` for arguments of types `signature`, of which `active` are differentiated.

    Raises:
        NativeError: it cannot be derived.
    """
    function = python_function(f)
    options = options_of(f)  # which the derivative keeps
    key = (mode, function, signature, active, str(options), rulebook.changes())
    with _lock:
        found = _built.get(key)
        if found is None:
            try:
                found = _derive(mode, f, function, signature, active, options, {})
            except NativeError as error:
                found = error
            if len(_built) > 1024:
                _built.clear()
            _built[key] = found
    if isinstance(found, NativeError):
        raise NativeError(str(found))
    return found


def _derive(
    mode: str,
    f: Any,
    function: Any,
    signature: Any,
    active: Any,
    options: dict[str, Any],
    above: dict[Any, _Begun],
) -> Derived:
    key = cache.key_of(mode, function, signature, active, options)
    kept = cache.load(key)
    if kept is not None:
        return Derived(getattr(kept, kept.NAME), kept.TEXT, kept.WRITES)
    original = prepared(program(f, signature))
    number = next(_numbers)
    me = _Begun(f"{original.name}_{mode}")
    if any(other.name == me.name for other in above.values()):
        me.name += f"_{number}"
    inside = above if mode in OF_CALLEES else {**above, (function, signature, active): me}
    callers: list[_Begun] = []

    def callee(g: Any, types_of: Any, positions: Any) -> Any:
        inner = python_function(g)
        for (other, kinds, wanted), begun in inside.items():
            same = inner.__code__ is other.__code__ and inner.__closure__ == other.__closure__
            if same and types_of == kinds and positions == wanted:
                callers.append(begun)
                return ByName(begun.name)
        return _derive(OF_CALLEES.get(mode, mode), g, inner, types_of, positions, options_of(g), inside).run

    made = polished(TRANSFORMS[mode](original, [original.params[k] for k in active], callee))
    made.name = me.name
    text, space = source(made)
    parts, _, leaves = exploded(original)
    memory = Memory(parts)
    writes = any(memory.is_written(leaf) for names in leaves.values() for leaf in names)
    kept = cache.keep(key, made.name, text, space, OPTIONS=options, WRITES=writes)
    if kept is not None:
        return Derived(getattr(kept, kept.NAME), text, writes)
    filename = f"<plaingrad native {made.name} {number}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    space["__name__"] = __name__  # a module that exists: Numba looks it up for a function that calls itself
    exec(compile(text, filename, "exec"), space)
    space[made.name] = numba.njit(nogil=True, **options)(space[made.name])
    for begun in callers:
        begun.spaces.append(space)
    for other in me.spaces:
        other[made.name] = space[made.name]
    return Derived(space[made.name], text, writes)


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
