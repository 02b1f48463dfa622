"""Memory: which names may stand for the same arrays, and which arrays are written."""

from __future__ import annotations

from typing import Any

from plaingrad.native.analysis import array_lists, helper_calls
from plaingrad.native.analysis.effects import argument_types, bound_operands, effects_of
from plaingrad.native.analysis.inner_gradients import gradient_of
from plaingrad.native.analysis.users_functions import is_users
from plaingrad.native.program.ir import Do, InPlace, Let, Program, Store, Var, statements
from plaingrad.native.program.union_find import Classes
from plaingrad.native.program.value_types import holds_arrays, is_memory

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
            kept = helper_calls.kept_by(s)
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
        elif s.op == "call" and gradient_of(getattr(s.args[0], "value", None)) is not None:
            found = ()
        elif s.op == "call" and is_users(getattr(s.args[0], "value", None)):
            found = s.args[1:]  # it may hand an argument back
        elif helper_calls.name_of(s) is not None or s.op == "list":
            found = helper_calls.sources(s)
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
        elif helper_calls.name_of(s) is not None:
            found = helper_calls.written(s)
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
        if not any(isinstance(a, Var) and holds_arrays(self.types.get(a.name)) for a in s.args[1:]):
            return ()
        try:
            args = bound_operands(s.args[0].value, s.args[1:], s.detail or ())  # type: ignore[union-attr]
            kinds = argument_types(self.program, s)
        except (TypeError, KeyError):  # the types of what derived code has made are not known here
            return s.args[1:]
        writes = effects_of(s.args[0].value, kinds).writes  # type: ignore[union-attr]
        return tuple(a for k, a in enumerate(args) if k in writes)
