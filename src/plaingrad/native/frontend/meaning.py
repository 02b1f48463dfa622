"""Where compiled code means something else than its Python source: declared signatures, globals, replaced functions.

A dispatcher is what Numba compiled, and derivatives are of that. The native tier derives from the source, with the
globals that were compiled (`current`), with what `numba.extending.overload` puts in the place of functions, for the
types that were declared. The first value is compared with the dispatcher's own, where it has been compiled already.
Where only the Python function could be differentiated, and that would be another one, it is refused.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
from numba.core import types
from numba.core.registry import cpu_target
from numba.core.typeconv.rules import default_type_manager
from numba.np.numpy_support import as_dtype

from plaingrad.errors import NativeError
from plaingrad.native.frontend.current import as_now, original
from plaingrad.native.frontend.outside import content_of, form_for, frozen, global_names
from plaingrad.native.program.dispatchers import is_dispatcher, is_plain, overloads_of, python_function
from plaingrad.native.program.per_function import PerFunction

_sources = PerFunction()  # of stand-ins: signature -> why the source must not be taken for it, or ""
_compared = PerFunction()  # of stand-ins: signature -> the message of a difference, or None
TOLERANCE = {
    4: 1e-3,
    8: 1e-6,
}  # bytes of a float -> relative difference that rounding in another order may make


def declared(f: Any, signature: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types that a dispatcher takes arguments of these types as: those of a declared signature, if it has any.

    Raises:
        NativeError: none of them fits.
    """
    if not is_dispatcher(f) or f._can_compile or signature in f.overloads:
        return signature
    given = [converted(form, signature) for form in f.overloads if len(form) == len(signature)]
    fitting = [(kinds, form) for kinds, form in given if _choice(kinds, [form]) is not None]
    chosen = _choice(fitting[0][0], [form for _, form in fitting]) if fitting else None
    if chosen is None:
        raise NativeError(
            f"`{f.__name__}` was compiled for declared types only, none of which fits "
            f"({', '.join(map(str, signature))}).\n  To go on: pass what it was declared for.\n"
            "  See docs: errors#native"
        )
    return fitting[chosen][1]


