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

from plaingrad.native.program.ir import Const, Do, Let, Operand, Parts, Ref, Stmt, Store, Var
from plaingrad.native.program.value_types import has_tangent, is_array, is_real, part_types
from plaingrad.native.rules import scalars
from plaingrad.native.runtime import array_helpers as helpers
from plaingrad.native.runtime import linalg_helpers, products
from plaingrad.native.runtime.helpers import check_disjoint
from plaingrad.native.runtime.products import ADDING

CREATION = frozenset(
    (np.zeros, np.empty, np.ones, np.zeros_like, np.empty_like, np.ones_like, np.arange, np.eye, np.identity)
)
MAYBE_VIEWS = frozenset(("ravel", "ascontiguousarray", "asfortranarray", "astype"))
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
    return not any(isinstance(getattr(t, "dtype", t), types.Complex) for t in kinds)


def real_vectors(*kinds: Any) -> bool:
    """Whether the operands are real, and those that are arrays are vectors."""
    return real_numbers(*kinds) and vectors(*kinds)


H, L = helpers, linalg_helpers
row("sum", "a axis=None dtype=None", SAME, a=H.sum_bar)
row("mean", "a", SAME, a=H.mean_bar)
row("prod product", "a", H.prod_dot, "a z", a=H.prod_bar)
row("max amax min amin", "a", H.extreme_dot, "a z", real_numbers, a=H.extreme_bar)
row("ptp", "a", H.ptp_dot, "a", real_numbers, a=H.ptp_bar)
row("var", "a", H.var_dot, "a", a=H.var_bar)
row("std", "a", H.std_dot, "a z", a=H.std_bar)
row("nansum", "a", H.nansum_dot, "a", a=H.nansum_bar)
row("nanmean", "a", H.nanmean_dot, "a", a=H.nanmean_bar)
row("cumsum", "a", SAME, a=H.cumsum_bar)
row("cumprod", "a", H.cumprod_dot, "a z", a=H.cumprod_bar)
row("sort", "a", H.sort_dot, "a", real_vectors, a=H.sort_bar)

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
row("interp", "x xp fp", H.interp_dot, "x xp fp", real_numbers, x=H.interp_x_bar, fp=H.interp_fp_bar)

row("dot matmul", "a b", EACH, "a b", both_arrays, a=H.dot_bar_a, b=H.dot_bar_b)
row("vdot", "a b", EACH, "a b", a=H.vdot_bar_a, b=H.vdot_bar_b)
row("outer", "a b", EACH, "a b", both_arrays, a=H.outer_bar_a, b=H.outer_bar_b)
row(
    "kron",
    "a b",
    EACH,
    "a b",
    lambda a, b: both_arrays(a, b) and matrices(a, b),
    a=H.kron_bar_a,
    b=H.kron_bar_b,
)
row("cross", "a b", EACH, "a b", lambda a, b: both_arrays(a, b) and a.ndim == b.ndim,
    a=H.cross_bar_a, b=H.cross_bar_b)  # fmt: skip

row("linalg.solve", "a b", L.solve_dot, "a b z", a=L.solve_bar_a, b=L.solve_bar_b)
row("linalg.inv", "a", L.inv_dot, "z", a=L.inv_bar)
row("linalg.det", "a", L.det_dot, "a", a=L.det_bar)
row("linalg.slogdet", "a", L.slogdet_dot, "a", real_numbers, a=L.slogdet_bar)
row("linalg.cholesky", "a", L.cholesky_dot, "z", a=L.cholesky_bar)
row("linalg.norm", "x ord=None", L.norm_dot, "x z", no_order, x=L.norm_bar)
row("linalg.eigh", "a", L.eigh_dot, "a z", real_numbers, a=L.eigh_bar)
row("linalg.eigvalsh", "a", L.eigvalsh_dot, "a", a=L.eigvalsh_bar)
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


