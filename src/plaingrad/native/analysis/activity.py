"""Which variables of a program carry a derivative: those that depend on the inputs and that the result depends on.

Arrays are memory: all names that may stand for one piece of memory form a class, found by following views and copies
of references, and are active together.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from plaingrad import rulebook
from plaingrad.native.analysis.effects import argument_types, bound_operands, effects_of
from plaingrad.native.forward import second_order
from plaingrad.native.frontend.current import original
from plaingrad.native.analysis import array_lists
from plaingrad.native.program.dispatchers import python_function
from plaingrad.native.program.ir import Do, InPlace, Let, Program, Store, Var, operands, statements
from plaingrad.native.program.union_find import Classes

VIEWS = frozenset(("T", "real", "imag", "flat"))
VIEWING_METHODS = frozenset(("reshape", "ravel", "transpose", "view", "swapaxes", "squeeze"))
VIEWING_FUNCTIONS = VIEWING_METHODS - {
    "view"
} | frozenset(  # they may hand on the memory of their first argument
    (
        "expand_dims",
        "asarray",
        "ascontiguousarray",
        "asfortranarray",
        "atleast_1d",
        "atleast_2d",
        "broadcast_to",
    )
    + ("flip", "fliplr", "flipud", "moveaxis", "rot90", "real", "imag")
)
# NumPy's functions, ufuncs apart, that Numba lets write into an argument given by position -> its place in a call
OUT_PLACES = {"dot": 3, "clip": 4, "round": 3, "around": 3, "round_": 3}


def is_real(t: Any) -> bool:
    """Whether `t` is a type of floats or complex numbers."""
    return isinstance(t, (types.Float, types.Complex))


def is_array(t: Any) -> bool:
    """Whether `t` is a type of arrays of floats or complex numbers."""
    return isinstance(t, types.Array) and is_real(t.dtype)


def part_types(t: Any) -> list[Any]:
    """The types of the parts of a tuple type, or of a dictionary with known keys."""
    return list(t)


def has_tangent(t: Any) -> bool:
    """Whether values of type `t` have a tangent."""
    if isinstance(t, (types.BaseTuple, types.LiteralStrKeyDict)):
        return any(map(has_tangent, part_types(t)))
    return is_real(t) or is_memory(t) and is_real(t.dtype if isinstance(t, types.Array) else t.dtype.dtype)


def is_memory(t: Any) -> bool:
    """Whether `t` is a type of arrays, or of lists of arrays."""
    return isinstance(t, types.Array) or array_lists.is_array_list(t)


class Memory(Classes):
    """Classes of array names that may share memory, and which of them are written."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.written: set[str] = set()
        self.types = program.types
        self.program = program
        for s in statements(program.body):
            if isinstance(s, Let) and is_memory(self.types.get(s.target)):
                for source in self.sources(s):
                    self.join(s.target, source)
            kept = second_order.kept_by(s)
            if kept is not None:
                self.join(*kept)
            first, *others = array_lists.shared(s, self.types) or [""]
            for other in others:
                self.join(first, other)
        for s in statements(program.body):
            if isinstance(s, (Store, InPlace)) and isinstance(s.array, Var):
                self.written.add(self.of(s.array.name))
            call = s.call if isinstance(s, Do) else s
            if isinstance(call, Let):
                self.written.update(self.of(name) for name in self.outputs(call))

    def is_written(self, name: str) -> bool:
        """Whether the memory of `name` is written anywhere."""
        return self.of(name) in self.written

    def sources(self, s: Let) -> list[str]:
        """The arrays whose memory the result of `s` may lie in."""
        if (
            s.op in ("copy", "item")
            or (s.op == "attribute" and s.detail in VIEWS)
            or s.op == "method"
            and s.detail[0] in VIEWING_METHODS
        ):
            found = s.args[:1]
        elif (
            s.op == "call" and getattr(getattr(s.args[0], "value", None), "__name__", "") in VIEWING_FUNCTIONS
        ):
            found = s.args[1:2]
        elif s.op == "call" and is_users(getattr(s.args[0], "value", None)):
            found = s.args[1:]  # it may hand an argument back
        elif second_order.name_of(s) is not None or s.op == "list":
            found = second_order.sources(s)
        else:
            found = ()
        return [a.name for a in found if isinstance(a, Var) and is_memory(self.types.get(a.name))]

    def outputs(self, s: Let) -> list[str]:
        """The arrays that a call may write."""
        found: tuple[Any, ...] = ()
        if s.op == "method" and s.detail[0] in ("sort", "fill", "partition", "put", "itemset"):
            found = s.args[:1]
        elif s.op == "call" and is_users(getattr(s.args[0], "value", None)):
            found = self.written_by(s)
        elif s.op == "call" and isinstance(s.detail, tuple) and "out" in s.detail:
            found = (s.args[len(s.args) - len(s.detail) + s.detail.index("out")],)
        elif second_order.name_of(s) is not None:
            found = second_order.written(s)
        elif s.op == "call":
            value = getattr(s.args[0], "value", None)
            if getattr(value, "__name__", "") in ("fill_diagonal", "shuffle", "copyto", "put", "nan_to_num"):
                found = s.args[1:2]  # nan_to_num(copy=False)
            elif getattr(value, "__name__", "") in OUT_PLACES:
                found = s.args[OUT_PLACES[value.__name__] :]
            nin = getattr(value, "nin", None)
            if nin is not None and len(s.args) - 1 > nin:
                found = s.args[1 + nin :]
        return [a.name for a in found if isinstance(a, Var) and is_memory(self.types.get(a.name))]

    def written_by(self, s: Let) -> tuple[Any, ...]:
        """The arguments that a function of the user's may write into."""
        if not any(isinstance(a, Var) and _holds_arrays(self.types.get(a.name)) for a in s.args[1:]):
            return ()
        try:
            args = bound_operands(s.args[0].value, s.args[1:], s.detail or ())  # type: ignore[union-attr]
            kinds = argument_types(self.program, s)
        except (TypeError, KeyError):  # the types of what derived code has made are not known here
            return s.args[1:]
        writes = effects_of(s.args[0].value, kinds).writes  # type: ignore[union-attr]
        return tuple(a for k, a in enumerate(args) if k in writes)


