"""The hooks of a jet level for Python floats: the recurrences of `taylor.series` on coefficients 1..n."""

from __future__ import annotations

from collections.abc import Callable
from operator import mul as product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import convolve, errstate

from plaingrad import rulebook
from plaingrad.engine.forward.tangents import QUIET
from plaingrad.engine.taylor import jet_rows
from plaingrad.engine.taylor.jet_rows import JETS

if TYPE_CHECKING:
    from plaingrad.engine.taylor.jets import JetLevel

Filer = Callable[[Any, Any], Any]
Getter = Callable[[Any], Any]


def hot_jets(level: JetLevel) -> dict[str, Callable[..., Any]]:
    """The hooks by name; `unary` makes one of a function."""
    index, alive, order = level.index, level.alive, level.lead[0]
    get, push = index.get, alive.append

    def filed(z: Any, z_dot: Any) -> Any:
        push(z)
        index[id(z)] = z_dot
        if len(alive) % 4096 == 0:
            level._sweep_numbers()
        return z

    hooks = {"unary": function_hook(get, filed), "neg": neg_hook(get, filed, level)}
    for name, general, make in MAKERS:
        hooks[name] = make(get, filed, order, getattr(level, general))
    return hooks


def add_hook(get: Getter, filed: Filer, order: int, general: Any) -> Any:
    """a + b."""

    def add(a: Any, b: Any) -> Any:
        if (type(a) is float or type(a) is int) and (type(b) is float or type(b) is int):
            z = a + b
            x, y = get(id(a)), get(id(b))
            if x is None:
                return z if y is None else filed(z, y)
            if y is None:
                return filed(z, x)
            with errstate(**QUIET):
                return filed(z, x + y)
        return general(a, b)

    return add


def sub_hook(get: Getter, filed: Filer, order: int, general: Any) -> Any:
    """a - b."""

    def sub(a: Any, b: Any) -> Any:
        if (type(a) is float or type(a) is int) and (type(b) is float or type(b) is int):
            z = a - b
            x, y = get(id(a)), get(id(b))
            if y is None:
                return z if x is None else filed(z, x)
            with errstate(**QUIET):
                return filed(z, -y if x is None else x - y)
        return general(a, b)

    return sub


def mul_hook(get: Getter, filed: Filer, order: int, general: Any) -> Any:
    """a * b: a convolution where both vary."""

    def mul(a: Any, b: Any) -> Any:
        if (type(a) is float or type(a) is int) and (type(b) is float or type(b) is int):
            z = a * b
            x, y = get(id(a)), get(id(b))
            if x is None and y is None:
                return z
            with errstate(**QUIET):
                if x is None:
                    return filed(z, float(a) * y)
                if y is None:
                    return filed(z, x * float(b))
                z_dot = a * y
                z_dot += b * x
                if order > 1:
                    z_dot[1:] += convolve(x, y)[: order - 1]
                return filed(z, z_dot)
        return general(a, b)

    return mul


def truediv_hook(get: Getter, filed: Filer, order: int, general: Any) -> Any:
    """a / b."""

    def truediv(a: Any, b: Any) -> Any:
        if (type(a) is float or type(a) is int) and (type(b) is float or type(b) is int) and b:
            z = a / b
            x, y = get(id(a)), get(id(b))
            if y is None:
                if x is None:
                    return z
                with errstate(**QUIET):
                    return filed(z, x / float(b))
            y = y.tolist()
            x = [0.0] * order if x is None else x.tolist()
            found = [z]  # z_k b = x_k - (y_1 z_(k-1) + ... + y_k z_0)
            for k in range(order):
                found.append((x[k] - sum(map(product, y[: k + 1], found[::-1]))) / b)
            return filed(z, np.array(found[1:]))
        return general(a, b)

    return truediv


def pow_hook(get: Getter, filed: Filer, order: int, general: Any) -> Any:
    """a ** b, of which squares are done here."""

    def pow(a: Any, b: Any) -> Any:
        if type(b) is int and b == 2 and type(a) is float:
            z = a**b
            x = get(id(a))
            if x is None:
                return z
            with errstate(**QUIET):
                z_dot = (2.0 * a) * x
                if order > 1:
                    z_dot[1:] += convolve(x, x)[: order - 1]
            return filed(z, z_dot)
        return general(a, b)

    return pow


MAKERS = tuple(
    (prefix + name, f"general_{prefix}{name}", make)
    for name, make in {
        "add": add_hook, "sub": sub_hook, "mul": mul_hook, "truediv": truediv_hook, "pow": pow_hook
    }.items()
    for prefix in ("", "i")
)  # fmt: skip


def neg_hook(get: Getter, filed: Filer, level: JetLevel) -> Any:
    """-a."""

    def neg(a: Any) -> Any:
        if type(a) is float:
            x = get(id(a))
            return -a if x is None else filed(-a, -x)
        return level.general_neg(a)

    return neg


def function_hook(get: Getter, filed: Filer) -> Any:
    """Makes the hook of a function of one float that has a recurrence."""

    def unary(f: Any, partial: Any, m: Any, general: Callable[..., Any]) -> Callable[..., Any]:
        rule = rulebook.find(f)
        jet = JETS.get(f, {}).get((0,)) if rule is not None and rule.own else None
        if jet is None:
            return general

        def function_of_a_float(x: Any, *others: Any) -> Any:
            if type(x) is not float or others:
                return general(x, *others)
            z = f(x)
            x_dot = get(id(x))
            if x_dot is None:
                return z
            with errstate(**QUIET):
                return filed(z, jet(jet_rows.with_value(x, x_dot), z)[1:])

        return function_of_a_float

    return unary
