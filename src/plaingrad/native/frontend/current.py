"""Functions as they are now: stand-ins that nothing changes any more, from which derivatives are derived.

A stand-in has the code of a function and a namespace of its own with what the names in it stand for now; of a plain
function, the plain functions that it calls are made dispatchers. All caches of the native tier are told by it. When
something that the function reads from outside has changed, the next call has another stand-in; the old one goes with
all that was derived of it. A dispatcher that is compiled already has a stand-in with the globals that it was compiled
with.
"""

from __future__ import annotations

import builtins
import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import local
from types import CellType, FunctionType
from typing import Any

from numba.core.errors import ForceLiteralArg
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import make_concrete_template, signature

from plaingrad.critical import closing, exclusively, imported, shared_lock
from plaingrad.errors import NativeError
from plaingrad.native.frontend.inner_operators import WithInnerOperators
from plaingrad.native.frontend.outside import (
    MISSING,
    Snapshot,
    changed,
    content_of,
    form_for,
    frozen,
    global_names,
)
from plaingrad.native.program.dispatchers import is_dispatcher, is_plain, python_function, reached_from
from plaingrad.rewrite import PLAIN, in_force

STAND_IN = "__plaingrad_version__"  # attribute of stand-ins
OF_MODULES = ("__name__", "__file__", "__package__", "__builtins__")


@dataclass(eq=False, slots=True)
class Version:
    """A function, or a dispatcher, as it was.

    Attributes:
        of: the function or dispatcher, held weakly.
        snapshot: what it reads from outside.
        dispatcher: the stand-in, as a dispatcher.
        as_compiled: signature -> the stand-in of a dispatcher with the globals that it was compiled with.
    """

    of: weakref.ref[Any]
    snapshot: Snapshot
    dispatcher: Any = None
    as_compiled: dict[Any, Any] = field(default_factory=dict)


_lock = shared_lock(60.0)  # what Numba is in the middle of is finished first
_versions: dict[int, Version] = {}  # by the identity of a function that is alive
_begun: dict[int, Version] = {}  # being made: functions that call each other
_epoch = 0


def changes() -> int:
    """How often a function was found changed: what is known of a function may be out of date when this grows."""
    return _epoch


def version_of(f: Any) -> Version:
    """The version of a plain function, or of a dispatcher, that is in force."""
    found = _versions.get(id(f))
    if found is not None and found.of() is f and found.snapshot.is_current():
        return found
    return exclusively(_lock, _new_version, f, found is not None)  # type: ignore[no-any-return]


def version_made(f: Any, made: Any) -> Version | None:
    """The version in force of `f` that `made` is a stand-in of; None if it is of another one, or none."""
    found = _versions.get(id(f))
    if found is None or found.of() is not f:
        return None
    return found if any(x is made for x in (found.dispatcher, *found.as_compiled.values())) else None


def _new_version(f: Any, has_changed: bool) -> Version:
    global _epoch
    key = id(f)
    begun = _begun.get(key)
    if begun is not None:
        return begun
    if has_changed:
        _epoch += 1
    new = Version(weakref.ref(f, functools.partial(_versions.pop, key)), Snapshot(f))

    def make() -> None:
        _begun[key] = new
        how = (_stand_in, f, new, {}) if is_dispatcher(f) else (_stand_in_of_plain, f, new)
        in_force(PLAIN, *how)  # Numba is not to be differentiated

    closing(make, lambda: _begun.pop(key, None))
    _versions[key] = new
    return new


def dispatcher_of(f: FunctionType) -> Any:
    """The dispatcher of a plain Python function as it is now, with those that it calls compiled along."""
    made = vars(f).get(STAND_IN)
    if made is None:
        return version_of(f).dispatcher
    return made() or _jitted(f, {"nopython": True})


def with_compiled_callees(f: FunctionType) -> FunctionType:
    """`f` with the plain Python functions that it calls by a global or captured name made dispatchers."""
    return dispatcher_of(f).py_func  # type: ignore[no-any-return]


