"""What both modes need to know of a program: its parts, its memory, what is active, and slopes of scalars."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.core import types

from plaingrad import rulebook
from plaingrad.native.analysis.effects import bound_operands, effects_of
from plaingrad.native.analysis.inner_gradients import gradient_of
from plaingrad.native.modes.state import ProgramState
from plaingrad.native.program import value_types
from plaingrad.native.program.ir import (
    Const,
    Do,
    InPlace,
    Let,
    Operand,
    Ref,
    Stmt,
    Store,
    Var,
)
from plaingrad.native.program.value_types import (
    has_tangent,
    is_array,
    is_memory,
    settled,
    type_of_value,
)
from plaingrad.native.rules import scalars
from plaingrad.native.runtime import helpers

POWERS = (math.pow, np.power, pow)
KINKED = frozenset(  # functions whose slopes jump
    ("abs", "fabs", "absolute", "min", "max", "minimum", "maximum", "fmin", "fmax", "copysign", "clip")
    + ("fmod", "remainder", "mod", "floor_divide")
)


def has_kinks(s: Let) -> bool:
    """Whether a slope of a scalar operation is not continuous."""
    if s.op == "binary":
        return s.detail == "%"
    return s.op == "call" and getattr(getattr(s.args[0], "value", None), "__name__", "") in KINKED


class Transform(ProgramState):
    """What both modes need to know of a program: its parts, its memory, what is active, and slopes of scalars.

    Attributes:
        plain: whether the program made will be differentiated again, so that it must keep to forms with rules.
    """

    plain = False

    # -- names -----------------------------------------------------------------------------------------------------

    def slopes(self, s: Let, out: list[Stmt]) -> list[tuple[int, Any]]:
        """(position, dz/dx) of every active operand of a scalar operation; statements that compute them go to `out`."""
        line = s.line
        z = Var(s.target)
        found: list[tuple[int, Any]] = []
        mixed = any(map(self.is_complex, (*s.args, z)))

        def emit(op: str, args: tuple[Operand, ...], detail: Any) -> Var:
            new = self.emit(out, op, args, detail, line)
            if mixed:
                self.types[new.name] = types.complex128
            return new

        if scalars.is_complex_sign(self, s):
            raise self.refuse("the derivative of the slope of a complex `abs`, in reverse mode", line)
        if s.op == "copy":
            return [(0, 1)]
        if s.op == "unary":
            return [(0, {"-": -1, "+": 1}[s.detail])]
        if s.op == "binary":
            a, b = s.args
            if s.detail in "+-":
                found = [(0, 1), (1, 1 if s.detail == "+" else -1)]
            elif s.detail == "*":
                found = [(0, b), (1, a)]
            elif s.detail == "/":
                if self.is_active(a):
                    found.append((0, emit("binary", (Const(1.0), b), "/")))
                if self.is_active(b):
                    ratio = emit("binary", (z, b), "/")
                    found.append((1, emit("unary", (ratio,), "-")))
            elif s.detail == "**":
                found = self.power(s, (a, b), out)
            elif s.detail in scalars.OPERATORS:
                return self.by_row(s, scalars.OPERATORS[s.detail], (a, b), 0, out)
            elif s.detail != "//":
                raise self.refuse(f"`{s.detail}`", line)
            return [(k, slope) for k, slope in found if self.is_active(s.args[k])]
        if s.op == "call":
            f = getattr(s.args[0], "value", None)
            if f in (float, complex, np.float64, np.complex128, np.float32, np.complex64):
                return [(1, 1)] if len(s.args) == 2 else [(1, 1), (2, Const(1j))]
            if f in (int, round, np.int64):
                return []
            if f in (min, max):
                return self.extremum(s, f, out)
            if f in POWERS:
                return [
                    (k + 1, slope)
                    for k, slope in self.power(s, s.args[1:3], out)
                    if self.is_active(s.args[k + 1])
                ]
            return self.by_row(s, f, s.args[1:], 1, out)
        raise self.refuse(f"`{s.detail or s.op}`", line)

    def fills(self, s: Store) -> bool:
        """Whether array[index] = value writes one number into several elements."""
        if is_array(self.type_of(s.value)):
            return False
        kind = self.type_of(s.index)
        parts = list(kind) if isinstance(kind, types.BaseTuple) else [kind]
        whole = s.index == Const(Ellipsis)
        several = any(isinstance(part, types.SliceType) or part is types.ellipsis for part in parts)
        return whole or several or len(parts) < self.type_of(s.array).ndim

    def is_conjugate(self, s: Let) -> bool:
        """Whether a statement conjugates a number."""
        if s.op == "method":
            return s.detail[0] in ("conj", "conjugate")
        return s.op == "call" and getattr(s.args[0], "value", None) is np.conjugate

    def power(self, s: Let, args: tuple[Operand, ...], out: list[Stmt]) -> list[tuple[int, Any]]:
        """The slopes of x**y."""
        x, y = args
        whole = is_array(self.types.get(s.target))
        found: list[tuple[int, Any]] = []
        if self.is_active(x):
            f = helpers.power_slopes if whole else helpers.power_slope
            found.append((0, self.emit(out, "call", (Ref(f, "power_slope"), x, y), (), s.line)))
        if self.is_active(y):
            f = helpers.exponent_slopes if whole else helpers.exponent_slope
            args = (Ref(f, "exponent_slope"), x, y, Var(s.target))
            found.append((1, self.emit(out, "call", args, (), s.line)))
        for _, slope in found:
            if self.is_complex(x) or self.is_complex(y):
                self.types[slope.name] = types.complex128
        return found

    def by_row(self, s: Let, f: Any, args: Any, shift: int, out: list[Stmt]) -> list[tuple[int, Any]]:
        """The slopes that a row of the rulebook tells."""
        row = scalars.row_of(f)
        if scalars.is_constant(f, [self.type_of(a) for a in args]):
            return []
        if row is None:
            rule = rulebook.find(f)
            if rule is not None and rule.kind == "no_tangent" and not rule.variants:
                return []  # steps: floor, sign, ...
            raise self.refuse(f"`{getattr(f, '__name__', f)}`", s.line)
        module = scalars.module_of(f, [self.type_of(a) for a in args])
        found: list[tuple[int, Any]] = []
        for k, a in enumerate(args):
            partial = row[k] if k < len(row) else None
            if partial is None or not self.is_active(a):
                continue
            if partial == scalars.REFUSED:
                raise self.refuse(f"a derivative of `{scalars.name_of(f)}` in argument {k}", s.line)
            if not callable(partial):
                found.append((k + shift, partial if partial in (1, -1) else Const(partial)))
                continue
            read = scalars.reads(partial)
            values: list[Operand] = [Ref(module, module.__name__)]
            names = (*args, Var(s.target))
            values += [x if n + 1 in read else self.placeholder(x) for n, x in enumerate(names)]
            try:
                if scalars.is_special(partial) and is_array(self.types.get(s.target)):
                    function, values = scalars.of_arrays(partial, len(names)), values[1:]
                else:
                    function = scalars.compiled_partial(partial)
            except scalars.Unavailable:
                raise self.refuse(f"a derivative of `{scalars.name_of(f)}` in argument {k}", s.line) from None
            slope = self.emit(out, "call", (Ref(function, "slope"), *values), (), s.line)
            if any(map(self.is_complex, names)):
                self.types[slope.name] = types.complex128
            found.append((k + shift, slope))
        return found

    def placeholder(self, x: Operand) -> Operand:
        """Any value of the type of `x`, where a partial does not look at it."""
        t = self.type_of(x)
        return (
            Const(1j)
            if isinstance(t, types.Complex)
            else Const(1.0)
            if isinstance(t, types.Float)
            else Const(1)
        )

    def extremum(self, s: Let, f: Any, out: list[Stmt]) -> list[tuple[int, Any]]:
        """min and max of numbers: the slope is 1 for the one that was taken, the first of equals.

        A nan is taken if it is the first, and only then: no other is compared with success.
        """
        found = []
        taken: Operand = Const(False)
        for k, a in enumerate(s.args[1:], 1):
            if k == 1:
                beaten = self.emit(out, "compare", (Var(s.target), a), "<" if f is min else ">", s.line)
                self.types[beaten.name] = types.boolean
                same = self.emit(out, "unary", (beaten,), "not", s.line)
            else:
                same = self.emit(out, "compare", (a, Var(s.target)), "==", s.line)
            free = self.emit(out, "unary", (taken,), "not", s.line)
            mine = self.emit(out, "binary", (same, free), "&", s.line)
            taken = self.emit(out, "binary", (taken, mine), "|", s.line)
            for decision in (same, free, mine, taken):
                self.types[decision.name] = types.boolean
            if self.is_active(a):
                found.append((k, self.indicator(out, mine, s.line)))
        return found

    def indicator(self, out: list[Stmt], taken: Var, line: int) -> Operand:
        """1.0 for an operand that was taken, else 0.0."""
        return self.emit(out, "binary", (Const(1.0), taken), "*", line)

    def result_leaves(self, name: str) -> list[str]:
        """The parts of a result."""
        t = self.types.get(name)
        if isinstance(t, types.BaseTuple) and has_tangent(t):
            return [leaf for k in range(len(t)) for leaf in self.result_leaves(f"{name}_p{k}")]
        return [name]

    def argument_type(self, a: Operand) -> Any:
        """The Numba type of an argument."""
        if isinstance(a, Var):
            t = self.types[a.name]
            return settled(t)
        return settled(type_of_value(a.value))

    def checked_overlap(self, s: InPlace, out: list[Stmt]) -> None:
        """A check, if array and value of array op= value may overlap, that they do not."""
        array, value = s.array, s.value
        if (
            isinstance(array, Var)
            and isinstance(value, Var)
            and array != value
            and isinstance(self.types.get(value.name), types.Array)
            and self.memory.of(value.name) == self.memory.of(array.name)
        ):
            check = (Ref(helpers.check_disjoint, "check_disjoint"), array, value)
            out.append(Do(Let("_", "call", check, (), s.line), s.line))

    def checked_reading(self, s: Store, out: list[Stmt], of: str = "") -> None:
        """A check, if a vector may be assigned to elements of its own, that they are read before they are written.

        Args:
            of: "_d" for that of the tangents, which may lie in memory in another order.
        """
        array, value = s.array, s.value
        if isinstance(array, Var) and isinstance(value, Var) and is_array(self.types.get(value.name)):
            if self.types[value.name].ndim == 1 and self.memory.of(value.name) == self.memory.of(array.name):
                array, value = Var(array.name + of), Var(value.name + of)
                check = (Ref(helpers.check_read_first, "check_read_first"), array, s.index, value)
                out.append(Do(Let("_", "call", check, (), s.line), s.line))

    def callee_of(self, s: Let) -> tuple[Any, tuple[Operand, ...], list[int]]:
        """(function, arguments, positions of the active ones) of a call of a function that is derived."""
        f = s.args[0].value  # type: ignore[union-attr]
        try:
            args = bound_operands(f, s.args[1:], s.detail or ())
        except TypeError:
            raise self.refuse("a call with keyword-only arguments", s.line) from None
        for a in args:
            if self.is_active(a) and value_types.is_array_list(self.type_of(a)):
                raise self.refuse(
                    "a list of arrays, given to a function that is not put in its place", s.line
                )
            if isinstance(self.type_of(a), types.BaseTuple) and has_tangent(self.type_of(a)):
                raise self.refuse("a tuple with derivatives, given to a function", s.line)
        t = self.types.get(s.target)
        returns_arrays = is_memory(t) or (isinstance(t, types.BaseTuple) and any(map(is_memory, t)))
        if returns_arrays and gradient_of(f) is None:
            raise self.refuse("a call of a function that returns an array", s.line)
        effects = effects_of(f, tuple(self.argument_type(a) for a in args))
        owners = [
            self.memory.of(a.name)
            for a in args
            if isinstance(a, Var) and isinstance(self.types.get(a.name), types.Array)
        ]
        if effects.writes and len(set(owners)) < len(owners):
            raise self.refuse("an array given twice to a function that writes into its arguments", s.line)
        return f, args, [k for k, a in enumerate(args) if self.is_active(a)]


def called(f: Any) -> str:
    """What a function is called in generated source."""
    return f.__name__ if f.__name__.isidentifier() else "function"