def reverse(r: Any, s: Let) -> Any:
    """The parts of a statement whose operands or result are arrays."""
    t = r.types.get(s.target)
    key = key_of(s)
    forward: list[Stmt] = []
    back: list[Stmt] = []
    after: list[Stmt] = [r.zeros(s.target)] if is_array(t) else []
    end: list[Stmt] = r.cleared(s.target) if is_array(t) else []
    if s.op == "call" and key in CREATION:
        if any(r.is_active(a) and not is_array(r.type_of(a)) for a in s.args):
            raise r.refuse(f"`{name_of(s)}` of numbers with derivatives", s.line)
        return Parts([s, *after], end)
    if s.op == "call" and scalars.is_constant(key, [r.type_of(a) for a in s.args]):
        return Parts([s, *after], end)
    refuse_written_copies(r, s, key, after)
    z = Var(f"{s.target}_b")
    if s.op == "item":
        index(r, s, z, after, back)
    elif s.op == "call" and key in JOINS:
        join(r, s, z, back)
    elif s.op == "call" and key is helpers.array_of:
        for k, x in enumerate(s.args[1:]):
            if r.is_active(x):
                r.add(back, x, number_at(r, back, z, k, s), s.line)
    elif s.op == "call" and key in (np.full, np.full_like):
        x = s.args[2] if len(s.args) > 2 else None
        if (
            (s.detail and "fill_value" in s.detail)
            or x is None
            or (len(s.args) > 1 and r.is_active(s.args[1]) and key is np.full)
        ):
            raise r.refuse(f"this form of `{name_of(s)}`", s.line)
        if r.is_active(x):
            spread(r, back, x, z, s.line)
    elif _has_row(key):
        by_row(r, s, ROWS[key], forward, after, back)
        s = in_arena(r, s)
    elif s.op in ("binary", "unary", "call") and is_array(t):
        elementwise(r, s, z, forward, after, back)
    else:
        raise r.refuse(f"`{name_of(s)}` of arrays", s.line)
    if is_real(t):
        back.append(Let(z.name, "copy", (r.zero(t),), None, s.line))
    if isinstance(t, types.BaseTuple):
        end = [x for k, part in enumerate(t) if is_array(part) for x in r.cleared(f"{s.target}_p{k}")]
    return Parts([*forward, s, *after], [*back, *end])


def in_arena(r: Any, s: Let) -> Let:
    """`s`, if it is a product of matrices, in memory of the arena, where `may_be_in_arena` says so."""
    if ROWS[key_of(s)] is not ROWS[np.dot] or not isinstance(r.arena, Var) or not r.may_be_in_arena(s):
        return s
    a, b = s.args[-2:]
    if not products.may_be_in_arena(r.type_of(a), r.type_of(b)) or s.detail not in (None, (), "@"):
        return s
    return Let(s.target, "call", (Ref(products.product, "product"), r.arena, a, b), (), s.line)


def _has_row(key: Any) -> bool:
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


def by_row(r: Any, s: Let, made: Row, forward: list[Stmt], after: list[Stmt], back: list[Stmt]) -> None:
    """x_bar += helper(z_bar, z, *operands) for every active operand."""
    given = operands_of(r, s, made)
    operands: list[Operand] = []
    for name, x in given.items():
        if name in made.values:
            x = r.kept(x, forward, s.line)
        elif r.is_active(x) and is_array(r.type_of(x)):
            x = Var(f"{x.name}_b")  # type: ignore[union-attr]
        elif isinstance(r.type_of(x), types.BaseTuple) or (isinstance(x, Ref) and not is_array(r.type_of(x))):
            x = Const(None)
        operands.append(x)
    bars, z = result_of(r, s, made, after)
    for name, bar in made.bars.items():
        x = given[name]
        if r.is_active(x):
            args = [*operands]
            if bar is helpers.sum_bar and is_array(r.types[s.target]):
                bar = helpers.sum_along_bar
            if bar in ADDING and not r.plain and is_array(r.type_of(x)):
                adding = Ref(ADDING[bar], ADDING[bar].__name__)
                shadow = Var(f"{x.name}_b")  # type: ignore[union-attr]
                back.append(Do(Let("_", "call", (adding, shadow, *bars, *args), (), s.line), s.line))
                continue
            params = bar.__code__.co_argcount - len(bars) - 1
            spread(r, back, x, call(r, back, bar, *bars, z, *args[:params], line=s.line), s.line)