def original(f: Any) -> Any:
    """The function or dispatcher that a stand-in stands for; others as they are."""
    made = getattr(python_function(f), "__dict__", {}).get(ORIGINAL)
    return f if made is None else made()


ORIGINAL = "__plaingrad_original__"


def as_now(f: Any, signature: tuple[Any, ...]) -> Any:
    """What to derive in the place of `f`, a plain function or a dispatcher, for arguments of these types.

    It is a dispatcher; what is neither stays as it is.
    """
    if STAND_IN in getattr(python_function(f), "__dict__", {}):
        return f
    if not is_dispatcher(f):
        return version_of(f).dispatcher if isinstance(f, FunctionType) else f
    version = version_of(f)
    if form_for(f, signature) is None:
        return version.dispatcher
    found = version.as_compiled.get(signature)
    if found is None:
        made = exclusively(_lock, in_force, PLAIN, _as_compiled, f, version, signature)
        found = version.as_compiled[signature] = made
    return found


def _as_compiled(f: Any, version: Version, signature: tuple[Any, ...]) -> Any:
    """The stand-in of a dispatcher that has been compiled for these types."""
    values = frozen(f, signature)
    if not values:
        return version.dispatcher
    made = Version(version.of, version.snapshot)
    _stand_in(f, made, values)
    return made.dispatcher


def snapshot_of(f: Any) -> Snapshot | None:
    """What the function of a stand-in reads from outside; None of others."""
    of = original(f)
    found = None if of is None or of is f else _versions.get(id(of))
    return None if found is None else found.snapshot


class StandIn(CPUDispatcher):
    """A dispatcher that is typed, not compiled, where a program that calls it is typed by our front end."""

    __module__ = CPUDispatcher.__module__  # the plain tier tells compiled functions by it

    @property
    def _reduce_class(self) -> Any:
        return CPUDispatcher

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """As Numba's, which compiles the function to know what it returns."""
        if not (self._can_compile and is_typed_here(self.targetdescr.typing_context)):
            return super().get_call_template(args, kws)
        pysig, kinds = self._compiler.fold_argument_types(args, kws)
        kinds = tuple(kinds)
        if kinds in self.overloads or self.is_recursive():  # of a recursion Numba wants the code
            return super().get_call_template(args, kws)
        known = self.__dict__.setdefault("typed", {})
        if kinds not in known:
            typed_ir = imported("plaingrad.native.frontend.typed_ir").typed_ir
            try:
                with self._compiling_counter:
                    known[kinds] = signature(typed_ir(self.py_func, kinds, self.locals)[2], *kinds)
            except ForceLiteralArg as error:
                raise error.bind_fold_arguments(
                    lambda args, kws: self._compiler.fold_argument_types(args, kws)[1]
                ) from None
        name = self.py_func.__name__
        template = make_concrete_template(f"CallTemplate({name})", name, [known[kinds]])
        return template, pysig, kinds, {}

    def is_recursive(self) -> bool:
        """Whether the function calls itself, by others perhaps."""
        return bool(self.is_compiling) or any(f is self for f in reached_from(self.py_func))


_typed = local()  # the functions that this thread has in our front end, the innermost one last


def typed_here(f: Any, work: Callable[..., Any], *args: Any) -> Any:
    """work(*args), which types the function `f` in our front end."""
    held = _typed.__dict__.setdefault("functions", [])
    held.append(f)
    try:
        return work(*args)
    finally:
        held.pop()


def is_typed_here(context: Any) -> bool:
    """Whether what Numba types now is the program in our front end, and not something that it compiles for that."""
    held = _typed.__dict__.get("functions")
    frames = context.callstack._stack
    return bool(held and frames and frames[-1].func_id.func is held[-1])


# -- how they are made -------------------------------------------------------------------------------------------------