def _holds_arrays(t: Any) -> bool:
    return is_memory(t) or (isinstance(t, types.BaseTuple) and any(map(_holds_arrays, t)))


INERT = (
    types.Integer,
    types.Boolean,
    types.NoneType,
    types.UnicodeType,
    types.StringLiteral,
    types.SliceType,
    types.RangeType,
    types.EllipsisType,
    types.Callable,
    types.Module,
    types.DType,
    types.NumberClass,
    types.BooleanLiteral,
    types.IntegerLiteral,
)


def is_inert(t: Any) -> bool:
    """Whether values of type `t` surely hold nothing that has a derivative."""
    if isinstance(t, types.Array):
        return isinstance(t.dtype, (types.Integer, types.Boolean))
    if isinstance(t, types.BaseTuple):
        return all(map(is_inert, t))
    return t is None or isinstance(t, INERT)


DERIVED = (
    "plaingrad.native.compile.build",
    "plaingrad.native.rules.scalars",
)  # where derived programs, and slopes, seem to be


def is_users(f: Any) -> bool:
    """Whether `f` is a Python function or a Numba dispatcher, whose derivative is derived.

    Functions of ours have rules instead, but for formulas made of others, and for derived programs, which are derived
    again for derivatives of higher order.
    """
    module = str(getattr(f, "__module__", ""))
    if module.startswith(("plaingrad.native", "plaingrad.rules")):
        return module in DERIVED and hasattr(f, "py_func") or second_order.is_formula(f)
    return hasattr(f, "py_func") or type(f).__name__ == "function" and not _is_numpys(f)


def has_own_rule(f: Any) -> bool:
    """Whether a function of the user's was given a rule, or declared constant."""
    if not is_users(f):
        return False
    of = original(f)
    return any(rulebook.find(g) is not None for g in (f, python_function(f), of, python_function(of)))


def _is_numpys(f: Any) -> bool:
    return str(getattr(f, "__module__", "")).startswith(("numpy", "math", "cmath", "builtins"))


def active_variables(program: Program, memory: Memory, wanted: list[str], results: list[str]) -> set[str]:
    """The variables with a derivative: reached from the parameters `wanted`, and reaching one of `results`."""
    return _spread(program, memory, set(wanted), True) & _spread(program, memory, set(results), False)


def varying_variables(program: Program, memory: Memory, wanted: list[str]) -> set[str]:
    """The variables that depend on the parameters `wanted`."""
    return _spread(program, memory, set(wanted), True)


def _spread(program: Program, memory: Memory, found: set[str], onward: bool) -> set[str]:
    types_of = program.types
    found = {memory.of(name) for name in found}
    flows = []
    for s in statements(program.body):
        outs, ins = ({memory.of(name) for name in names} for names in _flow(s, types_of, memory))
        if outs and ins:
            flows.append((ins, outs) if onward else (outs, ins))
    if not onward:
        flows.reverse()  # with the direction of the spread few rounds are needed
    changed = True
    while changed:
        changed = False
        for out_of, into in flows:
            if not out_of.isdisjoint(found) and not into <= found:
                found |= into
                changed = True
    return {name for name, t in types_of.items() if has_tangent(t) and memory.of(name) in found}


def _flow(s: Any, types_of: dict[str, Any], memory: Memory) -> tuple[list[str], list[str]]:
    """(variables that a statement gives values with a tangent, variables that it takes them from)."""
    ins = [a.name for a in operands(s) if isinstance(a, Var) and has_tangent(types_of.get(a.name))]
    if isinstance(s, Let):
        if s.op == "compare" or (s.op == "attribute" and s.detail not in VIEWS):
            return [], []
        outs = [s.target] if has_tangent(types_of.get(s.target)) else []
        return [*outs, *memory.outputs(s)], ins
    if isinstance(s, Do):
        return memory.outputs(s.call), ins
    if isinstance(s, (Store, InPlace)) and isinstance(s.array, Var) and is_array(types_of.get(s.array.name)):
        return [s.array.name], ins
    return [], []
