"""Rules of whole arrays: elementwise operations, reductions, products, linear algebra, creation, joining, indexing.

Most are rows: the operands of the function by name, and which loop or formula of `array_helpers` gives the cotangent
of which operand and the tangent of the result. Operands whose values are needed on the way back are kept as copies if
they are written anywhere; of the others only the shape is used, which their shadows have too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.program.ir import Const, Do, Let, Operand, Ref, Stmt, Var
from plaingrad.native.program.value_types import has_complex, has_tangent, is_array, part_types
from plaingrad.native.runtime import array_helpers as helpers
from plaingrad.native.runtime import (
    eigen_helpers,
    linalg_helpers,
    product_formulas,
    products,
    reduction_helpers,
)
from plaingrad.native.runtime.helpers import check_disjoint

CREATION = frozenset(
    (np.zeros, np.empty, np.ones, np.zeros_like, np.empty_like, np.ones_like, np.arange, np.eye, np.identity)
)
SAME = "same"  # linear in its first operand: the function itself on the tangent
EACH = "each"  # linear in each of its first two operands
MISSING = object()


@dataclass(frozen=True, slots=True)
class Row:
    """The rule of one function of arrays.

    Attributes:
        params: its parameters with their defaults.
        bars: parameter -> the helper that gives its cotangent.
        dot: the helper that gives the tangent; or `SAME` or `EACH`.
        values: the parameters whose values the helpers read.
        only: whether it holds for these operand types.
    """

    params: dict[str, Any]
    bars: dict[str, Any]
    dot: Any
    values: frozenset[str]
    only: Callable[..., bool] | None = None


ROWS: dict[Any, Row] = {}


def row(
    names: str,
    params: str,
    dot: Any,
    values: str = "",
    only: Callable[..., bool] | None = None,
    **bars: Any,
) -> None:
    """Enter a rule for the NumPy functions `names`, and for the array methods of these names."""
    found: dict[str, Any] = {}
    for param in params.split():
        name, _, default = param.partition("=")
        found[name] = eval(default) if default else MISSING
    made = Row(found, bars, dot, frozenset(values.split()), only)
    for name in names.split():
        function: Any = np
        for part in name.split("."):
            function = getattr(function, part, None)
        if function is not None:
            ROWS[function] = made
        if "." not in name:
            ROWS["method", name] = made


def vectors(*kinds: Any) -> bool:
    """Whether the arrays among the operands are vectors."""
    return all(t.ndim == 1 for t in kinds if isinstance(t, types.Array))


def matrices(*kinds: Any) -> bool:
    """Whether the arrays among the operands are matrices."""
    return all(isinstance(t, types.Array) and t.ndim == 2 for t in kinds[:2] if isinstance(t, types.Array))


def both_arrays(a: Any, b: Any) -> bool:
    """Whether both operands are arrays."""
    return is_array(a) and is_array(b)


def no_order(a: Any, ord: Any = None) -> bool:
    """Whether it is the norm that is the root of the sum of squares."""
    return ord is None or isinstance(ord, (types.NoneType, types.Omitted))


def real_numbers(*kinds: Any) -> bool:
    """Whether no operand is complex."""
    return not any(map(has_complex, kinds))


def real_vectors(*kinds: Any) -> bool:
    """Whether the operands are real, and those that are arrays are vectors."""
    return real_numbers(*kinds) and vectors(*kinds)


H, R, L, P, E = helpers, reduction_helpers, linalg_helpers, product_formulas, eigen_helpers
row("sum", "a axis=None dtype=None", SAME, a=H.sum_bar)
row("mean", "a", SAME, a=H.mean_bar)
row("prod product", "a", R.prod_dot, "a z", a=R.prod_bar)
row("max amax min amin", "a", R.extreme_dot, "a z", real_numbers, a=R.extreme_bar)
row("ptp", "a", R.ptp_dot, "a", real_numbers, a=R.ptp_bar)
row("var", "a", R.var_dot, "a", a=R.var_bar)
row("std", "a", R.std_dot, "a z", a=R.std_bar)
row("nansum", "a", R.nansum_dot, "a", a=R.nansum_bar)
row("nanmean", "a", R.nanmean_dot, "a", a=R.nanmean_bar)
row("cumsum", "a", SAME, a=R.cumsum_bar)
row("cumprod", "a", R.cumprod_dot, "a z", a=R.cumprod_bar)
row("sort", "a", R.sort_dot, "a", real_vectors, a=R.sort_bar)

row("copy flatten ravel array ascontiguousarray asfortranarray", "a", SAME, a=H.same_shape_bar)
row("astype", "a dtype", SAME, a=H.plain_bar)
row("broadcast_to", "a shape", SAME, a=H.plain_bar)
row("conj conjugate", "a", SAME, a=H.conj_bar)
row("roll", "a shift", SAME, a=H.flip_sign_of_shift)
row("repeat", "a repeats", SAME, "repeats", a=H.repeat_bar)
row("diff", "a", SAME, a=H.diff_bar)
row("trace", "a offset=0", SAME, "offset", matrices, a=H.trace_bar)
row("diag", "v k=0", SAME, "k", v=H.diag_bar)
row("tril", "m k=0", SAME, "k", matrices, m=H.tril_bar)
row("triu", "m k=0", SAME, "k", matrices, m=H.triu_bar)
row("take", "a indices", SAME, "indices", a=H.take_bar)
row("item", "a", SAME, a=H.number_bar)
row("linspace", "start stop num=50", H.linspace_dot, start=H.linspace_start_bar, stop=H.linspace_stop_bar)

row("where", "condition x y", H.where_dot, "condition", x=H.where_x_bar, y=H.where_y_bar)
row("clip", "a a_min=None a_max=None", H.clip_dot, "a a_min a_max", real_numbers,
    a=H.clip_a_bar, a_min=H.clip_low_bar, a_max=H.clip_high_bar)  # fmt: skip
row("interp", "x xp fp", H.interp_dot, "x xp fp", real_numbers, x=H.interp_x_bar, xp=H.interp_xp_bar,
    fp=H.interp_fp_bar)  # fmt: skip

row("dot matmul", "a b", EACH, "a b", both_arrays, a=P.dot_bar_a, b=P.dot_bar_b)
row("vdot", "a b", EACH, "a b", a=P.vdot_bar_a, b=P.vdot_bar_b)
row("outer", "a b", EACH, "a b", both_arrays, a=P.outer_bar_a, b=P.outer_bar_b)
row(
    "kron",
    "a b",
    EACH,
    "a b",
    lambda a, b: both_arrays(a, b) and matrices(a, b),
    a=P.kron_bar_a,
    b=P.kron_bar_b,
)
row("cross", "a b", EACH, "a b", lambda a, b: both_arrays(a, b) and a.ndim == b.ndim,
    a=P.cross_bar_a, b=P.cross_bar_b)  # fmt: skip

row("linalg.solve", "a b", L.solve_dot, "a b z", a=L.solve_bar_a, b=L.solve_bar_b)
row("linalg.inv", "a", L.inv_dot, "z", a=L.inv_bar)
row("linalg.det", "a", L.det_dot, "a", a=L.det_bar)
row("linalg.slogdet", "a", L.slogdet_dot, "a", real_numbers, a=L.slogdet_bar)
row("linalg.cholesky", "a", L.cholesky_dot, "z", a=L.cholesky_bar)
row("linalg.norm", "x ord=None", L.norm_dot, "x z", no_order, x=L.norm_bar)
row("linalg.eigh", "a", E.eigh_dot, "a z", real_numbers, a=E.eigh_bar)
row("linalg.eigvalsh", "a", E.eigvalsh_dot, "a", a=E.eigvalsh_bar)
row("linalg.eig", "a", E.eig_dot, "a z", real_numbers, a=E.eig_bar)
row("linalg.eigvals", "a", E.eigvals_dot, "a z", real_numbers, a=E.eigvals_bar)
row("linalg.pinv", "a", L.pinv_dot, "a z", real_numbers, a=L.pinv_bar)
row("linalg.lstsq", "a b", L.lstsq_dot, "a b z", real_numbers, a=L.lstsq_bar_a, b=L.lstsq_bar_b)
row("linalg.qr", "a", L.qr_dot, "a z", real_numbers, a=L.qr_bar)
row("linalg.svd", "a full_matrices=True", L.svd_dot, "a z", real_numbers, a=L.svd_bar)
ROWS["@"] = ROWS[np.dot]


def key_of(s: Let) -> Any:
    """What a rule is found by: a function, the symbol of an operator, or ("method", name)."""
    if s.op == "call":
        return getattr(s.args[0], "value", None)
    return s.detail if s.op == "binary" else ("method", s.detail[0]) if s.op == "method" else None


def name_of(s: Let) -> str:
    """How a refusal calls it."""
    key = key_of(s)
    return getattr(key, "__name__", None) or (key[1] if isinstance(key, tuple) else key or s.op)


def operands_of(r: Any, s: Let, made: Row) -> dict[str, Operand]:
    """The operands of a call, method or operator by the names of parameters, defaults filled in."""
    keywords: tuple[str, ...] = ()
    if s.op == "call":
        keywords = tuple(s.detail or ())
    elif s.op == "method":
        keywords = tuple(s.detail[1] or ())
    given = list(s.args[1:] if s.op == "call" else s.args)
    named = dict(zip(keywords, given[len(given) - len(keywords) :], strict=True))
    given = given[: len(given) - len(keywords)]
    names = list(made.params)
    if len(given) > len(names):
        raise r.refuse(f"this form of `{name_of(s)}`", s.line)
    found: dict[str, Operand] = dict(zip(names, given, strict=False))
    for name, x in named.items():
        if name not in made.params or name in found:
            raise r.refuse(f"`{name}=` of `{name_of(s)}`", s.line)
        found[name] = x
    for name, default in made.params.items():
        if name not in found:
            if default is MISSING:
                raise r.refuse(f"this form of `{name_of(s)}`", s.line)
            found[name] = Const(default)
    kinds = [_kind(r, found[name]) for name in names]
    if made.only is not None and not made.only(*kinds):
        raise r.refuse(f"`{name_of(s)}` of ({', '.join(map(str, kinds))})", s.line)
    for name, x in found.items():
        if name not in made.bars and r.is_active(x):
            raise r.refuse(f"a derivative in `{name}` of `{name_of(s)}`", s.line)
    return found


def _kind(r: Any, x: Operand) -> Any:
    if isinstance(x, Const):
        return None if x.value is None else type(x.value)
    return r.type_of(x)


def call(r: Any, out: list[Stmt], f: Any, *args: Operand, line: int) -> Var:
    """A new variable for a call of a helper."""
    return r.emit(out, "call", (Ref(f, f.__name__), *args), (), line)


# Reverse --------------------------------------------------------------------------------------------------------------


def in_arena(r: Any, s: Let) -> Let:
    """`s`, if it is a product of matrices, in memory of the arena, where `may_be_in_arena` says so."""
    if ROWS[key_of(s)] is not ROWS[np.dot] or not isinstance(r.arena, Var) or not r.may_be_in_arena(s):
        return s
    a, b = s.args[-2:]
    if not products.may_be_in_arena(r.type_of(a), r.type_of(b)) or s.detail not in (None, (), "@"):
        return s
    return Let(s.target, "call", (Ref(products.product, "product"), r.arena, a, b), (), s.line)


def has_row(key: Any) -> bool:
    """Whether there is a row for what a rule is found by."""
    try:
        return key in ROWS
    except TypeError:
        return False


def refuse_numbers(r: Any, s: Let) -> None:
    """Refuse a derivative in what says how large new memory is, or what its numbers are."""
    if any(r.is_active(a) and not is_array(r.type_of(a)) for a in s.args):
        raise r.refuse(f"`{name_of(s)}` of numbers with derivatives", s.line)


def refuse_written_copies(r: Any, s: Let, key: Any, after: list[Stmt]) -> None:
    """What may be a view is differentiated as a copy: right only if it is none, or nothing is written later.

    Whether an array of any layout lies in C or Fortran order, so that it is handed on as it is, is known at run time.
    """
    if not is_array(r.types.get(s.target)) or not r.memory.is_written(s.target):
        return
    if key is np.broadcast_to:
        raise r.refuse("`broadcast_to` of an array that is written", s.line)
    if key in (np.ascontiguousarray, np.asfortranarray) and r.type_of(s.args[1]).layout == "A":
        check = (Ref(check_disjoint, "check_disjoint"), Var(s.target), s.args[1])
        after.append(Do(Let("_", "call", check, (), s.line), s.line))


def spread(r: Any, back: list[Stmt], x: Operand, term: Operand, line: int) -> None:
    """Add a term of the shape of a result to the cotangent of an operand that was broadcast to it."""
    t = r.type_of(x)
    if not is_array(t):
        f = helpers.total if isinstance(t, types.Complex) else helpers.real_total
        term = call(r, back, f, term, line=line)
    r.add(back, x, term, line)


def refuse_options(r: Any, s: Let) -> None:
    """Refuse `out` and other options of elementwise functions."""
    if s.op != "call":
        return
    f = key_of(s)
    nin = getattr(f, "nin", None)
    if s.detail or (nin is not None and len(s.args) - 1 > nin):
        raise r.refuse(f"an option, such as `out`, of `{name_of(s)}`", s.line)


def number_at(r: Any, back: list[Stmt], z: Var, k: int, s: Let) -> Var:
    """z_bar[k]."""
    found = r.emit(back, "item", (z, Const(k)), None, s.line)
    r.types[found.name] = r.types[s.target].dtype
    return found


# Joining arrays -------------------------------------------------------------------------------------------------------

JOINS = {
    np.concatenate: None,
    np.stack: "stack",
    np.hstack: "h",
    np.vstack: "v",
    np.column_stack: "c",
    np.dstack: "d",
}


def parts_of(r: Any, s: Let) -> tuple[list[str], int, bool]:
    """(names of the joined arrays, axis, whether each is one layer along it)."""
    kind = JOINS[key_of(s)]
    given = s.args[1] if len(s.args) > 1 else None
    t = r.type_of(given)
    if not isinstance(t, types.BaseTuple) or (s.detail and tuple(s.detail) != ("axis",)) or len(s.args) > 3:
        raise r.refuse(f"this form of `{name_of(s)}`", s.line)
    names = [f"{given.name}_p{k}" for k in range(len(t))]  # type: ignore[union-attr]
    ranks = {part.ndim if isinstance(part, types.Array) else 0 for part in part_types(t)}
    if len(ranks) != 1 or 0 in ranks or not has_tangent(t):
        raise r.refuse(f"`{name_of(s)}` of arrays of several ranks", s.line)
    rank = ranks.pop()
    axis: Operand = s.args[2] if len(s.args) == 3 else Const(0)
    if not isinstance(axis, Const):
        raise r.refuse(f"`{name_of(s)}` along an axis that is a variable", s.line)
    k = axis.value
    if kind == "stack":
        return names, k + rank + 1 if k < 0 else k, True
    if kind == "h":
        return names, 0 if rank == 1 else 1, False
    if kind == "v":
        return names, 0, rank == 1
    if kind == "c":
        return names, 1, rank == 1
    if kind == "d":
        if rank < 3:
            raise r.refuse("`dstack` of vectors or matrices", s.line)
        return names, 2, False
    return names, k + rank if k < 0 else k, False


# Indexing by arrays ---------------------------------------------------------------------------------------------------


# Forward --------------------------------------------------------------------------------------------------------------


def ordering(r: Any, s: Let) -> Let:
    """The statement that computes how a vector will be sorted."""
    name = r.fresh("order")
    r.types[name] = types.Array(types.int64, 1, "C")
    return Let(name, "call", (Ref(reduction_helpers.order_of, "order_of"), s.args[0]), (), s.line)