def _stand_in_of_plain(f: FunctionType, version: Version) -> None:
    """Fill a version of a plain function; its dispatcher is there before its callees are looked at."""
    space, closure = _namespace(f)
    new = _clone(f, version, space, closure)
    version.dispatcher = dispatcher = _jitted(new, {"nopython": True})
    _mark(new, f, dispatcher)
    for name, value in space.items():
        if is_plain(value) and not name.startswith("__"):
            space[name] = (
                version_of(value).dispatcher if STAND_IN not in vars(value) else dispatcher_of(value)
            )
        elif is_dispatcher(value):
            space[name] = _callee(value)
    for cell in closure:
        value = content_of(cell)
        if is_plain(value):
            cell.cell_contents = dispatcher_of(value)
        elif is_dispatcher(value):
            cell.cell_contents = _callee(value)


def _stand_in(f: Any, version: Version, values: dict[str, Any]) -> None:
    """Fill a version of a dispatcher; `values` are those that it was compiled with."""
    function = f.py_func
    space, closure = _namespace(function)
    for name in values:
        if name not in function.__code__.co_freevars:
            space[name] = values[name]
    for name, cell in zip(function.__code__.co_freevars, closure, strict=True):
        if name in values:
            cell.cell_contents = values[name]
    new = _clone(function, version, space, closure)
    version.dispatcher = dispatcher = _jitted(new, dict(f.targetoptions), f.locals)
    _mark(new, f, dispatcher)
    for name, value in space.items():
        if is_dispatcher(value):
            space[name] = dispatcher if value is f else _callee(value)
    for cell in closure:
        value = content_of(cell)
        if is_dispatcher(value):
            cell.cell_contents = dispatcher if value is f else _callee(value)


def _callee(f: Any) -> Any:
    """A dispatcher as a stand-in calls it: itself, or one with the globals that it was compiled with.

    Raises:
        NativeError: it was compiled several times, with different globals.
    """
    if STAND_IN in vars(f.py_func):
        return f
    found: dict[str, Any] = {}
    for compiled in list(f.overloads.values()):
        values = changed(f.py_func, compiled)
        if (
            found
            and values != found
            or values
            and found != values
            and compiled is not next(iter(f.overloads.values()))
        ):
            raise NativeError(
                f"`{f.__name__}` was compiled several times, with different values of {', '.join({*values, *found})}.\n"
                "  To go on: make it anew with numba.njit.\n  See docs: errors#native"
            )
        found = values
    if not found:
        return f
    made = Version(weakref.ref(f), Snapshot(f))
    _stand_in(f, made, found)
    return made.dispatcher


def _namespace(f: FunctionType) -> tuple[dict[str, Any], tuple[CellType, ...]]:
    """(what the names in a function stand for, its captured variables), of its own."""
    given = f.__globals__
    space = {name: given[name] for name in OF_MODULES if name in given}
    space.setdefault("__builtins__", builtins)
    for name in global_names(f.__code__):
        if name in given:
            space[name] = given[name]
    held = [content_of(cell) for cell in f.__closure__ or ()]
    return space, tuple([CellType() if x is MISSING else CellType(x) for x in held])


def _clone(
    f: FunctionType, version: Version, space: dict[str, Any], closure: tuple[CellType, ...]
) -> FunctionType:
    new = FunctionType(f.__code__, space, f.__name__, f.__defaults__, closure or None)
    new.__kwdefaults__ = f.__kwdefaults__ and dict(f.__kwdefaults__)
    new.__module__, new.__qualname__ = f.__module__, f.__qualname__
    return new


def _mark(new: FunctionType, f: Any, dispatcher: Any) -> None:
    setattr(new, STAND_IN, weakref.ref(dispatcher))
    setattr(new, ORIGINAL, weakref.ref(f))


def _jitted(f: FunctionType, options: dict[str, Any], kinds: Any = None) -> Any:
    """numba.njit(f), with NUMBA_DISABLE_JIT too: the types of what it returns are asked for, then CPython runs it."""
    return StandIn(py_func=f, targetoptions=options, locals=kinds or {}, pipeline_class=WithInnerOperators)


__all__ = [
    "as_now",
    "changes",
    "dispatcher_of",
    "original",
    "snapshot_of",
    "version_made",
    "version_of",
    "with_compiled_callees",
]