def result_of(r: Any, s: Let, made: Row, after: list[Stmt]) -> tuple[list[Operand], Operand]:
    """(cotangents of the parts of a result, the result for the way back)."""
    t = r.types[s.target]
    if isinstance(t, types.BaseTuple):
        bars: list[Operand] = []
        for k, part in enumerate(t):
            leaf = f"{s.target}_p{k}"
            if is_array(part):
                after.append(Let(leaf, "item", (Var(s.target), Const(k)), None, s.line))
                after.append(r.zeros(leaf))
                if r.memory.is_written(leaf):
                    raise r.refuse(f"a result of `{name_of(s)}` that is written later", s.line)
            bars.append(Var(f"{leaf}_b") if is_array(part) or leaf in r.active else r.zero(part))
        return bars, Var(s.target) if "z" in made.values else Const(None)
    if "z" not in made.values:
        return [Var(f"{s.target}_b")], Const(None)
    return [Var(f"{s.target}_b")], kept_result(r, s, after)


def kept_result(r: Any, s: Let, after: list[Stmt]) -> Var:
    """The result of `s` as it is now, for the way back."""
    return r.kept(Var(s.target), after, s.line)


def spread(r: Any, back: list[Stmt], x: Operand, term: Operand, line: int) -> None:
    """Add a term of the shape of a result to the cotangent of an operand that was broadcast to it."""
    t = r.type_of(x)
    if not is_array(t):
        f = helpers.total if isinstance(t, types.Complex) else helpers.real_total
        term = call(r, back, f, term, line=line)
    r.add(back, x, term, line)


def elementwise(r: Any, s: Let, z: Var, forward: list[Stmt], after: list[Stmt], back: list[Stmt]) -> None:
    """z = f(x, y) element by element: x_bar += z_bar * conj(dz/dx), summed over broadcast axes."""
    refuse_options(r, s)
    mixed = any(_complex(r.type_of(x)) for x in (*s.args, Var(s.target)))
    trial: list[Stmt] = []
    read = {a for _, slope in r.slopes(s, trial) if isinstance(slope, Var) for a in (slope,)}
    for x in trial:
        read |= {a for a in x.args if isinstance(a, Var)}  # type: ignore[union-attr]
    args = tuple(r.kept(a, forward, s.line) if a in read else a for a in s.args)
    target = kept_result(r, s, after).name if Var(s.target) in read else s.target
    for new, old in zip(args, s.args, strict=True):  # a kept copy is as active as what it was copied from
        if new is not old and r.is_active(old):
            r.active.add(new.name)  # type: ignore[union-attr]
    again = Let(target, s.op, args, s.detail, s.line)
    for position, slope in r.slopes(again, back):
        x = s.args[position]
        term: Operand = z
        if slope == -1:
            term = r.emit(back, "unary", (z,), "-", s.line)
        elif slope != 1:
            if mixed:
                slope = call(r, back, np.conj, slope, line=s.line)
            term = r.emit(back, "binary", (z, slope), "*", s.line)
        spread(r, back, x, term, s.line)


def refuse_options(r: Any, s: Let) -> None:
    """Refuse `out` and other options of elementwise functions."""
    if s.op != "call":
        return
    f = key_of(s)
    nin = getattr(f, "nin", None)
    if s.detail or (nin is not None and len(s.args) - 1 > nin):
        raise r.refuse(f"an option, such as `out`, of `{name_of(s)}`", s.line)


def _complex(t: Any) -> bool:
    return isinstance(getattr(t, "dtype", t), types.Complex)


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


