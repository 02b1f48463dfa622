"""Gradients and pullbacks: the public door. Thin: the work is done in `plaingrad.engine`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from plaingrad.engine.kinds import ARRAY, MAPPING, NOTHING, NUMBER, SEQUENCE, kind_of
from plaingrad.engine.run import Run
from plaingrad.errors import ArgumentError, CotangentError, NonScalarOutputError
from plaingrad.rewrite import describe
from plaingrad.tangents import NoTangent, ZeroTangent

Argnums = int | tuple[int, ...]


def grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that returns df/d(argument).

    Args:
        f: any Python callable that returns one real number (a float, or a 0-d array).
        argnums: which positional argument to differentiate, or a tuple of several. Arguments may be floats, ints
            (taken as reals), complex numbers, float or complex arrays of any shape, and lists, tuples, dicts,
            namedtuples, dataclasses and other objects of these, nested.
        has_aux: `f` returns `(y, aux)`; `aux` is not differentiated and is returned beside the gradient.

    Returns:
        A function of the same arguments as `f`. It returns the gradient, with the structure of the argument: an
        array of the same shape and dtype for an array, a list for a list, a `Tangent` for an object; `None` for an
        entry that has no tangent. With several `argnums` a tuple; with `has_aux` a pair `(gradient, aux)`. For a
        complex argument z = x + iy the gradient is df/dx + i df/dy.

    Raises:
        NonScalarOutputError: `f` returned something else than one real number.
        ArgumentError: an argument has no tangent, or there is no such argument.
        MissingRuleError: the value depends on the argument through C code that has no rule.

    Examples:
        >>> import math
        >>> grad(lambda x: x * math.sin(x))(2.0) == math.sin(2.0) + 2.0 * math.cos(2.0)
        True
        >>> grad(lambda p: p["a"] * p["b"])({"a": 3.0, "b": 4.0})
        {'a': 4.0, 'b': 3.0}
    """
    both = value_and_grad(f, argnums, has_aux)

    @_wraps(f)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        y, x_bar = both(*args, **kwargs)
        return (x_bar, y[1]) if has_aux else x_bar

    return gradient


