"""Functions of packs: with the bits of the C library, all numbers at once where `vecmath` has them, else one by one.

Slopes from the rulebook that ask a module for their functions, `m.exp(x)`, are given this one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature

from plaingrad.native.runtime.vector import vecmath
from plaingrad.native.runtime.vector.code import DOUBLES, WIDTH, Doubles, lane_number
from plaingrad.native.runtime.vector.simd import native, sqrt, type_of_pack

__all__ = ["cos", "exp", "expm1", "log", "log1p", "sin", "sqrt", "tan", "tanh"]


def _function(name: str) -> Any:
    """The function of packs for one of `math`."""
    library, vector = getattr(math, name), getattr(np, name)

    def function(x):  # type: ignore[no-untyped-def]
        return vector(x)

    def typed(x: Any) -> Any:
        vecmath.is_exact(name)  # asked now: it may compile something
        return type_of_pack(x)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(DOUBLES, [DOUBLES])
        whole = cgutils.get_or_insert_function(builder.module, kind, f"{name}_of_pack")
        if whole.is_declaration:
            whole.linkage = "internal"
            inside = ir.IRBuilder(whole.append_basic_block())
            if vecmath.is_exact(name):
                _write_steps(inside, vecmath.FORMS[name], whole.args[0])
            number = context.get_function(library, signature(types.float64, types.float64))
            _write_one_by_one(inside, number, whole.args[0])
        return builder.call(whole, args)

    function.__name__ = function.__qualname__ = name
    native(function, typed, generate)
    return function


def _write_steps(builder: Any, form: vecmath.Form, value: Any) -> None:
    """Code that returns the function of a pack if all its numbers are among those for which there are steps."""
    x = Doubles(builder, value)
    done = builder.bitcast(form.is_done(x).value, ir.IntType(WIDTH))
    with cgutils.if_likely(builder, builder.icmp_unsigned("==", done, ir.Constant(done.type, -1))):
        builder.ret(form.steps(x).value)


def _write_one_by_one(builder: Any, number: Any, value: Any) -> None:
    """Code that returns the function of a pack, number by number."""
    for k in range(WIDTH):
        found = number(builder, [builder.extract_element(value, lane_number(k))])
        value = builder.insert_element(value, found, lane_number(k))
    builder.ret(value)


exp, expm1, log, log1p, sin, cos, tan, tanh = map(
    _function, ("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh")
)
