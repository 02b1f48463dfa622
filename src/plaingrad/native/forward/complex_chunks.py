"""Chunks of tangents of complex numbers: two vectors of n numbers each, for the real and the imaginary parts.

Under CPython (`Derived.python`) they are vectors of n complex numbers. There are no arrays of these: where tangents of
complex arrays are wanted, directions are pushed one by one.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import box, intrinsic, overload_attribute, register_model

from plaingrad.native.forward.chunks import Lanes, if_moving, zero_lanes
from plaingrad.native.runtime.declare import overload

NUMBERS = (types.Float, types.Integer, types.Boolean)


class ComplexLanes(types.Type):
    """The type of n tangents of a complex number."""

    def __init__(self, n: int) -> None:
        self.n = n
        super().__init__(name=f"ComplexLanes({n})")


@register_model(ComplexLanes)
class _ComplexLanesModel(models.StructModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        part = Lanes(fe_type.n)
        super().__init__(dmm, fe_type, [("re", part), ("im", part)])


@box(ComplexLanes)
def _box(t: Any, value: Any, c: Any) -> Any:
    """They leave compiled code as a tuple of complex numbers."""
    both = cgutils.create_struct_proxy(t)(c.context, c.builder, value=value)
    numbers = []
    for k in range(t.n):
        lane = ir.Constant(ir.IntType(32), k)
        re, im = (c.builder.extract_element(part, lane) for part in (both.re, both.im))
        numbers.append(c.pyapi.complex_from_doubles(re, im))
    return c.pyapi.tuple_pack(numbers)


@intrinsic
def _joined(context, re, im):  # type: ignore[no-untyped-def]
    """Complex lanes of two lanes."""
    made = ComplexLanes(re.n)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        both = cgutils.create_struct_proxy(made)(context, builder)
        both.re, both.im = args
        return both._getvalue()

    return made(re, im), generate


@intrinsic
def _re(context, x):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return cgutils.create_struct_proxy(x)(context, builder, value=args[0]).re

    return Lanes(x.n)(x), generate


@intrinsic
def _im(context, x):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return cgutils.create_struct_proxy(x)(context, builder, value=args[0]).im

    return Lanes(x.n)(x), generate


@overload_attribute(ComplexLanes, "real")
def _real(x):  # type: ignore[no-untyped-def]
    return lambda x: _re(x)


@overload_attribute(ComplexLanes, "imag")
def _imag(x):  # type: ignore[no-untyped-def]
    return lambda x: _im(x)


def zero_complex_lanes(n):  # type: ignore[no-untyped-def]
    """n zeros; n is a literal."""
    return np.zeros(n, complex)


@overload(zero_complex_lanes, prefer_literal=True)
def _zero_complex_lanes(n):  # type: ignore[no-untyped-def]
    if not isinstance(n, types.IntegerLiteral):
        return None
    width = n.literal_value
    return lambda n: _joined(zero_lanes(width), zero_lanes(width))


def as_complex(x_dot):  # type: ignore[no-untyped-def]
    """Lanes, real or complex, as complex lanes."""
    return np.asarray(x_dot, complex)


@overload(as_complex)
def _as_complex(x_dot):  # type: ignore[no-untyped-def]
    if isinstance(x_dot, ComplexLanes):
        return lambda x_dot: x_dot
    n = x_dot.n
    return lambda x_dot: _joined(x_dot, zero_lanes(n))


def real_part(x_dot):  # type: ignore[no-untyped-def]
    """The real parts of lanes, real or complex."""
    return np.real(x_dot)


@overload(real_part)
def _real_part(x_dot):  # type: ignore[no-untyped-def]
    if isinstance(x_dot, ComplexLanes):
        return lambda x_dot: _re(x_dot)
    return lambda x_dot: x_dot


def conjugated(x_dot):  # type: ignore[no-untyped-def]
    """The conjugates of lanes, real or complex."""
    return np.conj(x_dot)


@overload(conjugated)
def _conjugated(x_dot):  # type: ignore[no-untyped-def]
    if isinstance(x_dot, ComplexLanes):
        return lambda x_dot: _joined(_re(x_dot), -_im(x_dot))
    return lambda x_dot: x_dot


def _is_lanes(*kinds: Any) -> bool:
    return all(isinstance(t, (Lanes, ComplexLanes)) for t in kinds) and any(
        isinstance(t, ComplexLanes) for t in kinds
    )


@overload(operator.add)
def _sum(a, b):  # type: ignore[no-untyped-def]
    if not _is_lanes(a, b):
        return None

    def total(a, b):  # type: ignore[no-untyped-def]
        x, y = as_complex(a), as_complex(b)
        return _joined(_re(x) + _re(y), _im(x) + _im(y))

    return total


@overload(operator.sub)
def _difference(a, b):  # type: ignore[no-untyped-def]
    if not _is_lanes(a, b):
        return None

    def difference(a, b):  # type: ignore[no-untyped-def]
        x, y = as_complex(a), as_complex(b)
        return _joined(_re(x) - _re(y), _im(x) - _im(y))

    return difference


@overload(operator.neg)
def _negative(a):  # type: ignore[no-untyped-def]
    if not isinstance(a, ComplexLanes):
        return None
    return lambda a: _joined(-_re(a), -_im(a))


@overload(operator.mul)
def _product(a, b):  # type: ignore[no-untyped-def]
    if isinstance(b, (Lanes, ComplexLanes)):
        if isinstance(a, types.Complex) or (isinstance(a, NUMBERS) and isinstance(b, ComplexLanes)):
            return lambda a, b: b * a
        return None
    if isinstance(a, ComplexLanes) and isinstance(b, NUMBERS):
        return lambda a, b: _joined(_re(a) * b, _im(a) * b)
    if isinstance(a, ComplexLanes) and isinstance(b, types.Complex):

        def rotated(a, b):  # type: ignore[no-untyped-def]
            x, y = _re(a), _im(a)
            return _joined(x * b.real - y * b.imag, x * b.imag + y * b.real)

        return rotated
    if isinstance(a, Lanes) and isinstance(b, types.Complex):
        return lambda a, b: _joined(a * b.real, a * b.imag)
    return None


@intrinsic
def _where_either(context, re, im, term):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        zero = ir.Constant(args[2].type, None)
        moves = builder.or_(*(builder.fcmp_unordered("!=", part, zero) for part in args[:2]))
        return builder.select(moves, args[2], zero)

    return term(re, im, term), generate


@overload(if_moving)
def _if_moving(x_dot, term):  # type: ignore[no-untyped-def]
    if not _is_lanes(x_dot, term):
        return None

    def moving(x_dot, term):  # type: ignore[no-untyped-def]
        x, z = as_complex(x_dot), as_complex(term)
        re, im = _re(x), _im(x)
        return _joined(_where_either(re, im, _re(z)), _where_either(re, im, _im(z)))

    return moving


__all__ = ["ComplexLanes", "as_complex", "conjugated", "real_part", "zero_complex_lanes"]
