"""Derivatives that a program takes itself, as functions of derived programs.

`plaingrad.grad(g)(x)` in a program is a call of a function made here, which is put in its place: it calls the derived
program of `g` for these types. Jacobians are columns by forward mode, Hessians columns of gradients of tangents. All
are made of two derived programs, which are differentiated again as often as it takes: `tangents`, whose statements go
through both modes, and `inside`, which returns results and cotangents (`analysis/inner_gradients.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from threading import local
from types import FunctionType
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.errors import NativeError
from plaingrad.native.analysis.effects import effects_of
from plaingrad.native.analysis.inner_gradients import MARK, InnerGradient
from plaingrad.native.compile import build
from plaingrad.native.frontend.current import as_now
from plaingrad.native.frontend.inner_operators import Derived, InnerDerivative
from plaingrad.native.frontend.translation import program
from plaingrad.native.program.dispatchers import python_function

_numbers = itertools.count(1)
_open = local()  # what this thread is deriving inside of other programs


class _Function:
    """A function whose derivative is taken inside of a program, for arguments of certain types.

    Attributes:
        f: its dispatcher.
        kinds: the types of its arguments, those with a derivative as real numbers.
        given: the expressions for these, in terms of the parameters `a0`, `a1`, ... and of `space`.
        space: what the expressions name.
    """

    def __init__(self, what: InnerDerivative, kinds: tuple[Any, ...], moving: tuple[int, ...]) -> None:
        self.what = what
        f = what.f
        if isinstance(f, InnerDerivative):
            f = f.implementation(kinds)
        self.space: dict[str, Any] = {"np": np}
        self.given = [f"a{k}" for k in range(len(kinds))]
        wanted = list(kinds)
        for k, value in enumerate(defaults_of(f, len(kinds))):
            name = f"default{k}"
            self.space[name] = value
            self.given.append(name)
            wanted.append(types.unliteral(type_of(value, what)))
        for k in moving:
            if isinstance(wanted[k], types.Integer):
                wanted[k] = types.float64
                self.given[k] = f"float({self.given[k]})"
            if not is_differentiable(wanted[k]):
                raise NativeError(f"`{what.__name__}` inside of a native function, by a {wanted[k]}")
        self.kinds = tuple(wanted)
        self.f = as_now(f, self.kinds)

    def result(self) -> Any:
        """The type of what it returns."""
        return program(self.f, self.kinds).result

    def by_columns(self) -> None:
        """Make sure that it may be called several times: a column of a matrix with each.

        Raises:
            NativeError: it may not.
        """
        once = effects_of(self.f, self.kinds).once
        if once:
            raise NativeError(f"`{self.what.__name__}` inside of a native function, of one that {once}")

    def gradient(self, positions: tuple[int, ...]) -> str:
        """The expression for (results, cotangents by the arguments at `positions`)."""
        if not isinstance(self.result(), types.Float):
            raise NativeError(f"`{self.what.__name__}` inside of a native function: it returns no float")
        self.space["gradient"] = Derived(inside(self.f, self.kinds, positions, (1.0,)))
        return f"gradient({', '.join([*self.given, '1.0'])})"

    def tangents(self, positions: tuple[int, ...]) -> Any:
        """The program that returns results and tangents."""
        return build.derived("tangents", self.f, self.kinds, positions).run

    def product(self, positions: tuple[int, ...], dots: list[str]) -> str:
        """The expression for (two results, the Hessian by the arguments at `positions` times `dots`)."""
        if not isinstance(self.result(), types.Float):
            raise NativeError(f"`{self.what.__name__}` inside of a native function: it returns no float")
        kinds = (*self.kinds, *[self.kinds[k] for k in positions])
        self.space["product"] = Derived(inside(self.tangents(positions), kinds, positions, (0.0, 1.0)))
        return f"product({', '.join([*self.given, *dots, '0.0', '1.0'])})"


def is_differentiable(t: Any) -> bool:
    """Whether derivatives by arguments of a type can be taken inside of a program."""
    return isinstance(t, types.Float) or isinstance(t, types.Array) and isinstance(t.dtype, types.Float)


def type_of(value: Any, what: InnerDerivative) -> Any:
    """The Numba type of a default."""
    if isinstance(value, (bool, int, float)):
        return (
            types.boolean
            if isinstance(value, bool)
            else types.float64
            if isinstance(value, float)
            else types.int64
        )
    raise NativeError(f"`{what.__name__}` inside of a native function, with a default that is no number")


def defaults_of(f: Any, given: int) -> tuple[Any, ...]:
    """The defaults of the parameters that are not given."""
    function = python_function(f)
    code = function.__code__
    missing = code.co_argcount - given
    held = function.__defaults__ or ()
    if missing < 0 or missing > len(held) or code.co_kwonlyargcount or code.co_flags & 0x0C:
        raise NativeError(f"`{f.__name__}`, differentiated inside of a native function, with these arguments")
    return tuple(held[len(held) - missing :]) if missing else ()


def inside(f: Any, kinds: tuple[Any, ...], positions: tuple[int, ...], seeds: tuple[float, ...]) -> Any:
    """The program that returns (results, cotangents by the arguments at `positions`) of a function of numbers.

    Raises:
        NativeError: it cannot be derived, writes into its arguments, or is in the middle of being derived.
    """
    code = python_function(f).__code__
    held = _open.__dict__.setdefault("codes", [])
    if held.count(code) > 1:
        raise NativeError(f"`{f.__name__}` takes a derivative of itself")
    held.append(code)
    try:
        found = build.derived("inside", f, kinds, positions)
    finally:
        held.pop()
    if found.writes:
        raise NativeError(
            f"`{f.__name__}`, differentiated inside of a native function, writes into its arguments"
        )
    vars(python_function(found.run))[MARK] = InnerGradient(f, kinds, positions, len(seeds))
    return found.run


def pushed(of: InnerGradient, positions: tuple[int, ...]) -> Any:
    """`InnerGradient.pushed`."""
    seeds = (types.float64,) * of.results
    gradient = inside(of.f, of.signature, positions, (0.0,) * of.results)
    places = (*of.positions, *range(len(of.signature), len(of.signature) + of.results))
    return build.derived("tangents", gradient, (*of.signature, *seeds), places).run


# -- the functions -----------------------------------------------------------------------------------------------------


def implementation(what: InnerDerivative, kinds: tuple[Any, ...]) -> FunctionType:
    """The function that computes a derivative for arguments of these types."""
    held = _open.__dict__.setdefault("derivatives", [])
    if len(held) > 20:
        raise NativeError(f"`{what.__name__}`: derivatives inside of derivatives without an end")
    held.append(what)
    try:
        if what.operator not in WRITTEN:
            raise NativeError("a derivative operator is used otherwise than to take a derivative")
        count, lines, space = WRITTEN[what.operator](what, kinds)
    finally:
        held.pop()
    params = ", ".join([f"a{k}" for k in range(count)])
    name = f"derivative_{next(_numbers)}"  # its code is told from others by it
    text = f"def {name}({params}):\n" + "".join(f"    {line}\n" for line in lines)
    space = {**space, "__name__": "plaingrad_inner_derivatives"}
    exec(compile(text, f"<{what.__name__}>", "exec"), space)
    made: FunctionType = space.pop(name)
    return made


Made = tuple[int, list[str], dict[str, Any]]


def positions_in(what: InnerDerivative, count: int) -> tuple[tuple[int, ...], bool]:
    """(the arguments to differentiate, whether they are given as a tuple)."""
    argnums = what.options["argnums"]
    several = isinstance(argnums, tuple)
    found = tuple([int(k) for k in (argnums if several else (argnums,))])
    found = tuple([k + count if k < 0 else k for k in found])
    if any(not 0 <= k < count for k in found) or len(set(found)) < len(found) or not found:
        raise NativeError(f"`{what.__name__}`: there are no arguments {argnums}")
    return found, several


def gradient(what: InnerDerivative, kinds: tuple[Any, ...]) -> Made:
    """`grad` and `value_and_grad`."""
    if what.options.get("has_aux"):
        raise NativeError(f"`{what.__name__}` with has_aux inside of a native function")
    wanted, several = positions_in(what, len(kinds))
    at = tuple(sorted(wanted))
    f = _Function(what, kinds, at)
    parts = [f"found[{1 + at.index(k)}]" for k in wanted]
    out = f"({', '.join(parts)},)" if several else parts[0]
    if what.operator == "value_and_grad":
        out = f"(found[0], {out})"
    return len(kinds), [f"found = {f.gradient(at)}", f"return {out}"], f.space


def dots_of(what: InnerDerivative, kinds: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[str], list[int]]:
    """(types of the arguments of the function, tangents as expressions, the order of the parameters)."""
    n, m = what.options["primals"], len(what.moving)
    order = [*range(n), *range(n + m, len(kinds))]  # what is captured comes last
    return tuple([kinds[k] for k in order]), [f"a{n + k}" for k in range(m)], order


def at_point(what: InnerDerivative, kinds: tuple[Any, ...]) -> Made:
    """`jvp` and `hvp`."""
    own, dots, order = dots_of(what, kinds)
    n = what.options["primals"]
    f = _Function(what, own, what.moving)
    f.given = [x.replace(f"a{k}", f"a{order[k]}") if k < len(order) else x for k, x in enumerate(f.given)]
    for k, dot in zip(what.moving, range(n, n + len(dots)), strict=True):
        a, b = f.kinds[k], kinds[dot]
        if isinstance(b, types.Integer):
            dots[dot - n] = f"float({dots[dot - n]})"
        if isinstance(a, types.Array) != isinstance(b, types.Array) or getattr(a, "ndim", 0) != getattr(
            b, "ndim", 0
        ):
            raise NativeError(f"`{what.__name__}`: a tangent {b} of a {a}")
    if what.operator == "hvp":
        parts = [f"found[{2 + k}]" for k in range(len(dots))]
        every = [
            parts[what.moving.index(k)] if k in what.moving else "None"
            for k in range(what.options["primals"])
        ]
        return (
            len(kinds),
            [f"found = {f.product(what.moving, dots)}", f"return ({', '.join(every)},)"],
            f.space,
        )
    f.space["pushed"] = f.tangents(what.moving)
    line = f"found = pushed({', '.join([*f.given, *dots])})"
    t = f.result()
    if not is_differentiable(t):
        raise NativeError(f"`{what.__name__}` inside of a native function, which returns {t}")
    return len(kinds), [line, "return (found[0], found[1])"], f.space


def derivative(what: InnerDerivative, kinds: tuple[Any, ...]) -> Made:
    """`derivative`: of numbers, of any order."""
    order = what.options["order"]
    if not isinstance(order, int) or order < 1:
        raise NativeError(f"`{what.__name__}` of order {order} inside of a native function")
    inner: Any = what.f
    for _ in range(order - 1):
        inner = InnerDerivative("derivative", inner, {"order": 1})
    what = InnerDerivative("derivative", inner, {"order": 1})
    f = _Function(what, kinds, (0,))
    if not isinstance(f.kinds[0], types.Float) or not isinstance(f.result(), types.Float):
        raise NativeError(f"`{what.__name__}` inside of a native function, of a {f.kinds[0]}")
    f.space["pushed"] = f.tangents((0,))
    return len(kinds), [f"return pushed({', '.join([*f.given, '1.0'])})[1]"], f.space


def jacobian(what: InnerDerivative, kinds: tuple[Any, ...]) -> Made:
    """`jacobian`: by a number or a vector, of a number or a vector."""
    (k, *others), several = positions_in(what, len(kinds))
    if others or several:
        raise NativeError(f"`{what.__name__}` by several arguments inside of a native function")
    f = _Function(what, kinds, (k,))
    x, y = f.kinds[k], f.result()
    if isinstance(y, types.Float):
        return len(kinds), [f"return {f.gradient((k,))}[1]"], f.space
    if not (is_differentiable(y) and y.ndim == 1 and getattr(x, "ndim", 1) == 1):
        raise NativeError(f"`{what.__name__}` inside of a native function, from {x} to {y}")
    f.space["pushed"] = f.tangents((k,))
    given = ", ".join(f.given)
    if isinstance(x, types.Float):
        return len(kinds), [f"return pushed({given}, 1.0)[1]"], f.space
    f.by_columns()
    f.space["value"] = f.f
    lines = [
        f"out = np.zeros((value({given}).size, {f.given[k]}.size), {f.given[k]}.dtype)",
        f"for column in range({f.given[k]}.size):",
        f"    unit = np.zeros_like({f.given[k]})",
        "    unit[column] = 1.0",
        f"    out[:, column] = pushed({given}, unit)[1]",
        "return out",
    ]
    return len(kinds), lines, f.space


def hessian(what: InnerDerivative, kinds: tuple[Any, ...]) -> Made:
    """`hessian`: by a number or a vector."""
    (k, *others), several = positions_in(what, len(kinds))
    if others or several:
        raise NativeError(f"`{what.__name__}` by several arguments inside of a native function")
    f = _Function(what, kinds, (k,))
    x = f.kinds[k]
    if isinstance(x, types.Float):
        return len(kinds), [f"return {f.product((k,), ['1.0'])}[2]"], f.space
    if x.ndim != 1:
        raise NativeError(f"`{what.__name__}` inside of a native function, by {x}")
    f.by_columns()
    lines = [
        f"out = np.zeros(({f.given[k]}.size, {f.given[k]}.size), {f.given[k]}.dtype)",
        f"for column in range({f.given[k]}.size):",
        f"    unit = np.zeros_like({f.given[k]})",
        "    unit[column] = 1.0",
        f"    out[:, column] = {f.product((k,), ['unit'])}[2]",
        "return out",
    ]
    return len(kinds), lines, f.space


WRITTEN: dict[str, Callable[[InnerDerivative, tuple[Any, ...]], Made]] = {
    "grad": gradient,
    "value_and_grad": gradient,
    "jvp": at_point,
    "hvp": at_point,
    "derivative": derivative,
    "jacobian": jacobian,
    "hessian": hessian,
}
