"""LLVM code for vectors of WIDTH numbers, written as formulas.

A `Doubles` stands for a vector of float64 in a function that is being compiled, a `Whole` for one of int64 and a `Test`
for one of bits. Their operators append the instruction to the function; numbers of Python are taken for vectors of one
number. Nothing is rounded in any other way than it is written: `x * y + z` is two operations, `fma(x, y, z)` one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

WIDTH = 8
DOUBLE, INT, BIT, PLACE = ir.DoubleType(), ir.IntType(64), ir.IntType(1), ir.IntType(32)
DOUBLES, INTS, BITS = (ir.VectorType(t, WIDTH) for t in (DOUBLE, INT, BIT))

# Numba adds the user's `fastmath` flags to instructions without any, after which x + c - c might be x. So each one here
# has the flag that means nothing for it: reciprocals are of divisions, contractions of sums and products.
KEPT = {"fdiv": ("contract",)}
AS_WRITTEN = ("arcp",)


def lane_number(k: int) -> Any:
    """The number of a lane, for `extract_element` and the like."""
    return ir.Constant(PLACE, k)


def any_set(builder: Any, bits: Any) -> Any:
    """Whether any bit of a vector of bits is set."""
    whole = ir.IntType(WIDTH)
    return builder.icmp_unsigned("!=", builder.bitcast(bits, whole), ir.Constant(whole, 0))


@dataclass(frozen=True)
class Test:
    """A vector of bits."""

    builder: Any
    value: Any

    def __and__(self, other: Test) -> Test:
        return Test(self.builder, self.builder.and_(self.value, other.value))

    def __or__(self, other: Test) -> Test:
        return Test(self.builder, self.builder.or_(self.value, other.value))

    def __invert__(self) -> Test:
        return Test(self.builder, self.builder.not_(self.value))

    def choose(self, x: Any, y: Any) -> Any:
        """x where the bit is set, y elsewhere; one of them may be a number of Python."""
        kind = type(x) if isinstance(x, (Doubles, Whole)) else type(y)
        x, y = (kind.of(self.builder, a) for a in (x, y))
        return kind(self.builder, self.builder.select(self.value, x.value, y.value))


@dataclass(frozen=True, eq=False)
class Whole:
    """A vector of int64."""

    builder: Any
    value: Any

    @classmethod
    def of(cls, builder: Any, k: Any) -> Whole:
        """A `Whole`, or the vector of one number."""
        return k if isinstance(k, cls) else cls(builder, ir.Constant(INTS, [k] * WIDTH))

    def _with(self, other: Any, name: str) -> Whole:
        return Whole(
            self.builder, getattr(self.builder, name)(self.value, self.of(self.builder, other).value)
        )

    def __add__(self, other: Any) -> Whole:
        return self._with(other, "add")

    def __sub__(self, other: Any) -> Whole:
        return self._with(other, "sub")

    def __rsub__(self, other: Any) -> Whole:
        return self.of(self.builder, other) - self

    def __and__(self, other: Any) -> Whole:
        return self._with(other, "and_")

    def __or__(self, other: Any) -> Whole:
        return self._with(other, "or_")

    def __xor__(self, other: Any) -> Whole:
        return self._with(other, "xor")

    def __lshift__(self, count: Any) -> Whole:
        return self._with(count, "shl")

    def __rshift__(self, count: Any) -> Whole:
        """Shifted to the right, the sign repeated."""
        return self._with(count, "ashr")

    def _test(self, symbol: str, other: Any) -> Test:
        return Test(
            self.builder, self.builder.icmp_signed(symbol, self.value, self.of(self.builder, other).value)
        )

    def __lt__(self, other: Any) -> Test:
        return self._test("<", other)

    def __gt__(self, other: Any) -> Test:
        return self._test(">", other)

    def equals(self, other: Any) -> Test:
        """Where both are the same number."""
        return self._test("==", other)

    def doubles(self) -> Doubles:
        """The floats of these bits."""
        return Doubles(self.builder, self.builder.bitcast(self.value, DOUBLES))

    def float(self) -> Doubles:
        """The floats of these values."""
        return Doubles(self.builder, self.builder.sitofp(self.value, DOUBLES))


@dataclass(frozen=True, eq=False)
class Doubles:
    """A vector of float64."""

    builder: Any
    value: Any

    @classmethod
    def of(cls, builder: Any, x: Any) -> Doubles:
        """A `Doubles`, or the vector of one number."""
        return x if isinstance(x, cls) else cls(builder, ir.Constant(DOUBLES, [float(x)] * WIDTH))

    def _with(self, other: Any, name: str) -> Doubles:
        make, y = getattr(self.builder, name), self.of(self.builder, other)
        return Doubles(self.builder, make(self.value, y.value, flags=KEPT.get(name, AS_WRITTEN)))

    def __add__(self, other: Any) -> Doubles:
        return self._with(other, "fadd")

    def __sub__(self, other: Any) -> Doubles:
        return self._with(other, "fsub")

    def __rsub__(self, other: Any) -> Doubles:
        return self.of(self.builder, other) - self

    def __mul__(self, other: Any) -> Doubles:
        return self._with(other, "fmul")

    def __truediv__(self, other: Any) -> Doubles:
        return self._with(other, "fdiv")

    def __neg__(self) -> Doubles:
        return Doubles(self.builder, self.builder.fneg(self.value))

    def __abs__(self) -> Doubles:
        return self._intrinsic("fabs")

    def _intrinsic(self, name: str, *others: Any) -> Doubles:
        args = [self.value, *(self.of(self.builder, x).value for x in others)]
        kind = ir.FunctionType(DOUBLES, [DOUBLES] * len(args))
        f = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.v{WIDTH}f64")
        return Doubles(self.builder, self.builder.call(f, args))

    def fma(self, y: Any, z: Any) -> Doubles:
        """self * y + z, rounded once."""
        return self._intrinsic("fma", y, z)

    def copysign(self, x: Doubles) -> Doubles:
        """Its size with the sign of x."""
        return self._intrinsic("copysign", x)

    def _test(self, symbol: str, other: Any) -> Test:
        y = self.of(self.builder, other)
        return Test(self.builder, self.builder.fcmp_ordered(symbol, self.value, y.value, flags=AS_WRITTEN))

    def __lt__(self, other: Any) -> Test:
        return self._test("<", other)

    def __le__(self, other: Any) -> Test:
        return self._test("<=", other)

    def __gt__(self, other: Any) -> Test:
        return self._test(">", other)

    def __ge__(self, other: Any) -> Test:
        return self._test(">=", other)

    def equals(self, other: Any) -> Test:
        """Where both are the same number."""
        return self._test("==", other)

    def bits(self) -> Whole:
        """Their bits as integers."""
        return Whole(self.builder, self.builder.bitcast(self.value, INTS))

    def truncated(self) -> Whole:
        """Rounded towards zero; for numbers that an int32 can hold."""
        return Whole(
            self.builder,
            self.builder.sext(self.builder.fptosi(self.value, ir.VectorType(PLACE, WIDTH)), INTS),
        )


def polynomial(x: Doubles, *coefficients: Any) -> Doubles:
    """c0 + x (c1 + x (c2 + ...)), each step rounded once."""
    found: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        found = x.fma(found, c)
    return found


def looked_up(table: np.ndarray, name: str, at: Whole) -> list[Doubles]:
    """The rows `at` of a constant (n, m) table of floats: m vectors, the column of each.

    Args:
        table: numbers.
        name: what the constant is called in the compiled module.
        at: places in 0, ..., n - 1.
    """
    builder = at.builder
    rows, columns = table.shape
    flat = ir.ArrayType(DOUBLE, rows * columns)
    constant = cgutils.global_constant(
        builder, f"{name}_table", ir.Constant(flat, [float(x) for x in table.flat])
    )
    found = [ir.Constant(DOUBLES, ir.Undefined) for _ in range(columns)]
    for lane in range(WIDTH):
        k = builder.mul(builder.extract_element(at.value, lane_number(lane)), ir.Constant(INT, columns))
        for j in range(columns):
            x = builder.load(builder.gep(constant, [lane_number(0), builder.add(k, ir.Constant(INT, j))]))
            found[j] = builder.insert_element(found[j], x, lane_number(lane))
    return [Doubles(builder, x) for x in found]
