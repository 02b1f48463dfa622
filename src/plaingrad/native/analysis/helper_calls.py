"""Calls of helpers in derived programs: whose memory their results lie in, what they write, and what they keep."""

from __future__ import annotations

from typing import Any

from plaingrad.native.program.ir import Do, Let, Operand
from plaingrad.native.runtime import attempts

# helper -> the places of the operands that are replaced by their tangents, in a call beside the helper's own call
SAME_CALL = {
    "more": (2,),
    "kept": (1, 3),
    "references": (2,),
    "keep": (2, 4),
    "add_to": (1, 2),
    "conj_of": (1,),
    "fitted": (2,),
    "withdrawn": (1,),
}


RETURNED = frozenset(("more", "kept", "references", "keep"))  # memory of these operands


WRITTEN = {"keep": 2, "add_to": 1, "withdrawn": 1}


KEPT = {"keep": (2, 4)}  # (the tape, what is kept)


ADOPTED = {"adopted": (1, 2)}  # (a buffer, a term): the result is the term, summed to the shape of the buffer


NEW = frozenset(("room", "spare"))  # of which nothing is set yet


ADDED = "add_to"


HARMLESS = frozenset(
    (
        "trips",
        "check_disjoint",
        "check_read_first",
        "extent",
        "places",
        "order_of",
        "check_columns",
        "check_rows",
        "is_regular",
        "matching",
        *attempts.NAMES,
    )
)


FORMULAS = tuple(
    f"plaingrad.native.runtime.{name}"
    for name in ("array_helpers", "reduction_helpers", "product_formulas", "linalg_helpers", "eigen_helpers")
)
NO_FORMULAS = frozenset(  # helpers of array rules that have a rule here, or return nothing with a derivative
    ("conj_of", "fitted", "withdrawn", "array_of", "extent", "places", "order_of", "is_regular", "matching")
)


# formulas that skip what is zero, or are exact where others are not: `lowering/formulas_again.py` has what is
# differentiated in their place
REPLACED = frozenset(
    (
        "cofactors",
        "eig_bar",
        "eigh_bar",
        "lstsq_bar_a",
        "over_gaps",
        "svd_bar",
        "norm_bar",
        "norm_dot",
        "std_bar",
        "std_dot",
    )
)


def is_formula(f: Any) -> bool:
    """Whether `f` is a formula or loop of an array rule, whose derivative is that of its code."""
    if getattr(f, "__module__", "") not in FORMULAS or type(f).__name__ != "function":
        return False
    return f.__name__ not in NO_FORMULAS and f.__name__ not in REPLACED


def may_write(f: Any) -> bool:
    """Whether `f` is a helper of derived programs that may write into what it is given."""
    if not str(getattr(f, "__module__", "")).startswith("plaingrad.native"):
        return False
    return getattr(f, "__name__", "") not in HARMLESS


def is_our_own(f: Any) -> bool:
    """Whether `f` is a slope or such a formula: it stands for mathematics, and may be compiled with any options."""
    return is_formula(f) or getattr(f, "__module__", "") == "plaingrad.native.rules.scalars"


def name_of(s: Any) -> str | None:
    """The name of the helper of derived programs that a statement calls; None if it calls none."""
    call = s.call if isinstance(s, Do) else s
    if not isinstance(call, Let) or call.op != "call":
        return None
    f = getattr(call.args[0], "value", None)
    if not str(getattr(f, "__module__", "")).startswith("plaingrad.native"):
        return None
    name = getattr(f, "__name__", "")
    return name if name in SAME_CALL or name in NEW or name in ADOPTED else None


def sources(s: Let) -> tuple[Operand, ...]:
    """The operands whose memory the result of a helper, or a list, may lie in."""
    if s.op == "list":
        return s.args
    name = name_of(s)
    if name in ADOPTED or name == "spare":
        return s.args[1:]
    return tuple(s.args[k] for k in SAME_CALL[name]) if name in RETURNED else ()  # type: ignore[index]


def written(s: Let) -> tuple[Operand, ...]:
    """The operands that a helper writes into."""
    name = name_of(s)
    return (s.args[WRITTEN[name]],) if name in WRITTEN else ()


def kept_by(s: Any) -> tuple[str, str] | None:
    """(a tape, an array that is put on it by reference), if that is what a statement does."""
    name = name_of(s)
    if name not in KEPT:
        return None
    call = s.call if isinstance(s, Do) else s
    tape, x = (call.args[k] for k in KEPT[name])
    return tape.name, x.name


def is_derived(file: str) -> bool:
    """Whether a program from this file was derived."""
    return file.startswith("<plaingrad native") or "plaingrad_native_" in file