def join(r: Any, s: Let, z: Var, back: list[Stmt]) -> None:
    """Every array that was joined gets its part of the cotangent."""
    names, axis, layers = parts_of(r, s)
    start: Operand = Const(0)
    for k, name in enumerate(names):
        part = Var(name)
        like = Var(f"{name}_b") if r.is_active(part) else part
        n: Operand = Const(1) if layers else call(r, back, helpers.extent, like, Const(axis), line=s.line)
        if r.is_active(part):
            term = call(r, back, helpers.piece, z, like, start, n, Const(axis), line=s.line)
            r.add(back, part, term, s.line)
        if k + 1 < len(names):
            start = r.emit(back, "binary", (start, n), "+", s.line)


# Indexing by arrays ---------------------------------------------------------------------------------------------------


def is_fancy(r: Any, x: Operand) -> bool:
    """Whether an index is an array, or a tuple with an array in it."""
    t = r.type_of(x) if isinstance(x, Var) else None
    if isinstance(x, Ref):
        return isinstance(x.value, np.ndarray)
    return isinstance(t, types.Array) or (
        isinstance(t, types.BaseTuple) and any(isinstance(part, types.Array) for part in part_types(t))
    )


def is_copy(r: Any, s: Let) -> bool:
    """Whether a statement that is a view of its first operand in other cases, is none here."""
    if s.op == "item":
        return is_fancy(r, s.args[1])
    if s.op == "attribute":
        return s.detail == "imag" and not _complex(r.type_of(s.args[0]))
    if s.op not in ("call", "method"):
        return False
    x, t = (r.type_of(a) for a in (s.args[1 if s.op == "call" else 0], Var(s.target)))
    name = name_of(s)
    if name in ("ravel", "ascontiguousarray"):
        return x.layout != "C"
    if name == "asfortranarray":
        return x.layout == "A" or (x.layout == "C" and x.ndim > 1)
    if name == "imag" and not _complex(x):
        return True
    return name == "broadcast_to" or (s.op == "call" and name not in ("real", "imag") and x.dtype != t.dtype)


def numbers_of(r: Any, array: Operand, place: Operand, ndim: int, out: list[Stmt], line: int) -> Var:
    """The numbers of the elements that an index by an array names, for the way back."""
    found = Var(r.fresh("places"))
    r.types[found.name] = types.Array(types.int64, ndim, "C")
    out.append(Let(found.name, "call", (Ref(helpers.places, "places"), array, place), (), line))
    return found


def index(r: Any, s: Let, z: Var, after: list[Stmt], back: list[Stmt]) -> None:
    """z = x[indices]: a copy."""
    x, place = s.args
    numbers = numbers_of(r, x, place, r.types[s.target].ndim, after, s.line)
    bar = Var(f"{x.name}_b")  # type: ignore[union-attr]
    r.add(back, x, call(r, back, helpers.scattered, z, bar, numbers, line=s.line), s.line)


def store(r: Any, s: Store) -> Any:
    """x[indices] = value."""
    import operator

    from numba.core.registry import cpu_target

    t = r.types[s.array.name]  # type: ignore[union-attr]
    place_type = r.type_of(s.index)
    found = cpu_target.typing_context.resolve_function_type(operator.getitem, (t, place_type), {})
    if found is None or not isinstance(found.return_type, types.Array):
        raise r.refuse("a write through an array of indices", s.line)
    forward: list[Stmt] = []
    back: list[Stmt] = []
    numbers = numbers_of(r, s.array, s.index, found.return_type.ndim, forward, s.line)
    bar = Var(f"{s.array.name}_b")  # type: ignore[union-attr]
    term = call(r, back, helpers.withdrawn, bar, numbers, line=s.line)
    if r.is_active(s.value):
        spread(r, back, s.value, term, s.line)
    return Parts([*forward, s], back)


def may_write(s: Let) -> bool:
    """Whether there is a rule for a call or method that writes into an array."""
    return s.op == "method" and s.detail in (("fill", ()), ("sort", ()))