def value_and_grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that returns `(f(*args), gradient)`; see `grad`.

    With `has_aux` it returns `((y, aux), gradient)`.

    Examples:
        >>> value_and_grad(lambda x, y: x * y, argnums=(0, 1))(3.0, 4.0)
        (12.0, (4.0, 3.0))
    """
    positions = _positions(argnums)

    @_wraps(f)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        run = Run(f, args, _checked(positions, args), kwargs, _first if has_aux else _same)
        if has_aux and not (type(run.value) is tuple and len(run.value) == 2):
            raise NonScalarOutputError(
                f"with has_aux=True the function must return (y, aux), not {_a(run.value)}"
            )
        y = run.value[0] if has_aux else run.value
        gradients = run.pull(_unit_cotangent(y, f))
        return run.value, gradients if isinstance(argnums, tuple) else gradients[0]

    return value_and_gradient


def vjp(f: Callable[..., Any], *args: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """`(y, pullback)`: the value `f(*args)` and the map from a cotangent of it to cotangents of the arguments.

    `pullback(y_bar)` returns a tuple with one entry per argument, `None` for an argument without tangent. `y_bar`
    has the structure, shapes and dtypes of `y`. It may be called any number of times.

    Raises:
        CotangentError: `y_bar` does not fit `y`.
        ChangedSinceError: an array that the pullback reads was changed since the call.

    Examples:
        >>> y, pullback = vjp(lambda x, y: x * y, 3.0, 4.0)
        >>> y, pullback(1.0), pullback(2.0)
        (12.0, (4.0, 3.0), (8.0, 6.0))
    """
    active = tuple(n for n, x in enumerate(args) if _may_have_tangent(x))
    if not active:
        raise ArgumentError(
            "none of the arguments holds a real or complex number.\n  See docs: errors#argument"
        )
    run = Run(f, args, active, {})
    run.watch()
    y = run.value

    def pullback(y_bar: Any) -> tuple[Any, ...]:
        """The cotangents of the arguments."""
        found = dict(zip(active, run.pull(_fitting(y_bar, y, "y_bar")), strict=True))
        return tuple(found.get(n) for n in range(len(args)))

    return y, pullback


def show(f: Callable[..., Any]) -> str:
    """Print, and return, the instructions of `f` beside the rewritten ones that are run in its place.

    Args:
        f: a Python function, method, or object with a Python `__call__`; or a code object.

    Raises:
        ArgumentError: there is no Python bytecode behind `f`.

    Examples:
        >>> text = show(lambda x: x + 1.0)  # doctest: +ELLIPSIS
        <BLANKLINE>
        ...
    """
    code = _code_of(f)
    if code is None:
        raise ArgumentError(f"{f!r} has no Python bytecode to show")
    text = describe(code)
    print(text)
    return text


def _code_of(f: Any) -> CodeType | None:
    if isinstance(f, CodeType):
        return f
    if isinstance(f, MethodType):
        f = f.__func__
    elif not isinstance(f, FunctionType):
        f = getattr(f, "__wrapped__", None) or vars(type(f)).get("__call__")
    return getattr(f, "__code__", None)


def _wraps(f: Any) -> Callable[[Any], Any]:
    """Carry over the name and documentation of `f`, where it has them."""
    present = [name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(f, name)]
    return functools.wraps(f, assigned=present, updated=())


def _same(value: Any) -> Any:
    return value


def _first(value: Any) -> Any:
    return value[0] if type(value) is tuple and value else None


def _a(x: Any) -> str:
    shape = f" of shape {x.shape} and dtype {x.dtype}" if isinstance(x, np.ndarray) else ""
    return f"a {type(x).__qualname__}{shape}"


def _positions(argnums: Any) -> tuple[int, ...]:
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    if not positions or not all(isinstance(n, int) and not isinstance(n, bool) for n in positions):
        raise ArgumentError(
            f"argnums must be an int or a tuple of ints, not {argnums!r}.\n  See docs: errors#argument"
        )
    return positions


def _checked(positions: tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
    found = []
    for n in positions:
        if not -len(args) <= n < len(args):
            raise ArgumentError(
                f"there is no positional argument {n} to differentiate: the call has {len(args)}.\n"
                "  Differentiated arguments are passed by position.\n  See docs: errors#argument"
            )
        found.append(n % len(args))
    if len(set(found)) != len(found):
        raise ArgumentError(f"argnums names one argument twice: {positions!r}.\n  See docs: errors#argument")
    return tuple(found)


def _unit_cotangent(y: Any, f: Any) -> Any:
    """1 as a cotangent of the scalar `y`."""
    kind = kind_of(type(y))
    name = getattr(f, "__name__", "the function")
    if kind == NUMBER and not isinstance(y, (complex, np.complexfloating)):
        return 1.0 if isinstance(y, (float, np.floating)) else type(y)(1)
    if kind == ARRAY and y.shape == () and y.dtype.kind in "fiub":
        return np.ones((), y.dtype if y.dtype.kind == "f" else float)
    if isinstance(y, (int, np.integer, np.bool_)):
        return 1.0
    if isinstance(y, (complex, np.complexfloating)) or (kind == ARRAY and y.dtype.kind == "c"):
        hint = "return its real part or its absolute value, or use vjp with the cotangent you mean"
    elif y is None:
        hint = "is a `return` missing?"
    else:
        hint = "reduce it to one number (sum, mean, an entry), or use vjp with a cotangent of its shape"
    raise NonScalarOutputError(
        f"grad needs one real number, but {name} returned {_a(y)}.\n  To go on: {hint}.\n"
        "  See docs: errors#non-scalar-output"
    )


def _may_have_tangent(x: Any, depth: int = 0) -> bool:
    kind = kind_of(type(x))
    if kind == NOTHING:
        return isinstance(x, (int, np.integer)) and not isinstance(x, bool)
    if kind == NUMBER:
        return True
    if kind == ARRAY:
        return x.dtype.kind in "fciu"
    if depth > 20:
        return False
    if kind in (SEQUENCE, MAPPING):
        return any(_may_have_tangent(v, depth + 1) for v in (x.values() if kind == MAPPING else x))
    from plaingrad.engine.inputs import fields_of, has_fields

    if not has_fields(x):
        return False
    return any(
        _may_have_tangent(v, depth + 1) for v in fields_of(x).values() if not isinstance(v, (int, np.integer))
    )


def _fitting(y_bar: Any, y: Any, path: str) -> Any:
    """`y_bar`, checked to be a cotangent of `y`."""
    if y_bar is None or y_bar is ZeroTangent or y_bar is NoTangent:
        return ZeroTangent
    kind = kind_of(type(y))
    if kind == NUMBER:
        if isinstance(y_bar, np.ndarray) and y_bar.shape == ():
            y_bar = y_bar[()]
        if not isinstance(y_bar, (int, float, complex, np.number)) and kind_of(type(y_bar)) != NUMBER:
            raise _misfit(path, "a number", y_bar)
        _refuse_complex(path, y_bar, y)
        return float(y_bar) if isinstance(y_bar, int) else y_bar
    if kind == ARRAY:
        if not isinstance(y_bar, np.ndarray):
            if np.shape(y_bar) != y.shape or isinstance(y_bar, (list, tuple)):
                raise _misfit(path, f"an array of shape {y.shape}", y_bar)
            y_bar = np.asarray(y_bar)
        if y_bar.shape != y.shape:
            raise _misfit(path, f"an array of shape {y.shape}", y_bar)
        if y_bar.dtype.kind not in "fciub":
            raise _misfit(path, "an array of numbers", y_bar)
        if y.dtype.kind in "fc":
            _refuse_complex(path, y_bar, y)
        return y_bar
    if kind == SEQUENCE:
        if not isinstance(y_bar, (list, tuple)) or len(y_bar) != len(y):
            raise _misfit(path, f"a sequence of {len(y)} entries", y_bar)
        return [_fitting(part, of, f"{path}[{k}]") for k, (part, of) in enumerate(zip(y_bar, y, strict=True))]
    if kind == MAPPING:
        if not isinstance(y_bar, Mapping) or set(y_bar) - set(y):
            raise _misfit(path, f"a mapping with keys among {list(y)}", y_bar)
        return {
            key: _fitting(y_bar[key], y[key], f"{path}[{key!r}]") if key in y_bar else ZeroTangent
            for key in y
        }
    if isinstance(y_bar, Mapping) and kind not in (NOTHING,):
        return {name: y_bar.get(name, ZeroTangent) for name in getattr(y, "__dict__", {})}
    if isinstance(y, (int, np.integer)):
        return ZeroTangent
    raise CotangentError(
        f"{path} is given for {_a(y)}, which has no tangent; pass None there.\n  See docs: errors#cotangent"
    )


def _refuse_complex(path: str, y_bar: Any, y: Any) -> None:
    if np.iscomplexobj(y_bar) and not np.iscomplexobj(y):
        raise CotangentError(
            f"{path} is complex, but the output it belongs to is real.\n  See docs: errors#cotangent"
        )


def _misfit(path: str, wanted: str, got: Any) -> CotangentError:
    return CotangentError(
        f"{path} must be {wanted}, like the output it belongs to; got {_a(got)}.\n  See docs: errors#cotangent"
    )