def converted(form: tuple[Any, ...], signature: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """(`signature` with the arrays that are taken in another layout as such, the form that takes them so)."""
    convert = cpu_target.typing_context.can_convert
    pairs = zip(signature, form, strict=True)
    return tuple(
        [to if isinstance(to, types.Array) and convert(t, to) is not None else t for t, to in pairs]
    ), form


def _choice(kinds: tuple[Any, ...], forms: list[Any]) -> int | None:
    """Which of the forms Numba chooses for arguments of these types; None if none fits, or several do."""
    try:
        return int(default_type_manager.select_overload(kinds, forms, True, False))
    except TypeError:
        return None


def as_declared(
    f: Any, args: tuple[Any, ...], signature: tuple[Any, ...], positions: tuple[int, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """(the arguments, their types) as a dispatcher takes them; those at `positions` are differentiated.

    Raises:
        NativeError: a number that is differentiated is made a whole one.
    """
    wanted = declared(f, signature)
    if wanted == signature:
        return args, signature
    out = []
    for k, (x, t, to) in enumerate(zip(args, signature, wanted, strict=True)):
        if t != to and isinstance(to, types.Number) and isinstance(t, (types.Number, types.Boolean)):
            if k in positions and not isinstance(to, (types.Float, types.Complex)):
                raise NativeError(
                    f"`{f.__name__}` was declared for {to} as argument {k}, and cuts a {t} off to one: it has no "
                    f"derivative there.\n  To go on: declare it for floats, or differentiate `{f.__name__}.py_func`.\n"
                    "  See docs: errors#native"
                )
            x = as_dtype(to).type(x)
        out.append(x)
    return tuple(out), wanted


def implementation(f: Any, kinds: list[Any], names: tuple[str, ...]) -> Any:
    """The Python function that compiled code runs in the place of `f` for arguments of these types; None if it is `f`.

    Args:
        f: a Python function.
        kinds: the types of the arguments.
        names: of the last of them, which are given by keyword.

    Raises:
        TypeError: none was declared for these types.
    """
    templates = overloads_of(f)
    if not templates:
        return None
    count = len(kinds) - len(names)
    for template in templates:
        found = template._overload_func(*kinds[:count], **dict(zip(names, kinds[count:], strict=True)))
        found = found[1] if isinstance(found, tuple) else found
        if found is not None:
            return found
    raise TypeError("no overload")


def replaced_in(f: Any) -> FunctionType | None:
    """A Python function, called by a dispatcher or what it calls, that `numba.extending.overload` replaces."""
    todo, seen = [python_function(f)], set()
    while todo:
        g = todo.pop()
        seen.add(id(g))
        held = [g.__globals__.get(name) for name in global_names(g.__code__)]
        for x in [*held, *map(content_of, g.__closure__ or ())]:
            if is_dispatcher(x) and id(x.py_func) not in seen:
                todo.append(x.py_func)
            elif (
                is_plain(x)
                and any(t._overload_func is not None for t in overloads_of(x))
                and not is_jitable(x)
            ):
                return x
    return None


def is_jitable(f: Any) -> bool:
    """Whether what compiled code runs in the place of `f` is `f` (`register_jitable`)."""
    for template in overloads_of(f):
        held = map(content_of, template._overload_func.__closure__ or ())
        if not any(x is f for x in held) and not returns_only(template._overload_func, f):
            return False
    return True


def returns_only(chooser: Any, f: Any) -> bool:
    """Whether `chooser` knows nothing but `f`, by its global name, so that it can return nothing else."""
    code = chooser.__code__
    nothing_else = code.co_names == (f.__name__,) and all(x is None or type(x) is str for x in code.co_consts)
    return nothing_else and not chooser.__closure__ and chooser.__globals__.get(f.__name__) is f


def refuse_source(f: Any, signature: tuple[Any, ...]) -> None:
    """Refuse to differentiate the Python function behind a dispatcher, where that is another function.

    Raises:
        NativeError: it is.
    """
    now = as_now(f, signature)
    known = _sources.of(python_function(now))
    if signature not in known:
        known[signature] = reason_against(f, signature)
    if known[signature]:
        raise NativeError(
            f"`{f.__name__}` is compiled code, which has no native derivative here, and its Python source is another "
            f"function: {known[signature]}.\n  To go on: differentiate `{f.__name__}.py_func`, or compile it anew.\n"
            "  See docs: errors#native"
        )
    if is_known_to_differ(now, signature):
        raise NativeError(_compared.of(python_function(now))[signature])


def reason_against(f: Any, signature: tuple[Any, ...]) -> str:
    """Why the Python function behind a dispatcher is another function; "" if it is not."""
    replaced = replaced_in(f)
    values = frozen(f, signature)
    if replaced is not None:
        return f"`{replaced.__name__}`, which it calls, is replaced when it is compiled (numba.extending.overload)"
    if values:
        return f"it was compiled when {names_of(values)} had another value"
    wanted = declared(f, signature)
    if [t for t in wanted if not isinstance(t, types.Array)] != [
        t for t in signature if not isinstance(t, types.Array)
    ]:
        return f"it was declared for ({', '.join(map(str, wanted))})"
    return ""


def names_of(values: dict[str, Any]) -> str:
    """Names in words."""
    return ", ".join(f"`{name}`" for name in values)


def compare(now: Any, args: tuple[Any, ...], signature: tuple[Any, ...], y: Any) -> None:
    """Compare a value of a derived program, the first, with that of the dispatcher, if it is compiled for these types.

    Args:
        now: what was derived, of `as_now`; its dispatcher has no effects.
        args: the arguments, as they were before the call.
        signature: their types.
        y: the value.

    Raises:
        NativeError: they differ.
    """
    known = _compared.of(python_function(now))
    if signature not in known:
        known[signature] = difference(now, args, signature, y)
    if known[signature] is not None:
        raise NativeError(known[signature])


def is_known_to_differ(now: Any, signature: tuple[Any, ...]) -> bool:
    """Whether a value of what was derived was another one than that of the dispatcher."""
    return _compared.of(python_function(now)).get(signature) is not None


def is_to_compare(now: Any, signature: tuple[Any, ...]) -> bool:
    """Whether `compare` has something to do."""
    if _compared.of(python_function(now)).get(signature, "") is None:
        return False
    f = original(now)
    return f is not now and is_dispatcher(f) and form_for(f, signature) is not None


def difference(now: Any, args: tuple[Any, ...], signature: tuple[Any, ...], y: Any) -> str | None:
    """What is to be said of a difference; None if there is none."""
    f = original(now)
    try:
        kinds = form_for(f, signature) or ()
        given = next((k for k, t in enumerate(kinds) if isinstance(t, types.Omitted)), len(args))
        own = f(*args[:given])
    except Exception as error:
        own = f"{type(error).__name__}: {error}"
    if are_close(own, y):
        return None
    return (
        f"`{f.__name__}`, as it was compiled, returns {own}, but its Python source {y}: what it reads from outside has "
        "changed since it was compiled (a global, an array, a function), or is another one when it is compiled.\n"
        f"  To go on: compile it anew (`{f.__name__}.recompile()`), or pass what changes as an argument.\n"
        "  See docs: errors#native"
    )


def are_close(a: Any, b: Any) -> bool:
    """Whether two results differ by rounding at most."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(are_close, a, b))
    if isinstance(a, (int, float, complex, np.number, np.ndarray)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return False
        wide = max(a.dtype.itemsize // (2 if a.dtype.kind == "c" else 1), 4)
        near = TOLERANCE.get(wide, 1e-6)
        scale = np.max(np.abs(a[np.isfinite(a)]), initial=0.0) if a.dtype.kind in "fc" else 0.0
        return bool(np.allclose(a, b, rtol=near, atol=near * float(scale), equal_nan=True))
    return True


__all__ = ["as_declared", "compare", "declared", "implementation", "is_to_compare", "refuse_source"]