def writes(r: Any, s: Let) -> Any:
    """A method that writes into an active array."""
    bar = Var(f"{s.args[0].name}_b")  # type: ignore[union-attr]
    back: list[Stmt] = []
    if s.detail == ("fill", ()):
        if r.is_active(s.args[1]):
            spread(r, back, s.args[1], bar, s.line)
        back.append(Do(Let("_", "method", (bar, Const(0.0)), ("fill", ()), s.line), s.line))
        return Parts([s], back)
    if s.detail == ("sort", ()) and real_vectors(r.type_of(s.args[0])):
        order = ordering(r, s)
        undo = Let("_", "call", (Ref(helpers.unsort, "unsort"), bar, Var(order.target)), (), s.line)
        return Parts([order, s], [Do(undo, s.line)])
    raise r.refuse(f"`{name_of(s)}`, which writes into an array,", s.line)


def ordering(r: Any, s: Let) -> Let:
    """The statement that computes how a vector will be sorted."""
    name = r.fresh("order")
    r.types[name] = types.Array(types.int64, 1, "C")
    return Let(name, "call", (Ref(helpers.order_of, "order_of"), s.args[0]), (), s.line)


def forward_writes(t: Any, s: Let, out: list[Stmt]) -> None:
    """A method that writes into an active array, with its tangent."""
    bar = Var(f"{s.args[0].name}_d")  # type: ignore[union-attr]
    if s.detail == ("fill", ()):
        x_dot = t.dot(s.args[1])
        filled = Let("_", "method", (bar, Const(0.0) if x_dot is None else x_dot), s.detail, s.line)
        out += [s, Do(filled, s.line)]
        return
    if s.detail == ("sort", ()) and real_vectors(t.type_of(s.args[0])):
        order = ordering(t, s)
        again = Let("_", "call", (Ref(helpers.resort, "resort"), bar, Var(order.target)), (), s.line)
        out += [order, s, Do(again, s.line)]
        return
    raise t.refuse(f"`{name_of(s)}`, which writes into an array,", s.line)


# Forward --------------------------------------------------------------------------------------------------------------


def forward(t: Any, s: Let, out: list[Stmt]) -> None:
    """A statement whose operands or result are arrays, with the tangent of its result."""
    z = t.d(s.target)
    key = key_of(s)
    kind = t.types.get(s.target)
    if t.lane is None and (not out or out[-1] is not s):
        out.append(s)
    if s.op == "call" and key in CREATION:
        refuse_numbers(t, s)
        out.append(t.nothing(s.target))
        return
    if s.op == "call" and scalars.is_constant(key, [t.type_of(a) for a in s.args]):
        out.append(t.nothing(s.target))
        return
    if key is np.broadcast_to:
        refuse_written_copies(t, s, key, out)
    given = [Var(name) for name in parts_of(t, s)[0]] if s.op == "call" and key in JOINS else s.args
    if not any(map(t.is_active, given)) and not isinstance(kind, types.BaseTuple):
        out.append(t.nothing(s.target))  # only what is written into it later has a tangent
        return
    if s.op == "item":
        out.append(Let(z, "item", (t.dot(s.args[0]), s.args[1]), None, s.line))
    elif s.op == "call" and key in JOINS:
        forward_join(t, s, z, out)
    elif s.op == "call" and key is helpers.array_of:
        dots = [t.dot(x) or Const(0.0) for x in s.args[1:]]
        found = call(t, out, helpers.array_of, *dots, line=s.line)
        out.append(Let(z, "call", (Ref(helpers.fitted, "fitted"), Var(s.target), found), (), s.line))
    elif s.op == "call" and key in (np.full, np.full_like):
        x_dot = t.dot(s.args[2]) if len(s.args) > 2 else None
        if x_dot is None:
            raise t.refuse(f"this form of `{name_of(s)}`", s.line)
        out.append(Let(z, "call", (Ref(helpers.fitted, "fitted"), Var(s.target), x_dot), (), s.line))
    elif _has_row(key):
        forward_row(t, s, ROWS[key], z, kind, out)
    elif s.op in ("binary", "unary", "call") and is_array(kind):
        refuse_options(t, s)
        found = summed(t, s, out)
        if found is None:
            out.append(t.nothing(s.target))
        else:
            out.append(Let(z, "call", (Ref(helpers.fitted, "fitted"), Var(s.target), found), (), s.line))
    else:
        raise t.refuse(f"`{name_of(s)}` of arrays", s.line)


