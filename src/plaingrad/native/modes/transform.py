"""What both modes need to know of a program: its parts, its memory, what is active, and slopes of scalars."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numba.core import types

from plaingrad import rulebook
from plaingrad.errors import NativeError
from plaingrad.native.analysis import array_lists, helper_calls
from plaingrad.native.analysis.activity import active_variables, varying_variables
from plaingrad.native.analysis.effects import bound_operands, effects_of
from plaingrad.native.analysis.memory import Memory
from plaingrad.native.analysis.users_functions import has_own_rule, is_users
from plaingrad.native.lowering.split_tuples import exploded
from plaingrad.native.modes.known_zeros import zero_numbers
from plaingrad.native.program import value_types
from plaingrad.native.program.ir import (
    RESULT,
    Const,
    Do,
    For,
    InPlace,
    Let,
    Operand,
    Program,
    Ref,
    Stmt,
    Store,
    Var,
    statements,
    where,
)
from plaingrad.native.program.value_types import (
    has_tangent,
    is_array,
    is_inert,
    is_memory,
    is_real,
    settled,
    type_of_captured,
    type_of_value,
)
from plaingrad.native.rules import arrays_reverse, scalars
from plaingrad.native.runtime import helpers

LAID_OUT_ANEW = frozenset(
    ("as_strided", "sliding_window_view", "broadcast_arrays", "carray", "farray", "frombuffer")
)
OF_LISTS = (len, bool)  # functions of lists of arrays that tell nothing of their elements
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


def named(t: Any) -> str:
    """A type of containers in words."""
    if isinstance(t, (types.List, types.ListType)):
        return f"a list of {t.dtype}"
    if isinstance(t, types.ClassInstanceType):
        return f"an instance of the jitclass {t.class_type.class_name}"
    return f"a {t}"


def instead_of(t: Any) -> str:
    """What to write in the place of a container that derivatives are not followed in."""
    if isinstance(t, types.ListType):
        return "use a plain list, [], in the place of numba.typed.List; "
    if isinstance(t, types.List) and isinstance(t.dtype, types.Array):
        return (
            "keep the arrays as rows of one array, np.empty((n, m)), or in a tuple if their number is fixed; "
        )
    if isinstance(t, types.ClassInstanceType):
        return "use a named tuple, made anew where a field changes, in the place of the jitclass; "
    return ""


def last_number(names: Iterable[str]) -> int:
    """The greatest n of names that end in _n."""
    return max((int(end) for name in names if (end := name.rpartition("_")[2]).isdecimal()), default=0)


class Transform:
    """What both modes need to know of a program: its parts, its memory, what is active, and slopes of scalars.

    Attributes:
        plain: whether the program made will be differentiated again, so that it must keep to forms with rules.
    """

    plain = False

    def __init__(self, program: Program, wanted: list[str], callee: Callable[..., Any]) -> None:
        self.source = program
        self.exploded, self.results, self.leaves = exploded(program)
        self.types = self.exploded.types
        self.inner = {leaf for leaves in self.leaves.values() for leaf in leaves} - set(program.params)
        self.callee = callee
        self.memory = Memory(self.exploded)
        inputs = [leaf for name in wanted for leaf in self.leaves[name] if has_tangent(self.types[leaf])]
        self.inputs = inputs
        # a tuple that is handed on whole carries the derivatives of its parts
        given = [*inputs, *[name for name in wanted if isinstance(self.types[name], types.BaseTuple)]]
        for name in self.results:
            if value_types.is_array_list(self.types[name]):
                ends = [s.line for s in statements(program.body) if isinstance(s, Let) and s.target == RESULT]
                raise self.refuse("a list of arrays that is returned", ends[-1], "return them in a tuple; ")
        outputs = [name for name in self.results if has_tangent(self.types[name])]
        self.outputs = outputs
        # what is written into an argument is seen by the caller, so its cotangent may come in with the shadow
        seen = [leaf for leaves in self.leaves.values() for leaf in leaves if is_array(self.types.get(leaf))]
        self.active = active_variables(self.exploded, self.memory, given, outputs + seen)
        self.active -= zero_numbers(self.exploded, program.zeros)
        self.refuse_what_is_lost(given)
        self.count = last_number(self.types)  # beyond every name's, so that made names are new
        self.made: set[str] = set()  # temporaries of the derivative
        self.assigned = self._assignments(self.exploded.body)
        self.definitions: dict[str, Let] = {}
        for s in statements(self.exploded.body):
            if isinstance(s, Let) and self.assigned[s.target] == 1:
                self.definitions[s.target] = s

    def refuse_what_is_lost(self, inputs: list[str]) -> None:
        """Refuse values with a derivative that go where derivatives are not followed: lists, optional values, ..."""
        varying = varying_variables(self.exploded, self.memory, inputs)

        def varies(x: Operand) -> bool:
            return isinstance(x, Var) and x.name in varying

        for s in statements(self.exploded.body):
            call = s.call if isinstance(s, Do) else s
            known_step = array_lists.is_step(s, self.types)
            held = array_lists.constants_held(s, self.types)
            if held:
                copies = "put a copy of the constant array into the list; "
                raise self.refuse(f"the constant `{held[0].name}` in a list of arrays", s.line, copies)
            if (
                isinstance(s, Store)
                and varies(s.value)
                and not isinstance(self.type_of(s.array), types.Array)
                and not known_step
            ):
                t = self.type_of(s.array)
                raise self.refuse(f"a write into {named(t)}", s.line, instead_of(t))
            if not isinstance(call, Let) or known_step:
                continue
            line = call.line or s.line
            t = self.types.get(call.target)
            lost = not has_tangent(t) and not is_inert(t)
            helper = helper_calls.name_of(call) is not None
            lost = lost or (isinstance(t, types.List) and not helper)
            if isinstance(s, Let) and any(map(varies, call.args)) and lost:
                raise self.refuse(f"{named(t)} that holds values with a derivative", line, instead_of(t))
            f = getattr(call.args[0], "value", None) if call.op == "call" and call.args else None
            if has_own_rule(f) and any(map(varies, call.args)):
                raise self.refuse(
                    f"`{f.__name__}`, which has a rule of its own or was declared constant,", line
                )
            if is_users(f) or helper:
                continue
            if call.op == "call" and f not in OF_LISTS:
                for a in call.args[1:]:
                    if varies(a) and value_types.is_array_list(self.type_of(a)):
                        raise self.refuse(f"`{getattr(f, '__name__', f)}` of {named(self.type_of(a))}", line)
            if getattr(f, "__name__", "") in LAID_OUT_ANEW and any(map(varies, call.args)):
                raise self.refuse(f"`{f.__name__}`, whose elements may share memory,", line)
            if f is np.kron and not has_tangent(t) and any(map(varies, call.args)):
                what = "`kron` of whole numbers and floats, whose result Numba makes whole numbers,"
                raise self.refuse(what, line, "make both floats; ")
            if helper_calls.may_write(f) and not has_tangent(t) and any(map(varies, call.args)):
                raise self.refuse(f"`{f.__name__}`", line)
            if call.op == "method":
                owner = self.type_of(call.args[0])
                known = is_real(owner) or isinstance(owner, (types.Array, types.BaseTuple)) or is_inert(owner)
                if not known and any(map(varies, call.args)):
                    raise self.refuse(f"`.{call.detail[0]}` of {named(owner)}", line, instead_of(owner))
            written = any(varies(Var(name)) for name in self.memory.outputs(call))
            if written and call.op != "copy" and not arrays_reverse.may_write(call):
                name = call.detail[0] if call.op == "method" else getattr(f, "__name__", f)
                raise self.refuse(f"`{name}`, which writes into an array,", line)
            if isinstance(f, np.ufunc) and any(map(varies, call.args)) and call.detail:
                raise self.refuse(f"a keyword argument of `{f.__name__}`", line)

    def _assignments(self, body: list[Stmt]) -> dict[str, int]:
        found: dict[str, int] = {}
        for s in statements(body):
            if isinstance(s, (Let, For)):
                found[s.target] = found.get(s.target, 0) + 1
        return found

    # -- names -----------------------------------------------------------------------------------------------------

    def fresh(self, base: str) -> str:
        """A name that is not in use."""
        self.count += 1
        return f"{base}_{self.count}"

    def is_active(self, x: Operand) -> bool:
        """Whether an operand carries a derivative."""
        return isinstance(x, Var) and x.name in self.active

    def is_active_list(self, s: Stmt) -> bool:
        """Whether a statement has to do with a list of arrays that carry a derivative."""
        return any(name in self.active for name in array_lists.lists_in(s, self.types))

    def type_of(self, x: Operand) -> Any:
        """The Numba type of an operand; None of what is neither a variable nor a captured array."""
        return self.types.get(x.name) if isinstance(x, Var) else type_of_captured(x)

    def refuse(self, what: str, line: int, instead: str = "") -> NativeError:
        """The error that says that `what` has no native derivative; `instead` is what to write in its place."""
        return NativeError(
            f"{what} at {where(line, self.source)}, has no native derivative rule.\n"
            f"  To go on: {instead}tier='plain' differentiates it as it is.\n  See docs: errors#native"
        )

    def zero(self, t: Any) -> Operand:
        """A zero cotangent of a scalar."""
        return Const(0j) if isinstance(t, types.Complex) else Const(0.0)

    def zeros(self, name: str) -> Stmt:
        """The shadow of a new array."""
        return Let(f"{name}_b", "call", (Ref(np.zeros_like, "zeros_like"), Var(name)), ())

    def emit(self, out: list[Stmt], op: str, args: tuple[Operand, ...], detail: Any, line: int) -> Var:
        """A new variable for op(args)."""
        name = self.fresh("d")
        self.made.add(name)
        out.append(Let(name, op, args, detail, line))
        return Var(name)

    def known_type(self, x: Operand) -> Any:
        """The type of a number in generated code, that of a cotangent too; None where it is not known."""
        if isinstance(x, Const):
            return types.complex128 if isinstance(x.value, complex) else types.float64
        t = self.type_of(x)
        if t is None and isinstance(x, Var) and x.name.endswith("_b"):
            t = self.types.get(x.name[:-2])
        return t

    def is_complex(self, x: Operand) -> bool:
        """Whether an operand of generated code is known to be complex."""
        return isinstance(self.known_type(x), types.Complex)

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
            if rule is not None and rule.kind == "no_tangent":
                return []  # steps: floor, sign, ...
            raise self.refuse(f"`{getattr(f, '__name__', f)}`", s.line)
        module = scalars.module_of(f, [self.type_of(a) for a in args])
        found: list[tuple[int, Any]] = []
        for k, a in enumerate(args):
            partial = row[k] if k < len(row) else None
            if partial is None or not self.is_active(a):
                continue
            if partial == scalars.REFUSED:
                raise self.refuse(f"a derivative of `{getattr(f, '__name__', f)}` in argument {k}", s.line)
            if not callable(partial):
                found.append((k + shift, partial if partial in (1, -1) else Const(partial)))
                continue
            read = scalars.reads(partial)
            values: list[Operand] = [Ref(module, module.__name__)]
            names = (*args, Var(s.target))
            values += [x if n + 1 in read else self.placeholder(x) for n, x in enumerate(names)]
            slope = self.emit(
                out, "call", (Ref(scalars.compiled_partial(partial), "slope"), *values), (), s.line
            )
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
        """min and max of numbers: the slope is 1 for the one that was taken, the first of equals."""
        found = []
        taken: Operand = Const(False)
        for k, a in enumerate(s.args[1:], 1):
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
        if is_memory(t) or (isinstance(t, types.BaseTuple) and any(map(is_memory, t))):
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
