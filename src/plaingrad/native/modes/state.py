"""What both modes know of the program that is differentiated: its parts, its memory, and what is active."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.errors import NativeError
from plaingrad.native.analysis import array_lists, helper_calls
from plaingrad.native.analysis.activity import active_variables, varying_variables
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
from plaingrad.native.program.value_types import has_tangent, is_array, is_inert, is_real, type_of_captured
from plaingrad.native.rules import arrays_reverse

LAID_OUT_ANEW = frozenset(
    ("as_strided", "sliding_window_view", "broadcast_arrays", "carray", "farray", "frombuffer")
)


OF_LISTS = (len, bool)  # functions of lists of arrays that tell nothing of their elements


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


class ProgramState:
    """A program, and the statements that are made of it."""

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
            self.refuse_loss(s, varies)

    def refuse_loss(self, s: Stmt, varies: Callable[[Operand], bool]) -> None:
        """Refuse a statement by which a value with a derivative goes where derivatives are not followed."""
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
            return
        line = call.line or s.line
        t = self.types.get(call.target)
        lost = not has_tangent(t) and not is_inert(t)
        helper = helper_calls.name_of(call) is not None
        lost = lost or (isinstance(t, types.List) and not helper)
        if isinstance(s, Let) and any(map(varies, call.args)) and lost:
            raise self.refuse(f"{named(t)} that holds values with a derivative", line, instead_of(t))
        f = getattr(call.args[0], "value", None) if call.op == "call" and call.args else None
        if has_own_rule(f) and any(map(varies, call.args)):
            raise self.refuse(f"`{f.__name__}`, which has a rule of its own or was declared constant,", line)
        if is_users(f) or helper:
            return
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