def summed(t: Any, s: Let, out: list[Stmt]) -> Operand | None:
    """The sum of dz/dx * x_dot of an elementwise function."""
    total: Operand | None = None
    for position, slope in t.slopes(s, out):
        x_dot = t.dot(s.args[position])
        if x_dot is None:
            continue
        if slope == -1:
            x_dot = t.emit(out, "unary", (x_dot,), "-", s.line)
        elif slope != 1:
            x_dot = t.emit(out, "binary", (slope, x_dot), "*", s.line)
        total = x_dot if total is None else t.emit(out, "binary", (total, x_dot), "+", s.line)
    return total


def forward_row(t: Any, s: Let, made: Row, z: str, kind: Any, out: list[Stmt]) -> None:
    """The tangent of the result of a function that has a row."""
    given = operands_of(t, s, made)
    first = 1 if s.op == "call" else 0
    if made.dot is SAME:
        args = list(s.args)
        args[first] = t.dot(args[first])
        found = t.emit(out, s.op, tuple(args), s.detail, s.line)
    elif made.dot is EACH:
        terms: list[Operand] = []
        for k in (first, first + 1):
            x_dot = t.dot(s.args[k])
            if x_dot is not None:
                args = [x_dot if n == k else a for n, a in enumerate(s.args)]
                terms.append(t.emit(out, s.op, tuple(args), s.detail, s.line))
        found = terms[0] if len(terms) == 1 else t.emit(out, "binary", tuple(terms), "+", s.line)
    else:
        dots: list[Operand] = []
        for name in made.bars:
            x = given[name]
            x_dot = t.dot(x)
            if x_dot is None and isinstance(t.type_of(x), types.Array):
                x_dot = t.emit(out, "call", (Ref(np.zeros_like, "zeros_like"), x), (), s.line)
            dots.append(Const(0.0) if x_dot is None else x_dot)
        args = [*dots, Var(s.target), *given.values()]
        found = call(t, out, made.dot, *args[: made.dot.__code__.co_argcount], line=s.line)
    if isinstance(kind, types.BaseTuple):
        for k, part in enumerate(kind):
            leaf = f"{s.target}_p{k}"
            if has_tangent(part):
                out.append(Let(t.d(leaf), "item", (found, Const(k)), None, s.line))
    elif is_array(kind) and (made.dot is not SAME or name_of(s) in MAYBE_VIEWS):
        out.append(Let(z, "call", (Ref(helpers.fitted, "fitted"), Var(s.target), found), (), s.line))
    else:
        out.append(Let(z, "copy", (found,), None, s.line))


def forward_join(t: Any, s: Let, z: str, out: list[Stmt]) -> None:
    """The tangents joined."""
    names, _, _ = parts_of(t, s)
    dots: list[Operand] = []
    for name in names:
        x_dot = t.dot(Var(name))
        if x_dot is None:
            x_dot = t.emit(out, "call", (Ref(np.zeros_like, "zeros_like"), Var(name)), (), s.line)
        dots.append(x_dot)
    joined = t.emit(out, "tuple", tuple(dots), None, s.line)
    args = tuple(joined if k == 1 else a for k, a in enumerate(s.args))
    out.append(Let(z, "call", args, s.detail, s.line))


__all__ = [
    "CREATION",
    "ROWS",
    "forward",
    "forward_writes",
    "is_copy",
    "is_fancy",
    "may_write",
    "reverse",
    "store",
    "writes",
]
